"""The story grammar: plots, people, things and places in, one story out.

Nothing here is downloaded; every sentence that the default model learns comes from the data files next to
this one. A plot file is a list of plots in this small language:

  plot NAME                     starts a plot
  virtue WORD | MORAL           what its hero shows, and what is learned
  skip CATEGORY ...             things that would not fit
  let NAME = TEXT               drawn once, so that later scenes and the answers below agree with it
  let A, B = a, b | a, b        the same for two that belong together
  ? TEXT                        a line that is told half of the time
  --                            a new paragraph
  ask QUESTION = ANSWER         what can be asked about the story afterwards
  TEXT                          told always

In a text, [a|b] draws one of the wordings, {key} is a slot, {Key} the same with a capital, and {@name} draws
a line of phrases.txt. Slots are filled for one cast (hero, friend, elder, thing, place), which is why names and
pronouns agree throughout and why the recipe knows the answer to each question.
"""
import functools
import pathlib
import random
import re

HERE = pathlib.Path(__file__).parent
PRONOUNS = {"she": ("she", "her", "her", "herself"), "he": ("he", "him", "his", "himself")}
FEMALE = {"hen", "cow", "queen", "princess", "witch", "mermaid", "grandmother", "woman"}
MALE = {"king", "prince", "wizard", "fisherman", "rooster", "grandfather", "man", "postman", "cowboy"}
PEOPLE = {"girl", "boy", "giant", "king", "queen", "princess", "prince", "knight", "wizard", "witch", "pirate", "sailor", "baker",
          "farmer", "fairy", "mermaid", "gardener", "fisherman", "astronaut", "clown", "teacher"}
ELDERS = {"she": ["Grandmother Rose", "Aunt Clara", "Mrs. Goose", "Old Martha", "Mother Bear", "Aunt Ida", "Grandmother Elm"],
          "he": ["Grandfather Oak", "Uncle Bruno", "Mr. Badger", "Old Peter", "Uncle Heron", "Mr. Finch", "Grandfather Moss"]}
FOODS = ["warm bread", "plum cake", "pancakes", "berry pie", "apple pie", "pudding", "dumplings", "honey cake", "cherry pie", "vegetable soup",
         "gingerbread", "cheese and bread", "strawberries", "fresh rolls", "noodles", "cookies", "mushroom soup", "waffles"]
KIND_WORDS = ["little", "little", "little", "small", "young", "young", "clever", "shy", "cheerful", "curious", "kind", "sleepy", "tiny",
              "quick", "funny", "gentle", "lively", "quiet", "busy"]
ANY_THING = ["little", "big", "old", "new", "small", "pretty", "strange", "blue", "red"]
CHILD_HOMES = ["a small house", "a house with a blue door", "a cottage with a garden", "a house by the mill", "a tall, narrow house",
               "a cottage under an old tree", "a room under the roof"]
CHILD_SKILLS = ["climbing", "singing", "drawing", "running", "telling jokes", "building things", "whistling", "asking questions"]
# A request may have any name: syllables for names and things that no list has.
ONSETS = "b c d f g h j k l m n p r s t v w y z br ch cl dr fr gl gr kl kr mb ph pl qu sh sl st sv th tr zh".split() + ["", ""]
VOWELS = "a a a e e i i o o u y ai ea ee ia ie ou oo".split()
CODAS = ["", "", "", ""] + "n r l s m t d k ck ll nn x sh th rt ns b g".split()
# What evaluate.py asks for, to see whether names and things are copied (these, and the nouns of exam.txt): the training never draws them.
HELD_OUT_NAMES = ["Bob", "Nancy", "Kevin", "Fatima", "Hiroshi", "Ingrid", "Pablo", "Ahmed", "Joanna", "Patrick", "Yusuf", "Susan", "Gwen",
                  "Stefan", "Rashid", "Beatrice", "Dmitri", "Lucia", "Walter", "Chloe"]


def rows(name):
    for line in (HERE / name).read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            yield line.strip()


