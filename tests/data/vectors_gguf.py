#!/usr/bin/env python3
"""Writes a small GGUF model with random weights, of one of the families that turn a text into a vector or a score, with the
metadata keys and the tensors that published files of that family have. Made the models of vectors/, each with the options
of its line in models.txt. Needs numpy.

  vectors_gguf.py gemma-embedding OUT.gguf --window 5 --dense 24
  vectors_gguf.py --lines FOLDER [NAME...]   FOLDER/NAME.gguf by its line of models.txt, of all names or these

As family_gguf.py, which makes the models of families/; what both need is there.
"""
import argparse
import os
import sys

from family_gguf import FFN, POST, PRE, QK_NORM, QKV, values, vocabulary, write

# Tensors as in family_gguf.py: name, then dims in the letters of sizes().


def head(m): return {"attention.key_length": m.head_dim, "attention.value_length": m.head_dim}
def rms(m): return {"attention.head_count_kv": m.kv_heads, "attention.layer_norm_rms_epsilon": m.eps, "rope.freq_base": m.base, **head(m)}


def dense(m):
    if not m.dense: return {}
    return {"dense_2_feat_in": m.embd, "dense_2_feat_out": m.dense, "dense_3_feat_in": m.dense, "dense_3_feat_out": m.embd}


# Per family: m, l -> tensors of layer l; m -> tensors beside the layers; m -> keys beyond the common ones; other defaults.
FAMILIES = {
    "qwen3": (lambda m, l: PRE + QKV + QK_NORM + FFN, lambda m: ["token_embd E V", "output_norm E"], rms, dict(pooling=3)),
    "gemma-embedding": (lambda m, l: PRE + POST + QKV + QK_NORM + FFN,
                        lambda m: ["token_embd E V", "output_norm E"] + (["dense_2 E Z", "dense_3 Z E"] if m.dense else []),
                        lambda m: {**rms(m), "attention.causal": False, "attention.sliding_window": m.window,
                                   **({"attention.sliding_window_pattern": m.period} if m.period else {}), **dense(m)},
                        dict(layers=7, kv_heads=1, window=6, dense=20, pooling=1)),
}
COMMON = dict(embd=16, heads=2, kv_heads=1, head_dim=12, ffn=16, layers=2, vocab=56, ctx=64, window=0, period=0, dense=0, pooling=0,
              labels=0, cls=0, base=500.0, eps=1e-5, std=0.4)


def metadata(m, keys):
    common = {"context_length": m.ctx, "embedding_length": m.embd, "block_count": m.layers, "feed_forward_length": m.ffn,
              "attention.head_count": m.heads, "pooling_type": m.pooling}
    if m.labels: common["classifier.output_labels"] = ["yes", "no", "perhaps"][:m.labels]
    return {"%s.%s" % (m.arch, k): v for k, v in {**common, **keys(m)}.items()}


def tensors(m, layer, top):
    """(name, dims) of every tensor, in the file's order."""
    size = dict(E=m.embd, Q=m.heads * m.head_dim, K=m.kv_heads * m.head_dim, D=m.head_dim, F=m.ffn, V=m.vocab, Z=m.dense,
                L=max(m.labels, 1), C=m.ctx)
    lines = [("", line) for line in top(m)] + [("blk.%d." % l, line) for l in range(m.layers) for line in layer(m, l)]
    if m.pooling == 4:
        lines += [("", line) for line in (["cls E E", "cls.bias E"] if m.cls else []) + ["cls.output E L"]]
    for prefix, line in lines:
        name, *dims = line.split()
        name = prefix + name + ("" if name.endswith((".weight", ".bias")) else ".weight")
        yield name, [sum(size[c] for c in d.split("+")) for d in dims]


def make(argv):
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("arch", choices=FAMILIES)
    p.add_argument("out")
    p.add_argument("--seed", type=int, default=1)
    for name, value in COMMON.items():
        p.add_argument("--" + name.replace("_", "-"), type=type(value))
    m = p.parse_args(argv)
    layer, top, keys, defaults = FAMILIES[m.arch]
    for name, value in {**COMMON, **defaults}.items():
        if getattr(m, name) is None: setattr(m, name, value)
    plan = [(name, dims, "f32", values(m, name, dims, "f32")) for name, dims in tensors(m, layer, top)]
    write(m.out, {"general.architecture": m.arch, "general.type": "model", "general.name": m.arch + " (random weights)",
                  "general.file_type": 0, "general.quantization_version": 2, **metadata(m, keys),
                  **{"tokenizer.ggml." + k: v for k, v in vocabulary(m.vocab).items()}}, plan)


def main(argv):
    if argv[:1] != ["--lines"]:
        return make(argv)
    folder, *names = argv[1:]
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "vectors", "models.txt")) as lines:
        for name, arch, *options in map(str.split, lines):
            if not names or name in names:
                make([arch, os.path.join(folder, name + ".gguf"), *options])


if __name__ == "__main__":
    main(sys.argv[1:])
