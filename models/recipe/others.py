"""Requests that are not for stories, and what the storyteller says to them. python3 others.py [SEED] shows some.

Most of their words are in no story: made of syllables, of halves of known words, of letters in any order or of other alphabets. So what
the model recognizes is that it does not know something, and not a list of subjects.
"""
import itertools
import random
import re

from grammar import HELD_OUT_REQUESTS, Lexicon, Story, article, draw, plain, rows

KINDS = {"know": 25, "sum": 5, "code": 10, "feel": 25, "rude": 28, "task": 32, "word": 28, "foreign": 5, "noise": 7, "long": 3, "form": 28, "said": 25}
# Words that mean something when they are all that is said.
MEANT = set("again another next more yes please sure one different story tale go begin start ok okay gladly".split())
GREETING = re.compile("(hello|good|thank|bye|yes|no|sleep|tell|again|more|another|once|of course|please|i would|why not|go on)\\b", re.I)  # what is said has another answer
ALPHABETS = ["abcdefghijklmnopqrstuvwxyzäöüß", "aeiouabcdefghilmnopqrstuvzéèêçàùñáíóú", "аеиоуабвгдежзийклмнопрстуфхцчшщыьэюя",
             "αεηιουβγδζθκλμνξπρσςτφχψω", "".join(map(chr, range(0x5d0, 0x5eb))), "".join(map(chr, range(0x627, 0x64b))),
             "".join(map(chr, range(0x3042, 0x3094))), "".join(map(chr, range(0x4e00, 0x9fa0, 7))), "".join(map(chr, range(0xac00, 0xd7a4, 5))),
             "".join(map(chr, range(0x905, 0x93a))), "ąćęłńóśźżabcdeghijklmnoprstuwyz", "âăîșțığşöüçåøæ" + "aeiklmnorst" * 2]
# Short words that open or join what is said in languages of the first two alphabets.
FOREIGN = ("der die das ist wie was und ein eine nicht mir bitte ich du le la les est que qui pour avec une quel comment je vous il el los como "
           "donde por una es un con mi tu di che per sono il cosa perche non ti o os uma para onde de het een van wat hoe en na ne to je co jak "
           "czy och det som er på vad hur bir ve ne mi").split()
ONLY = ["I only know stories.", "I am sorry, but I only know stories.", "I am afraid that I do not know about that. I only know stories.",
        "That is too much for a very small storyteller. I only know stories."]
OFFER = ["Would you like one?", "Shall I tell you one?", "Shall I tell you one about {who}?", "Shall I tell you one about {who} and {thing}?",
         "Say, for example, \"Tell me a story about {who} and {thing}.\""]
# What people want written that is not a story.
FORMS = ("poem song essay letter report recipe riddle list joke speech email article review quiz plan summary haiku rhyme prayer menu sketch map program test "
         "song poem essay invitation advert picture lecture script letter").split()


def noise(rng):
    """Letters of a keyboard in any order."""
    letters = rng.choice(["asdfghjkl", "qwertyuiop", "abcdefghijklmnopqrstuvwxyz", "bcdfghjklmnpqrstvwxz", "xyz", "0123456789abcdef", "!?#$%&*+-=.,;:@~"])
    return "".join(rng.choice(letters) for _ in range(rng.choice([1, 3, 4, 5, 6, 8, 12])))


def spoil(rng, text, keep=()):
    """The text as people type: without capitals, with typing errors, without its last mark. Words in `keep` stay as they are. Nobody shouts:
    the chat template lowers what is all capitals."""
    if rng.random() < 0.2:
        text = text.lower()
    if rng.random() < 0.15:
        text = text.rstrip(".?!")
    if rng.random() < 0.1:
        words = text.split(" ")
        at = rng.randrange(len(words))
        word = words[at]
        if len(word) > 3 and not any(word.lower().strip(".,?!") in k.lower() for k in keep):
            i = rng.randrange(len(word) - 1)
            words[at] = rng.choice([word[:i] + word[i + 1:], word[:i] + word[i + 1] + word[i] + word[i + 2:], word[:i] + word[i] + word[i:],
                                    word[:i] + rng.choice("abcdefghijklmnopqrstuvwxyz") + word[i + 1:]])
        text = " ".join(words)
    return text


def with_an(text):
    """A or an, as the next word has it."""
    return re.sub(r"\b([Aa])n (?=[b-df-hj-np-tv-z])", r"\1 ", re.sub(r"\b([Aa]) (?=[aeio](?!ne ))", r"\1n ", text))


