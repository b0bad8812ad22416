"""The logits of families whose layers are all plain attention and alike, but for windows: those of families/.

Written from the definitions of the families alone, not from the engine. One function per concept; FAMILIES and what it
points to say how one family differs from another. All positions are computed at once.
"""
from typing import NamedTuple

import numpy as np

from references.arithmetic import gelu, largest, linear, rms_norm, rotate, sigmoid, silu, softmax, stretched, unit_rms


class Family(NamedTuple):
    """What neither keys nor the presence of tensors say. The defaults are llama's."""
    rope: str                  # "NORM" rotates the pairs (2i, 2i + 1) of a head, "NEOX" the pairs (i, i + R/2)
    ffn_norm: str = "ffn_norm" # the norm before the feed-forward
    pre: bool = True           # pre norm: RMSNorm of what attention and the feed-forward read
    post: bool = False         # post norm: RMSNorm of their results, before these are added
    qk_norm: str = ""          # RMSNorm of q and k: "head" by head, "wide" over all heads, or head by head "after" rope
    gate: str = "silu"         # the feed-forward's activation, see gated()
    plain_routing: bool = False  # experts' weights do not sum to one
    period: int = 0            # of windows: the last layer of each `period` sees everything. 0: the family has no windows


FAMILIES = {
    "llama": Family("NORM"),
    "qwen2": Family("NEOX"),
    "qwen3": Family("NEOX", qk_norm="head"),
    "qwen2moe": Family("NEOX", plain_routing=True),
    "qwen3moe": Family("NEOX", qk_norm="head"),
    "phi3": Family("NEOX"),
    "granite": Family("NORM"),
    "granitemoe": Family("NORM"),
    "smollm3": Family("NORM"),
    "mistral3": Family("NORM"),
    "gemma2": Family("NEOX", post=True, gate="gelu", period=2),
    "gemma3": Family("NEOX", post=True, qk_norm="head", gate="gelu", period=6),
    "gpt-oss": Family("NEOX", ffn_norm="post_attention_norm", gate="clamped", period=2),
    "olmo2": Family("NEOX", pre=False, post=True, qk_norm="wide", period=4),
    "glm4": Family("NORM", post=True),
    "bitnet": Family("NEOX"),
    "ernie4_5": Family("NORM"),
    "hunyuan-dense": Family("NEOX", qk_norm="after"),
    "exaone4": Family("NEOX", pre=False, post=True, qk_norm="head", period=4),
}


# --- Rope -----------------------------------------------------------------------------------------

def rope_base(model, local):
    base = model.key("rope.freq_base", 10000.0)
    if model.arch == "gemma3" and local:
        return model.key("rope.freq_base_swa", 10000.0)
    if model.arch in ("gemma2", "gpt-oss") and local:
        return model.key("rope.freq_base_swa", base)
    if model.arch == "hunyuan-dense" and model.key("rope.scaling.alpha", 0) > 0:
        return base * model.key("rope.scaling.alpha") ** (model.D / (model.D - 2))
    return base


def frequency_divisors(model):
    """F, one for each pair."""
    long = model.context > model.key("rope.scaling.original_context_length", model.key("context_length"))
    for name in ("rope_factors_long" if long else "rope_factors_short", "rope_freqs"):
        if name + ".weight" in model.tensors:
            return model.tensors[name + ".weight"]
    return 1.0


