#!/usr/bin/env python3
"""Computes what a model gives, slowly and plainly, in float64: the reference for the engine.

  reference.py MODEL.gguf OUT.f32 --ids "1 300 12" [--ctx N]            logits of every position
  reference.py MODEL.gguf OUT.nextn.f32 --ids "1 300 12" [--ctx N]      of the block that predicts further tokens
  reference.py MODEL.gguf OUT.f32 --ids "1 300" --ids "2 9"             of an encoder: each text's vector or scores
  reference.py TARGET.gguf OUT --assistant --ids "1 300 12" [--pattern sfs] [--seed N]
                                                                        OUT.gguf drafts for a Gemma 4, OUT.f32 its drafts

Logits are positions x vocabulary, little-endian f32. Everything is written from the definitions of the families alone, not
from the engine, so that the two can be compared; the .f32 files of the folders here are from it. references/ has the
families: dense, more (layers that differ), hybrids (not all plain attention), vectors, assistant; arithmetic is what they
share. Needs numpy.
"""
import argparse
import sys

import numpy as np

from references import assistant, dense, hybrids, more, vectors
from references.arithmetic import Model


def result_of(model, out):
    """The function that computes this model's result from ids."""
    if model.key("pooling_type", 0):
        return vectors.result
    if out.endswith(".nextn.f32"):
        return more.nextn_logits
    return next((room.logits for room in (dense, more) if model.arch in room.FAMILIES), hybrids.logits)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("out")
    parser.add_argument("--ids", required=True, action="append", help="token ids of a text, with spaces between")
    parser.add_argument("--ctx", type=int, help="tokens the engine has room for (default: trained, at most 4096)")
    parser.add_argument("--assistant", action="store_true", help="make one, and its drafts")
    parser.add_argument("--pattern", default="sfs", help="of the assistant's layers: s sliding, f full")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    texts = [[int(word) for word in ids.split()] for ids in args.ids]
    if args.assistant:
        margin = assistant.drafts(args.model, args.out, texts[0], args.pattern, seed=args.seed)
        print("%s: the most likely token is clear by %.3g" % (args.out, margin))
        return
    model = Model(args.model, args.ctx)
    result = result_of(model, args.out)
    np.concatenate([result(model, ids) for ids in texts]).astype("<f4").tofile(args.out)
    if np.isfinite(model.router_margin):
        print("smallest margin of the router: %.4f" % model.router_margin, file=sys.stderr)


if __name__ == "__main__":
    main()
