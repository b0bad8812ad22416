"""A seed has one order of batches, however fast the machine is: batches_test.py, from anywhere.

Trains twice for a minute of a clock that is not the machine's, and of which a step takes 2 and 0.5 seconds. All pools that both runs
draw have to be the same, with the same share of drills. And what was asked for counts more than the rest of a story, and the user's
capitals are read as the chat template has them.
"""
import json
import pathlib
import random
import re
import sys
import tempfile
import types

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "models/recipe"))
import train
import vocab
from corpus import documents
from grammar import Lexicon
from others import Others


def pools(work, seconds_per_step):
    """The arguments of train.pool() in a run, but those that are objects."""
    drawn, now = [], 0.0

    def draw(vocabulary, lexicon, *rest):
        drawn.append(rest)
        return real(vocabulary, lexicon, *rest)

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
    """(token, weight) of a chat whose user asks for a name that no list has."""
    vocabulary = vocab.Vocabulary(json.loads((work / "vocab.json").read_text()))
    told = "It was late, and it was dark and wet and cold. " + "There was a girl named Zorbina, and she sang. " * 3 + "Nora came, and Nora sang."
    ids = vocab.encode(vocabulary, [("user", "a story about Zorbina"), ("assistant", told)])
    read = vocab.encode(vocabulary, [("user", "a"), ("read", "b c"), ("user", "d"), ("assistant", "e")])
    assert sum(id < 0 for id in read) == len(vocabulary.encode("\nb c")) + 1, read  # its text and its end
    for text in (told, "Zoë's  10 fish_es!\n\n\"No,\" said Æ."):
        assert vocabulary.decode(vocabulary.encode(text)) == text
    assert vocabulary.encode("fish") == [vocabulary.ids[letter] for letter in "fish"] and len(vocabulary.encode(" was")) == 1
    return [(vocabulary.texts[token], weight) for token, weight in zip(ids, train.Emphasis(vocabulary, Lexicon())(ids))]


def main():
    train.POOL = 24  # documents: a new pool every few steps
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        corpus = work / "corpus.jsonl"
        corpus.write_text("".join(json.dumps(d) + "\n" for d in documents(7, 300)))
        (work / "vocab.json").write_text(json.dumps(vocab.tokens(corpus, 3)))
        slow, fast = pools(work, 2.0), pools(work, 0.5)
        weighed = weights(work)
    assert 3 < len(slow) < len(fast), (len(slow), len(fast))
    assert slow == fast[:len(slow)], (slow, fast)
    emphasis = train.Emphasis

    def of(*starts):
        return [weight for token, weight in weighed if token.startswith(starts)]

    assert of("Z") == [0, emphasis.HEARD, emphasis.AGAIN, emphasis.AGAIN], weighed
    after = [weighed[at + 1][1] for at, (token, _) in enumerate(weighed) if token == "Z"]
    assert after == [0, emphasis.FIRST, emphasis.COPY, emphasis.COPY], weighed  # the first letter of what was said before is one of many that may come, the others are not
    assert of(" was")[2:] == [emphasis.MENTION, 1, 1], weighed  # the first sentence that has the name
    assert of(" N") == [emphasis.NEW, emphasis.AGAIN], weighed
    assert (of(" she")[0], of(" about")) == (emphasis.PRONOUN, [0]), weighed
    assert [vocab.heard(*said) for said in (("user", "TELL ME 2!"), ("user", "2!"), ("assistant", "NO"))] == ["Tell me 2!", "2!", "NO"]
    other = Others(Lexicon()).instead(random.Random(3), "Tell me a story about Mia and a fable.")
    assert re.fullmatch(r"Tell me (an [aeio]|a (?![aeio]))\w+ about Mia and an? \w+\.", other) and "story" not in other, other
    print(f"{len(slow)} and {len(fast)} pools: the same as far as both go")


if __name__ == "__main__":
    main()