def draw(rng, text):
    """One of the wordings of each [a|b], from the inside out."""
    while True:
        text, count = re.subn(r"\[([^\[\]]*)\]", lambda m: rng.choice(m[1].split("|")), text)
        if not count:
            return text


def joined(rng, words):
    """The beginning of one word and the end of another."""
    a, b = rng.choice(words), rng.choice(words)
    return a[:rng.randint(1, max(1, len(a) - 1))] + b[rng.randint(1, max(1, len(b) - 1)):]


def grafted(rng, word, other):
    """The word with two to four letters of the other one in it: who copies by the letters just before loses the way there."""
    at, to = rng.randrange(max(1, len(other) - 2)), rng.randint(0, len(word))
    return word[:to] + other[at:at + rng.choice([2, 2, 3, 4])].lower() + word[to:]


def syllables(rng):
    return "".join(rng.choice(ONSETS) + rng.choice(VOWELS) + rng.choice(CODAS) for _ in range(rng.choice([1, 2, 2, 2, 3])))


def plain(text):
    """Without capitals and punctuation: how two requests are compared."""
    return " ".join(re.findall(r"\w+", text.lower())) or text


HELD_OUT_THINGS = {noun for line in rows("exam.txt") if line.startswith("nouns: ") for noun in line[7:].split()}
HELD_OUT_REQUESTS = {plain(line.partition(": ")[2]) for line in rows("exam.txt")}


def capital(text):
    return text[:1].upper() + text[1:]


def article(noun_phrase):
    vowel = noun_phrase[0].lower() in "aeiou" and not noun_phrase.startswith(("uni", "uku")) or noun_phrase.startswith("honest")
    return ("an " if vowel else "a ") + noun_phrase


class Plot:
    def __init__(self, name):
        self.name, self.virtue, self.moral = name, "", ""
        self.skip = []  # categories of things that would not fit
        self.lets, self.lines, self.asks = [], [], []


def read_plots():
    plots = []
    for file in sorted((HERE / "plots").glob("*.txt")):
        for line in rows(f"plots/{file.name}"):
            word, _, rest = line.partition(" ")
            if word == "plot":
                plots.append(Plot(rest))
            elif word == "virtue":
                plots[-1].virtue, plots[-1].moral = rest.split(" | ")
            elif word == "skip":
                plots[-1].skip = rest.split()
            elif word == "let":
                plots[-1].lets.append(rest.split(" = ", 1))
            elif word == "ask":
                plots[-1].asks.append(rest.split(" = ", 1))
            else:
                plots[-1].lines.append(line)
    return plots


def read_things():
    """Two lists of (noun, adjectives, category properties): the nouns of all categories, and those that only requests name."""
    things, asked, properties = [], [], {}
    for line in rows("things.txt"):
        if line.startswith("category "):
            properties = {"category": line.split()[1]}
            continue
        key, _, value = line.partition(": ")
        if key in ("joy", "use", "bad", "fix", "help"):
            properties[key] = value
        elif key == "asked for":
            asked += [(noun, ANY_THING, properties) for noun in value.split(", ")]
        else:
            things.append((key, value.split(", "), properties))
    return things, asked


def read_phrases():
    table = {}
    for line in rows("phrases.txt"):
        key, _, value = line.partition(": ")
        table.setdefault(key, []).append(value)
    return table


