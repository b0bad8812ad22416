"""How good is an exported file? python3 evaluate.py PRONK FILE.gguf [--show 6]

PRONK is the program. Everything but the perplexity is its text, with a seed each and the sampler's settings that the file has; what is
asked is in exam.txt, of which the training draws nothing.
  others      200 requests that are not for stories: does it say that it only knows stories
  known       200 requests in many wordings, for a hero and a thing of the lexicon: are both in the story
  unknown     the same for names that are made of syllables and 300 everyday nouns
  stories     continuations of "Once upon a time": do they end, are all words known, do names persist
  kinds       "Tell me a story about a FOX.": does the first sentence have one
  chats       three requests in one conversation: each story in order, with the name and the thing that it was asked for
  answers     questions about a story of the conversation, greedy, compared with the grammar's answer
  follow-ups  "again", "with a dog", "shorter" after a story
  words       of all these answers that are neither of the lexicon nor in the request; runs of eight words that come a third time
  perplexity  per token of plain stories, of a seed that the training never draws; in numpy, by sample.py
"""
import argparse
import collections
import itertools
import json
import random
import re
import subprocess
import sys

import numpy as np

import chat
import corpus
import others
import vocab
from grammar import ELDERS, HELD_OUT_NAMES, Lexicon, Story, article, capital, rows, syllables
from sample import Network, read_gguf

WORD = re.compile(r"[A-Za-z]+(?:-[a-z]+)?")
HERO = re.compile(r"(?:named|called|name was|know|knew|story of|about) ([A-Z][a-z]+)|^([A-Z][a-z]+) was ")
START = "Once upon a time"


class Voice:
    """The program with the file."""

    def __init__(self, program, model, settings=()):
        self.command = [program, "run", "-m", model, "--special", "--json", "--no-display-prompt", "-t", "1", *settings]
        self.said = []  # all (prompt, text, whether it ended by itself)

    def complete(self, prompt, seed, temp=None, limit=600):
        """(text, whether it ended by itself)"""
        command = self.command + ["-p", prompt, "-s", str(seed), "-n", str(limit)] + ([] if temp is None else ["--temp", str(temp)])
        result = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout)
        self.said.append((prompt, result["text"].lstrip(), result["stop_reason"] == "eos"))
        return self.said[-1][1:]

    def reply(self, messages, seed, **settings):
        """What the assistant says after (role, text)s: what vocab.TEMPLATE makes of them is the prompt."""
        prompt = "".join(f"<|{role}|>\n{vocab.heard(role, text)}<|end|>\n" for role, text in messages) + "<|assistant|>\n"
        return self.complete(prompt, seed, **settings)


def perplexity(path, vocabulary, count):
    """exp of the mean negative log-likelihood per token, teacher-forced."""
    stories = (d for d in corpus.documents(corpus.HELD_OUT_SEED, 10 * count) if d[0][0] == "text")
    documents = [vocab.encode(vocabulary, d) for d in itertools.islice(stories, count)]
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

    def __init__(self, lexicon, stories=5_000):
        rng = random.Random(5)
        told = [Story(lexicon, rng, asked=["word"]) for _ in range(stories)]
        texts = [text for story in told for text in (story.text, *itertools.chain(*story.asks))] + others.ONLY + others.OFFER + chat.CANNOT
        texts += [" ".join(row) for row in chat.small_talk()] + lexicon.phrases["of_thing"] + lexicon.phrases["of_friend"]
        texts += [" ".join(lexicon.nouns), "happened color Say example does set"]
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


def exam():
    """The lists of exam.txt by kind."""
    lists = collections.defaultdict(list)
    for line in rows("exam.txt"):
        kind, _, text = line.partition(": ")
        lists[kind] += text.split() if kind == "nouns" else [text]
    return lists


OTHERS = ["knowledge", "arithmetic", "code", "feelings", "insults", "tasks", "languages", "nonsense", "words", "long"]


def no_stories(voice, lists, show):
    right, total = 0, 0
    for kind in OTHERS:
        replies = [(ask, voice.reply([("user", ask)], seed)[0]) for seed, ask in enumerate(lists[kind], total + 1)]
        missed = [(ask, text) for ask, text in replies if "only know stories" not in text]
        total += len(replies)
        right += len(replies) - len(missed)
        print(f"  {kind}: {len(replies) - len(missed)} of {len(replies)}", *(f"    {a[:60]} -> {t[:60]!r}" for a, t in missed[:show]), sep="\n")
    print(f"requests that are not for stories, answered with what it is: {right} of {total}")


