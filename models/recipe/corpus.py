"""Draws the corpus: documents in a fixed order for a seed, each a list of (role, text).

Two thirds are plain stories, one third conversations. The corpus is never the same story twice in practice,
so "epochs" do not exist; a longer training simply draws on. Held-out documents come from another seed.
"""
import argparse
import json
import random

import chat
from grammar import Lexicon, Story

HELD_OUT_SEED = 999_983


def documents(seed, count, lexicon=None):
    lexicon, rng, talk = lexicon or Lexicon(), random.Random(seed), chat.small_talk()
    for _ in range(count):
        if rng.random() < 0.64:
            yield [("text", Story(lexicon, rng).text)]
        else:
            yield chat.conversation(lexicon, rng, talk)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", help="a JSON document per line")
    parser.add_argument("--count", type=int, default=60_000)
    parser.add_argument("--seed", type=int, default=1)
    a = parser.parse_args()
    with open(a.out, "w") as f:
        for document in documents(a.seed, a.count):
            f.write(json.dumps(document) + "\n")


if __name__ == "__main__":
    main()
