#!/usr/bin/env python3
"""Writes a small GGUF model with random weights, of one of the families whose layers differ from each other or that have
experts in most of them, with the metadata keys and the tensors that published files of that family have. Made the models of
more/, each with the options of its line in models.txt. Needs numpy.

  more_gguf.py bailingmoe2 OUT.gguf --groups 4 --groups-used 2 --nextn 1
  more_gguf.py cohere2 OUT.gguf --window 5 --set logit_scale=0.1
  more_gguf.py --lines FOLDER [NAME...]      FOLDER/NAME.gguf by its line of models.txt, of all names or these

As family_gguf.py, which makes the models of families/; what both need is there.
"""
import argparse
import os
import sys
import zlib
from typing import Callable, NamedTuple

import numpy as np

from family_gguf import BIAS, EXPERTS, FFN, PRE, QK_NORM, SHARED, WIDE_QK_NORM, values, vocabulary, write

# Tensors of a layer as in family_gguf.py: name, then dims in the letters of sizes(). A is the width of all values of a
# layer (keys are K), O that of what its heads give; both differ from K and Q where value_length does.
QKV = ["attn_q E Q", "attn_k E K", "attn_v E A", "attn_output O E"]
PACKED_QKV = ["attn_qkv E Q+K+A", "attn_output O E"]
UP_DOWN = ["ffn_up E F", "ffn_down F E"]                           # a network without a gate
ROUTER_BIAS = ["exp_probs_b.bias X"]
# Of a block that guesses a second token (the last blocks of a file): not run.
NEXTN = ["nextn.eh_proj E+E E", "nextn.enorm E", "nextn.hnorm E", "nextn.embed_tokens E V", "nextn.shared_head_head E V",
         "nextn.shared_head_norm E"]


def local(m, l): return bool(m.window) and (l % m.period != 0 if m.global_first else l % m.period < m.period - 1)


