"""The instruction form of the stories: what somebody may ask for, and a story that has exactly that.

A document of the corpus is a list of messages [(role, text)]; role "text" is a plain story without chat.
"""
import re

from grammar import Story, article, rows

# {who} is "a fox", "a girl named Mia", "Pip the otter"; {thing} is "a lantern", "an old lantern".
WHO_AND_THING = ["Tell me a story about {who} and {thing}.", "Tell me a story about {who} and {thing}", "Write a story about {who} and {thing}.",
                 "Please tell me a story about {who} and {thing}.", "I would like a story about {who} and {thing}.",
                 "Can you tell me a story about {who} and {thing}?", "Write a short story about {who} with {thing}.",
                 "A story about {who} and {thing}, please.", "Make up a story with {who} and {thing}.", "tell me a story about {who} and {thing}"]
WHO = ["Tell me a story about {who}.", "Write a story about {who}.", "Tell me a story about {who}, please.", "Do you know a story about {who}?",
       "Can you tell me about {who}?", "I want to hear a story about {who}.", "Tell me about {who}.", "Write a short story about {who}."]
THING = ["Tell me a story about {thing}.", "Write a story about {thing}.", "Do you know a story with {thing} in it?", "A story with {thing}, please."]
TWO = ["Tell me a story about {who} and {friend}.", "Write a story about {who} and {friend}.", "Please tell me a story about {who} and {friend}."]
PLACE = ["Tell me a story about {who} {place}.", "Write a story about {who} and {thing} {place}.", "Tell me a story that happens {place}."]
VIRTUE = ["Write a story in which {name} is {virtue}.", "Tell me a story in which {name} is {virtue}.", "Tell me a story about somebody who is {virtue}.",
          "Write a story in which {who} is {virtue}.", "Tell me a story about {name}, who is {virtue}."]
ANY = ["Tell me a story.", "Please tell me a story.", "Tell me a bedtime story.", "Can you tell me a story?", "Write a short story.", "A story, please!",
       "Tell me something nice.", "I want to hear a story.", "Do you know a story?", "tell me a story", "Write a story for children.", "Surprise me."]
AGAIN = ["Tell me another story about {name}.", "Another story about {name}, please.", "One more about {name}!", "And another one about {name}.",
         "What else did {name} do?", "Please tell me more about {name}.", "Can you tell me another story with {name}?"]
NEXT = ["Another story, please.", "Tell me another one.", "One more!", "Another one!", "Tell me another story.", "One more story, please.", "More!"]
# Before a request that is not the first one.
AND_NOW = ["Now ", "And now ", "Thank you. ", "Thanks! ", "That was nice. ", "Great! ", "Next, ", "Ok, "]
ASK_ABOUT = ["Here is a story.\n\n{story}\n\n{question}", "{story}\n\n{question}", "Read this story and answer the question.\n\n{story}\n\n{question}"]
SYSTEM = ["You are a storyteller.", "You tell short stories for children.", "You are a helpful assistant.", "You are a kind and gentle storyteller."]


def small_talk():
    return [tuple(line.split(" = ", 1)) for line in rows("chat.txt")]


def named(rng, person, article_only=0.5):
    """How somebody asks for a person: by kind, by name, or by both."""
    chance = rng.random()
    kind = (person["word"] + " " if rng.random() < 0.3 else "") + person["kind"]
    if chance < article_only:
        return article(kind)
    if chance < article_only + 0.2:
        return person["name"]
    return rng.choice(["{a} named {n}", "{a} called {n}", "{n} the {k}", "{n}, {a}"]).format(a=article(kind), n=person["name"], k=person["kind"])


def request(lexicon, rng, hero=None):
    """(what is asked, the story that answers it)."""
    form = rng.choices(["who_thing", "who", "thing", "two", "place", "virtue", "any"], [44, 16, 6, 12, 5, 9, 8])[0]
    story = Story(lexicon, rng, hero=hero, shows_virtue=form == "virtue", asked=True)
    pattern = rng.choice({"who_thing": WHO_AND_THING, "who": WHO, "thing": THING, "two": TWO, "place": PLACE, "virtue": VIRTUE, "any": ANY}[form])
    thing = story.thing[0] if rng.random() < 0.8 else story.slots["adj_t"]
    fields = {"who": named(rng, story.hero), "friend": named(rng, story.friend), "thing": article(thing), "name": story.hero["name"],
              "place": story.slots["in_a_place"], "virtue": story.plot.virtue}
    ask = pattern.format(**fields)
    return ask.lower() if rng.random() < 0.04 else ask, story


