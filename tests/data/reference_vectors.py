#!/usr/bin/env python3
"""Computes a text's vector or scores slowly and plainly, in float64, for the families of vectors/.

  reference_vectors.py MODEL.gguf OUT.f32 --ids "1 30 12" --ids "2 9"

OUT gets the results of all texts, one after the other. As reference_logits.py, whose arithmetic of norms, rope and products
it uses. Written from the definitions of the families alone, not from the engine; made the .f32 files of vectors/.
"""
import argparse

import numpy as np

from reference_logits import Model, gelu, linear, rms_norm, rotate, silu, softmax, unit_rms


def window(model, l):
    """How far a token of layer l sees to each side; None: to the ends."""
    period = model.key("attention.sliding_window_pattern", 6)
    slides = model.arch == "gemma-embedding" and (period == 0 or l % period < period - 1)
    return model.key("attention.sliding_window") // 2 if slides else None


def angles(model, l, n):
    """(cosines, sines) [n, pairs] of the positions of layer l."""
    base = model.key("rope.freq_base", 10000.0)
    if window(model, l) is not None:
        base = model.key("rope.freq_base_swa", 10000.0)
    theta = np.arange(n)[:, None] * base ** (-2.0 * np.arange(model.D // 2) / model.D)
    return np.cos(theta), np.sin(theta)


def queries_keys_values(model, l, x):
    q, k, v = (linear(model, l, "attn_" + name, x) for name in "qkv")
    q, k, v = (t.reshape(len(x), -1, model.D) for t in (q, k, v))
    q, k = rms_norm(model, l, "attn_q_norm", q), rms_norm(model, l, "attn_k_norm", k)
    table = angles(model, l, len(x))
    return rotate(q, *table, False), rotate(k, *table, False), v


def attention(model, l, x):
    q, k, v = queries_keys_values(model, l, x)
    distance = np.arange(len(x))[:, None] - np.arange(len(x))[None, :]  # [query, key]
    visible = np.ones(distance.shape, bool)
    if model.arch == "qwen3":
        visible = distance >= 0
    elif window(model, l) is not None:
        visible = np.abs(distance) <= window(model, l)
    heads = np.empty_like(q)
    for h in range(model.H):
        kv_head = h // (q.shape[1] // k.shape[1])
        scores = np.where(visible, q[:, h] @ k[:, kv_head].T / np.sqrt(model.D), -np.inf)
        heads[:, h] = softmax(scores) @ v[:, kv_head]
    return linear(model, l, "attn_output", heads.reshape(len(x), -1))


def feed_forward(model, l, x):
    act = silu if model.arch == "qwen3" else gelu
    return linear(model, l, "ffn_down", act(linear(model, l, "ffn_gate", x)) * linear(model, l, "ffn_up", x))


def layer(model, l, x):
    post = lambda name, y: rms_norm(model, l, name, y) if model.has(l, name) else y
    x = x + post("post_attention_norm", attention(model, l, rms_norm(model, l, "attn_norm", x)))
    return x + post("post_ffw_norm", feed_forward(model, l, rms_norm(model, l, "ffn_norm", x)))


def hidden(model, ids):
    """[T, E] after the last norm."""
    x = model.tensors["token_embd.weight"][ids]
    if model.arch == "gemma-embedding":
        x = x * np.sqrt(model.E)
    for l in range(model.n_layers):
        x = layer(model, l, x)
    return unit_rms(model, x) * model.tensors["output_norm.weight"]


def matrix(model, name, x):
    if name + ".weight" not in model.tensors:
        return x
    return x @ model.tensors[name + ".weight"].T + model.tensors.get(name + ".bias", 0.0)


def scores(model, x):
    y = x[-1] if model.arch == "qwen3" else x[0]
    if "cls.weight" in model.tensors:
        y = np.tanh(matrix(model, "cls", y))
    y = matrix(model, "cls.output", y)
    return softmax(y) if model.arch == "qwen3" else y


def result(model, ids):
    x, pooling = hidden(model, ids), model.key("pooling_type", 0)
    if pooling == 4:
        return scores(model, x)
    y = {1: x.mean(axis=0), 2: x[0], 3: x[-1]}[pooling]
    y = matrix(model, "dense_3", matrix(model, "dense_2", y))
    return y / np.linalg.norm(y)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("out")
    parser.add_argument("--ids", required=True, action="append", help="token ids of a text, with spaces between")
    args = parser.parse_args()
    model = Model(args.model)
    np.concatenate([result(model, [int(word) for word in ids.split()]) for ids in args.ids]).astype("<f4").tofile(args.out)


if __name__ == "__main__":
    main()
