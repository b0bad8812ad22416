"""The logits of families whose layers differ in heads, windows and ropes, and in whether they have experts: those of more/.

Written from the definitions of the families alone, not from the engine. FAMILIES says what neither keys nor the presence
of tensors do.
"""
from typing import NamedTuple

import numpy as np

from references.arithmetic import largest, linear, rms_norm, rotate, sigmoid, silu, softmax, stretched, unit_rms
from references.dense import output_matrix


class Family(NamedTuple):
    """The defaults are those of most."""
    adjacent: bool = False       # rope rotates the pairs (2i, 2i + 1) of a head, not (i, i + R/2)
    ffn_norm: str = "ffn_norm"
    qk_norm: str = ""            # "head" by head, "wide" over all heads, or head by head "after" rope; where there are tensors
    sections: str = ""           # pairs of a head that belong to time, height and width: "order" or "turn"
    period: int = 0              # of windows
    first: bool = False          # the first layer of a period sees everything, not the last
    listed: bool = False         # a list says which layers have windows
    rope_in_windows: bool = False  # the others do not rotate
    local_rope: str = ""         # of layers with a window: "base" has another, "plain" another that is not stretched
    local_base: float = None     # where the file has none
    gate: str = ""               # of router: "softmax", "sigmoid"; "keys" or "sigmoid keys": as the keys say
    normed: bool = False         # of the experts' weights, where no key says so


FAMILIES = {
    "qwen3vl": Family(qk_norm="head", sections="turn"),
    "qwen3vlmoe": Family(qk_norm="head", sections="turn", gate="softmax", normed=True),
    "qwen2vl": Family(sections="order"),
    "olmoe": Family(qk_norm="wide", gate="softmax"),
    "ernie4_5-moe": Family(adjacent=True, gate="softmax", normed=True),
    "bailingmoe2": Family(qk_norm="head", gate="keys"),
    "glm4moe": Family(ffn_norm="post_attention_norm", qk_norm="head", sections="order", gate="sigmoid keys"),
    "hunyuan-moe": Family(qk_norm="after", gate="softmax", normed=True),
    "minimax-m2": Family(qk_norm="wide", gate="sigmoid", normed=True),
    "seed_oss": Family(ffn_norm="post_attention_norm"),
    "cohere2": Family(adjacent=True, ffn_norm="", period=4, rope_in_windows=True),
    "dots1": Family(qk_norm="head", gate="keys"),
    "exaone-moe": Family(qk_norm="head", period=4, rope_in_windows=True, gate="keys"),
    "afmoe": Family(qk_norm="head", period=4, local_rope="base", gate="sigmoid keys"),
    "arcee": Family(adjacent=True),
    "apertus": Family(qk_norm="head"),
    "mimo2": Family(listed=True, local_rope="plain", local_base=10000.0, gate="sigmoid", normed=True),
    "laguna": Family(qk_norm="head", period=4, first=True, local_rope="plain", gate="sigmoid keys"),
    "nanbeige": Family(adjacent=True),
    "step35": Family(qk_norm="head", listed=True, local_rope="plain", local_base=10000.0, gate="sigmoid keys"),
}


def of(model): return FAMILIES[model.arch]


def by_layer(value, l):
    """A key that has one value for all layers or a list of them."""
    return value[l] if isinstance(value, list) else value


# --- Norms ----------------------------------------------------------------------------------------

def norm(model, name, x):
    """Of the residual stream."""
    if model.arch == "cohere2":
        x = x - x.mean(axis=-1, keepdims=True)
    return unit_rms(model, x) * model.tensors[name + ".weight"]


def layer_norm(model, l, name, x): return norm(model, "blk.%d.%s" % (l, name), x)


# --- Rope -----------------------------------------------------------------------------------------

def rotates(model, pair):
    """Whether a pair of a head rotates in text. A position's time, height and width are equal; a fourth number is 0."""
    time, height, width, other = (model.key("rope.dimension_sections", [0, 0, 0, 0]) + [0])[:4]
    n = time + height + width + other
    if n == 0 or not of(model).sections:
        return True
    j = pair % n
    if of(model).sections == "order":
        return j < time + height + width
    return j < 3 * (time, height, width)[j % 3]


