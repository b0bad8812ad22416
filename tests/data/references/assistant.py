"""Makes a small assistant (gemma4-assistant) for a small Gemma 4, and computes its drafts: assistants/.

The file has random weights and the keys and tensors of published assistants. For each beginning of the ids of two tokens
and more there are the logits of DRAFTS drafts, each the most likely token: [beginnings][DRAFTS][vocabulary]. Written from
the definitions, not from the engine: the reference of a whole text is that of hybrids.
"""
import numpy as np

import family_gguf
from references import hybrids
from references.arithmetic import Model, gelu, linear, rms_norm, softmax, unit_rms

DRAFTS = 3


def make(target, path, pattern, heads, embd, ffn, seed):
    """The file: queries only, and projections from and to the target's width."""
    key, rng = lambda name, *default: target.key(name, *default), np.random.default_rng(seed)
    n, wide = len(pattern), [key("attention.key_length"), key("attention.key_length_swa")]
    of_kind = {bool(hybrids.slides(target, l)): target.kv_heads(l) for l in range(target.n_layers)}
    keys = {"block_count": n, "context_length": key("context_length"), "embedding_length": embd, "embedding_length_out": target.E,
            "feed_forward_length": ffn, "attention.head_count": heads, "attention.head_count_kv": [of_kind[k == "s"] for k in pattern],
            "attention.layer_norm_rms_epsilon": target.epsilon, "attention.key_length": wide[0], "attention.value_length": wide[0],
            "attention.key_length_swa": wide[1], "attention.value_length_swa": wide[1], "attention.sliding_window": key("attention.sliding_window"),
            "attention.sliding_window_pattern": [k == "s" for k in pattern], "attention.shared_kv_layers": n, "nextn_predict_layers": n,
            "embedding_length_per_layer_input": 0, "rope.freq_base": key("rope.freq_base"), "rope.freq_base_swa": key("rope.freq_base_swa"),
            "rope.dimension_count": wide[0], "rope.dimension_count_swa": wide[1]}
    plan = {"token_embd": (embd, len(target.metadata["tokenizer.ggml.tokens"])), "output_norm": (embd,),
            "nextn.pre_projection": (2 * target.E, embd), "nextn.post_projection": (embd, target.E)}
    for l, kind in enumerate(pattern):
        width = wide[kind == "s"]
        plan.update({"blk.%d.%s" % (l, name): dims for name, dims in {
            "attn_norm": (embd,), "attn_q": (embd, heads * width), "attn_q_norm": (width,), "attn_output": (heads * width, embd),
            "post_attention_norm": (embd,), "ffn_norm": (embd,), "ffn_gate": (embd, ffn), "ffn_up": (embd, ffn), "ffn_down": (ffn, embd),
            "post_ffw_norm": (embd,), "layer_output_scale": (1,)}.items()})
    values = {name: rng.normal(1.0 if len(dims) == 1 else 0.0, 0.1 if len(dims) == 1 else 0.4, dims) for name, dims in plan.items()}
    values["rope_freqs"], plan["rope_freqs"] = target.tensors["rope_freqs.weight"], (wide[0] // 2,)
    arch = "gemma4-assistant"
    family_gguf.write(path, {"general.architecture": arch, "general.type": "model", **{arch + "." + k: v for k, v in keys.items()},
                             **{k: v for k, v in target.metadata.items() if k.startswith("tokenizer.")}},
                      [(name + ".weight", dims, "f32", values[name].astype("<f4").tobytes()) for name, dims in plan.items()])


def at(assistant, local, q, position):
    """Queries [heads, D] rotated to a position: pair i is (i, i + n / 2)."""
    kind = "_swa" if local else ""
    n, base = assistant.key("rope.dimension_count" + kind), assistant.key("rope.freq_base" + kind)
    angle = position * base ** (-2.0 * np.arange(n // 2) / n) / (1.0 if local else assistant.tensors["rope_freqs.weight"])
    a, b = q[:, :n // 2], q[:, n // 2:n]
    return np.concatenate([a * np.cos(angle) - b * np.sin(angle), a * np.sin(angle) + b * np.cos(angle), q[:, n:]], axis=-1)


def step(assistant, target, token, hidden, position, kept):
    """(logits, the next hidden state). kept: the target's keys and values of the positions before, for a window or not."""
    embedding = target.tensors["token_embd.weight"][token] * np.sqrt(target.E)
    x = assistant.tensors["nextn.pre_projection.weight"] @ np.concatenate([embedding, hidden])
    for l in range(assistant.key("block_count")):
        local = bool(assistant.key("attention.sliding_window_pattern")[l])
        k, v = kept[local]
        first = max(0, position - assistant.key("attention.sliding_window") + 1) if local else 0
        h = rms_norm(assistant, l, "attn_norm", x)
        q = rms_norm(assistant, l, "attn_q_norm", linear(assistant, l, "attn_q", h).reshape(assistant.H, -1))
        q, group = at(assistant, local, q, position), assistant.H // k.shape[1]
        out = [softmax(k[first:position, i // group] @ q[i]) @ v[first:position, i // group] for i in range(assistant.H)]
        x = x + rms_norm(assistant, l, "post_attention_norm", linear(assistant, l, "attn_output", np.concatenate(out)))
        h = rms_norm(assistant, l, "ffn_norm", x)
        h = linear(assistant, l, "ffn_down", gelu(linear(assistant, l, "ffn_gate", h)) * linear(assistant, l, "ffn_up", h))
        x = (x + rms_norm(assistant, l, "post_ffw_norm", h)) * assistant.tensors["blk.%d.layer_output_scale.weight" % l]
    x = unit_rms(assistant, x) * assistant.tensors["output_norm.weight"]
    return assistant.tensors["token_embd.weight"] @ x, assistant.tensors["nextn.post_projection.weight"] @ x


def drafts(path, out, ids, pattern="sfs", heads=4, embd=6, ffn=10, seed=1):
    """Writes OUT.gguf and OUT.f32, and returns by how much the most likely token is clear at least."""
    target = Model(path)
    make(target, out + ".gguf", pattern, heads, embd, ffn, seed)
    assistant, rows, margin = Model(out + ".gguf"), [], np.inf
    hidden = unit_rms(target, hybrids.trunk(target, np.array(ids))) * target.tensors["output_norm.weight"]
    # The last layer of each kind uses what the last of its kind among those with keys of their own kept.
    kept = {bool(hybrids.slides(target, l)): target.kept[l] for l in sorted(target.kept)}
    for n in range(2, len(ids) + 1):
        token, h = ids[n - 1], hidden[n - 2]
        for _ in range(DRAFTS):
            logits, h = step(assistant, target, token, h, n - 1, kept)
            token, best = int(np.argmax(logits)), np.sort(logits)[-2:]
            rows.append(logits)
            margin = min(margin, best[1] - best[0])
    np.array(rows).astype("<f4").tofile(out + ".f32")
    return margin
