"""The vocabulary: sentencepiece BPE trained on the corpus, and documents as ids.

The order of pieces is GGUF's order (unk, bos, eos, the chat markers, 256 bytes, then the rest), so ids are equal
everywhere. Normalization is 'identity': a tokenizer that reads the pieces from the GGUF file has nothing else to know.
"""
import argparse
import json
import pathlib
import struct

import sentencepiece

BOS, EOS = 1, 2
SYSTEM, USER, ASSISTANT, END = 3, 4, 5, 6
MARKERS = ["<|system|>", "<|user|>", "<|assistant|>", "<|end|>"]  # in that order; the names are those of Phi-3's template
# What a user says in capitals alone has no piece in common with small letters: it is read as if it had only the first one.
TEMPLATE = ("{% for message in messages %}{% set said = message['content'] %}{% set shouts = message['role'] == 'user' and said|upper == said and said|lower != said %}"
            "{{ '<|' + message['role'] + '|>\\n' + (said|capitalize if shouts else said) + '<|end|>\\n' }}{% endfor %}"
            "{% if add_generation_prompt %}{{ '<|assistant|>\\n' }}{% endif %}")


def train(corpus, prefix, size):
    """Learn the pieces from every paragraph that the model is to write; writes prefix.model. What users say may have any letters."""
    text = pathlib.Path(prefix + ".txt")
    with open(corpus) as f, open(text, "w") as out:
        for line in f:
            for role, message in json.loads(line):
                out.write(message.replace("\n\n", "\n") + "\n" if role != "user" else "")
    sentencepiece.SentencePieceTrainer.train(
        input=str(text), model_prefix=prefix, vocab_size=size, model_type="bpe", byte_fallback=True, normalization_rule_name="identity",
        remove_extra_whitespaces=False, add_dummy_prefix=True, character_coverage=1.0, control_symbols=MARKERS, unk_id=0, bos_id=BOS,
        eos_id=EOS, pad_id=-1, num_threads=1, max_sentence_length=100_000, minloglevel=2)
    text.unlink()


def encode(pieces, document, rng=None):
    """Ids of a document of the corpus. With rng, one chat in five lacks the space that SPM tokenizers put after a
    marker: engines differ there, and the model should read both. A negative id is read, but not learned: the end of a drill, which
    is not how a story ends, and all that the role "read" says, an answer that is only there to be asked about."""
    if document[0][0] == "text":
        return [BOS] + pieces.encode(document[0][1]) + [EOS]
    if document[0][0] == "drill":
        return [BOS] + pieces.encode(document[0][1])
    if document[-1][0] == "drill":
        return prompt(pieces, document[:-1]) + pieces.encode("\n" + document[-1][1])[2:]
    skip = 1 if rng is not None and rng.random() < 0.2 else 0
    newline = pieces.encode("\n")[skip:]
    ids = [BOS]
    for role, text in document:
        is_drill, is_read = role == "drill", role == "read"
        body = pieces.encode("\n" + heard(role, text))[skip:]
        ids += [pieces.piece_to_id(f"<|{'assistant' if is_drill or is_read else role}|>")] + ([-i for i in body] if is_read else body)
        ids += [-END if is_drill or is_read else END] + newline
    return ids[:-len(newline)]


def heard(role, text):
    """A message as TEMPLATE has it."""
    return text.capitalize() if role == "user" and text.isupper() else text


def fragments(pieces):
    """(letters that begin names, letters that begin words, letters that go on) of a vocabulary: see grammar.Lexicon."""
    texts = [pieces.id_to_piece(i) for i in range(pieces.get_piece_size())]
    starts = [text[1:] for text in texts if text[0] == "▁" and text[1:].isalpha() and len(text) < 9]
    return [s for s in starts if s[0].isupper()], [s for s in starts if s[0].islower()], [text for text in texts if text.isalpha() and len(text) < 5]


def thinned(tokens, scores, words):
    """The tokens, all that no word of `words` is made of under names that no text has. Left over from names that an older corpus invented, they
    are too rare to be learned, and take new names that begin like one from the short pieces that are copied well."""
    rank, kept = dict(zip(tokens, scores)), set()
    for word in words:
        parts = list("▁" + word)
        while pairs := [(rank[a + b], -at) for at, (a, b) in enumerate(zip(parts, parts[1:])) if a + b in rank]:
            at = -max(pairs)[1]
            parts[at:at + 2] = [parts[at] + parts[at + 1]]
            kept.add(parts[at])
    return [token if token in kept or len(token.lstrip("▁")) < 2 or token[0] == "<" else f"<unused{i}>" for i, token in enumerate(tokens)]


def prompt(pieces, messages):
    """Ids of a conversation whose next turn is the assistant's, as the chat template writes it."""
    ids = encode(pieces, messages) + pieces.encode("\n") if messages else [BOS]
    return ids + [pieces.piece_to_id("<|assistant|>")] + pieces.encode("\n")


def of_gguf(meta):
    """The vocabulary of a GGUF file (its metadata as a dict) as sentencepiece reads it: a ModelProto of pieces, the trainer's kind
    (field 3: BPE = 2, field 35: byte fallback) and the normalizer (fields 3 to 5: a space first, none removed, written as U+2581)."""
    def varint(n):
        return bytes([n]) if n < 128 else bytes([n & 127 | 128]) + varint(n >> 7)

    def field(number, data):
        return varint(number << 3 | 2) + varint(len(data)) + data

    def flag(number, value):
        return varint(number << 3) + varint(value)

    keys = [meta["tokenizer.ggml." + key] for key in ("tokens", "scores", "token_type")]
    model = b"".join(field(1, field(1, text.encode()) + b"\x15" + struct.pack("<f", score) + flag(3, kind)) for text, score, kind in zip(*keys))
    model += field(2, flag(3, 2) + flag(35, 1) + flag(40, 0) + flag(41, BOS) + flag(42, EOS))
    model += field(3, field(1, b"identity") + flag(3, 1) + flag(4, 0) + flag(5, 1))
    return sentencepiece.SentencePieceProcessor(model_proto=model)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpus")
    parser.add_argument("prefix")
    parser.add_argument("--size", type=int, default=1536)
    a = parser.parse_args()
    train(a.corpus, a.prefix, a.size)
