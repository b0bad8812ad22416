#!/usr/bin/env python3
"""Makes unigram.gguf and unigram.json: a small Unigram vocabulary in the form of XLM-RoBERTa's, and texts with their ids by the
sentencepiece library, which trains it here on texts drawn from a few syllables. Needs python3-sentencepiece and numpy.

  make_unigram.py FOLDER
"""
import json
import os
import random
import sys
import tempfile

import sentencepiece as spm

import family_gguf

# The normalizer: letters in wide, joined and composed forms, kinds of space; soft hyphens vanish.
RULES = {"\uff21": "a", "\ufb01": "fi", "e\u0301": "\u00e9", "\u3000": " ", "\u00a0": " ", "\t": " ", "\n": " ", "\u00ad": "", "\u00bd": "1/2"}
TEXTS = ["", " ", "bala kimo", "  bala   kimo  ", "balakimo", "Bala", "\uff21bala\u3000kimo\n\tsu", "\ufb01 fi", "ne\u0301 n\u00e9", "ba\u00adla", "\u00bd",
         "\u4e2d\u6587\u4e2d", "bala\u4e2d\u6587 \U0001f600\U0001f600 kimo", "\u2581bala", "a" * 40, "su. su, (su)!", "x\u00a0x", "kimo" * 30, "0123 456", "bala <mask> kimo</s>"]


def fields(data):
    """(number, value) of a protocol buffer's fields; floats and texts as bytes."""
    at = 0
    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]; at += 1
            value |= (byte & 127) << shift; shift += 7
            if byte < 128: return value
    while at < len(data):
        tag = varint()
        if tag & 7 == 0: yield tag >> 3, varint()
        else:
            size = varint() if tag & 7 == 2 else 4
            yield tag >> 3, data[at:at + size]; at += size


def main():
    rng, folder = random.Random(1), sys.argv[1]
    syllables = ["ba", "la", "ki", "mo", "su", "ne", "fi", "n\u00e9", "ta", "ru"]
    word = lambda: "".join(rng.choice(syllables) for _ in range(rng.randint(1, 4)))
    with tempfile.TemporaryDirectory() as tmp:
        text, rules, prefix = (os.path.join(tmp, name) for name in ("text", "rules", "model"))
        with open(text, "w") as f:
            for _ in range(3000): f.write(" ".join(word() for _ in range(8)) + rng.choice([".", "!", ", ", " (0123)", " 456", " 1/2 x"]) + "\n")
        with open(rules, "w") as f:
            for old, new in RULES.items(): f.write("%s\t%s\n" % (" ".join("%X" % ord(c) for c in old), " ".join("%X" % ord(c) for c in new)))
        spm.SentencePieceTrainer.train(input=text, model_prefix=prefix, vocab_size=150, model_type="unigram", normalization_rule_tsv=rules,
                                       minloglevel=2)
        with open(prefix + ".model", "rb") as f: proto = f.read()
        model = spm.SentencePieceProcessor(model_proto=proto)
    charsmap = next(v for n, spec in fields(proto) if n == 3 for k, v in fields(spec) if k == 2)
    n = model.get_piece_size()
    # As Fairseq numbers them: <s>, <pad>, </s>, <unk>, the pieces from the third on, and a mask.
    tokens = ["<s>", "<pad>", "</s>", "<unk>"] + [model.id_to_piece(i) for i in range(3, n)] + ["<mask>", "[PAD]"]
    scores = [0.0] * 4 + [model.get_score(i) for i in range(3, n)] + [0.0, -10000.0]
    types = [3, 3, 3, 2] + [1] * (n - 3) + [3, 5]
    keys = {"general.architecture": "bert", "tokenizer.ggml.model": "t5", "tokenizer.ggml.pre": "default", "tokenizer.ggml.tokens": tokens,
            "tokenizer.ggml.scores": scores, "tokenizer.ggml.token_type": types, "tokenizer.ggml.add_space_prefix": True,
            "tokenizer.ggml.remove_extra_whitespaces": True, "tokenizer.ggml.precompiled_charsmap": list(charsmap),
            "tokenizer.ggml.bos_token_id": 0, "tokenizer.ggml.eos_token_id": 2, "tokenizer.ggml.unknown_token_id": 3,
            "tokenizer.ggml.seperator_token_id": 2, "tokenizer.ggml.padding_token_id": 1, "tokenizer.ggml.mask_token_id": n + 1,
            "tokenizer.ggml.add_bos_token": True, "tokenizer.ggml.add_eos_token": True}
    family_gguf.write(os.path.join(folder, "unigram.gguf"), keys, [])
    with open(os.path.join(folder, "unigram.json"), "w") as f:
        json.dump([[t, [3 if i == 0 else i + 1 for i in model.encode(t)]] for t in TEXTS], f)
    print("%d pieces, %d bytes of rules" % (n, len(charsmap)))


if __name__ == "__main__":
    main()
