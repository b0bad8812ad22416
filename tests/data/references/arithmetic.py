"""What all references share: reading a file, norms, products, rope, activations and the choice of experts, in float64.

T is the number of tokens, E the embedding's length, H the heads, K the key/value heads, D a head's width, R how many of
its values rope rotates.
"""
import struct
import sys

import numpy as np


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
        self.context = context or min(self.key("context_length"), 4096)  # the engine's context, not the prompt's length
        self.n_layers = self.key("block_count") - self.key("nextn_predict_layers", 0)
        self.E = self.key("embedding_length")
        self.H = self.key("attention.head_count")
        self.n_kv_heads = self.key("attention.head_count_kv", self.H)
        self.D = self.key("attention.key_length", None) or self.E // max(self.H, 1)  # a Mamba has no heads
        self.R = self.key("rope.dimension_count", self.D)
        self.epsilon = self.key("attention.layer_norm_rms_epsilon", None) or self.key("attention.layer_norm_epsilon")
        self.kept = {}  # by layer: keys and values that later layers may share
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

    def of_layer(self, l, name, *default):
        """A key that is one value for all layers or one for each."""
        value = self.key(name, *default)
        return value[l] if isinstance(value, list) else value

    def kv_heads(self, l):
        return self.of_layer(l, "attention.head_count_kv", self.H)

    def tensor(self, l, name):
        """By its name with the suffix."""
        return self.tensors["blk.%d.%s" % (l, name)]


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


def stretched(model, base, n, theta):
    """(angles, factor of cosine and sine): theta as rope.scaling says."""
    kind, m = model.key("rope.scaling.type", "linear"), 1.0
    f = model.key("rope.scaling.factor", model.key("rope.scale_linear", 0)) or 1.0
    if kind == "yarn":
        theta, m = yarn(model, base, n, theta, f)
    elif kind != "none":
        theta = theta / f
    return theta, m * model.key("rope.scaling.attn_factor", 1.0)


def rotate(x, cos, sin, adjacent):
    """x: [T, heads, D], cos and sin: [T, pairs]. adjacent: the pairs are (2i, 2i + 1), not (i, i + pairs)."""
    cos, sin, half = cos[:, None, :], sin[:, None, :], cos.shape[-1]
    first, second = ((slice(0, 2 * half, 2), slice(1, 2 * half, 2)) if adjacent else
                     (slice(0, half), slice(half, 2 * half)))
    y = x.copy()
    y[..., first] = x[..., first] * cos - x[..., second] * sin
    y[..., second] = x[..., first] * sin + x[..., second] * cos
    return y


# --- Functions of numbers -------------------------------------------------------------------------

def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def silu(x):
    return x * sigmoid(x)


def gelu(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def largest(model, score, k):
    """Which k of the last axis are the largest. What is -inf cannot be chosen."""
    order = np.argsort(-score, axis=-1, kind="stable")
    if k < score.shape[-1]:
        best = np.take_along_axis(score, order, axis=-1)
        model.router_margin = min(model.router_margin, (best[:, k - 1] - best[:, k]).min())
    taken = np.zeros(score.shape, bool)
    np.put_along_axis(taken, order[:, :k], True, axis=-1)
    return taken