def sizes(m, l):
    h, k = (m.heads_swa, m.kv_heads_swa) if local(m, l) else (m.heads, m.kv_heads)
    gate = h if m.gate == "head" else h * m.head_dim
    return dict(E=m.embd, H=h, Q=h * m.head_dim, K=k * m.head_dim, A=k * m.value_dim, O=h * m.value_dim, D=m.head_dim, F=m.ffn,
                X=m.experts, G=m.expert_ffn, S=FAMILIES[m.arch].shared(m), R=m.rope_dims // 2, V=m.vocab, T=gate)


def ffn(m, l, more=[]):
    """Dense in the leading layers, then experts with what is beside them."""
    return FFN if l < m.dense else EXPERTS + more


def nextn(m, l, more=[]): return NEXTN + more if l >= m.layers else []


# Metadata that several families have.
def llama(m): return {"vocab_size": m.vocab, "rope.dimension_count": m.rope_dims}
def partial(m): return {"rope.dimension_count": m.rope_dims}
def head(m): return {"attention.key_length": m.head_dim, "attention.value_length": m.value_dim}
def routed(m): return {"expert_count": m.experts, "expert_used_count": m.experts_used, "expert_feed_forward_length": m.expert_ffn}
def shared(m): return {"expert_shared_feed_forward_length": m.shared_ffn} if m.shared_ffn else {}
def count(m): return {"expert_shared_count": m.shared_experts}
def dense(m): return {"leading_dense_block_count": m.dense}
def groups(m): return {"expert_group_count": m.groups, "expert_group_used_count": m.groups_used}
def weights(m): return {"expert_gating_func": 2, "expert_weights_scale": m.scale, "expert_weights_norm": True}
def guess(m): return {"nextn_predict_layers": m.nextn} if m.nextn else {}
def sections(m): return {"rope.dimension_sections": [int(s) for s in m.sections.split(",")]}
def window(m): return {"attention.sliding_window": m.window}
def pattern(m, kind=bool): return {"attention.sliding_window_pattern": [kind(local(m, l)) for l in range(m.layers + m.nextn)]}
def by_kind(m, name, full, swa): return {name: [swa if local(m, l) else full for l in range(m.layers + m.nextn)]}


class Family(NamedTuple):
    layer: Callable                  # m, l -> tensors of layer l
    keys: Callable                   # m -> metadata beyond the common keys
    defaults: dict = {}              # option values other than COMMON's
    shared: Callable = lambda m: m.shared_ffn   # width of the shared expert


FAMILIES = {
    "qwen3vl": Family(lambda m, l: PRE + QKV + QK_NORM + FFN,
                      lambda m: {**head(m), **sections(m), "n_deepstack_layers": 3}, dict(head_dim=24, sections="5,4,3,0", base=50.0)),
    "qwen3vlmoe": Family(lambda m, l: PRE + QKV + QK_NORM + EXPERTS,
                         lambda m: {**head(m), **sections(m), **routed(m), "n_deepstack_layers": 3},
                         dict(head_dim=24, sections="5,4,3,0", expert_ffn=40, base=50.0)),
    "qwen2vl": Family(lambda m, l: PRE + QKV + BIAS + FFN, sections, dict(sections="2,3,3,0")),
    "olmoe": Family(lambda m, l: PRE + QKV + WIDE_QK_NORM + EXPERTS,
                    lambda m: {k: v for k, v in routed(m).items() if "length" not in k}, dict(kv_heads=4, ffn=40, expert_ffn=40)),
    "ernie4_5-moe": Family(lambda m, l: PRE + QKV + ffn(m, l, ROUTER_BIAS + (SHARED if m.shared_ffn else [])),
                           lambda m: {**head(m), **routed(m), **shared(m), **count(m), **dense(m), "interleave_moe_layer_step": 1},
                           dict(dense=1, expert_ffn=40, shared_ffn=56, shared_experts=2, head_dim=24, tied=True)),
    "bailingmoe2": Family(lambda m, l: PRE + PACKED_QKV + QK_NORM + ffn(m, l, ROUTER_BIAS + SHARED) + nextn(m, l, ["layer_output_norm E"]),
                          lambda m: {"vocab_size": m.vocab, **head(m), **partial(m), **routed(m), **shared(m), **count(m), **dense(m),
                                     **groups(m), **weights(m), **guess(m)},
                          dict(dense=1, experts=12, experts_used=3, groups=4, groups_used=2, expert_ffn=32, shared_ffn=40,
                               scale=2.5, rope_dims=8), lambda m: (m.shared_ffn or m.expert_ffn) * m.shared_experts),
    "glm4moe": Family(lambda m, l: ["attn_norm E", "post_attention_norm E"] + QKV + BIAS + QK_NORM + ffn(m, l, ROUTER_BIAS + SHARED)
                      + nextn(m, l),
                      lambda m: {**head(m), **partial(m), **routed(m), **count(m), **dense(m), **groups(m), **weights(m), **guess(m),
                                 **(sections(m) if m.sections else {})},
                      dict(dense=1, nextn=1, head_dim=24, rope_dims=12, expert_ffn=32, scale=1.0),
                      lambda m: m.expert_ffn * m.shared_experts),
    "hunyuan-moe": Family(lambda m, l: PRE + QKV + QK_NORM + EXPERTS + SHARED,
                          lambda m: {**head(m), **routed(m), **shared(m), **count(m), "rope.scaling.type": "none", "rope.scaling.factor": 1.0},
                          dict(head_dim=24, ffn=40, expert_ffn=40, shared_ffn=56, tied=True)),
    "minimax-m2": Family(lambda m, l: PRE + QKV + WIDE_QK_NORM + EXPERTS + ROUTER_BIAS,
                         lambda m: {**head(m), **partial(m), **routed(m), "expert_gating_func": 2},
                         dict(head_dim=24, rope_dims=12, ffn=40, expert_ffn=40, experts=8, experts_used=3)),
    "seed_oss": Family(lambda m, l: ["attn_norm E", "post_attention_norm E"] + QKV + BIAS + FFN, head, dict(head_dim=24)),
    "cohere2": Family(lambda m, l: ["attn_norm E"] + QKV + FFN,
                      lambda m: {**llama(m), **window(m), "logit_scale": 0.25, "rope.scaling.type": "none"},
                      dict(layers=5, window=5, tied=True)),
    "dots1": Family(lambda m, l: PRE + QKV + QK_NORM + ffn(m, l, ROUTER_BIAS + SHARED),
                    lambda m: {**head(m), **routed(m), **count(m), **dense(m), **groups(m), **weights(m)},
                    dict(dense=1, kv_heads=4, head_dim=24, expert_ffn=32, shared_experts=2, scale=2.5),
                    lambda m: m.expert_ffn * m.shared_experts),
    "exaone-moe": Family(lambda m, l: PRE + QKV + QK_NORM + (FFN if l >= m.layers else ffn(m, l, ROUTER_BIAS + SHARED)) + nextn(m, l),
                         lambda m: {"vocab_size": m.vocab, **head(m), **window(m), **pattern(m), **routed(m), **shared(m), **count(m),
                                    **dense(m), **groups(m), **weights(m), **guess(m), "rope.scaling.type": "none"},
                         dict(layers=4, dense=1, nextn=1, head_dim=24, ffn=64, expert_ffn=32, shared_ffn=40, scale=2.5, window=5),
                         lambda m: m.shared_ffn or m.expert_ffn),
    "afmoe": Family(lambda m, l: PRE + ["post_attention_norm E", "post_ffw_norm E", "attn_gate E Q"] + QKV + QK_NORM
                    + ffn(m, l, ROUTER_BIAS + SHARED),
                    lambda m: {**llama(m), **head(m), **window(m), **routed(m), **count(m), **dense(m), **groups(m), **weights(m)},
                    dict(layers=5, dense=2, head_dim=24, ffn=64, expert_ffn=32, scale=2.826, window=5),
                    lambda m: m.expert_ffn * m.shared_experts),
    "arcee": Family(lambda m, l: PRE + QKV + UP_DOWN, lambda m: {**llama(m), **head(m)}, dict(head_dim=24, yarn=4.0, orig_ctx=16, base=100.0)),
    "apertus": Family(lambda m, l: PRE + QKV + QK_NORM + UP_DOWN, lambda m: {**llama(m), **head(m), **xielu(m)},
                      dict(head_dim=24, freqs=True)),
    "mimo2": Family(lambda m, l: PRE + (PACKED_QKV if m.packed else QKV) + (["attn_sinks H"] if local(m, l) else [])
                    + (FFN if l >= m.layers else ffn(m, l, ROUTER_BIAS)) + nextn(m, l, ["layer_output_norm E"]),
                    lambda m: {**head(m), **partial(m), **by_kind(m, "attention.head_count_kv", m.kv_heads, m.kv_heads_swa), **window(m),
                               **pattern(m, int), **routed(m), **groups(m), "expert_gating_func": 2, "attention.value_scale": 0.707, **guess(m)},
                    dict(layers=4, dense=1, heads=4, kv_heads=1, kv_heads_swa=2, head_dim=24, value_dim=16, rope_dims=8, ffn=64,
                         expert_ffn=32, window=5, global_first=True, period=3, base=2000.0, base_swa=300.0)),
    "laguna": Family(lambda m, l: PRE + QKV + ["attn_gate E T"] + QK_NORM + ffn(m, l, ROUTER_BIAS + SHARED),
                     lambda m: {"vocab_size": m.vocab, **head(m), **by_kind(m, "attention.head_count", m.heads, m.heads_swa),
                                **(window(m) if m.window else {}), **partial(m), "rope.dimension_count_swa": m.rope_dims_swa,
                                **routed(m), **shared(m), **dense(m), **weights(m)},
                     dict(layers=5, dense=2, heads=4, heads_swa=6, kv_heads=2, head_dim=16, rope_dims=8, ffn=64, expert_ffn=32,
                          shared_ffn=40, scale=2.5, window=5, global_first=True, base=2000.0, base_swa=300.0, yarn=4.0, orig_ctx=64),
                     lambda m: m.shared_ffn or m.expert_ffn * m.shared_experts),
    "nanbeige": Family(lambda m, l: PRE + QKV + FFN,
                       lambda m: {**llama(m), **head(m), "num_loops": m.loops, "skip_loop_final_norm": False}, dict(head_dim=24, loops=2)),
    "step35": Family(lambda m, l: PRE + QKV + ["attn_gate E T"] + QK_NORM + (FFN if l >= m.layers else ffn(m, l, ROUTER_BIAS + SHARED))
                     + nextn(m, l),
                     lambda m: {**head(m), **by_kind(m, "attention.head_count", m.heads, m.heads_swa),
                                **by_kind(m, "attention.head_count_kv", m.kv_heads, m.kv_heads_swa), **window(m), **pattern(m),
                                **routed(m), **shared(m), **dense(m), **weights(m), **guess(m), **clamps(m)},
                     dict(layers=5, dense=2, heads=4, heads_swa=6, kv_heads=2, kv_heads_swa=1, head_dim=16, ffn=64, expert_ffn=32,
                          shared_ffn=40, scale=3.0, window=5, global_first=True, base=2000.0, base_swa=300.0, freqs=True, std=0.3)),
}
COMMON = dict(embd=64, heads=4, kv_heads=2, heads_swa=None, kv_heads_swa=None, head_dim=None, value_dim=None, ffn=96, layers=3, vocab=320,
              ctx=4096, rope_dims=None, rope_dims_swa=None, base=500.0, base_swa=None, experts=6, experts_used=2, expert_ffn=None,
              shared_ffn=0, shared_experts=1, dense=0, groups=1, groups_used=1, scale=1.0, nextn=0, window=0, period=4, loops=1,
              sections=None, orig_ctx=None, yarn=None, linear=None, gate="head", eps=1e-5, packed=False, global_first=False, freqs=False,
              tied=False, std=0.2)


def xielu(m):
    """Keys without the architecture's name: one value a layer, eps the same in all."""
    r = np.random.default_rng([m.seed, 77])
    some = lambda: [float(v) for v in np.float32(0.8 * r.standard_normal(m.layers))]
    return {"/xielu.alpha_n": some(), "/xielu.alpha_p": some(), "/xielu.beta": [0.5] * m.layers, "/xielu.eps": [-1e-6] * m.layers}


def clamps(m):
    """Limits in the last layers, none before: the experts' in the last two, the other network's in the last and the first."""
    n = m.layers
    return {"swiglu_clamp_exp": [0.7 if n - 2 <= l < n else 0.0 for l in range(n + m.nextn)],
            "swiglu_clamp_shexp": [1.1 if l in (0, n - 1) else 0.0 for l in range(n + m.nextn)]}


def metadata(m, family):
    common = {"context_length": m.ctx, "embedding_length": m.embd, "block_count": m.layers + m.nextn, "feed_forward_length": m.ffn,
              "attention.head_count": m.heads, "attention.head_count_kv": m.kv_heads,
              "attention.layer_norm_epsilon" if m.arch == "cohere2" else "attention.layer_norm_rms_epsilon": m.eps}
    if m.base: common["rope.freq_base"] = m.base
    if m.base_swa: common["rope.freq_base_swa"] = m.base_swa
    if m.linear: common.update({"rope.scaling.type": "linear", "rope.scaling.factor": m.linear})
    if m.yarn: common.update({"rope.scaling.type": "yarn", "rope.scaling.factor": m.yarn,
                              "rope.scaling.original_context_length": m.orig_ctx or m.ctx})
    return {k[1:] if k[0] == "/" else "%s.%s" % (m.arch, k): v for k, v in {**common, **family.keys(m)}.items()}


def tensors(m, family):
    """(name, dims, type) of every tensor, in the file's order."""
    out = []

    def add(prefix, line, size):
        name, *dims = line.split()
        name = prefix + name + ("" if name.endswith((".weight", ".bias")) else ".weight")
        dims = [sum(size[c] for c in d.split("+")) for d in dims]
        out.append((name, dims, "f32"))
    top = sizes(m, 0)
    for line in ["token_embd E V"] + (["rope_freqs R"] if m.freqs else []): add("", line, top)
    for l in range(m.layers + m.nextn):
        for line in family.layer(m, l): add("blk.%d." % l, line, sizes(m, l))
    for line in ["output_norm E"] + ([] if m.tied else ["output E V"]): add("", line, top)
    return out


def parse(argv):
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("arch", choices=FAMILIES)
    p.add_argument("out")
    p.add_argument("--seed", type=int, default=1)
    for name, value in COMMON.items():
        flag = "--" + {"base": "rope-base", "base_swa": "rope-base-swa"}.get(name, name).replace("_", "-")
        if isinstance(value, bool): p.add_argument(flag, dest=name, action=argparse.BooleanOptionalAction)
        elif name in ("sections", "gate"): p.add_argument(flag, dest=name)
        else: p.add_argument(flag, dest=name, type=float if name in ("base", "base_swa", "yarn", "linear", "std", "scale", "eps") else int)
    p.add_argument("--set", action="append", default=[], metavar="KEY=VALUE",
                   help="a metadata key, without the architecture's name (a slash before it: the whole name); lists with commas")
    p.add_argument("--drop", action="append", default=[], metavar="NAME", help="leave out that key, or the tensors so named")
    m = p.parse_args(argv); d = {**COMMON, **FAMILIES[m.arch].defaults}
    for name in d:
        if getattr(m, name) is None: setattr(m, name, d[name])
    m.head_dim = m.head_dim or m.embd // m.heads; m.rope_dims = m.rope_dims or m.head_dim
    m.value_dim = m.value_dim or m.head_dim; m.rope_dims_swa = m.rope_dims_swa or m.head_dim
    m.heads_swa = m.heads_swa or m.heads; m.kv_heads_swa = m.kv_heads_swa or m.kv_heads
    m.expert_ffn = m.expert_ffn or m.ffn
    return m


def value_of(text, old):
    """What --set says, in the type that the key has; a new key's type is guessed."""
    if isinstance(old, list) or "," in text:
        return [value_of(t, old[0] if old else None) for t in text.split(",")]
    guess = float if "." in text else int if text.isdigit() else bool if text in ("true", "false") else str
    kind = guess if old is None else type(old)
    return text == "true" if kind is bool else kind(text)


def contents(m, name, dims, kind):
    if name != "rope_freqs.weight": return values(m, name, dims, kind)
    turned = dims[0] // 2 if m.arch == "step35" else dims[0]  # layers without a window rotate half
    length = 2 * np.pi * np.power(m.base, np.arange(turned) / turned)  # Llama 3.1's rule, trained with 64 positions
    mix = np.clip((64 / length - 1) / (4 - 1), 0, 1)
    return np.concatenate([1 / ((1 - mix) / 8 + mix), np.ones(dims[0] - turned)]).astype("<f4").tobytes()


def make(argv):
    m = parse(argv); keys = metadata(m, FAMILIES[m.arch])
    for item in m.set:
        key, _, text = item.partition("="); key = key[1:] if key[0] == "/" else m.arch + "." + key
        keys[key] = value_of(text, keys.get(key))
    keys = {k: v for k, v in keys.items() if k not in m.drop and k.partition(".")[2] not in m.drop}
    plan = [(name, dims, kind, contents(m, name, dims, kind)) for name, dims, kind in tensors(m, FAMILIES[m.arch])
            if not any(d in name for d in m.drop)]
    write(m.out, {"general.architecture": m.arch, "general.type": "model", "general.name": m.arch + " (random weights)",
                  "general.file_type": 0, "general.quantization_version": 2, **keys,
                  **{"tokenizer.ggml." + k: v for k, v in vocabulary(m.vocab).items()}}, plan)


def main(argv):
    if argv[:1] != ["--lines"]:
        return make(argv)
    folder, *names = argv[1:]
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "more", "models.txt")) as lines:
        for name, arch, *options in map(str.split, lines):
            if not names or name in names:
                make([arch, os.path.join(folder, name + ".gguf"), *options])


if __name__ == "__main__":
    main(sys.argv[1:])