def rope_table(model, l, local, n):
    """(cosines, sines) [n, R/2] of the positions 0 .. n - 1 in layer l; None where the layer has no rope."""
    if model.arch == "smollm3" and (l + 1) % 4 == 0:
        return None
    if model.arch == "exaone4" and model.n_layers == 64 and not local:
        return None
    if model.arch in ("granite", "granitemoe") and not model.key("rope.scaling.finetuned", True):
        return None
    base = rope_base(model, local)
    theta = np.arange(n)[:, None] * base ** (-2.0 * np.arange(model.R // 2) / model.R)
    if model.arch == "olmo2" and local:
        return np.cos(theta), np.sin(theta)
    theta = theta / frequency_divisors(model)
    if model.arch == "gemma3" and local:
        m = model.key("rope.scaling.attn_factor", 1.0)
    else:
        theta, m = stretched(model, base, model.R, theta)
    return m * np.cos(theta), m * np.sin(theta)


def rope(model, x, table):
    """Rotates pairs of the first R values of every head. x: [T, heads, D]."""
    if table is None:
        return x
    return rotate(x, *table, model.family.rope == "NORM")


# --- Attention ------------------------------------------------------------------------------------

def window(model):
    """How many keys a position sees in local layers, itself included; 0: there are no local layers."""
    if not model.family.period or (model.arch == "exaone4" and model.n_layers != 64):
        return 0
    absent = {"gemma2": 4096, "exaone4": 4096, "gemma3": 0, "olmo2": 0}
    return model.key("attention.sliding_window", *([absent[model.arch]] if model.arch in absent else []))


def is_local(model, l):
    period = model.key("attention.sliding_window_pattern", None)
    if not isinstance(period, int):  # absent, or a list that agrees with the family's period
        period = model.family.period
    return window(model) > 0 and (period == 0 or l % period < period - 1)


def score_scale(model):
    if model.arch in ("granite", "granitemoe"):
        return model.scale("attention.scale", 1 / np.sqrt(model.D))
    if (model.arch, model.n_layers) in (("gemma2", 46), ("gemma3", 62)):
        return 1 / np.sqrt(model.E // model.H)
    return 1 / np.sqrt(model.D)


def queries_keys_values(model, l, x):
    """[T, heads, D] each."""
    if model.has(l, "attn_qkv"):
        rows = np.cumsum([model.H * model.D, model.n_kv_heads * model.D])
        q, k, v = np.split(linear(model, l, "attn_qkv", x), rows, axis=-1)
    else:
        q, k, v = (linear(model, l, "attn_" + name, x) for name in "qkv")
    if model.family.qk_norm == "wide":
        q, k = rms_norm(model, l, "attn_q_norm", q), rms_norm(model, l, "attn_k_norm", k)
    q, k, v = (t.reshape(len(x), -1, model.D) for t in (q, k, v))
    if model.family.qk_norm == "head":
        q, k = rms_norm(model, l, "attn_q_norm", q), rms_norm(model, l, "attn_k_norm", k)
    table = rope_table(model, l, is_local(model, l), len(x))
    q, k = rope(model, q, table), rope(model, k, table)
    if model.family.qk_norm == "after":
        q, k = rms_norm(model, l, "attn_q_norm", q), rms_norm(model, l, "attn_k_norm", k)
    return q, k, v


def attention(model, l, x):
    """softmax(s q k) v over the keys that a position sees, then attn_output."""
    q, k, v = queries_keys_values(model, l, x)
    p = np.arange(len(x))
    if model.arch == "mistral3" and model.key("attention.temperature_scale", 0):
        trained = model.key("rope.scaling.original_context_length", model.key("context_length"))
        q = q * (1 + model.key("attention.temperature_scale") * np.log(1 + p // trained))[:, None, None]
    visible = p[None, :] <= p[:, None]  # [query, key]
    if is_local(model, l):
        visible &= p[None, :] > p[:, None] - window(model)
    heads = np.empty_like(q)
    for h in range(model.H):
        kv_head = h // (model.H // model.n_kv_heads)
        scores = score_scale(model) * (q[:, h] @ k[:, kv_head].T)
        if model.arch == "gemma2":
            cap = model.key("attn_logit_softcapping", 50.0)
            scores = cap * np.tanh(scores / cap)
        scores = np.where(visible, scores, -np.inf)
        if model.arch == "gpt-oss":  # the sink: one more score in the softmax, without a value
            sink = np.full((len(x), 1), model.tensors["blk.%d.attn_sinks.weight" % l][h])
            share = softmax(np.concatenate([scores, sink], axis=1))[:, :-1]
        else:
            share = softmax(scores)
        heads[:, h] = share @ v[:, kv_head]
    heads = heads.reshape(len(x), -1)
    if model.arch == "bitnet":
        heads = rms_norm(model, l, "attn_sub_norm", heads)
    return linear(model, l, "attn_output", heads)


# --- Feed-forward ---------------------------------------------------------------------------------

def gated(model, gate, up):
    if model.family.gate == "gelu":
        return gelu(gate) * up
    if model.family.gate == "clamped":
        gate, up = np.minimum(gate, 7), np.clip(up, -7, 7)
        return gate * sigmoid(1.702 * gate) * (up + 1)
    if model.key("hidden_activation", "silu") == "relu2":  # BitNet's newer models
        return np.maximum(gate, 0) ** 2 * up
    return silu(gate) * up


def feed_forward(model, l, x, suffix="", expert=None):
    """down(activation(gate x) * (up x)) of the matrices whose names have this suffix."""
    up = linear(model, l, "ffn_up" + suffix, x, expert)
    if model.has(l, "ffn_gate" + suffix):
        gate = linear(model, l, "ffn_gate" + suffix, x, expert)
    else:  # both in one: the gate's rows first
        gate, up = np.split(up, 2, axis=-1)
    hidden = gated(model, gate, up)
    if model.arch == "bitnet":
        hidden = rms_norm(model, l, "ffn_sub_norm", hidden)
    return linear(model, l, "ffn_down" + suffix, hidden, expert)


def routed(model, l, x):
    """The sum over each token's experts of weight * feed_forward, and the shared expert's part."""
    r = linear(model, l, "ffn_gate_inp", x)  # [T, experts]: how much the router wants each
    taken = largest(model, r, model.key("expert_used_count"))
    weight = np.where(taken, softmax(r), 0)
    if not model.family.plain_routing:
        weight /= weight.sum(axis=-1, keepdims=True)
    y = np.zeros_like(x)
    for e in range(r.shape[1]):
        tokens = taken[:, e]
        y[tokens] += weight[tokens, e, None] * feed_forward(model, l, x[tokens], "_exps", e)
    return y + shared_expert(model, l, x)


def shared_expert(model, l, x):
    if model.arch == "qwen2moe":
        gate = sigmoid(x @ model.tensors["blk.%d.ffn_gate_inp_shexp.weight" % l])
        return gate[:, None] * feed_forward(model, l, x, "_shexp")
    if model.arch == "granitemoe" and model.key("expert_shared_feed_forward_length", 0) > 0:
        return feed_forward(model, l, x, "_shexp")
    return 0.0


# --- The model ------------------------------------------------------------------------------------

def layer(model, l, x):
    family = model.family
    residual_scale = model.scale("residual_scale") if model.arch in ("granite", "granitemoe") else 1.0
    delta = attention(model, l, rms_norm(model, l, "attn_norm", x) if family.pre else x)
    if family.post:
        delta = rms_norm(model, l, "post_attention_norm", delta)
    x = x + residual_scale * delta
    part = routed if model.has(l, "ffn_gate_exps") else feed_forward
    delta = part(model, l, rms_norm(model, l, family.ffn_norm, x) if family.pre else x)
    if family.post:
        delta = rms_norm(model, l, "post_ffw_norm", delta)
    return x + residual_scale * delta


def embedding_scale(model):
    if model.arch in ("gemma2", "gemma3"):
        return np.sqrt(model.E)
    return model.scale("embedding_scale") if model.arch in ("granite", "granitemoe") else 1.0


def output_matrix(model):
    """output.weight; tied models have none, and token_embd.weight serves."""
    always, never = ("gemma2", "bitnet"), ("qwen2moe", "olmo2")
    tied = model.arch in always or ("output.weight" not in model.tensors and model.arch not in never)
    return model.tensors["token_embd.weight" if tied else "output.weight"]


def logits(model, ids):
    """[T, vocabulary]"""
    model.family = FAMILIES[model.arch]
    x = embedding_scale(model) * model.tensors["token_embd.weight"][ids]
    for l in range(model.n_layers):
        x = layer(model, l, x)
    x = unit_rms(model, x) * model.tensors["output_norm.weight"]
    y = x @ output_matrix(model).T * model.tensors.get("output.scale", 1.0)
    if model.arch in ("granite", "granitemoe"):
        y = y / model.key("logit_scale")
    if model.arch in ("gemma2", "gemma3"):
        cap = model.key("final_logit_softcapping", 30.0 if model.arch == "gemma2" else 0)
        return cap * np.tanh(y / cap) if cap else y
    return y