def questions(rng, story, count):
    """Questions about a story with their answers; a third are about the cast, whatever the plot."""
    hero, friend = story.hero, story.friend
    cast = [(f"Who is {friend['name']}?", f"{friend['name']} is {article(friend['kind'])}."),
            (f"Who is {hero['name']}?", f"{hero['name']} is {article(hero['kind'])}."),
            ("Who is the story about?", f"The story is about {article(hero['kind'])} named {hero['name']}."),
            ("What is the name of the hero?", f"The name of the hero is {hero['name']}."),
            ("What did the hero learn?", f"{hero['name']} learned that {story.expand(story.plot.moral)}.")]
    if hero["kind"] != friend["kind"]:  # else there would be two answers
        cast += [(f"What is the name of the {p['kind']}?", f"The name of the {p['kind']} is {p['name']}.") for p in (hero, friend)]
    cast = rng.sample(cast, len(cast))
    pool = rng.sample(story.asks, len(story.asks))
    return [(cast if not pool or rng.random() < 0.33 else pool).pop() for _ in range(min(count, len(pool) + 4))]


def drilled_questions(lexicon, rng, lines):
    """Some lines of drills.txt about one cast, and then all that can be asked about them: many answers in few tokens."""
    story = Story(lexicon, rng, asked=True)
    chosen = rng.sample(lines, rng.randint(3, 6))
    first = ["{N} was {a_kind}.", "{F} was {a_fkind}."]
    if rng.random() < 0.5:
        first.append("{N} had {an_adj_t}.")
        chosen.append("= Who had the {t}? = {N} had the {t}.")
    texts, asks = zip(*(line.partition(" = ")[::2] if not line.startswith("=") else ("", line[2:]) for line in chosen))
    text = story.expand(" ".join(rng.sample(first, len(first)) + [t for t in texts if t]))
    pairs = [tuple(map(story.expand, ask.split(" = "))) for ask in asks if ask]
    pairs += [(f"Who is {p['name']}?", f"{p['name']} is {article(p['kind'])}.") for p in (story.hero, story.friend)]
    pairs = rng.sample(pairs, min(len(pairs), 6))
    if rng.random() < 0.5:
        messages = [("user", rng.choice(ANY + NEXT)), ("assistant", text)]
    else:
        question, answer = pairs.pop()
        messages = [("user", rng.choice(ASK_ABOUT).format(story=text, question=question)), ("assistant", answer)]
    for question, answer in pairs:
        messages += [("user", question), ("assistant", answer)]
    return messages


def conversation(lexicon, rng, talk, stories=None):
    """One chat document: `stories` requests (mostly one to four), with questions and small talk between them."""
    messages = []
    if rng.random() < 0.12:
        messages.append(("system", rng.choice(SYSTEM)))

    def chatter(rows):
        ask, reply = rng.choice(rows)
        draw = lambda text: re.sub(r"\[([^\]]*)\]", lambda m: rng.choice(m[1].split("|")), text)
        messages.extend([("user", draw(ask)), ("assistant", draw(reply))])

    def answered(pairs):
        for question, answer in pairs:
            messages.extend([("user", question), ("assistant", answer)])

    form = rng.random()
    if stories is None and form < 0.08:  # small talk alone
        for _ in range(rng.choice([1, 1, 2, 3])):
            chatter(talk)
        return messages
    if stories is None and form < 0.18:  # the story stands in the question
        story = Story(lexicon, rng, asked=True)
        (question, answer), *more = questions(rng, story, rng.choice([2, 3, 4]))
        messages += [("user", rng.choice(ASK_ABOUT).format(story=story.text, question=question)), ("assistant", answer)]
        answered(more)
        return messages
    if rng.random() < 0.15:
        chatter(talk[:4])
    last = None
    for turn in range(stories if stories is not None else rng.choices([1, 2, 3, 4], [25, 30, 30, 15])[0]):
        chance = rng.random()
        if last and chance < 0.12:  # the same hero again
            story = Story(lexicon, rng, hero=last.hero, friend=last.friend if rng.random() < 0.5 else None, asked=True)
            ask = rng.choice(AGAIN).format(name=story.hero["name"])
        elif last and chance < 0.18:
            ask, story = rng.choice(NEXT), Story(lexicon, rng, asked=True)
        else:
            ask, story = request(lexicon, rng)
        if last and rng.random() < 0.2:
            before = rng.choice(AND_NOW)
            ask = before + (ask if before[-2] in ".!" else ask[:1].lower() + ask[1:])
        messages += [("user", ask), ("assistant", story.text)]
        last = story
        if rng.random() < 0.45:
            answered(questions(rng, story, rng.choice([1, 1, 2, 3, 4])))
        if rng.random() < 0.12:
            chatter(talk if rng.random() < 0.4 else talk[4:5])
    return messages
