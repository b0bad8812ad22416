"""The vocabulary: the words of the corpus, and bytes, of which all other words are spelled; documents as ids.

In GGUF's terms it is byte-level BPE that takes a word which is a token whole (Llama 3's rule), and whose only merge is that of two spaces.
So a name that the model has never seen is a space and letters to copy one by one. With parts of words as tokens it began one name in ten
with another part.
"""
import argparse
import collections
import itertools
import json
import re

import chat
from grammar import Lexicon, capital

PAD, BOS, EOS, SYSTEM, USER, ASSISTANT, END = range(7)
MARKERS = ["<|pad|>", "<s>", "</s>", "<|system|>", "<|user|>", "<|assistant|>", "<|end|>"]  # in that order; those of roles are Phi-3's
MERGE = "  "
# Llama 3's split into words, without its rarer letters and digits.
WORD = re.compile(r"'(?:s|t|re|ve|m|ll|d)|(?:[^\r\n\w]|_)?[^\W\d_]+|\d{1,3}| ?(?:[^\s\w]|_)+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+", re.I)
# What a user says in capitals alone has no word in common with small letters: it is read as if it had only the first one.
TEMPLATE = ("{% for message in messages %}{% set said = message['content'] %}{% set shouts = message['role'] == 'user' and said|upper == said and said|lower != said %}"
            "{{ '<|' + message['role'] + '|>\\n' + (said|capitalize if shouts else said) + '<|end|>\\n' }}{% endfor %}"
            "{% if add_generation_prompt %}{{ '<|assistant|>\\n' }}{% endif %}")
# GPT-2's spelling of bytes as characters: those that print as themselves, the others as characters from 256 on.
PRINTS = [*range(33, 127), *range(161, 173), *range(174, 256)]
BYTES = PRINTS + [byte for byte in range(256) if byte not in PRINTS]
SPELLING = {byte: chr(byte if at < len(PRINTS) else 256 + at - len(PRINTS)) for at, byte in enumerate(BYTES)}
BYTE_OF = {character: byte for byte, character in SPELLING.items()}


def spell(text):
    return "".join(SPELLING[byte] for byte in text.encode())


class Vocabulary:
    def __init__(self, tokens):
        """`tokens` as GGUF has them: markers, bytes, words."""
        self.tokens, self.ids = tokens, {token: i for i, token in enumerate(tokens)}
        self.bytes = [bytes(BYTE_OF[c] for c in token) if i > END else b"" for i, token in enumerate(tokens)]
        self.texts = [token.decode(errors="replace") for token in self.bytes]

    def __len__(self):
        return len(self.tokens)

    def encode(self, text):
        ids = []
        for word in map(spell, WORD.findall(text)):
            ids += [self.ids[word]] if word in self.ids else [self.ids[part] for part in re.findall(spell(MERGE) + "|.", word)]
        return ids

    def decode(self, ids):
        return b"".join(self.bytes[i] for i in ids).decode(errors="replace")


def tokens(corpus, least):
    """Markers, bytes, and the words of at least `least` documents, the most frequent first. A document in which a user says the word counts half
    more. Names and nouns that only requests have need ten times as many: each is rare, and copied as any other. What stories say of themselves and
    what small talk says is always a token: so nothing is spelled that nobody has asked for, and a single word that is spelled is no greeting."""
    lexicon, told, asked, plain = Lexicon(), collections.Counter(), collections.Counter(), set()
    with open(corpus) as f:
        for line in f:
            document = [(role, WORD.findall(text)) for role, text in json.loads(line)]
            told.update({word for role, words in document if role != "user" for word in words})
            asked.update({word for role, words in document if role == "user" for word in words})
            plain.update(word for role, words in document if role == "text" for word in words)
    names = list(itertools.chain(*lexicon.names.values()))
    plain.update(start + name for name in names for start in ("", " ", '"'))
    plain.update(" " + capital(noun) for noun, _, _ in lexicon.things)
    rare = {start + word for group in ("girls", "boys", "pets", "nouns") for word in lexicon.asked[group] for start in ("", " ", '"')} - plain
    told.update({word: asked[word] // 2 for word in asked})
    greetings = re.findall("[A-Za-z]+", " ".join(ask for ask, _ in chat.small_talk()))
    always = plain | {start + word for said in names + greetings for word in (said, said.lower()) for start in ("", " ")} | {" " + noun for noun in lexicon.nouns}
    known = [word for word in {*told, *always} if len(word.encode()) > 1 and (word in always or told[word] >= (10 if word in rare else 1) * least)]
    return MARKERS + [SPELLING[byte] for byte in range(256)] + [spell(word) for word in [MERGE] + sorted(known, key=lambda word: (-told[word], word))]


def encode(vocabulary, document):
    """Ids of a document of the corpus. A negative id is read, but not learned: the end of a drill, which is not how a story ends, and all that the role
    "read" says, an answer that is only there to be asked about."""
    role, text = document[-1]
    if role == "text":
        return [BOS] + vocabulary.encode(text) + [EOS]
    if role == "drill":
        return (prompt(vocabulary, document[:-1]) if document[:-1] else [BOS]) + vocabulary.encode(text)
    ids = [BOS]
    for role, text in document:
        is_drill, is_read = role == "drill", role == "read"
        body = vocabulary.encode("\n" + heard(role, text))
        ids += [ASSISTANT if is_drill or is_read else MARKERS.index(f"<|{role}|>")] + ([-i for i in body] if is_read else body)
        ids += [-END if is_drill or is_read else END] + vocabulary.encode("\n")
    return ids[:-1]


def heard(role, text):
    """A message as TEMPLATE has it."""
    return text.capitalize() if role == "user" and text.isupper() else text


def prompt(vocabulary, messages):
    """Ids of a conversation whose next turn is the assistant's, as the chat template writes it."""
    newline = vocabulary.encode("\n")
    return (encode(vocabulary, messages) + newline if messages else [BOS]) + [ASSISTANT] + newline


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpus")
    parser.add_argument("out", help="the tokens, as JSON")
    parser.add_argument("--least", type=int, default=10)
    a = parser.parse_args()
    found = tokens(a.corpus, a.least)
    with open(a.out, "w") as f:
        json.dump(found, f)
    print(f"{len(found)} tokens")
