"""A seed has one order of batches, however fast the machine is: batches_test.py, from anywhere.

Trains twice for a minute of a clock that is not the machine's, and of which a step takes 2 and 0.5 seconds. All pools that both runs
draw have to be the same, with the same share of drills. And what was asked for counts more than the rest of a story.
"""
import json
import pathlib
import sys
import tempfile
import types

import sentencepiece

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "models/recipe"))
import train
import vocab
from corpus import documents
from grammar import Lexicon


def pools(work, seconds_per_step):
    """The arguments of train.pool() in a run, but those that are objects."""
    drawn, now = [], 0.0

    def draw(pieces, lexicon, *rest):
        drawn.append(rest)
        return real(pieces, lexicon, *rest)

    def clock():
        nonlocal now
        now += seconds_per_step
        return now

    real, train.pool, train.time = train.pool, draw, types.SimpleNamespace(monotonic=clock)
    (work / "checkpoint.pt").unlink(missing_ok=True)
    sys.argv = ["train.py", str(work)] + "--budget 1 --steps 60 --layers 1 --width 64 --tokens 1024 --ctx 1024 --drill-steps 0 --drills 0.5".split()
    try:
        train.main()
    finally:
        train.pool = real
    return drawn


def weights(work):
    """(piece, weight) of a chat whose user asks for a name that no list has."""
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(work / "vocab.model"))
    ids = vocab.encode(pieces, [("user", "a story about Zorbina"), ("assistant", "There was a girl named Zorbina, and she sang. " * 3)])
    return [(pieces.id_to_piece(token), weight) for token, weight in zip(ids, train.Emphasis(pieces, Lexicon())(ids))]


def main():
    train.POOL = 24  # documents: a new pool every few steps
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        corpus = work / "corpus.jsonl"
        corpus.write_text("".join(json.dumps(d) + "\n" for d in documents(7, 300)))
        vocab.train(corpus, str(work / "vocab"), 1024)
        slow, fast = pools(work, 2.0), pools(work, 0.5)
        weighed = weights(work)
    assert 3 < len(slow) < len(fast), (len(slow), len(fast))
    assert slow == fast[:len(slow)], (slow, fast)
    said = dict(weighed)  # of each piece, where it comes last
    assert [weight for piece, weight in weighed if piece == "Z"] == [0] + [train.Emphasis.COPY] * 3, weighed
    assert (said["▁she"], said["▁was"], said["▁about"]) == (train.Emphasis.PRONOUN, 1, 0), weighed
    print(f"{len(slow)} and {len(fast)} pools: the same as far as both go")


if __name__ == "__main__":
    main()