class Lexicon:
    """All data files, read once."""

    def __init__(self):
        self.names, self.kinds = {}, {}
        for line in rows("people.txt"):
            head, _, names = line.partition(": ")
            if head in ("girls", "boys", "animals"):
                self.names[head] = names.split()
            else:
                kind, homes, skills, foods, _ = line.split(" | ")
                self.kinds[kind] = tuple(part.split(", ") for part in (homes, skills, foods))
        for kind in ("girl", "boy"):
            self.kinds[kind] = (CHILD_HOMES, CHILD_SKILLS, FOODS)
        # What only requests use: {girls, boys, pets, animals, folk, words}, and kinds that live like the children.
        self.asked = {head: words.split() for head, _, words in (line.partition(": ") for line in rows("names.txt"))}
        self.asked["nouns"] = [noun for noun in self.asked["nouns"] if noun not in HELD_OUT_THINGS]
        self.asked_kinds = self.asked["animals"] + self.asked["folk"]
        self.places = [(a, b, c.split(", ")) for a, b, c in (line.split(" | ") for line in rows("places.txt"))]
        self.plots, self.phrases = read_plots(), read_phrases()
        self.things, self.asked_things = read_things()
        self.nouns = [noun for noun, _, _ in self.things + self.asked_things if " " not in noun] + sorted(self.kinds) + self.asked_kinds

    def draw_kind(self, rng, child_share):
        return rng.choices(["girl", "boy"], [3, 2])[0] if rng.random() < child_share else rng.choice(sorted(self.kinds))

    def draw_name(self, rng, group):
        """The first names of a list are more common, as in life. It also gives greedy text a clear first choice, which
        engines that round differently agree on."""
        names = self.names[group]
        return rng.choices(names, [1 + 6 / (i + 1) for i in range(len(names))])[0]

    def home_of(self, kind):
        """(homes, skills, foods) of a kind; one that only requests use lives like a child."""
        return self.kinds.get(kind, (CHILD_HOMES, CHILD_SKILLS, FOODS))

    def draw_asked_name(self, rng, kind, gender):
        """A name as anybody may ask for it: from the long list, of two halves of such names, or made of syllables."""
        everyday = self.asked["girls" if gender == "she" else "boys"]
        while True:
            form = rng.random()
            if form < 0.35:
                is_pet = kind not in PEOPLE and kind not in self.asked["folk"] and rng.random() < 0.3
                name = rng.choice(self.asked["pets"] if is_pet else everyday)
            else:
                name = joined(rng, everyday) if form < 0.6 else capital(syllables(rng) + rng.choice(["", "o", "a"]))
            if 2 < len(name) < 16 and name not in HELD_OUT_NAMES:
                return name

    def unknown_word(self, rng):
        """A word that no story has: an everyday noun, two nouns as one, one with another's end, parts of several, or syllables."""
        everyday = self.asked["nouns"]
        while True:
            chance = rng.random()
            if chance < 0.3:
                word = rng.choice(everyday)
            elif chance < 0.4:
                word = rng.choice(everyday)[:7] + rng.choice(self.nouns + everyday)[:6]
            elif chance < 0.6:
                word = joined(rng, self.nouns + everyday)
            elif chance < 0.8:
                parts = (rng.choice(everyday) for _ in range(rng.choice([2, 2, 3, 4])))
                word = "".join(part[at:at + rng.randint(1, 4)] for part in parts for at in [rng.randrange(len(part))])
            else:
                word = syllables(rng)
            if 2 < len(word) < 14 and word not in HELD_OUT_THINGS:
                return word

    def draw_asked_thing(self, rng, beside):
        """A thing that somebody asks for: of the plots, of those that only requests name, or a word that no list has, perhaps with letters of
        the word `beside` it."""
        chance = rng.random()
        if chance < 0.36:
            return rng.choice(self.things if chance < 0.24 else self.asked_things)
        noun = self.unknown_word(rng)
        if rng.random() < 0.3 and (mixed := grafted(rng, noun, beside)) not in HELD_OUT_THINGS:
            noun = mixed
        return (rng.choice(self.asked["words"]) + " " + noun if rng.random() < 0.1 else noun), ANY_THING, rng.choice(self.things)[2]

    def draw_asked_person(self, rng, asked, taken=(), gender=None):
        """A person of whom a request names what is in `asked`, "name", "kind" or "word": only that may be from anywhere."""
        kind = None
        if "kind" in asked and rng.random() < 0.4:
            kind = rng.choice(self.asked_kinds) if rng.random() < 0.6 else self.unknown_word(rng)
        person = self.draw_person(rng, taken, kind=kind, gender=gender, child_share=0.25 if asked else 0.4)
        if "word" in asked and rng.random() < 0.7:
            person["word"] = rng.choice(self.asked["words"])
        while "name" in asked and rng.random() < 0.75:
            name = self.draw_asked_name(rng, person["kind"], person["gender"])
            if all(name[0] != other[0] for other in taken):
                person["name"] = name
                break
        return person

    def draw_person(self, rng, taken=(), kind=None, gender=None, child_share=0.4):
        """A person {name, kind, gender, word that describes it}, its name unlike those taken."""
        kind = kind or self.draw_kind(rng, child_share)
        if kind == "girl" or kind in FEMALE:
            gender = "she"
        elif kind == "boy" or kind in MALE:
            gender = "he"
        gender = gender or rng.choice(["she", "he"])
        while True:
            if kind not in PEOPLE and rng.random() < 0.6:
                name = self.draw_name(rng, "animals")
            else:
                name = self.draw_name(rng, "girls" if gender == "she" else "boys")
            # Names of one cast start with different letters: easier to follow, for a reader too.
            if all(name[0] != other[0] for other in taken):
                return {"name": name, "kind": kind, "gender": gender, "word": rng.choice(KIND_WORDS)}


