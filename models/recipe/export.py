"""Writes a checkpoint as GGUF v3: matrices in Q8_0, norms in float32, the vocabulary and all metadata.

The network rotates adjacent pairs (2i, 2i+1), which is what architecture "llama" means in GGUF, so rows of q and k
stay in place. The output matrix is the embedding; a file without output.weight says so.
"""
import argparse
import json
import pathlib
import struct

import numpy as np
import torch

import vocab
from sample import read_gguf

U32, F32, BOOL, STRING, ARRAY, I32 = 4, 6, 7, 8, 9, 5  # GGUF's ids of value types
TYPE_F32, TYPE_Q8_0 = 0, 8
ALIGNMENT = 32
SAMPLING = {"temp": 0.6, "top_k": 40, "top_p": 0.95, "min_p": 0.3, "penalty_last_n": 32, "penalty_repeat": 1.05}  # what the file recommends for itself
DESCRIPTION = "A very small storyteller: children's stories and questions about them, trained from nothing on a story grammar."


def string(text):
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def entry(key, value):
    """One key with its value; the type follows from Python's."""
    head = string(key)
    if isinstance(value, bool):
        return head + struct.pack("<IB", BOOL, value)
    if isinstance(value, int):
        return head + struct.pack("<II", U32, value)
    if isinstance(value, float):
        return head + struct.pack("<If", F32, value)
    if isinstance(value, str):
        return head + struct.pack("<I", STRING) + string(value)
    if isinstance(value[0], str):
        return head + struct.pack("<IIQ", ARRAY, STRING, len(value)) + b"".join(map(string, value))
    kind, dtype = (I32, "<i4") if isinstance(value[0], int) else (F32, "<f4")
    return head + struct.pack("<IIQ", ARRAY, kind, len(value)) + np.asarray(value, dtype).tobytes()


def q8_0(values):
    """Blocks of 32: a half-precision scale d and 32 signed bytes q, value = d * q."""
    blocks = values.reshape(-1, 32).astype(np.float32)
    d = np.abs(blocks).max(1, keepdims=True) / 127
    inverse = np.divide(1, d, out=np.zeros_like(d), where=d > 0)
    out = np.empty((len(blocks), 34), np.uint8)
    out[:, :2] = d.astype("<f2").view(np.uint8)
    out[:, 2:] = np.rint(blocks * inverse).astype(np.int8).view(np.uint8)
    return out.tobytes()


def metadata(shape, vocabulary, n_weights):
    return {
        "general.architecture": "llama", "general.type": "model", "general.name": "pronk storyteller", "general.author": "pronk",
        "general.license": "mit", "general.description": DESCRIPTION, "general.size_label": f"{n_weights / 1e6:.0f}M", "general.languages": ["en"],
        "general.tags": ["text-generation", "stories"], "general.file_type": 7, "general.quantization_version": 2,
        "llama.vocab_size": len(vocabulary), "llama.context_length": shape["n_ctx"], "llama.embedding_length": shape["n_embd"],
        "llama.block_count": shape["n_layers"], "llama.feed_forward_length": shape["n_ffn"],
        "llama.attention.head_count": shape["n_heads"], "llama.attention.head_count_kv": shape["n_kv_heads"],
        "llama.attention.key_length": shape["head_dim"], "llama.attention.value_length": shape["head_dim"],
        "llama.attention.layer_norm_rms_epsilon": shape["rms_eps"], "llama.rope.dimension_count": shape["head_dim"],
        "llama.rope.freq_base": shape["rope_base"],
        "tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "llama-bpe", "tokenizer.ggml.tokens": vocabulary.tokens,
        "tokenizer.ggml.token_type": [3 if i <= vocab.END else 1 for i in range(len(vocabulary))],  # control, normal
        "tokenizer.ggml.merges": [" ".join(vocab.spell(vocab.MERGE))],
        "tokenizer.ggml.bos_token_id": vocab.BOS, "tokenizer.ggml.eos_token_id": vocab.EOS, "tokenizer.ggml.eot_token_id": vocab.END,
        "tokenizer.ggml.padding_token_id": vocab.PAD, "tokenizer.ggml.add_bos_token": True, "tokenizer.ggml.add_eos_token": False,
        "tokenizer.chat_template": vocab.TEMPLATE, **{f"general.sampling.{key}": value for key, value in SAMPLING.items()},
    }


def write(path, meta, weights):
    infos, data = b"", []
    offset = 0
    for name, tensor in weights.items():
        values = tensor.float().numpy()
        is_matrix = values.ndim == 2
        data.append(q8_0(values) if is_matrix else values.astype("<f4").tobytes())
        dims = values.shape[::-1]  # GGUF counts from the fastest dimension
        infos += string(name + ".weight") + struct.pack(f"<I{len(dims)}Q", len(dims), *dims)
        infos += struct.pack("<IQ", TYPE_Q8_0 if is_matrix else TYPE_F32, offset)
        offset += -(-len(data[-1]) // ALIGNMENT) * ALIGNMENT
    head = b"GGUF" + struct.pack("<IQQ", 3, len(weights), len(meta)) + b"".join(entry(k, v) for k, v in meta.items()) + infos
    with open(path, "wb") as f:
        for part in [head] + data:
            f.write(part + b"\0" * (-len(part) % ALIGNMENT))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("work", type=pathlib.Path, help="the folder of the training: vocab.json, checkpoint.pt")
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--mean", metavar="FILE", help="average with the GGUF file from which the training went on: less is forgotten")
    parser.add_argument("--share", type=float, default=0.7, help="of the training in that average")
    a = parser.parse_args()
    saved = torch.load(a.work / "checkpoint.pt")
    if a.mean:
        start = read_gguf(a.mean)[1]
        saved["model"] = {name: a.share * values + (1 - a.share) * torch.tensor(start[name]) for name, values in saved["model"].items()}
    vocabulary = vocab.Vocabulary(json.loads((a.work / "vocab.json").read_text()))
    n_weights = sum(tensor.numel() for tensor in saved["model"].values())
    write(a.out, metadata(saved["shape"], vocabulary, n_weights), saved["model"])
    print(f"{a.out}: {a.out.stat().st_size:,} bytes after {saved['state']['step']} steps")


if __name__ == "__main__":
    main()
