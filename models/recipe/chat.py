"""The instruction form of the stories: what somebody may ask for, and a story that has precisely that.

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
AGAIN = ["Tell me another story about {name}.", "Another story about {name}, please.", "One more about {name}!"]
ASK_ABOUT = ["Here is a story.\n\n{story}\n\n{question}", "{story}\n\n{question}", "Read this story and answer the question.\n\n{story}\n\n{question}"]
SYSTEM = ["You are a storyteller.", "You tell short stories for children.", "You are a helpful assistant.", "You are a kind and gentle storyteller."]


def small_talk():
    return [tuple(line.split(" = ", 1)) for line in rows("chat.txt")]


def named(rng, person, article_only=0.55):
    """How somebody asks for a person: by kind, by name, or by both."""
    chance = rng.random()
    if chance < article_only:
        return article((person["word"] + " " if rng.random() < 0.2 else "") + person["kind"])
    if chance < article_only + 0.15:
        return person["name"]
    return rng.choice(["{a} named {n}", "{a} called {n}", "{n} the {k}"]).format(a=article(person["kind"]), n=person["name"], k=person["kind"])


def request(lexicon, rng):
    """(what is asked, the story that answers it)."""
    form = rng.choices(["who_thing", "who", "thing", "two", "place", "virtue", "any"], [44, 14, 7, 8, 6, 12, 9])[0]
    if form == "virtue":
        story = Story(lexicon, rng, shows_virtue=True)
        pattern = rng.choice(VIRTUE)
    else:
        story = Story(lexicon, rng)
        pattern = rng.choice({"who_thing": WHO_AND_THING, "who": WHO, "thing": THING, "two": TWO, "place": PLACE, "any": ANY}[form])
    thing = story.thing[0] if rng.random() < 0.8 else story.slots["adj_t"]
    fields = {"who": named(rng, story.hero), "friend": named(rng, story.friend), "thing": article(thing), "name": story.hero["name"],
              "place": story.slots["in_a_place"], "virtue": story.plot.virtue}
    return pattern.format(**fields), story


def questions(rng, story, count):
    """Questions about a story with their answers; one in five is about the cast, whatever the plot."""
    hero, friend = story.hero, story.friend
    cast = [(f"Who is {friend['name']}?", f"{friend['name']} is {article(friend['kind'])}."),
            (f"Who is {hero['name']}?", f"{hero['name']} is {article(hero['kind'])}."),
            ("Who is the story about?", f"The story is about {article(hero['kind'])} named {hero['name']}."),
            (f"What is the name of the {hero['kind']}?", f"The name of the {hero['kind']} is {hero['name']}."),
            ("What did the hero learn?", f"{hero['name']} learned that {story.expand(story.plot.moral)}.")]
    if hero["kind"] == friend["kind"]:
        cast.pop(3)  # there would be two answers
    pool = rng.sample(story.asks, min(count, len(story.asks)))
    return [rng.choice(cast) if rng.random() < 0.2 else pair for pair in pool]


def conversation(lexicon, rng, talk):
    """One chat document."""
    messages = []
    if rng.random() < 0.12:
        messages.append(("system", rng.choice(SYSTEM)))

    def chatter(rows):
        ask, reply = rng.choice(rows)
        draw = lambda text: re.sub(r"\[([^\]]*)\]", lambda m: rng.choice(m[1].split("|")), text)
        messages.extend([("user", draw(ask)), ("assistant", draw(reply))])

    form = rng.random()
    if form < 0.06:
        chatter(talk)
        return messages
    if form < 0.18:  # the story stands in the question
        story = Story(lexicon, rng)
        (question, answer), *more = questions(rng, story, rng.choice([1, 2]))
        messages += [("user", rng.choice(ASK_ABOUT).format(story=story.text, question=question)), ("assistant", answer)]
        for question, answer in more:
            messages += [("user", question), ("assistant", answer)]
        return messages
    if form < 0.21:
        chatter(talk[:2])
    ask, story = request(lexicon, rng)
    messages += [("user", ask), ("assistant", story.text)]
    if form > 0.70:
        for question, answer in questions(rng, story, rng.choice([1, 1, 2, 3])):
            messages += [("user", question), ("assistant", answer)]
    elif form > 0.66:
        again = Story(lexicon, rng, hero=story.hero, friend=story.friend)
        messages += [("user", rng.choice(AGAIN).format(name=story.hero["name"])), ("assistant", again.text)]
    elif form > 0.63:
        chatter(talk[4:5])
    return messages
