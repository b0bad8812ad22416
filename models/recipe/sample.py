"""Reads the exported file and generates text with it, in float32 numpy: python3 sample.py FILE.gguf -p "Once upon a time".

The evaluator's voice, and a second opinion on the exporter: it shares no code with the trainer, so when its greedy
text is that of an engine, both the file and the engine mean the same thing by it.
"""
import argparse
import struct

import numpy as np

import vocab

SCALARS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}


def read_gguf(path):
    """(metadata, tensors as float32): only what the exporter writes, Q8_0 and F32."""
    data, at = open(path, "rb").read(), 24
    _, _, n_tensors, n_keys = struct.unpack_from("<4sIQQ", data)

    def take(form):
        nonlocal at
        value, = struct.unpack_from(form, data, at)
        at += struct.calcsize(form)
        return value

    def text():
        nonlocal at
        size = take("<Q")
        at += size
        return data[at - size:at].decode()

    def value(kind):
        if kind == 8:
            return text()
        if kind == 9:
            inner, count = take("<I"), take("<Q")
            return [value(inner) for _ in range(count)]
        return take(SCALARS[kind])

    meta = {}
    for _ in range(n_keys):
        key = text()
        meta[key] = value(take("<I"))
    infos = [(text(), [take("<Q") for _ in range(take("<I"))], take("<I"), take("<Q")) for _ in range(n_tensors)]
    base, tensors = -(-at // 32) * 32, {}
    for name, dims, kind, offset in infos:
        count = int(np.prod(dims))
        if kind == 8:
            blocks = np.frombuffer(data, np.uint8, count // 32 * 34, base + offset).reshape(-1, 34)
            scale = blocks[:, :2].copy().view("<f2").astype(np.float32)
            flat = blocks[:, 2:].copy().view(np.int8) * scale
        else:
            flat = np.frombuffer(data, "<f4", count, base + offset)
        tensors[name.removesuffix(".weight")] = np.ascontiguousarray(flat.reshape(dims[::-1]), np.float32)
    return meta, tensors


class Network:
    """A batch of rows that advance one token at a time, with a cache of keys and values."""

    def __init__(self, path, rows):
        meta, self.w = read_gguf(path)
        get = lambda key: meta["llama." + key]
        self.layers, self.heads = get("block_count"), get("attention.head_count")
        self.kv_heads, self.dim = get("attention.head_count_kv"), get("attention.key_length")
        self.n_ctx, self.eps = get("context_length"), get("attention.layer_norm_rms_epsilon")
        self.frequency = get("rope.freq_base") ** (-np.arange(0, self.dim, 2) / self.dim)
        self.keys = np.zeros((self.layers, rows, self.n_ctx, self.kv_heads, self.dim), np.float32)
        self.values, self.position = np.zeros_like(self.keys), 0

    def norm(self, x, gain):
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + np.float32(self.eps)) * gain

    def rope(self, x):
        angle = self.position * self.frequency
        cos, sin = np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32)
        out = np.empty_like(x)
        out[..., 0::2] = x[..., 0::2] * cos - x[..., 1::2] * sin
        out[..., 1::2] = x[..., 0::2] * sin + x[..., 1::2] * cos
        return out

    def step(self, ids):
        """Logits [rows, vocab] after one more token per row."""
        w, n, group = self.w, len(ids), self.heads // self.kv_heads
        x = w["token_embd"][ids]
        for layer in range(self.layers):
            name = f"blk.{layer}."
            h = self.norm(x, w[name + "attn_norm"])
            q = self.rope((h @ w[name + "attn_q"].T).reshape(n, self.kv_heads, group, self.dim))
            self.keys[layer, :n, self.position] = self.rope((h @ w[name + "attn_k"].T).reshape(n, self.kv_heads, self.dim))
            self.values[layer, :n, self.position] = (h @ w[name + "attn_v"].T).reshape(n, self.kv_heads, self.dim)
            seen = slice(0, self.position + 1)
            scores = np.einsum("bkgd,btkd->bkgt", q, self.keys[layer, :n, seen]) * np.float32(self.dim ** -0.5)
            p = np.exp(scores - scores.max(-1, keepdims=True))
            p /= p.sum(-1, keepdims=True)
            y = np.einsum("bkgt,btkd->bkgd", p, self.values[layer, :n, seen]).reshape(n, -1)
            x = x + y @ w[name + "attn_output"].T
            h = self.norm(x, w[name + "ffn_norm"])
            gate = h @ w[name + "ffn_gate"].T
            x = x + (gate / (1 + np.exp(-gate)) * (h @ w[name + "ffn_up"].T)) @ w[name + "ffn_down"].T
        self.position += 1
        return self.norm(x, w["output_norm"]) @ w.get("output", w["token_embd"]).T


def draw(logits, rng, temp=0.8, top_k=40, top_p=0.95, min_p=0.05):
    """One id by the usual chain: top-k, top-p, min-p, then temperature. temp 0 takes the likeliest."""
    if temp == 0:
        return int(logits.argmax())
    order = np.argsort(-logits)[:top_k]
    p = np.exp(logits[order] - logits[order[0]])
    p /= p.sum()
    keep = max(1, int(np.searchsorted(np.cumsum(p), top_p) + 1))
    order, p = order[:keep], p[:keep]
    order = order[p >= min_p * p[0]]
    weight = np.exp((logits[order] - logits[order[0]]) / temp)
    return int(rng.choice(order, p=weight / weight.sum()))


def generate(path, vocabulary, prompts, seeds, limit=400, **sampler):
    """[(text, whether it ended by itself)] for prompts given as ids, one row each, with a generator per seed."""
    network, rngs = Network(path, len(prompts)), [np.random.default_rng(seed) for seed in seeds]
    stops = {vocab.EOS, vocab.END}
    rows, ended = [list(p) for p in prompts], [False] * len(prompts)
    for at in range(min(limit + max(map(len, prompts)), network.n_ctx) - 1):
        logits = network.step(np.array([row[min(at, len(row) - 1)] for row in rows]))
        for i, row in enumerate(rows):
            if at == len(row) - 1 and not ended[i] and len(row) - len(prompts[i]) < limit:
                row.append(draw(logits[i], rngs[i], **sampler))
                ended[i] = row[-1] in stops
        if all(ended):
            break
    return [(vocabulary.decode([t for t in row[len(p):] if t not in stops]), end) for row, p, end in zip(rows, prompts, ended)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("-p", "--prompt", default="Once upon a time")
    parser.add_argument("--chat", action="store_true", help="the prompt is a message of the user")
    parser.add_argument("-n", type=int, default=400)
    parser.add_argument("-s", "--seed", type=int, default=1)
    parser.add_argument("--temp", type=float, default=0.8)
    a = parser.parse_args()
    vocabulary = vocab.Vocabulary(read_gguf(a.model)[0]["tokenizer.ggml.tokens"])
    ids = vocab.prompt(vocabulary, [("user", a.prompt)]) if a.chat else [vocab.BOS] + vocabulary.encode(a.prompt)
    (text, ended), = generate(a.model, vocabulary, [ids], [a.seed], a.n, temp=a.temp)
    print(("" if a.chat else a.prompt) + text, "" if ended else "...")


if __name__ == "__main__":
    main()