class Story:
    """One cast in one plot; text and answers agree with each other."""

    def __init__(self, lexicon, rng, plot=None, hero=None, friend=None, thing=None, place=None, shows_virtue=False, asked=()):
        """`asked`: what a request names of this story, of "name", "kind", "word", "friend name" and so on, and "thing". Only that may be
        from anywhere: a name that nobody asked for is one of the lists, since the model shall not invent words. The first sentence of a
        story that was asked for says who the hero is."""
        self.lexicon, self.rng = lexicon, rng
        self.plot = plot or rng.choice(lexicon.plots)
        self.asked = asked
        self.hero = hero or lexicon.draw_asked_person(rng, asked)
        other = "he" if self.hero["gender"] == "she" else "she"
        gender = other if rng.random() < 0.75 else self.hero["gender"]
        of_friend = [part[7:] for part in asked if part.startswith("friend ")]
        self.friend = friend or lexicon.draw_asked_person(rng, of_friend, [self.hero["name"]], gender)
        self.thing = thing or self._draw_thing()
        self.place = place or rng.choice(lexicon.places)
        self.shows_virtue = shows_virtue
        self.slots = {}
        self._cast()
        for name, text in self.plot.lets:
            if "," in name:
                values = rng.choice(text.split(" | ")).rsplit(", ", 1)
                self.slots.update(zip(name.split(", "), values))
            else:
                self.slots[name] = self.expand(text)
        self.slots.update(virtue=self.plot.virtue, moral=self.plot.moral)

    @functools.cached_property
    def text(self):
        """Made on demand: drills do not need it, and it takes most of the time."""
        return self._tell()

    @functools.cached_property
    def asks(self):
        return [(self.expand(q), self.expand(a)) for q, a in self.plot.asks]

    def _draw_thing(self):
        while True:
            thing = self.lexicon.draw_asked_thing(self.rng, self.hero["name"]) if "thing" in self.asked else self.rng.choice(self.lexicon.things)
            if thing[2]["category"] not in self.plot.skip and thing[0] not in (self.hero["name"].lower(), self.friend["name"].lower()):
                return thing

    def _cast(self):
        rng, slots = self.rng, self.slots
        for prefix, person in (("", self.hero), ("f", self.friend)):
            for key, word in zip(("he", "him", "his", "himself"), PRONOUNS[person["gender"]]):
                slots[prefix + key] = word
            slots["a_" + prefix + "kind"] = article(person["word"] + " " + person["kind"])
        slots.update(N=self.hero["name"], F=self.friend["name"], bare_kind=self.hero["kind"])
        homes, skills, loves = self.lexicon.home_of(self.hero["kind"])
        slots.update(home=rng.choice(homes), skill=rng.choice(skills), loves=rng.choice(loves), food=rng.choice(FOODS))
        gender = rng.choice(sorted(ELDERS))
        while True:
            slots["E"] = rng.choice(ELDERS[gender])
            if not set(slots["E"].split()) & {slots["N"], slots["F"]}: break
        for key, word in zip(("ehe", "ehim", "ehis"), PRONOUNS[gender]):
            slots[key] = word
        noun, adjectives, properties = self.thing
        slots["adjective"] = rng.choice(adjectives)
        slots.update(t=noun, a_t=article(noun), adj_t=f"{slots['adjective']} {noun}")
        slots["an_adj_t"] = article(slots["adj_t"])
        slots["in_a_place"], slots["the_place"], spots = self.place
        slots["in_place"] = re.sub(r"\ba\b", "the", slots["in_a_place"])  # it is known after the first sentence
        slots["spot"] = rng.choice(spots)
        for key in ("joy", "use", "bad", "fix", "help"):
            slots[key] = properties[key]
        # The same praise without its owner, and with the friend as its owner.
        free = [option for option in properties["joy"].strip("[]").split("|") if "{" not in option]
        slots["joy_plain"] = rng.choice(free or ["It was a joy to see."])
        slots["fjoy"] = slots["joy_plain"]

    def value(self, key):
        if key.startswith("@"):
            return self.rng.choice(self.lexicon.phrases[key[1:]])
        if key in self.slots:
            return self.slots[key]
        if key.endswith("_small"):
            text = self.slots[key[:-6]]
            return text[:1].lower() + text[1:]
        small = key[:1].lower() + key[1:]
        if small in self.slots:
            return capital(self.expand(self.slots[small]))
        if key[0] == "f" and key[1:2].isupper():  # {fHe}: the friend, with a capital
            return capital(self.slots["f" + key[1:].lower()])
        raise KeyError(f"{self.plot.name}: no slot {{{key}}}")

    def expand(self, text):
        """Draw all wordings and fill all slots, from the inside out."""
        while True:
            new = re.sub(r"\[([^\[\]]*)\]", lambda m: self.rng.choice(m[1].split("|")), text, count=1)
            if new != text:
                text = new
                continue
            new = re.sub(r"\{([^{}]+)\}", lambda m: self.value(m[1]), text, count=1)
            if new == text:
                return text
            text = new

    def _opening(self):
        phrases, rng = self.lexicon.phrases, self.rng
        lines = [rng.choice(phrases["once" if rng.random() < (0.9 if self.asked else 0.5) else "other"])]
        if self.shows_virtue:
            lines.append(rng.choice(["Everyone knew that {N} was {virtue}.", "{N} was very {virtue}.", "{He} wanted to be {virtue}."]))
        elif rng.random() < 0.5 and "{home}" not in lines[0]:
            lines.append(rng.choice(phrases["home"]))
        return " ".join(lines)

    def _ending(self):
        chance = self.rng.random()
        if self.shows_virtue or chance < 0.35:
            return "{@learned} {moral}."
        return "{@end}" if chance < 0.8 else ""

    def _tell(self):
        opening = self.expand(self._opening())
        paragraphs = [[]]
        for line in self.plot.lines:
            if line == "--":
                paragraphs.append([])
            elif not line.startswith("? ") or self.rng.random() < 0.5:
                paragraphs[-1].append(line.removeprefix("? "))
        paragraphs[-1].append(self._ending())
        told = [self.expand(" ".join(lines)).strip() for lines in paragraphs]
        # Who asked for a friend or a thing hears of it at once.
        if "thing" in self.asked and self.thing[0] not in told[0]:
            opening += " " + self.expand("{@of_thing}")
        if any(part.startswith("friend ") for part in self.asked):
            opening += " " + self.expand("{@of_friend}")
        text = "\n\n".join([opening + " " + told[0]] + told[1:])
        return re.sub(r" +", " ", text).replace(" ,", ",").replace("?!", "?").replace(" \n", "\n")


if __name__ == "__main__":  # read some: python3 grammar.py [seed] [plot]
    import sys
    seed = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    lexicon, rng = Lexicon(), random.Random(seed)
    chosen = [plot for plot in lexicon.plots if len(sys.argv) < 3 or plot.name == sys.argv[2]]
    for plot in chosen:
        story = Story(lexicon, rng, plot)
        print(f"== {plot.name}\n{story.text}\n", *(f"  {q} -> {a}\n" for q, a in story.asks))
