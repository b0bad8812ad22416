"""Draws the corpus: documents in a fixed order for a seed, each a list of (role, text).

A fifth are plain stories, the others conversations: of stories and questions about them, and short ones about anything else. The
corpus is never the same story twice in practice, so "epochs" do not exist; a longer training simply draws on. Held-out documents come
from another seed.
"""
import argparse
import json
import random

import chat
from grammar import Lexicon, Story, capital, draw, grafted, rows, syllables
from others import Others

HELD_OUT_SEED = 999_983


def copying(lexicon, rng):
    """Lines full of words that nobody has ever seen, some with the same beginning: only who copies letter by letter gets them right."""
    words = []
    for _ in range(rng.choice([2, 3, 4, 6])):
        chance = rng.random()
        word = (lexicon.unknown_word(rng) if chance < 0.5 else syllables(rng) + syllables(rng) if chance < 0.6 else syllables(rng) if chance < 0.85 else
                "".join(rng.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(rng.randint(3, 8))))
        chance = rng.random()
        if words and chance < 0.25:
            word = rng.choice(words)[:rng.randint(1, 5)].lower() + word[rng.randrange(len(word)):]
        elif words and chance < 0.55:
            word = grafted(rng, word, rng.choice(words))
        elif words and chance < 0.75:  # toast, toaster, toasters
            word = rng.choice(words).lower()
            word = word[:-1] if len(word) > 3 and rng.random() < 0.3 else word + rng.choice(["s", "er", "ed", "y", "ing", "le", "a", "o", "ish"])
        words.append(word if rng.random() < 0.4 else capital(word))
    pattern = [draw(rng, "{a} [saw|found|and|liked|had|called|with|said to] {b}[.|.|,|!|?]") for _ in range(rng.choice([6, 9, 12]))]
    return [("drill", " ".join(part.format(**dict(zip("ab", rng.sample(words, 2)))) for part in pattern))]


def drill(lexicon, rng, lines):
    """Requests with only the first words of their stories: who the hero is, and the thing; or lines of drills.txt and questions
    about them; or such lines about one cast; or words to copy."""
    form = rng.random()
    if form < 0.2:
        return copying(lexicon, rng)
    if form < 0.8:
        messages = []
        for _ in range(rng.choice([1, 2, 3, 5])):
            while "thing" not in (asked := chat.request(lexicon, rng))[1].asked:
                pass
            ask, story = asked
            messages += [("user", ask), ("drill", story.expand(rng.choice(lexicon.phrases["once"]) + rng.choice([" {He} had {an_adj_t}.", " {N} had {an_adj_t}.", " {@of_thing}"])))]
        return messages
    if form < 0.95:
        return chat.drilled_questions(lexicon, rng, lines)
    story = Story(lexicon, rng, asked=chat.EVERYTHING)
    first = ["{N} was {a_kind}.", "{F} was {a_fkind}.", "{N} had {an_adj_t}."]
    rng.shuffle(first)
    return [("drill", story.expand(" ".join(first + [line.partition(" = ")[0] for line in rng.sample(lines, 6)])))]


def listening(lexicon, rng, talk, lines, others):
    """What a listener needs, in few tokens: requests with only the beginnings of their stories; or questions about short texts; or a
    story, questions about it, and what may follow."""
    form = rng.random()
    if form < 0.1:
        return chat.drilled_questions(lexicon, rng, lines)
    if form < 0.47:
        ask, story = chat.request(lexicon, rng) if rng.random() < 0.4 else ("Tell me a story.", Story(lexicon, rng))
        messages = [("user", ask), ("assistant", story.text)]
        for pair in chat.questions(rng, story, rng.choice([3, 8, 11, 13])):
            messages += zip(("user", "assistant"), pair)
        for _ in range(rng.choice([1, 1, 2, 3])):
            if rng.random() < 0.35:
                messages += zip(("user", "assistant"), chat.small(rng, talk[4:6]))
            if rng.random() < 0.45:
                messages += [("user", chat.short(rng, chat.CHANGE, name=story.hero["name"])), ("assistant", rng.choice(chat.CANNOT).format(name=story.hero["name"]))]
            else:
                ask, story = chat.follow_up(lexicon, rng, story)
                messages += [("user", ask), chat.told(rng, story)]
        return messages
    return chat.asking(lexicon, rng, talk, others)


def documents(seed, count, lexicon=None, drills=0.0, requests=0.0):
    """`drills` and `requests` are the shares of documents that are drills of either kind. Held-out documents have none."""
    lexicon, rng, talk, lines = lexicon or Lexicon(), random.Random(seed), chat.small_talk(), list(rows("drills.txt"))
    others = Others(lexicon)
    for _ in range(count):
        if drills and rng.random() < drills:
            yield drill(lexicon, rng, lines)
        elif requests and rng.random() < requests:
            yield listening(lexicon, rng, talk, lines, others)
        elif rng.random() < 0.55:
            yield chat.refusals(lexicon, rng, talk, others)
        elif rng.random() < 0.45:
            yield [("text", Story(lexicon, rng).text)]
        else:
            yield chat.conversation(lexicon, rng, talk, others)


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
