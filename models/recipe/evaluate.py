"""How good is an exported file? python3 evaluate.py PRONK FILE.gguf [--show 6]

PRONK is the program. Everything but the perplexity is its text, with its default sampler and a seed each:
  stories     continuations of "Once upon a time": do they end, are all words known, do names persist
  kinds       "Tell me a story about a FOX.": does the first sentence have one
  requests    "Tell me a story about NAME and a THING.", names and things that the training never drew: are they in the story
  chats       three such requests in one conversation: each story in order, with the name and the thing that it was asked for
  answers     questions about a story of the conversation, greedy, compared with the grammar's answer
  perplexity  per token of plain stories, of a seed that the training never draws; in numpy, by sample.py
"""
import argparse
import itertools
import json
import random
import re
import subprocess
import sys

import numpy as np

import chat
import corpus
import vocab
from grammar import ELDERS, HELD_OUT_NAMES, HELD_OUT_THINGS, Lexicon, Story, article
from sample import Network, read_gguf

WORD = re.compile(r"[A-Za-z]+(?:-[a-z]+)?")
HERO = re.compile(r"(?:named|called|name was|know|knew|story of|about) ([A-Z][a-z]+)|^([A-Z][a-z]+) was ")
START = "Once upon a time"


class Voice:
    """The program with the file."""

    def __init__(self, program, model):
        self.command = [program, "run", "-m", model, "--special", "--json", "--no-display-prompt"]

    def complete(self, prompt, seed, temp=0.8, limit=400):
        """(text, whether it ended by itself)"""
        command = self.command + ["-p", prompt, "-s", str(seed), "--temp", str(temp), "-n", str(limit)]
        result = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout)
        return result["text"].lstrip(), result["stop_reason"] == "eos"

    def reply(self, messages, seed, **settings):
        """What the assistant says after (role, text)s: what vocab.TEMPLATE makes of them is the prompt."""
        prompt = "".join(f"<|{role}|>\n{text}<|end|>\n" for role, text in messages) + "<|assistant|>\n"
        return self.complete(prompt, seed, **settings)


def perplexity(path, pieces, count):
    """exp of the mean negative log-likelihood per token, teacher-forced."""
    stories = (d for d in corpus.documents(corpus.HELD_OUT_SEED, 10 * count) if d[0][0] == "text")
    documents = [vocab.encode(pieces, d) for d in itertools.islice(stories, count)]
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

    def __init__(self, lexicon, documents=8_000):
        texts = [text for d in corpus.documents(5, documents, lexicon) for _, text in d]
        self.words = set(itertools.chain.from_iterable(map(WORD.findall, texts)))
        self.names = {name for group in lexicon.names.values() for name in group}
        self.names.update(*(lexicon.asked[group] for group in ("girls", "boys", "pets")), HELD_OUT_NAMES)
        self.elders = sorted(itertools.chain(*ELDERS.values()))

    def faults(self, text, asked=()):
        """Why a story is not in order: an empty list when it is. It must have the words of `asked`."""
        found = []
        plain = text
        for elder in self.elders:
            plain = plain.replace(elder, "")
        words = WORD.findall(plain)
        unknown = {w for w in words if w not in self.words and w not in asked}
        # An invented name is not in the lexicon, but it has a capital and occurs again.
        found += [f"unknown word {w}" for w in unknown if not (w[0].isupper() and words.count(w) > 1)]
        found += [f"no {w}" for w in asked if not has(text, w)]
        hero = HERO.search(plain)
        if not hero:
            return found + ["no hero"]
        hero = hero[1] or hero[2]
        if hero not in plain.split("\n\n")[-1]:
            found.append(f"{hero} is gone at the end")
        # Unlike other words with a capital, names occur inside sentences, too: hero, friend, rarely a third.
        inside = set(re.findall(r"[a-z,] ([A-Z][a-z]+)", plain))
        cast = {w for w in inside if w in self.names or w not in self.words} | {hero}
        if len(cast) > 3:
            found.append("too many names: " + ", ".join(sorted(cast)))
        return found


def has(text, word):
    return bool(re.search(rf"\b{word}\b", text))


