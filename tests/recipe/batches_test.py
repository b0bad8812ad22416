"""A seed has one order of batches, however fast the machine is: batches_test.py, from anywhere.

Trains twice for a minute of a clock that is not the machine's, and of which a step takes 2 and 0.5 seconds. All pools that both runs
draw have to be the same, with the same share of drills.
"""
import json
import pathlib
import sys
import tempfile
import types

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "models/recipe"))
import train
import vocab
from corpus import documents


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


def main():
    train.POOL = 24  # documents: a new pool every few steps
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        corpus = work / "corpus.jsonl"
        corpus.write_text("".join(json.dumps(d) + "\n" for d in documents(7, 300)))
        vocab.train(corpus, str(work / "vocab"), 1024)
        slow, fast = pools(work, 2.0), pools(work, 0.5)
    assert 3 < len(slow) < len(fast), (len(slow), len(fast))
    assert slow == fast[:len(slow)], (slow, fast)
    print(f"{len(slow)} and {len(fast)} pools: the same as far as both go")


if __name__ == "__main__":
    main()