def rope_table(model, l, n):
    """(cosines, sines) [n, pairs] of the positions 0 .. n - 1 in layer l; None where it has no rope."""
    family, local = of(model), is_local(model, l)
    if family.rope_in_windows and not local or model.arch == "afmoe" and (l + 1) % 4 == 0:
        return None
    base, width = model.key("rope.freq_base", 10000.0), model.R
    if local and family.local_rope:
        base = model.key("rope.freq_base_swa", family.local_base or base)
    plain = local and family.local_rope == "plain"
    if plain:
        width = model.key("rope.dimension_count_swa", width)
    elif model.arch == "step35":
        width //= 2
    theta = np.arange(n)[:, None] * base ** (-2.0 * np.arange(width // 2) / width)
    theta = theta * [rotates(model, i) for i in range(width // 2)]
    m = 1.0
    if not plain:
        theta = theta / model.tensors.get("rope_freqs.weight", np.ones(width // 2))[:width // 2]
        theta, m = stretched(model, base, width, theta)
    return m * np.cos(theta), m * np.sin(theta)


# --- Attention ------------------------------------------------------------------------------------

def is_local(model, l):
    family, pattern = of(model), model.key("attention.sliding_window_pattern", None)
    if model.key("attention.sliding_window", 0) == 0:
        return False
    if family.listed:
        return bool(pattern[l])
    period = pattern if isinstance(pattern, int) else family.period
    return period == 0 or (l % period != 0 if family.first else l % period != period - 1)


def heads_norm(model, l, name, x, wide):
    """x: [T, heads, D]"""
    if not model.has(l, name):
        return x
    return rms_norm(model, l, name, x.reshape(len(x), -1)).reshape(x.shape) if wide else rms_norm(model, l, name, x)


def queries_keys_values(model, l, x):
    n_heads, n_kv, D = by_layer(model.H, l), by_layer(model.n_kv_heads, l), model.D
    if model.has(l, "attn_qkv"):
        q, k, v = np.split(linear(model, l, "attn_qkv", x), np.cumsum([n_heads * D, n_kv * D]), axis=-1)
    else:
        q, k, v = (linear(model, l, "attn_" + name, x) for name in "qkv")
    q, k, v = q.reshape(len(x), n_heads, D), k.reshape(len(x), n_kv, D), v.reshape(len(x), n_kv, -1)
    how, table = of(model).qk_norm, rope_table(model, l, len(x))
    normed = lambda t, name: heads_norm(model, l, name, t, how == "wide") if how else t
    turned = lambda t: rotate(t, *table, of(model).adjacent) if table is not None else t
    if how == "after":
        return normed(turned(q), "attn_q_norm"), normed(turned(k), "attn_k_norm"), v
    return turned(normed(q, "attn_q_norm")), turned(normed(k, "attn_k_norm")), v


def attention(model, l, x):
    q, k, v = queries_keys_values(model, l, x)
    p = np.arange(len(x))
    visible = p[None, :] <= p[:, None]  # [query, key]
    if is_local(model, l):
        visible &= p[None, :] > p[:, None] - model.key("attention.sliding_window")
    sinks = model.tensors.get("blk.%d.attn_sinks.weight" % l)
    heads = []
    for h in range(q.shape[1]):
        kv_head = h // (q.shape[1] // k.shape[1])
        scores = np.where(visible, q[:, h] @ k[:, kv_head].T / np.sqrt(model.D), -np.inf)
        if sinks is not None:  # one more score in the softmax, without a value
            scores = np.concatenate([scores, np.full((len(x), 1), sinks[h])], axis=1)
        heads.append(softmax(scores)[:, :len(x)] @ v[:, kv_head])
    heads = np.stack(heads, axis=1)  # [T, heads, width of values]
    if model.has(l, "attn_gate"):
        gate = linear(model, l, "attn_gate", x)
        gate = np.log1p(np.exp(gate)) if model.arch == "laguna" else sigmoid(gate)
        heads = heads * gate.reshape(len(x), heads.shape[1], -1)  # by head, or by value
    return linear(model, l, "attn_output", heads.reshape(len(x), -1)) * model.scale("attention.value_scale")


# --- Feed-forward ---------------------------------------------------------------------------------

def xielu(model, l, x):
    beta, eps, alpha_n, alpha_p = (by_layer(model.metadata["xielu." + name], l) for name in ("beta", "eps", "alpha_n", "alpha_p"))
    positive, negative = np.log1p(np.exp(alpha_p)), beta + np.log1p(np.exp(alpha_n))
    return np.where(x > 0, positive * x * x, negative * (np.expm1(np.minimum(x, eps)) - x)) + beta * x


def feed_forward(model, l, x, suffix="", expert=None):
    up = linear(model, l, "ffn_up" + suffix, x, expert)
    if model.arch == "arcee":
        hidden = np.maximum(up, 0) ** 2
    elif model.arch == "apertus":
        hidden = xielu(model, l, up)
    else:
        gate = silu(linear(model, l, "ffn_gate" + suffix, x, expert))
        limit = by_layer(model.key("swiglu_clamp_exp" if suffix == "_exps" else "swiglu_clamp_shexp", 0.0), l) or np.inf
        hidden = np.minimum(gate, limit) * np.clip(up, -limit, limit)
    return linear(model, l, "ffn_down" + suffix, hidden, expert)


def in_best_groups(model, score):
    """Which experts may be taken: those of the groups whose two best together score most."""
    n, used = model.key("expert_group_count", 1) or 1, model.key("expert_group_used_count", 1) or 1
    if n <= 1:
        return np.ones(score.shape, bool)
    groups = np.sort(score.reshape(len(score), n, -1), axis=-1)[..., -2:].sum(axis=-1)
    return np.repeat(largest(model, groups, used), score.shape[-1] // n, axis=-1)


def routed(model, l, x):
    family, logits = of(model), linear(model, l, "ffn_gate_inp", x)
    gate, normed, factor = family.gate, family.normed, 1.0
    if "keys" in gate or model.arch == "minimax-m2":
        gate = {0: gate, 1: "softmax", 2: "sigmoid"}[model.key("expert_gating_func", 0)]
    if "keys" in family.gate:
        normed, factor = model.key("expert_weights_norm", False), model.scale("expert_weights_scale")
    p = softmax(logits) if gate == "softmax" else sigmoid(logits)
    score = p + model.tensors.get("blk.%d.exp_probs_b.bias" % l, 0.0)
    score = np.where(in_best_groups(model, score), score, -np.inf)
    weight = np.where(largest(model, score, model.key("expert_used_count")), p, 0)
    if normed:
        weight = weight / np.maximum(weight.sum(axis=-1, keepdims=True), 2.0**-14)
    y = np.zeros_like(x)
    for e in range(p.shape[1]):
        tokens = weight[:, e] != 0
        y[tokens] += factor * weight[tokens, e, None] * feed_forward(model, l, x[tokens], "_exps", e)
    return y + feed_forward(model, l, x, "_shexp") if model.has(l, "ffn_up_shexp") else y


# --- The model ------------------------------------------------------------------------------------

def layer(model, l, x):
    part = routed if model.has(l, "ffn_gate_inp") else feed_forward
    h = layer_norm(model, l, "attn_norm", x)
    delta = attention(model, l, h)
    if model.arch == "cohere2":  # both read the same
        return x + delta + part(model, l, h)
    if model.arch != "afmoe":
        x = x + delta
        return x + part(model, l, layer_norm(model, l, of(model).ffn_norm, x))
    x = x + layer_norm(model, l, "post_attention_norm", delta)
    return x + layer_norm(model, l, "post_ffw_norm", part(model, l, layer_norm(model, l, "ffn_norm", x)))


def stream(model, ids):
    """After the last layer: [T, E]."""
    x = model.tensors["token_embd.weight"][ids]
    if model.arch == "afmoe":
        x = x * np.sqrt(model.E)
    n_runs = model.key("num_loops", 1)
    for run in range(n_runs):
        for l in range(model.n_layers):
            x = layer(model, l, x)
        if run + 1 < n_runs and not model.key("skip_loop_final_norm", False):
            x = norm(model, "output_norm", x)
    return x


def nextn_logits(model, ids):
    """[T, vocabulary] of the first block after the layers: it reads a token's embedding and the stream of the token before."""
    blk, x = "blk.%d." % model.n_layers, stream(model, ids)
    tensor = lambda name, other: model.tensors.get(blk + name + ".weight", model.tensors.get(other))
    hidden = x if model.arch in ("mimo2", "step35") else norm(model, "output_norm", x)
    hidden = np.concatenate([np.zeros_like(hidden[:1]), hidden[:-1]])
    embedding = tensor("nextn.embed_tokens", "token_embd.weight")[ids]
    both = np.concatenate([norm(model, blk + "nextn.enorm", embedding), norm(model, blk + "nextn.hnorm", hidden)], axis=-1)
    y = layer(model, model.n_layers, both @ model.tensors[blk + "nextn.eh_proj.weight"].T)
    last = tensor("nextn.shared_head_norm", blk + "layer_output_norm.weight")
    y = unit_rms(model, y) * (last if last is not None else model.tensors["output_norm.weight"])
    return y @ tensor("nextn.shared_head_head", "output.weight").T


def logits(model, ids):
    """[T, vocabulary]"""
    x = stream(model, ids)
    return norm(model, "output_norm", x) @ output_matrix(model).T * (model.key("logit_scale") if model.arch == "cohere2" else 1)
