#!/usr/bin/env python3
"""Computes a model's logits slowly and plainly, in float64: a reference for the engine.

  reference_logits.py MODEL.gguf OUT.f32 --ids "1 300 12" [--ctx N]

Not of families whose layers are not all plain attention: reference_hybrids.py does those.
OUT holds the logits of every position: positions x vocabulary, little-endian f32. Written from the definitions of the
families alone, not from the engine, so that the two can be compared; made the .f32 files of families/. Needs numpy. One
function per concept; FAMILIES and what it points to say how one family differs from another. All positions are computed
at once. T is the number of tokens, E the embedding's length, H the heads, D a head's width, R how many of its values
rope rotates.
"""
import argparse
import struct
import sys
from typing import NamedTuple

import numpy as np


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


# --- The file -------------------------------------------------------------------------------------

def read_gguf(path):
    """(metadata, tensors): values by key; arrays of float64 by name, the row length last (a GGUF's dims reversed)."""
    data = open(path, "rb").read()
    at = 0

    def take(form):
        nonlocal at
        values = struct.unpack_from("<" + form, data, at)
        at += struct.calcsize("<" + form)
        return values[0] if len(values) == 1 else values

    def text():
        return take("%ds" % take("Q")).decode("utf-8", "replace")

    def value(kind):
        if kind == 8:
            return text()
        if kind == 9:
            kind, count = take("IQ")
            return [value(kind) for _ in range(count)]
        return take({0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}[kind])

    magic, version, n_tensors, n_keys = take("4sIQQ")
    if magic != b"GGUF" or version not in (2, 3):
        sys.exit("%s: no GGUF file of version 2 or 3" % path)
    metadata = {}
    for _ in range(n_keys):
        key = text()
        metadata[key] = value(take("I"))
    infos = []
    for _ in range(n_tensors):
        name = text()
        dims = [take("Q") for _ in range(take("I"))]
        infos.append((name, dims, *take("IQ")))
    start = -(-at // metadata.get("general.alignment", 32)) * metadata.get("general.alignment", 32)
    return metadata, {name: decode(kind, data[start + offset:], dims) for name, dims, kind, offset in infos}


FP4 = np.array([0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12], np.float64)  # twice the values of E2M1


def decode(kind, data, dims):
    """The weights that a tensor's bytes represent."""
    per, size, values = TYPES[kind]
    blocks = np.frombuffer(data, np.uint8, int(np.prod(dims)) // per * size).reshape(-1, size)
    return values(blocks).astype(np.float64).reshape(dims[::-1])


def bf16(blocks):
    return (blocks.view("<u2").astype(np.uint32) << 16).view(np.float32)


def nibbles(bytes_):
    """The low nibbles of all bytes, then the high ones."""
    return np.concatenate([bytes_ & 15, bytes_ >> 4], axis=-1)


def scale_f16(blocks):
    return blocks[:, :2].copy().view("<f2").astype(np.float64)


def q4_0(blocks):
    return scale_f16(blocks) * (nibbles(blocks[:, 2:]).astype(np.float64) - 8)


def q8_0(blocks):
    return scale_f16(blocks) * blocks[:, 2:].view(np.int8)


def mxfp4(blocks):
    return FP4[nibbles(blocks[:, 1:])] * np.exp2(blocks[:, :1].astype(np.float64) - 128)


def nvfp4(blocks):
    byte = blocks[:, :4].astype(np.int64)
    exponent, mantissa = byte >> 3 & 15, byte & 7
    scale = np.where(exponent == 0, mantissa * 2.0**-9, (1 + mantissa / 8) * np.exp2(exponent - 7.0))
    scale[(byte == 0) | (byte == 0x7F)] = 0
    return FP4[nibbles(blocks[:, 4:].reshape(-1, 4, 8))] * scale[:, :, None] / 2


# By id: weights and bytes of a block, and the values of blocks [n, bytes].
TYPES = {0: (1, 4, lambda blocks: blocks.view("<f4")), 1: (1, 2, lambda blocks: blocks.view("<f2")), 30: (1, 2, bf16),
         2: (32, 18, q4_0), 8: (32, 34, q8_0), 39: (32, 17, mxfp4), 40: (64, 36, nvfp4)}


class Model:
    """A file with its keys and tensors by their short names, and what a pass records."""

    def __init__(self, path, context=None):
        self.metadata, self.tensors = read_gguf(path)
        self.arch = self.metadata["general.architecture"]
        self.family = FAMILIES.get(self.arch)
        self.context = context or min(self.key("context_length"), 4096)  # the engine's context, not the prompt's length
        self.n_layers = self.key("block_count") - self.key("nextn_predict_layers", 0)
        self.E = self.key("embedding_length")
        self.H = self.key("attention.head_count")
        self.n_kv_heads = self.key("attention.head_count_kv", self.H)
        self.D = self.key("attention.key_length", None) or self.E // max(self.H, 1)  # a Mamba has no heads
        self.R = self.key("rope.dimension_count", self.D)
        self.epsilon = self.key("attention.layer_norm_rms_epsilon", None) or self.key("attention.layer_norm_epsilon")
        self.router_margin = np.inf  # the smallest gap so far between what a router took and what it left out

    def key(self, name, *default):
        name = self.arch + "." + name
        if name not in self.metadata and not default:
            sys.exit("the file has no key %s" % name)
        return self.metadata.get(name, *default)

    def scale(self, name, default=1.0):
        """A key that is a factor: 0 means the same as its absence."""
        return self.key(name, 0) or default

    def has(self, l, name):
        return "blk.%d.%s.weight" % (l, name) in self.tensors


# --- Norms and products ---------------------------------------------------------------------------

def unit_rms(model, x):
    """x / sqrt(mean(x^2) + epsilon) over the last axis."""
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + model.epsilon)


def rms_norm(model, l, name, x):
    w = model.tensors["blk.%d.%s.weight" % (l, name)]
    assert w.shape == x.shape[-1:], name
    return unit_rms(model, x) * w


def linear(model, l, name, x, expert=None):
    """scale * (W x) + bias of every row of x; scale (a factor beside the matrix) and bias where the file has them. A
    tensor of experts holds a matrix, a scale and a bias for each."""
    prefix = "blk.%d.%s." % (l, name)
    w, scale, bias = (model.tensors.get(prefix + part) for part in ("weight", "scale", "bias"))
    if expert is not None:
        w, scale, bias = (t if t is None else t[expert] for t in (w, scale, bias))
    y = x @ w.T
    if scale is not None:
        y = y * scale
    return y if bias is None else y + bias


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


def yarn(model, base, n, theta, f):
    """(angles, factor of cosine and sine): slow pairs are stretched by f, fast ones stay, those between are mixed. n: how
    many values of a head are rotated."""
    fast, slow = model.key("rope.scaling.yarn_beta_fast", 32.0), model.key("rope.scaling.yarn_beta_slow", 1.0)
    g = model.key("rope.scaling.yarn_log_multiplier", 0.0)
    trained = model.key("rope.scaling.original_context_length", model.key("context_length"))
    # The pair that makes this number of turns within the trained length.
    pair = lambda turns: n * np.log(trained / (2 * np.pi * turns)) / (2 * np.log(base))
    lo, hi = pair(fast), pair(slow)
    if model.key("rope.scaling.yarn_truncate", model.arch != "gpt-oss"):  # gpt-oss is published with "truncate": false
        lo, hi = np.floor(lo), np.ceil(hi)
    lo, hi = max(0, lo), min(n - 1, hi)
    mix = 1 - np.clip((np.arange(n // 2) - lo) / max(0.001, hi - lo), 0, 1)
    m = (0.1 * np.log(f) + 1) / (0.1 * g * np.log(f) + 1) if f > 1 else 1.0
    return theta * (mix + (1 - mix) / f), m


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


def stretched(model, base, n, theta):
    """(angles, factor of cosine and sine): theta as rope.scaling says."""
    kind, m = model.key("rope.scaling.type", "linear"), 1.0
    f = model.key("rope.scaling.factor", model.key("rope.scale_linear", 0)) or 1.0
    if kind == "yarn":
        theta, m = yarn(model, base, n, theta, f)
    elif kind != "none":
        theta = theta / f
    return theta, m * model.key("rope.scaling.attn_factor", 1.0)


def rope(model, x, table):
    """Rotates pairs of the first R values of every head. x: [T, heads, D]."""
    if table is None:
        return x
    return rotate(x, *table, model.family.rope == "NORM")


def rotate(x, cos, sin, adjacent):
    """x: [T, heads, D], cos and sin: [T, pairs]. adjacent: the pairs are (2i, 2i + 1), not (i, i + pairs)."""
    cos, sin, half = cos[:, None, :], sin[:, None, :], cos.shape[-1]
    first, second = ((slice(0, 2 * half, 2), slice(1, 2 * half, 2)) if adjacent else
                     (slice(0, half), slice(half, 2 * half)))
    y = x.copy()
    y[..., first] = x[..., first] * cos - x[..., second] * sin
    y[..., second] = x[..., first] * sin + x[..., second] * cos
    return y


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


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


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

def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def silu(x):
    return x * sigmoid(x)


def gelu(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


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


def largest(model, score, k):
    """Which k of the last axis are the largest. What is -inf cannot be chosen."""
    order = np.argsort(-score, axis=-1, kind="stable")
    if k < score.shape[-1]:
        best = np.take_along_axis(score, order, axis=-1)
        model.router_margin = min(model.router_margin, (best[:, k - 1] - best[:, k]).min())
    taken = np.zeros(score.shape, bool)
    np.put_along_axis(taken, order[:, :k], True, axis=-1)
    return taken


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


def main(doc, Model, logits):
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("out")
    parser.add_argument("--ids", required=True, help="token ids, with spaces between")
    parser.add_argument("--ctx", type=int, help="tokens the engine has room for (default: trained, at most 4096)")
    args = parser.parse_args()
    model = Model(args.model, args.ctx)
    logits(model, [int(word) for word in args.ids.split()]).astype("<f4").tofile(args.out)
    if np.isfinite(model.router_margin):
        print("smallest margin of the router: %.4f" % model.router_margin, file=sys.stderr)


if __name__ == "__main__":
    main(__doc__, Model, logits)