class Others:
    def __init__(self, lexicon):
        self.lexicon, self.patterns = lexicon, {}
        for line in rows("others.txt"):
            kind, _, text = line.partition(": ")
            self.patterns.setdefault(kind, []).append(text)
        self.topics = self.patterns.pop("topic")[0].split(", ")
        self.kinds, self.things = sorted(lexicon.kinds), [noun for noun, _, _ in lexicon.things]
        told = set(re.findall(r"(?<![{@\w'])[a-z]+(?![\w}'])", " ".join(itertools.chain(*(plot.lines for plot in lexicon.plots)))))
        self.common = sorted(told - MEANT - set(re.findall(r"\w+", " ".join(rows("chat.txt")).lower())) - set(lexicon.nouns))
        rng = random.Random(7)  # what is said in stories
        self.said = re.findall(r'"([^"]+)"', " ".join(Story(lexicon, rng, plot).text for plot in lexicon.plots for _ in range(12)))
        self.known = self.kinds + self.things + lexicon.asked["words"] + lexicon.asked_kinds

    def word(self, rng):
        chance = rng.random()
        if chance < 0.7:
            return self.lexicon.unknown_word(rng)
        return noise(rng) if chance < 0.76 else rng.choice(self.topics) if chance < 0.88 else rng.choice(self.known)

    def foreign(self, rng, words):
        alphabet = rng.choice(ALPHABETS[:2] if rng.random() < 0.5 else ALPHABETS)
        mixed = alphabet in ALPHABETS[:2]
        return " ".join(rng.choice(FOREIGN) if mixed and rng.random() < 0.4 else
                        self.lexicon.unknown_word(rng) if mixed and rng.random() < 0.4 else
                        "".join(rng.choice(alphabet) for _ in range(rng.randint(2, 8))) for _ in range(words))

    def value(self, rng, key):
        if key == "n":
            return str(rng.choice([rng.randint(0, 12), rng.randint(0, 100), rng.randint(0, 3000), 10 ** rng.randint(1, 6)]))
        table = {"topic": self.topics, "kind": self.kinds, "thing": self.things, "common": self.common}
        if key in table:
            return rng.choice(table[key])
        if key == "Word" and rng.random() < 0.2:
            return rng.choice(self.lexicon.asked[rng.choice(["girls", "boys"])])
        return self.word(rng).capitalize() if key == "Word" else self.word(rng)

    def sentence(self, rng, kind):
        text = re.sub(r" +", " ", draw(rng, rng.choice(self.patterns[kind]))).replace(" ,", ",")
        text = re.sub(r"\{(n|topic|kind|thing|common|word|Word)\}", lambda m: self.value(rng, m[1]), text)
        return with_an(text) if rng.random() < 0.9 else text

    def ask(self, rng):
        """Something that is not a request for a story."""
        while True:
            kind = rng.choices(list(KINDS), list(KINDS.values()))[0]
            if kind == "foreign":
                text = self.foreign(rng, rng.choice([1, 2, 3, 4, 5, 7, 10])) + rng.choice(["?", ".", "!", "", ""])
                text = rng.choice(["", "", "", "¿", "¡"]) + text[:1].upper() + text[1:]
            elif kind == "noise":
                text = " ".join((noise if rng.random() < 0.4 else self.word)(rng) for _ in range(rng.choice([1, 1, 2, 3, 4, 6, 9])))
            elif kind == "said":
                words = rng.choice(self.said).split()
                at = rng.randrange(len(words))
                if rng.random() < 0.4:
                    words[at] = rng.choice(self.common) if rng.random() < 0.5 else self.word(rng)
                text = " ".join(words[at:] if rng.random() < 0.15 else words[:at + 1] if rng.random() < 0.15 else words).rstrip(",")
                if GREETING.match(text):
                    continue
            elif kind == "long":
                size, text = rng.choice([30, 60, 120, 200]), ""
                while len(text.split()) < size:
                    text += " " + self.sentence(rng, rng.choice(["know", "feel", "task", "word", "know", "sum"]))
                text = text.strip()
            else:
                text = self.sentence(rng, kind)
            text = spoil(rng, text).strip()
            if text and "story" not in text.lower() and plain(text) not in HELD_OUT_REQUESTS:
                return text

    def instead(self, rng, ask):
        """A request for a story with another word for what is wanted, "Write a poem about a fox", or None if there is no such word in it."""
        form = rng.choice(FORMS) if rng.random() < 0.75 else self.lexicon.unknown_word(rng)
        text, count = re.subn(r"\b((bedtime|fairy) )?(story|tale|fable|adventure)\b", form, ask)
        text = with_an(text)
        return text if count and not re.search("stor[yi]", text.lower()) and plain(text) not in HELD_OUT_REQUESTS else None

    def reply(self, rng):
        """(what the storyteller says to it, the kind and the thing of the story that it offers, or None)"""
        kind, thing = rng.choice(self.kinds), rng.choice(self.things)
        offer = rng.choice(OFFER)
        text = rng.choice(ONLY) + " " + offer.format(who=article(kind), thing=article(thing))
        return text, kind if "{who}" in offer else None, thing if "{thing}" in offer else None


if __name__ == "__main__":
    import sys
    rng, others = random.Random(int(sys.argv[1]) if len(sys.argv) > 1 else 1), Others(Lexicon())
    for _ in range(60):
        print(others.ask(rng), "=", others.reply(rng)[0])