def stories(voice, reader, count, show):
    told = [voice.complete(START, seed) for seed in range(1, count + 1)]
    faults = [reader.faults(START + " " + text) + ([] if ended else ["does not end"]) for text, ended in told]
    for seed, ((text, _), found) in enumerate(zip(told, faults), 1):
        if found or seed <= show:
            print(f"--- seed {seed}: {'; '.join(found) or 'in order'}\n{START} {text}\n")
    print(f"stories that end: {sum(end for _, end in told)} of {count}; in order: {sum(not f for f in faults)} of {count}")


def kinds(voice, lexicon, count, rng):
    missed = []
    for seed in range(1, count + 1):
        kind = rng.choice(sorted(lexicon.kinds))
        text, _ = voice.reply([("user", f"Tell me a story about {article(kind)}.")], seed)
        if not has(re.split(r"[.!?]", text)[0], kind):
            missed.append(kind)
    print(f"kinds that the first sentence has: {count - len(missed)} of {count}; missed: {', '.join(missed)}")


def requests(voice, names, things, what):
    missed = []
    for seed, (name, thing) in enumerate(zip(names, things), 1):
        text, _ = voice.reply([("user", f"Tell me a story about {name} and {article(thing)}.")], seed)
        missed += [word for word in (name, thing) if not has(text, word)]
    print(f"names and things {what} that are in the story: {2 * len(names) - len(missed)} of {2 * len(names)}; missed: {', '.join(missed)}")


def chats(voice, lexicon, reader, count, rng, show):
    """Three requests each; the share of stories that are in order, for the first, the second and the third."""
    right = [0, 0, 0]
    for seed in range(1, count + 1):
        messages = []
        for turn in range(3):
            name = rng.choice(lexicon.asked[rng.choice(["girls", "boys"])])
            thing = rng.choice(lexicon.things)[0]
            messages.append(("user", f"Tell me a story about {name} and {article(thing)}."))
            text, ended = voice.reply(messages, seed)
            messages.append(("assistant", text))
            faults = reader.faults(text, (name, thing)) + ([] if ended else ["does not end"])
            right[turn] += not faults
            if faults or seed <= show:
                print(f"--- chat {seed}, request {turn + 1}, {name} and {thing}: {'; '.join(faults) or 'in order'}\n{text}\n")
    print(f"chats of three requests, stories in order with what was asked for: {right[0]}, {right[1]}, {right[2]} of {count}")


def answers(voice, lexicon, count, rng):
    wrong = []
    while count > 0:
        story = Story(lexicon, rng)
        question, expected = chat.questions(rng, story, 1)[0]
        given, _ = voice.reply([("user", "Tell me a story."), ("assistant", story.text), ("user", question)], 1, temp=0, limit=40)
        count -= 1
        if given != expected:
            wrong.append(f"  {question} expected: {expected} given: {given}")
    return wrong


def held_out(path, count):
    value, targets = perplexity(path, vocab.of_gguf(read_gguf(path)[0]), count)
    print(f"held-out perplexity: {value:.3f} per token over {targets:,} tokens")
    return value


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("model")
    parser.add_argument("--count", type=int, default=50, help="of stories, kinds and answers")
    parser.add_argument("--perplexity-below", type=float, metavar="P", help="measure nothing else, and fail at P or more")
    parser.add_argument("--show", type=int, default=0, help="stories and chats to print, unselected")
    a = parser.parse_args()
    if a.perplexity_below:
        return held_out(a.model, a.count) < a.perplexity_below
    voice, lexicon, rng = Voice(a.program, a.model), Lexicon(), random.Random(2)
    reader = Reader(lexicon)
    stories(voice, reader, a.count, a.show)
    chats(voice, lexicon, reader, 20, rng, a.show)
    kinds(voice, lexicon, a.count, rng)
    requests(voice, HELD_OUT_NAMES, 2 * HELD_OUT_THINGS, "that the training never drew")
    known = [(rng.choice(lexicon.names[rng.choice(["girls", "boys"])]), rng.choice(lexicon.things)[0]) for _ in range(20)]
    requests(voice, *zip(*known), "of the lexicon")
    wrong = answers(voice, lexicon, a.count, rng)
    print(f"answers right: {a.count - len(wrong)} of {a.count}", *wrong, sep="\n")
    held_out(a.model, a.count)
    return True


if __name__ == "__main__":
    sys.exit(not main())