def requests(voice, lists, names, kinds, things, what):
    """NAMES and THINGS in turn, every second name with a kind; without a name the kind counts."""
    missed, both, twice = collections.Counter(), 0, 0
    lost = []
    for seed, thing in enumerate(things, 1):
        name, kind = names[seed - 1], kinds[seed - 1]
        who = article(kind) if name is None else name if seed % 4 else f"{article(kind)} named {name}"
        fields = {"who": who, "thing": article(thing)}
        ask = lists["ask"][seed % len(lists["ask"])].format(**fields, **{key.upper(): value.upper() for key, value in fields.items()})
        text, _ = voice.reply([("user", capital(ask))], seed)
        gone = [word for word in (name or kind, thing) if not has(text, word)]
        both += not gone
        twice += all(len(re.findall(rf"\b{word}\b", text)) > 1 for word in (name or kind, thing))
        missed.update(["name" if word == name else "kind" if word == kind else "thing" for word in gone])
        lost += gone
    print(f"requests for what {what}: both in the story {both} of {len(things)}, twice or more {twice}; missed: {dict(missed)}: {', '.join(lost)}")


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


def follow_ups(voice, lexicon, lists, rng):
    for kind, asks in (("another", lists["another"]), ("with", lists["with"]), ("change", lists["change"])):
        right = 0
        for seed, ask in enumerate(asks * 4, 1):
            story = Story(lexicon, rng)
            text, ended = voice.reply([("user", "Tell me a story."), ("assistant", story.text), ("user", ask)], seed)
            other = re.search(r"with an? (\w+)|have an? (\w+)", ask)
            right += ("Shall I tell another" in text if kind == "change" else
                      ended and len(text) > 300 and text != story.text and (kind == "another" or has(text, other[1] or other[2])))
        print(f"follow-ups, {kind}: {right} of {4 * len(asks)}")


def words(voice, reader):
    """Words that are none, and loops, in all that was said."""
    known, total, strange, loops, open_ends = {w.lower() for w in reader.words | reader.names}, 0, collections.Counter(), 0, 0
    for prompt, text, ended in voice.said:
        said = WORD.findall(text)
        asked = {w.lower() for w in WORD.findall(prompt)}
        total += len(said)
        strange.update(w for w in said if w.lower() not in known and w.lower() not in asked)
        plain = text.split()
        runs = collections.Counter(tuple(plain[i:i + 8]) for i in range(len(plain) - 7))
        loops += any(count >= 3 for count in runs.values())
        open_ends += not ended
    print(f"words that are none: {sum(strange.values())} of {total:,}: {', '.join(w for w, _ in strange.most_common(40))}")
    print(f"answers that loop: {loops} of {len(voice.said)}; that do not end: {open_ends}")


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
    value, targets = perplexity(path, vocab.Vocabulary(read_gguf(path)[0]["tokenizer.ggml.tokens"]), count)
    print(f"held-out perplexity: {value:.3f} per token over {targets:,} tokens")
    return value


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("model")
    parser.add_argument("--count", type=int, default=50, help="of stories and kinds; the others are multiples of it")
    parser.add_argument("--perplexity-below", type=float, metavar="P", help="measure nothing else, and fail at P or more")
    parser.add_argument("--show", type=int, default=0, help="stories and chats to print, unselected")
    parser.add_argument("--settings", default="", help="flags of the program, such as '--temp 0.6'")
    a = parser.parse_args()
    if a.perplexity_below:
        return held_out(a.model, a.count) < a.perplexity_below
    voice, lexicon, rng, lists = Voice(a.program, a.model, a.settings.split()), Lexicon(), random.Random(2), exam()
    reader = Reader(lexicon)
    no_stories(voice, lists, 99 if a.show else 3)
    group = lambda: lexicon.names[rng.choice(["girls", "boys"])]
    count = 4 * a.count
    requests(voice, lists, [rng.choice(group()) if i % 2 else None for i in range(count)], [rng.choice(sorted(lexicon.kinds)) for _ in range(count)],
             [rng.choice(lexicon.things)[0] for _ in range(count)], "the lexicon has")
    things = rng.sample(lists["nouns"], 6 * a.count)
    requests(voice, lists, [capital(syllables(rng) + rng.choice(["", "o", "a"])) for _ in things], ["fox"] * len(things), things, "it has not")
    stories(voice, reader, a.count, a.show)
    chats(voice, lexicon, reader, 20, rng, a.show)
    kinds(voice, lexicon, a.count, rng)
    follow_ups(voice, lexicon, lists, rng)
    wrong = answers(voice, lexicon, 2 * a.count, rng)
    print(f"answers right: {2 * a.count - len(wrong)} of {2 * a.count}", *wrong, sep="\n")
    words(voice, reader)
    held_out(a.model, a.count)
    return True


if __name__ == "__main__":
    sys.exit(not main())
