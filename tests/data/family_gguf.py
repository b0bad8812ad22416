#!/usr/bin/env python3
"""Writes a small GGUF model with random weights, of one family, with the metadata keys and the tensors that published
files of that family have. Made the models of families/, each with the options of its line in models.txt. Needs numpy.

  family_gguf.py gemma3 OUT.gguf --layers 7 --window 5
  family_gguf.py gpt-oss OUT.gguf --experts 8 --expert-type mxfp4 --drop attn_sinks
  family_gguf.py granite OUT.gguf --set logit_scale=4
  family_gguf.py --lines FOLDER [NAME...]      FOLDER/NAME.gguf by its line of models.txt, of all names or these

A new family is an entry of FAMILIES. A tensor's values follow from the seed and its own name: files that differ in one
key or one tensor (--set, --drop) share everything else, so their logits can be compared.
"""
import argparse
import os
import struct
import sys
import zlib
from typing import Callable, NamedTuple

import numpy as np

TYPES = {"f32": (0, 1, 4), "mxfp4": (39, 32, 17), "nvfp4": (40, 64, 36)}  # id, weights and bytes of a block
FILE_TYPE = {"f32": 0, "mxfp4": 38, "nvfp4": 39}

# Tensors of a layer: name, then its dims (row length first) in the letters of sizes(); ".weight" unless it says else.
PRE = ["attn_norm E", "ffn_norm E"]                                # norms before attention and before the ffn
POST = ["post_attention_norm E", "post_ffw_norm E"]                # norms of what they give, before the residual add
QKV = ["attn_q E Q", "attn_k E K", "attn_v E K", "attn_output Q E"]
PACKED_QKV = ["attn_qkv E Q+K+K", "attn_output Q E"]
BIAS = ["attn_q.bias Q", "attn_k.bias K", "attn_v.bias K"]
QK_NORM = ["attn_q_norm D", "attn_k_norm D"]                       # one head wide, shared by all heads
WIDE_QK_NORM = ["attn_q_norm Q", "attn_k_norm K"]                  # over all heads at once
FFN = ["ffn_gate E F", "ffn_up E F", "ffn_down F E"]
PACKED_FFN = ["ffn_up E F+F", "ffn_down F E"]                      # gate rows first, then up
EXPERTS = ["ffn_gate_inp E X", "ffn_gate_exps E G X", "ffn_up_exps E G X", "ffn_down_exps G E X"]
SHARED = ["ffn_gate_shexp E S", "ffn_up_shexp E S", "ffn_down_shexp S E"]


