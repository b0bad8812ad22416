"""How good is an exported file? python3 evaluate.py FILE.gguf VOCAB.model [--show 6]

Measures the file as it ships, rounding included, with the sampler of sample.py:
  perplexity  per token, on documents of a seed that the training never draws
  stories     continuations of "Once upon a time", a seed each: do they end, are all words known, do names persist
  requests    "Tell me a story about a FOX and a LANTERN.", over random pairs: are both in the story
  answers     questions about a story that stands in the conversation, greedy, compared with the grammar's answer
"""
import argparse
import itertools
import random
import re

import numpy as np
import sentencepiece

import chat
import corpus
import vocab
from grammar import ELDERS, Lexicon, Story, article
from sample import Network, generate

WORD = re.compile(r"[A-Za-z]+(?:-[a-z]+)?")
HERO = re.compile(r"(?:named|called|name was|know|knew|story of|about) ([A-Z][a-z]+)|^([A-Z][a-z]+) was ")


def perplexity(path, pieces, count):
    """exp of the mean negative log-likelihood per token, teacher-forced."""
    documents = [vocab.encode(pieces, d) for d in corpus.documents(corpus.HELD_OUT_SEED, count)]
    documents = [d for d in documents if len(d) <= 512]
    network, total, targets = Network(path, len(documents)), 0.0, 0
    for at in range(max(map(len, documents)) - 1):
        logits = network.step(np.array([d[min(at, len(d) - 1)] for d in documents])).astype(np.float64)
        logits -= logits.max(-1, keepdims=True)
        log_p = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
        for row, d in enumerate(documents):
            if at + 1 < len(d):
                total -= log_p[row, d[at + 1]]
                targets += 1
    return float(np.exp(total / targets)), targets


class Reader:
    """Knows the words of the lexicon and its names, and finds what does not belong."""

    def __init__(self, lexicon, documents=12_000):
        texts = [text for d in corpus.documents(5, documents, lexicon) for _, text in d]
        self.words = set(itertools.chain.from_iterable(map(WORD.findall, texts)))
        self.names = {name for group in lexicon.names.values() for name in group}
        self.elders = sorted(itertools.chain(*ELDERS.values()))

    def faults(self, text):
        """Why a story is not in order: an empty list when it is."""
        found = []
        plain = text
        for elder in self.elders:
            plain = plain.replace(elder, "")
        words = WORD.findall(plain)
        unknown = {w for w in words if w not in self.words}
        # An invented name is no word of the lexicon, but it has a capital and comes again.
        found += [f"unknown word {w}" for w in unknown if not (w[0].isupper() and words.count(w) > 1)]
        hero = HERO.search(plain)
        if not hero:
            return found + ["no hero"]
        hero = hero[1] or hero[2]
        if hero not in plain.split("\n\n")[-1]:
            found.append(f"{hero} is gone at the end")
        # Names stand inside sentences too, which tells them from words with a capital: hero, friend, rarely a third.
        inside = set(re.findall(r"[a-z,] ([A-Z][a-z]+)", plain))
        cast = {w for w in inside if w in self.names or w not in self.words} | {hero}
        if len(cast) > 3:
            found.append("too many names: " + ", ".join(sorted(cast)))
        return found


def requests(path, pieces, lexicon, count, rng):
    """Share of stories that have the asked-for character and thing; the failures."""
    pairs = [(rng.choice(sorted(lexicon.kinds)), rng.choice(lexicon.things)[0]) for _ in range(count)]
    prompts = [vocab.prompt(pieces, [("user", f"Tell me a story about {article(kind)} and {article(thing)}.")]) for kind, thing in pairs]
    texts = [text for text, _ in generate(path, pieces, prompts, range(1, count + 1))]
    right = [bool(re.search(rf"\b{kind}\b", text)) and bool(re.search(rf"\b{thing}\b", text)) for (kind, thing), text in zip(pairs, texts)]
    return right, pairs


def answers(path, pieces, lexicon, count, rng):
    """[(question, expected, given)]"""
    cases = []
    while len(cases) < count:
        story = Story(lexicon, rng)
        question, answer = chat.questions(rng, story, 1)[0]
        ids = vocab.prompt(pieces, [("user", "Tell me a story."), ("assistant", story.text), ("user", question)])
        if len(ids) < 480:
            cases.append((ids, question, answer))
    given = generate(path, pieces, [c[0] for c in cases], range(count), 30, temp=0)
    return [(question, answer, text) for (_, question, answer), (text, _) in zip(cases, given)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("vocabulary")
    parser.add_argument("--count", type=int, default=50, help="of stories, requests and answers")
    parser.add_argument("--show", type=int, default=0, help="stories to print, unselected")
    a = parser.parse_args()
    pieces = sentencepiece.SentencePieceProcessor(model_file=a.vocabulary)
    lexicon, rng = Lexicon(), random.Random(2)
    reader = Reader(lexicon)

    start = "Once upon a time"
    stories = generate(a.model, pieces, [[vocab.BOS] + pieces.encode(start)] * a.count, range(1, a.count + 1))
    faults = [reader.faults(start + text) + ([] if ended else ["does not end"]) for text, ended in stories]
    for seed, ((text, _), found) in enumerate(zip(stories, faults), 1):
        if found or seed <= a.show:
            print(f"--- seed {seed}: {'; '.join(found) or 'in order'}\n{start}{text}\n")
    print(f"stories that end: {sum(end for _, end in stories)} of {a.count}; in order: {sum(not f for f in faults)} of {a.count}")

    right, pairs = requests(a.model, pieces, lexicon, a.count, rng)
    print(f"requests honoured: {sum(right)} of {a.count}; missed: {[p for p, ok in zip(pairs, right) if not ok]}")

    replies = answers(a.model, pieces, lexicon, a.count, rng)
    print(f"answers right: {sum(expected == given for _, expected, given in replies)} of {a.count}")
    for question, expected, given in replies:
        if expected != given:
            print(f"  {question} expected: {expected} given: {given}")
    value, targets = perplexity(a.model, pieces, a.count)
    print(f"held-out perplexity: {value:.3f} per token over {targets:,} tokens")


if __name__ == "__main__":
    main()
