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

import family_gguf
from family_gguf import FFN, POST, PRE, QK_NORM, QKV, values, write

# Tensors as in family_gguf.py: name, then dims in the letters of tensors().


def biased(*lines):
    """Each with its bias, as long as its last dim."""
    return [part for line in lines for part in (line, "%s.bias %s" % (line.split()[0], line.split()[-1]))]


PACKED = ["attn_qkv E E+E+E", "attn_output E E"]
SUMS = biased("attn_output_norm E", "layer_output_norm E")                # norms of the stream after a sum
NETWORK = biased("ffn_up E F", "ffn_down F E")                            # without a gate
EXPERTS = ["ffn_gate_inp E X", "ffn_up_exps E F X", "ffn_down_exps F E X"]
EMBEDDINGS = ["token_embd E V", "token_types E T"] + biased("token_embd_norm E")


def head(m): return {"attention.key_length": m.head_dim, "attention.value_length": m.head_dim}
def rms(m): return {"attention.head_count_kv": m.kv_heads, "attention.layer_norm_rms_epsilon": m.eps, "rope.freq_base": m.base, **head(m)}


def dense(m):
    if not m.dense: return {}
    return {"dense_2_feat_in": m.embd, "dense_2_feat_out": m.dense, "dense_3_feat_in": m.dense, "dense_3_feat_out": m.embd}


def encoder(m): return {"attention.causal": False, "attention.layer_norm_epsilon": m.eps}
def experts(m): return {"moe_every_n_layers": 2, "expert_count": m.experts, "expert_used_count": m.experts_used}


def windows(m):
    if not m.window: return {}
    return {"attention.sliding_window": m.window, "attention.sliding_window_pattern": m.period, "rope.freq_base_swa": 50.0}


# Per family: m, l -> tensors of layer l; m -> tensors beside the layers; m -> keys beyond the common ones; other defaults.
FAMILIES = {
    "qwen3": (lambda m, l: PRE + QKV + QK_NORM + FFN, lambda m: ["token_embd E V", "output_norm E"], rms, dict(pooling=3)),
    "gemma-embedding": (lambda m, l: PRE + POST + QKV + QK_NORM + FFN,
                        lambda m: ["token_embd E V", "output_norm E"] + (["dense_2 E Z", "dense_3 Z E"] if m.dense else []),
                        lambda m: {**rms(m), "attention.causal": False, "attention.sliding_window": m.window,
                                   **({"attention.sliding_window_pattern": m.period} if m.period else {}), **dense(m)},
                        dict(layers=7, kv_heads=1, window=6, dense=20, pooling=1)),
    "bert": (lambda m, l: biased("attn_q E E", "attn_k E E", "attn_v E E", "attn_output E E") + NETWORK + SUMS,
             lambda m: EMBEDDINGS + ["position_embd E C"], encoder, dict(pooling=2)),
    "nomic-bert": (lambda m, l: PACKED + FFN + SUMS, lambda m: EMBEDDINGS, lambda m: {**encoder(m), "rope.freq_base": m.base}, dict(pooling=1)),
    "nomic-bert-moe": (lambda m, l: biased(*PACKED) + (EXPERTS if l % 2 == 1 else NETWORK) + SUMS, lambda m: EMBEDDINGS,
                       lambda m: {**encoder(m), **experts(m), "rope.freq_base": m.base}, dict(layers=3, types=1, pooling=1)),
    "modern-bert": (lambda m, l: (["attn_norm E"] if l else []) + PACKED + ["ffn_norm E", "ffn_up E F+F", "ffn_down F E"],
                    lambda m: ["token_embd E V", "token_embd_norm E", "output_norm E"],
                    lambda m: {**encoder(m), **windows(m), "rope.freq_base": m.base, "rope.scaling.type": "none", "vocab_size": m.vocab,
                               **({"hidden_activation": m.act} if m.act else {})}, dict(layers=4, window=6, period=3, pooling=2)),
}
COMMON = dict(embd=16, heads=2, kv_heads=1, head_dim=12, ffn=16, layers=2, vocab=56, ctx=64, window=0, period=0, dense=0, pooling=0,
              labels=0, cls=0, norm=0, types=2, experts=5, experts_used=2, act="", base=500.0, eps=1e-5, std=0.4)


def vocabulary(m):
    """Of BERT's relatives word pieces, which begin a word with U+2581 or continue it."""
    if "bert" not in m.arch or m.arch == "modern-bert": return family_gguf.vocabulary(m.vocab)
    letters = [chr(c) for c in range(ord("a"), ord("z") + 1)]
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"] + ["\u2581" + c for c in letters[:24] + [".", ","]] + letters
    return {"model": "bert", "tokens": tokens[:m.vocab], "token_type": [3] * 5 + [1] * (m.vocab - 5), "bos_token_id": 2,
            "unknown_token_id": 1, "seperator_token_id": 3, "padding_token_id": 0, "token_type_count": m.types}


def metadata(m, keys):
    common = {"context_length": m.ctx, "embedding_length": m.embd, "block_count": m.layers, "feed_forward_length": m.ffn,
              "attention.head_count": m.heads, "pooling_type": m.pooling}
    if m.labels: common["classifier.output_labels"] = ["yes", "no", "perhaps"][:m.labels]
    return {"%s.%s" % (m.arch, k): v for k, v in {**common, **keys(m)}.items()}


def tensors(m, layer, top):
    """(name, dims) of every tensor, in the file's order."""
    size = dict(E=m.embd, Q=m.heads * m.head_dim, K=m.kv_heads * m.head_dim, D=m.head_dim, F=m.ffn, V=m.vocab, Z=m.dense,
                L=max(m.labels, 1), C=m.ctx, T=m.types, X=m.experts)
    lines = [("", line) for line in top(m)] + [("blk.%d." % l, line) for l in range(m.layers) for line in layer(m, l)]
    if m.pooling == 4:
        lines += [("", line) for line in (["cls E E", "cls.bias E"] if m.cls else []) + (["cls.norm E"] if m.norm else [])
                  + biased("cls.output E L")]
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
                  **{"tokenizer.ggml." + k: v for k, v in vocabulary(m).items()}}, plan)


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