def sizes(m):
    return dict(E=m.embd, Q=m.heads * m.head_dim, K=m.kv_heads * m.head_dim, D=m.head_dim, H=m.heads, F=m.ffn,
                X=m.experts, G=m.expert_ffn, S=m.shared_ffn, R=m.rope_dims // 2)


# Metadata that several families have (the architecture's name and a dot go before each key).
def llama(m): return {"vocab_size": m.vocab, "rope.dimension_count": m.rope_dims}
def head(m): return {"attention.key_length": m.head_dim, "attention.value_length": m.head_dim}
def routed(m): return {"expert_count": m.experts, "expert_used_count": m.experts_used}
def own_ffn(m): return {"expert_feed_forward_length": m.expert_ffn}
def shared(m): return {"expert_shared_feed_forward_length": m.shared_ffn} if m.shared_ffn else {}
def window(m): return {"attention.sliding_window": m.window}
def window_list(m):
    return {**window(m), "attention.sliding_window_pattern": [(l + 1) % 4 != 0 for l in range(m.layers)]} if m.window else {}
def granite(m): return {**llama(m), "attention.scale": 0.1, "embedding_scale": 6.0, "residual_scale": 0.22, "logit_scale": 3.0}


class Family(NamedTuple):
    layer: Callable            # m -> tensors of a layer
    keys: Callable             # m -> metadata beyond the common keys
    defaults: dict = {}        # option values other than COMMON's
    top: list = []             # tensors beside the layers


FAMILIES = {
    "llama": Family(lambda m: PRE + QKV + (EXPERTS if m.experts else FFN),
                    lambda m: {**llama(m), **(head(m) if m.head_dim * m.heads != m.embd else {}), **(routed(m) if m.experts else {})}),
    "qwen2moe": Family(lambda m: PRE + QKV + BIAS + EXPERTS + ["ffn_gate_inp_shexp E"] + SHARED,
                       lambda m: {**routed(m), **own_ffn(m), **shared(m)},
                       dict(expert_ffn=40, shared_ffn=72)),
    "qwen3moe": Family(lambda m: PRE + QKV + QK_NORM + EXPERTS, lambda m: {**head(m), **routed(m), **own_ffn(m)},
                       dict(expert_ffn=40, head_dim=24)),
    "phi3": Family(lambda m: PRE + PACKED_QKV + PACKED_FFN,
                   lambda m: {"rope.dimension_count": m.rope_dims, "rope.scaling.original_context_length": m.orig_ctx,
                              "rope.scaling.attn_factor": 1.19, **window(m)},
                   dict(orig_ctx=4096, window=5, base=10000.0), ["rope_factors_long R", "rope_factors_short R"]),
    "granite": Family(lambda m: PRE + QKV + FFN, granite, dict(tied=True)),
    "granitemoe": Family(lambda m: PRE + QKV + EXPERTS + (SHARED if m.shared_ffn else []),
                         lambda m: {**granite(m), **routed(m), **shared(m)}, dict(tied=True, ffn=48)),
    "smollm3": Family(lambda m: PRE + QKV + FFN, llama, dict(layers=5, ffn=64, tied=True)),
    "mistral3": Family(lambda m: PRE + QKV + FFN,
                       lambda m: {**llama(m), **head(m), "rope.scaling.yarn_beta_fast": 0.2, "rope.scaling.yarn_beta_slow": 0.02,
                                  "rope.scaling.yarn_log_multiplier": 1.0, "attention.temperature_scale": 0.3},
                       dict(head_dim=24, yarn=4.0, orig_ctx=8)),
    "gemma2": Family(lambda m: PRE + POST + QKV + FFN,
                     lambda m: {**head(m), **window(m), "attn_logit_softcapping": 8.0, "final_logit_softcapping": 6.0},
                     dict(layers=4, head_dim=24, ffn=64, window=5, tied=True, base=None)),
    "gemma3": Family(lambda m: PRE + POST + QKV + QK_NORM + FFN, lambda m: {**head(m), **window(m)},
                     dict(layers=7, embd=48, head_dim=16, ffn=64, window=5, tied=True, base=200.0, linear=8.0)),
    "gpt-oss": Family(lambda m: ["attn_norm E", "post_attention_norm E"] + QKV + BIAS + ["attn_output.bias E", "attn_sinks H"]
                      + EXPERTS + ["ffn_gate_inp.bias X", "ffn_gate_exps.bias G X", "ffn_up_exps.bias G X",
                                   "ffn_down_exps.bias E X"],
                      lambda m: {**head(m), **routed(m), **own_ffn(m), **window(m),
                                 "rope.scaling.yarn_beta_fast": 32.0, "rope.scaling.yarn_beta_slow": 1.0},
                      dict(head_dim=24, ffn=32, window=5, yarn=8.0, orig_ctx=64, base=150.0, std=0.3)),
    "olmo2": Family(lambda m: POST + QKV + WIDE_QK_NORM + FFN, window_list),
    "glm4": Family(lambda m: PRE + POST + QKV + PACKED_FFN, lambda m: {**head(m), "rope.dimension_count": m.rope_dims},
                   dict(head_dim=24, rope_dims=12)),
    "bitnet": Family(lambda m: PRE + ["attn_sub_norm E", "ffn_sub_norm F"] + QKV + FFN, lambda m: {}, dict(tied=True, linear=1.0)),
    "ernie4_5": Family(lambda m: PRE + QKV + FFN, head, dict(head_dim=24, tied=True)),
    "hunyuan-dense": Family(lambda m: PRE + QKV + QK_NORM + FFN, head, dict(head_dim=24, tied=True)),
    "exaone4": Family(lambda m: POST + QKV + QK_NORM + FFN, lambda m: {"vocab_size": m.vocab, **head(m), **window_list(m)}),
}
COMMON = dict(embd=64, heads=4, kv_heads=2, head_dim=None, ffn=96, layers=2, vocab=256, ctx=4096, rope_dims=None, base=500.0,
              experts=6, experts_used=2, expert_ffn=None, shared_ffn=0, window=0, orig_ctx=None, yarn=None, linear=None,
              tied=False, std=0.2)


def metadata(m, family):
    common = {"context_length": m.ctx, "embedding_length": m.embd, "block_count": m.layers, "feed_forward_length": m.ffn,
              "attention.head_count": m.heads, "attention.head_count_kv": m.kv_heads, "attention.layer_norm_rms_epsilon": 1e-5}
    if m.base: common["rope.freq_base"] = m.base
    if m.linear: common.update({"rope.scaling.type": "linear", "rope.scaling.factor": m.linear})
    if m.yarn: common.update({"rope.scaling.type": "yarn", "rope.scaling.factor": m.yarn,
                              "rope.scaling.original_context_length": m.orig_ctx or m.ctx})
    return {"%s.%s" % (m.arch, k): v for k, v in {**common, **family.keys(m)}.items()}


def tensors(m, family):
    """(name, dims, type) of every tensor, in the file's order."""
    size, out = sizes(m), []

    def add(prefix, line):
        name, *dims = line.split()
        name = prefix + name + ("" if "." in name else ".weight")
        dims = [sum(size[c] for c in d.split("+")) for d in dims]
        plain = len(dims) < 2 or name.endswith(".bias") or "gate_inp" in name
        kind = "f32" if plain else m.expert_type if "_exps" in name else m.type
        if kind == "nvfp4" and "token_embd" in name: kind = "f32"
        out.append((name, dims, kind))
        if kind == "nvfp4": out.append((name.replace(".weight", ".scale"), dims[2:] or [1], "f32"))  # a factor for each matrix
    size["V"] = m.vocab
    for line in ["token_embd E V"] + family.top: add("", line)
    for l in range(m.layers):
        for line in family.layer(m): add("blk.%d." % l, line)
    for line in ["output_norm E"] + ([] if m.tied else ["output E V"]): add("", line)
    return out


def values(m, name, dims, kind):
    """The tensor's bytes: norms and scales around one, factors rising, the rest normal with mean zero."""
    rng = np.random.default_rng([m.seed, zlib.crc32(name.encode())])
    n = int(np.prod(dims))
    std = 0.5 if name == "token_embd.weight" else m.std
    if "rope_factors" in name:
        x = 1 + (7 if "long" in name else 1) * np.arange(n) / n + 0.1 * rng.random(n)
    elif name.endswith("norm.weight"):
        x = 1 + 0.1 * rng.standard_normal(n)
    elif name.endswith(".scale"):
        x = 0.5 + rng.random(n)
    elif name.endswith(".bias") or "attn_sinks" in name:
        x = (0.3 if name.endswith(".bias") else 1.0) * rng.standard_normal(n)
    elif kind == "f32":
        x = rng.standard_normal(n, dtype=np.float32) * np.float32(std)
    else:  # power-of-two or UE4M3 scales around the wanted size; the nibbles' values have an rms of 5.85
        _, per, size = TYPES[kind]
        blocks = rng.integers(0, 256, (n // per, size), dtype=np.uint8)
        power = int(np.floor(np.log2(std / 5.85)))
        if kind == "mxfp4":
            blocks[:, 0] = 128 + power + rng.integers(-1, 2, len(blocks))
        else:
            blocks[:, :4] = (power + 8 << 3) + rng.integers(-4, 8, (len(blocks), 4))
        return blocks.tobytes()
    return x.astype("<f4").tobytes()


# --- The file -------------------------------------------------------------------------------------

U32, I32, F32, BOOL, STRING, ARRAY = 4, 5, 6, 7, 8, 9  # the format's types of values
KINDS = {bool: (BOOL, "<B"), int: (U32, "<I"), float: (F32, "<f")}


def string(text):
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def encode(key, value):
    """A key. Lists are of strings, bools, floats or ints (i32)."""
    if isinstance(value, str):
        return string(key) + struct.pack("<I", STRING) + string(value)
    if not isinstance(value, list):
        kind, form = KINDS[type(value)]
        return string(key) + struct.pack("<I", kind) + struct.pack(form, value)
    if isinstance(value[0], str):
        kind, data = STRING, b"".join(map(string, value))
    elif isinstance(value[0], bool):
        kind, data = BOOL, bytes(value)
    else:
        kind, data = (F32, np.array(value, "<f4")) if isinstance(value[0], float) else (I32, np.array(value, "<i4"))
        data = data.tobytes()
    return string(key) + struct.pack("<IIQ", ARRAY, kind, len(value)) + data


def vocabulary(n):
    """The keys of an SPM vocabulary: the specials and byte tokens first. {unknown, control, byte} are types 2, 3, 6."""
    texts = ["<unk>", "<s>", "</s>"] + ["<0x%02X>" % b for b in range(256)]
    types = [2, 3, 3] + [6] * 256
    assert n <= len(texts), "a small model has at most 259 tokens"
    return {"model": "llama", "tokens": texts[:n], "scores": [-float(i) for i in range(n)], "token_type": types[:n],
            "bos_token_id": 1, "eos_token_id": 2, "unknown_token_id": 0}


def write(path, keys, plan):
    """plan: (name, dims, type, bytes) of every tensor."""
    infos, offset = [], 0
    for name, dims, kind, data in plan:
        infos.append(string(name) + struct.pack("<I%dQIQ" % len(dims), len(dims), *dims, TYPES[kind][0], offset))
        offset += (len(data) + 31) // 32 * 32
    head = b"GGUF" + struct.pack("<IQQ", 3, len(plan), len(keys)) + b"".join(encode(*key) for key in keys.items())
    with open(path, "wb") as f:
        f.write(head + b"".join(infos))
        for _, _, _, data in plan:
            f.write(b"\0" * (-f.tell() % 32) + data)
        f.write(b"\0" * (-f.tell() % 32))


def parse(argv):
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("arch", choices=FAMILIES); p.add_argument("out")
    p.add_argument("--seed", type=int, default=1)
    for name, value in COMMON.items():
        flag = "--" + {"base": "rope-base"}.get(name, name).replace("_", "-")
        if isinstance(value, bool): p.add_argument(flag, dest=name, action=argparse.BooleanOptionalAction)
        else: p.add_argument(flag, dest=name, type=float if name in ("base", "yarn", "linear", "std") else int)
    p.add_argument("--type", default="f32", choices=TYPES); p.add_argument("--expert-type", choices=TYPES, help="instead of --type")
    p.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a metadata key, without the architecture's name")
    p.add_argument("--drop", action="append", default=[], metavar="NAME", help="leave out that key, or the tensors so named")
    m = p.parse_args(argv); d = {**COMMON, **FAMILIES[m.arch].defaults}
    for name in d:
        if getattr(m, name) is None: setattr(m, name, d[name])
    m.head_dim = m.head_dim or m.embd // m.heads; m.rope_dims = m.rope_dims or m.head_dim
    m.expert_ffn = m.expert_ffn or m.ffn; m.expert_type = m.expert_type or m.type
    return m


def build(m):
    """(metadata as a dict, tensors as (name, dims, type, bytes))."""
    family = FAMILIES[m.arch]; keys = metadata(m, family)
    for item in m.set:
        key, _, text = item.partition("="); key = m.arch + "." + key
        guess = float if "." in text else int if text.isdigit() else bool if text in ("true", "false") else str
        kind = type(keys.get(key, guess())); keys[key] = text == "true" if kind is bool else kind(text)
    keys = {k: v for k, v in keys.items() if k.partition(".")[2] not in m.drop}
    plan = []
    for name, dims, kind in tensors(m, family):
        if any(d in name for d in m.drop): continue
        if dims[0] % TYPES[kind][1]: sys.exit("%s: rows of %d elements do not hold whole %s blocks" % (name, dims[0], kind))
        plan.append((name, dims, kind, values(m, name, dims, kind)))
    return keys, plan


def make(argv):
    m = parse(argv)
    keys, plan = build(m)
    tokens = vocabulary(m.vocab)
    if m.arch == "phi3":  # some loaders look for it in this family
        tokens["tokens"][-1], tokens["token_type"][-1] = "<|endoftext|>", 3
    write(m.out, {"general.architecture": m.arch, "general.type": "model", "general.name": m.arch + " (random weights)",
                  "general.file_type": FILE_TYPE[m.expert_type], "general.quantization_version": 2, **keys,
                  **{"tokenizer.ggml." + k: v for k, v in tokens.items()}}, plan)


def main(argv):
    if argv[:1] != ["--lines"]:
        return make(argv)
    folder, *names = argv[1:]
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "families", "models.txt")) as lines:
        for name, arch, *options in map(str.split, lines):
            if not names or name in names:
                make([arch, os.path.join(folder, name + ".gguf"), *options])


if __name__ == "__main__":
    main(sys.argv[1:])
