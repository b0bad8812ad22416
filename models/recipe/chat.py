"""The instruction form of the stories: what somebody may ask for, and a story that has exactly that.

A document of the corpus is a list of messages [(role, text)]; role "text" is a plain story without chat.
"""
import re

from grammar import HELD_OUT_REQUESTS, Story, article, capital, draw, plain, rows
from others import spoil

TELL = ("[Tell me|Tell me|Tell me|Tell us|Write|Write|Please tell me|Can you tell me|Could you tell me|Can you write|Please write|I want|I would like|"
        "I'd like|I want to hear|Give me|Make up|Make|Let me hear|Do you know|Do you have|I need|Could I have|Invent|Read me|How about||] ")
STORY = "[a|a|a|a|a short|a little|a nice|a funny|a new|a scary|a long|a bedtime|a sweet|a happy|a small] [story|story|story|story|tale|fairy tale|bedtime story]"
END = "[.|.|.|||, please.|, please|?|!| for my {child}.| please| before I sleep.]"
# {who} is "a fox", "a girl named Mia", "Pip the otter"; {thing} is "a lantern", "an old lantern".
WHO_AND_THING = [TELL + STORY + " about {who} and {thing}" + END, "Tell me a story about {who} and {thing}.", "tell me a story about {who} and {thing}",
                 TELL + STORY + " [with|about|of|on] {who} [and|with|who has|who finds|who loses|and also] {thing}" + END,
                 TELL + STORY + " [in which|where] {who} [finds|loses|has|gets|buys|sees|needs] {thing}" + END, "{who} and {thing}[||, please|!]",
                 "[Story|Story please|A tale]: {who}, {thing}", TELL + STORY + " about {thing} and {who}" + END,
                 "[Think of|Picture|There is|Let there be|What if there were] {who} [and|with|who has|who wants] {thing}. [Tell it|Begin|What happens|Go on]?",
                 "[We need|I need|Give us] a [story|tale] [tonight|now|for the trip]. [Put in|Use|Take|With|Choose] {who} and {thing}[.|, please.|!]",
                 "[It is late|Good evening|It is raining|Hi|Sit down]. [Tell|Read] [me|us] [about|of] {who} and {thing}[.|!|, please.]",
                 "{thing} and {who}[.|!|, that is the story I want.| please]", "[I love|My {child} likes|We like] {who}. [Please tell|Tell|Can you tell] [me|us] a story [with|about] it and {thing}."]
# The same from parts, with words before and after that no story has: what a request means does not hang on its wording.
VERB = ("[finds|loses|has|buys|wants|needs|sees|steals|hides|repairs|gets|paints|carries|dreams of|looks for|is given|borrows|breaks|sells|forgets|keeps|"
        "trades|follows|shares|opens|owns|throws away|cannot find|falls over|brings|{word}s]")
JOIN = "[ and| and| and| and| and| with| with| plus| &| as well as| together with|, also| meets| who " + VERB + "| that " + VERB + "| and perhaps|,]"
PAIR = ["{who}" + JOIN + " {thing}", "{who}" + JOIN + " {thing}", "{who} and {thing}", "{thing}[ and| and| and| with| for| of| that belongs to| that is found by|, and also|,] {who}"]
CALL = ("[[Please |Could you |Can you |Will you |Would you |I want you to |Now ||||][tell|tell|tell|write|make up|invent|read|give|spin|{word}|sing|dream up] [me|us|him|her|my {child}|me and my {child}|them|||]|"
        "[I'd|I would|We'd] [like|love|enjoy] [to hear|to read||]|[I|We] [want|need|could use|wish for|ask for]|[May|Can|Could] [I|we] [have|get|hear|read]|Let us [hear|have]|Got|Do you [have|know|remember]|"
        "[My {child}|Our {child}|Everybody|The {word}] [wants|needs|asks for|would like|is waiting for|hopes for]|Time for|Show me|It is time for] ")
TALE = ("[a|a|a|a|one|another|some|any|the|one more|this] [|||||short|little|funny|scary|new|long|sweet|quiet|silly|good|real|proper|{word}|bedtime|two-minute] "
        "[story|story|story|story|story|tale|bedtime story|fairy tale|fable|adventure]")
LAST = ["[.|.|.|||!|?|, please.| please|, please!| now.| tonight.| for my {child}.| pls| thanks|, if you can.| again.|, quickly.]"]
COMPOSED = [CALL + TALE + " [about|about|about|of|with|on|for] {pair}{last}", CALL + TALE + " [in which|where|when] {who} " + VERB + " {thing}{last}",
            CALL + TALE + " with {pair} in it{last}", CALL + TALE + "[.|:|;|!|, but|] [it|the story|this one] [should|must|has to|shall|may|could|will] [have|be about|contain|include|tell of|mention|start with] {pair}{last}",
            "[Use|Take|Include|Put in|Mix|Think of|Picture|Suppose there is|Say we have|What if there was|Remember|See] {pair}[. Then tell it|, and tell me|. What happens|. Go|. Make a story of it|. Begin|. Now the story, please|. Tell me how it ends][.|?|!]",
            "[Hero|Main character|Character|Who|Person|Star]: {who}[.|,|;|] [Thing|Object|Item|What|Prop|With|Toy]: {thing}[.|]",
            "[The hero|The main character|Your hero|One of them] [is|shall be|should be|must be|is called] {who}[,|;|] and [there is|it has|it needs|with|the thing is|do not forget] {thing}{last}",
            "[My|Our|The|His|Her] [wish|idea|plan|choice|order|favorite|{word}] [for tonight|today|this time|now||] [is|would be|will be|was|has to be] {pair}{last}",
            "{thing}[...|;|,| -|?|!|.] {who}[...|;|!|.|?|,] [Can|Could|Will|Do] you [make|do|tell|find|begin|know] [something|anything|a tale|it|one|more] [with|of|from|about] [it|that|them|these|both]?",
            "[There is|There's|Here is|Here are|I see|I know|We know|Behold|Meet] {who} and [there is|there's|here is|also|then|not far away] {thing}[.|:|;|,|...] [What happens|And then|How does it go|What do they do|Go on|And now|What next][?|.|]",
            "[My {child}|{Word}|Somebody|My {word}|Everybody|Nobody] [used to tell|told|reads|often told|spoke to|sang to|never told] [me|us|them] [about|of] {pair}. [Do you know it|Can you tell it|Tell it again|How did it go|Now you]?",
            "[In|For|As] [the next one|the story|this tale|our story|a new story|chapter {word}][,|] {who} [should|must|can|may|will|has to|shall] [come across|find|lose|meet|need|{word}|look for|buy] {thing}{last}",
            "{pair}{last}", "{pair}{last}", "[story|tale|story time|bedtime story|a story|request][|, please|, now|!|.|?][:| -|,|] {pair}{last}", CALL + "[about|of] {pair}{last}",
            "[How about|What about|Maybe|Perhaps|Why not|Let it be|This time|And now] {pair}{last}", "{pair}: [tell me|a story|make it a story|can you do that|what is their story|that one]{last}"]
BEFORE = ["[Hello|Hi|Hey|Good evening|Good morning|Hi there|Dear storyteller|Excuse me|OK|So|Well|Listen|Great|Thanks|One thing|{Word}][!|,|.|] ",
          "[It is|It's|Today is|Tonight is] [late|raining|bedtime|cold|{word}|Sunday|my birthday|very dark|quiet here|too {word}]. ",
          "[I am|I'm|We are|The {word} is|My {child} is|Everybody is|{Word} is] [tired|ready|{word}|awake|listening|bored|in the {word}|on a train|ill|under the blanket|at home|so {word}]. ",
          "[My {child} loves|I like|We like|I know|I hate|Nobody has] [stories|{word}s|your stories|a good tale|the {word}|{Word}]. ",
          "[I|We|{Word}|My {child}] [saw|lost|bought|had|read about|dreamed of|made] a {word}[ today| yesterday| last night| in {Word}||]. ",
          "[This time|Tonight|Today|For once|Then|After that|Just for fun|If you can|For my {child}][,|] "]
AFTER = ["[Please|Thanks|Thank you|I am listening|Make it short|Go on|It can be short|Make it funny|That is all|We love those|My {child} will like it|Make it {word}|No {word}s this time][.|!|]"]
WHO = [TELL + STORY + " [about|about|about|of|with|on] {who}" + END, "Tell me a story about {who}.", "[Tell me|Tell us|Write|Can you tell me] about {who}[.|?|, please.|]",
       "[A|One] story about {who}" + END, "[Once|Tell me what happened] [to {who}.|to {who} one day.]", "story about {who}", TELL + STORY + "[: |, ]{who}"]
THING = [TELL + STORY + " [about|about|with] {thing}" + END, TELL + STORY + " with {thing} in it" + END, "[Do you know a|A] story with {thing} in it[?|, please.]"]
TWO = [TELL + STORY + " about {who} and {friend}" + END, "Tell me a story about {who} and {friend}.", TELL + STORY + " [in which|where] {who} [meets|helps|finds|visits] {friend}" + END]
PLACE = [TELL + STORY + " about {who} {place}" + END, TELL + STORY + " about {who} and {thing} {place}" + END, TELL + STORY + " [that happens|set] {place}" + END]
VIRTUE = ["[Write|Tell me|Tell us|I want] a story [in which|where] {name} is {virtue}.", "Tell me a story about somebody who is {virtue}.",
          "[Write|Tell me] a story in which {who} is {virtue}.", "Tell me a story about {name}, who is {virtue}."]
ANY = [TELL + STORY + END, "Tell me a story.", "[A story|Story|Story time|Story, please|A bedtime story|A tale][!|.|, please!|]", "[Tell me something nice|Surprise me|Tell me something].",
       "[I want to hear|Do you know|Can you tell|Will you tell me] a story[?|.|]", "[Write|Tell] a story for [children|my {child}|kids|us|everyone].",
       "[Begin|Start|Go on, begin|Tell me anything|Any story|Tell me your best story|What stories do you know|Once upon a time|Let us begin][.|!|]"]
AGAIN = ["[Tell me another story|Another story|One more|And another one|Another one|A new story|More stories|Again one] about {name}[.|!|, please.|]", "What else did {name} do?",
         "[Please tell|Tell] me more about {name}.", "Can you tell me another story with {name}?", "More [about|of] {name}[.|!]"]
NEXT = ["[Another story|Another one|One more|One more story|Tell me another one|Tell me another story|Again|Next|Another|A different one|And another one][, please||, please|]"
        "[.|!|?|]", "[More|Again|Next|encore|Can I have another|Can I hear another one][!|.|?|]"]
WITH = ["[Let it be|Make it|I would like it|The story again, but|One|A story|Please, now|Then] with {other}[.|, please|!|?|]", "[Could there be|Is there one with|Add|I want|Use] {other}[, too|| in the story|, please][.|?|]",
        "[And|But|This time|Now] [it should have|there should be|with|there is] {other}[.||!| in it]", "[Again|Now|The same|And now|Another one|Tell it|Once more|Next one||] with {other}[.|, please.|!|?|]", "[Can it have|Put|Can you put|I want] {other} in it[?|.|]",
        "[with|With|but with|And|Also|Perhaps with] {other}[.|, please|!|?|]", "[And|Now] about {name} and {other}[.|, please.|]", "[Could you|Please] add {other}[?|.|]"]
CHANGE = ["[Can|Could|Would|Will] you [make|tell|say|write] [it|that|the story|this] [a bit|a little||||] [shorter|funnier|longer|scarier|sadder|happier|simpler|nicer|sillier][?||, please?]",
          "[Now|But|And|Please|Ok,|No,||] [shorter|funnier|longer|scarier|less sad|less long|more funny|more exciting|with a better ending|in two sentences|as a poem|without {name}][.|!||?|, please]",
          "[That was|It is|It was|This is] too [long|short|sad|scary|boring|silly]. [Make|Tell|Try] it [shorter|longer|funnier|nicer|again|better][.||!]", "[make it|Make it|Can you make it|Make the story|Make that|Tell it] [shorter|funnier|longer|scarier|better|shorter, please|sadder|happier|shorter|more exciting|rhyme|simpler][?|.||!]",
          "[[That|It] was [so |very |quite ||][long|sad|scary|short|silly]. ||][less|more|not so|much|a bit|far|Less|Much] [scary|sad|funny|long|short|shorter|funnier|silly|sadder][.|!||, please| please]",
          "[shorter|Shorter|longer|funnier|Shorter, please|In one sentence|Too long|In rhyme][.|!||?]", "[Continue|Go on|What happened next|And then|What happens then|Tell me the rest|"
          "Change the ending|Another ending|Rewrite it|Change the name|Write it as a poem|Say it again|Tell it once more][.|?||, please.]"]
CANNOT = ["I cannot change a story that I have told. Shall I tell another one about {name}?", "That story is over. Shall I tell another one about {name}?"]
YES = ["[Yes|yes|Yes please|Yes, please|Sure|OK|Okay|ok|Please|Please do|Of course|I would love one|Yes, one, please|Go ahead|Why not|Gladly|y|yeah|Yep][.|!||]"]
# Before a request that is not the first one.
AND_NOW = ["Now ", "And now ", "Thank you. ", "Thanks! ", "That was nice. ", "Great! ", "Next, ", "Ok, "]
EVERYTHING = ["name", "kind", "friend name", "thing"]  # that a request can name
CHILD = ["son", "daughter", "kids", "children", "little brother", "sister", "class", "niece", "grandson"]
# What no story tells.
UNTOLD = ["How old was {n}?", "What color were the eyes of {n}?", "What is the name of {n}'s mother?", "When was {n} born?", "How tall was {f}?",
          "How much did the {t} cost?", "Who made the {t}?", "Does {n} have children?", "What did {f} study?", "Is {f} married?"]
ASK_ABOUT = ["Here is a story.\n\n{story}\n\n{question}", "{story}\n\n{question}", "Read this story and answer the question.\n\n{story}\n\n{question}"]
SYSTEM = ["You are a storyteller.", "You tell short stories for children.", "You are a helpful assistant.", "You are a kind and gentle storyteller."]


def small_talk():
    return [tuple(line.split(" = ", 1)) for line in rows("chat.txt")]


def named(rng, person, parts):
    """How somebody asks for a person: by kind, by name, or by both."""
    kind = (person["word"] + " " if "word" in parts else "") + person["kind"]
    if "name" not in parts:
        return article(kind)
    if "kind" not in parts:
        return person["name"]
    return rng.choice(["{a} named {n}", "{a} called {n}", "{n} the {k}", "{n}, {a}"]).format(a=article(kind), n=person["name"], k=person["kind"])


def wording(lexicon, rng, pattern):
    """A pattern with its choices drawn, perhaps with words around it, that still has {who} and so on."""
    for name, choices in (("{pair}", PAIR), ("{last}", LAST)):
        pattern = pattern.replace(name, rng.choice(choices))
    pattern = draw(rng, pattern)
    if rng.random() < 0.25:
        before = draw(rng, rng.choice(BEFORE))
        pattern = before + (capital(pattern) if before[-2] in ".!" else pattern)
    if rng.random() < 0.12:
        pattern += ("" if pattern[-1] in ".!?" else ".") + " " + draw(rng, rng.choice(AFTER))
    pattern = re.sub(r" +", " ", pattern).replace("{Word}", "{word}" if rng.random() < 0.3 else "{Word}")
    return re.sub(r"\{(word|Word)\}", lambda m: capital(lexicon.unknown_word(rng)) if m[1] == "Word" else lexicon.unknown_word(rng), pattern)


def request(lexicon, rng, hero=None):
    """(what is asked, the story that answers it)."""
    form = rng.choices(["who_thing", "who", "thing", "two", "place", "virtue", "any"], [56, 12, 6, 9, 4, 6, 7])[0]
    who_thing = COMPOSED if rng.random() < 0.7 else WHO_AND_THING
    pattern = wording(lexicon, rng, rng.choice({"who_thing": who_thing, "who": WHO, "thing": THING, "two": TWO, "place": PLACE, "virtue": VIRTUE, "any": ANY}[form]))
    who, friend = rng.choices([["kind"], ["kind", "word"], ["name"], ["name", "kind"], ["name", "kind", "word"]], [4, 1, 4, 3, 1], k=2)
    asked = (["name"] if "{name}" in pattern else who if "{who}" in pattern else []) + ["friend " + part for part in friend if "{friend}" in pattern]
    asked += ["thing"] * ("{thing}" in pattern) + ["any"]
    plainly = rng.random() < 0.25  # a story from the lists alone
    if plainly:
        hero = hero or lexicon.draw_person(rng)
    while True:
        thing = rng.choice(lexicon.things) if plainly and "thing" in asked else None
        other = lexicon.draw_person(rng, [hero["name"]]) if plainly else None
        story = Story(lexicon, rng, hero=hero, friend=other, thing=thing, shows_virtue=form == "virtue", asked=asked)
        if not thing or thing[2]["category"] not in story.plot.skip:
            break
    thing = story.thing[0] if rng.random() < 0.8 else story.slots["adj_t"]
    keep = [story.hero["name"], story.hero["kind"], story.friend["name"], story.friend["kind"], story.thing[0]]
    ask = pattern.format(who=named(rng, story.hero, who), friend=named(rng, story.friend, friend), thing=article(thing), name=story.hero["name"],
                         place=story.slots["in_a_place"], virtue=story.plot.virtue, child=rng.choice(CHILD)).strip()
    return spoil(rng, capital(ask) if rng.random() < 0.9 else ask, keep), story


def small(rng, talk):
    """(what is said, the reply), as people type."""
    ask, reply = (draw(rng, text) for text in rng.choice(talk))
    if rng.random() < 0.4:
        ask = ask.lower().rstrip(".!" if rng.random() < 0.7 else "")
    return spoil(rng, ask), reply


def short(rng, patterns, **slots):
    """One of the follow-ups, as people type, and none that evaluate.py asks."""
    while True:
        ask = re.sub(" +", " ", draw(rng, rng.choice(patterns)).format(**slots)).strip()
        ask = spoil(rng, capital(ask) if rng.random() < 0.75 else ask, ask.split())
        if plain(ask) not in HELD_OUT_REQUESTS:
            return ask


def opening(story, paragraphs=1):
    return "\n\n".join(story.text.split("\n\n")[:paragraphs])


def told(rng, story):
    """The message that tells a story: a third of them whole, others no more than the beginning, up to the friend's name and all that was asked for."""
    chance = rng.random()
    if chance < 0.35:
        return "assistant", story.text
    if chance < 0.6:
        return "drill", opening(story)
    of = {"name": story.hero["name"], "kind": story.hero["kind"], "thing": story.thing[0], "friend name": story.friend["name"], "friend kind": story.friend["kind"]}
    missing, said = {story.friend["name"], *(of[part] for part in story.asked if part in of)}, []
    for sentence in re.split(r"(?<=[.!?]) ", opening(story)):
        said.append(sentence)
        missing = {word for word in missing if word not in sentence}
        if not missing:
            break
    return "drill", " ".join(said)


def asking(lexicon, rng, talk, others):
    """A chat of requests, few of them with a whole story, and of everything else that has a short answer."""
    messages, last = [], None
    for _ in range(rng.choice([1, 1, 2, 3, 4, 6, 8])):
        chance = rng.random()
        if chance < 0.24:
            no_story = others.instead(rng, request(lexicon, rng)[0]) if chance < 0.08 else None
            messages += [("user", no_story or others.ask(rng)), ("assistant", others.reply(rng)[0])]
        elif chance < 0.31:
            messages += zip(("user", "assistant"), small(rng, talk))
        elif last and chance < 0.45:
            messages += [("user", short(rng, CHANGE, name=last.hero["name"])), ("assistant", rng.choice(CANNOT).format(name=last.hero["name"]))]
        else:
            ask, last = follow_up(lexicon, rng, last) if last and chance < 0.63 else request(lexicon, rng)
            messages += [("user", ask), told(rng, last)]
            if rng.random() < 0.08:
                messages += zip(("user", "assistant"), small(rng, talk[4:5]))
    return messages


def follow_up(lexicon, rng, last):
    """(what is asked after a story, the story that answers it)"""
    form = rng.random()
    if form < 0.2:  # the same hero again
        story = Story(lexicon, rng, hero=last.hero, friend=last.friend if rng.random() < 0.5 else None, asked=["any"])
        return short(rng, AGAIN, name=story.hero["name"]), story
    if form < 0.4:
        return short(rng, NEXT), Story(lexicon, rng, asked=["any"])
    of_friend = rng.random() < 0.7  # the same, but for the friend or the thing
    story = Story(lexicon, rng, hero=last.hero, thing=last.thing if of_friend else None, asked=["friend kind" if of_friend else "thing"])
    return short(rng, WITH, name=story.hero["name"], other=article(story.friend["kind"] if of_friend else story.thing[0])), story


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
    slots = story.slots
    cast += [(ask, f"The story is about {article(hero['kind'])} named {hero['name']}.") for ask in ("Who is it about?", "Who?", "Who is the hero?")[:rng.randrange(2)]]
    if slots["in_a_place"] in story.text or slots["in_place"] in story.text:
        cast += [(ask, f"It happened {slots['in_place']}.") for ask in rng.sample(["Where did it happen?", "Where?", "Where was that?", "Where is the story set?"], 1)]
    if slots["home"] in story.text:
        cast.append((f"Where did {hero['name']} live?", f"{hero['name']} lived in {slots['home']}."))
    if slots["adj_t"] in story.text:
        cast.append((rng.choice([f"What was the {story.thing[0]} like?", f"What kind of {story.thing[0]} was it?"]), f"It was {article(slots['adj_t'])}."))
    cast.append((rng.choice(UNTOLD).format(n=hero["name"], f=friend["name"], t=story.thing[0]), "The story does not say."))
    cast = rng.sample(cast, len(cast))
    pool = rng.sample(story.asks, len(story.asks))
    chosen = [(cast if not pool or rng.random() < 0.33 else pool).pop() for _ in range(min(count, len(pool) + 4))]
    return [(reworded(rng, question, story), answer) for question, answer in chosen]


def reworded(rng, question, story):
    """The question as it is, by kind instead of name, or in small letters."""
    if rng.random() < 0.25 and not question.startswith("Who is") and story.hero["kind"] != story.friend["kind"]:
        for person in (story.hero, story.friend):
            question = re.sub(rf"\b{person['name']}\b", "the " + person["kind"], question)
    return spoil(rng, capital(question), question.split()) if rng.random() < 0.3 else capital(question)


def drilled_questions(lexicon, rng, lines):
    """Some lines of drills.txt about one cast, and then all that can be asked about them: many answers in few tokens."""
    story = Story(lexicon, rng, asked=EVERYTHING)
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
        messages = [("user", short(rng, ANY + NEXT, child="son")), ("read", text)]  # not learned: it is no story
    else:
        question, answer = pairs.pop()
        messages = [("user", rng.choice(ASK_ABOUT).format(story=text, question=question)), ("assistant", answer)]
    for question, answer in pairs:
        messages += [("user", question), ("assistant", answer)]
    return messages


def conversation(lexicon, rng, talk, others):
    """One chat document: one to three requests, with questions, small talk and what is no story between them."""
    messages, offered = [], None
    if rng.random() < 0.12:
        messages.append(("system", rng.choice(SYSTEM)))

    def say(*pairs):
        nonlocal offered
        offered = None
        for pair in pairs:
            messages.extend(zip(("user", "assistant"), pair))

    def chatter(rows):
        say(small(rng, rows))

    def refused(count):
        nonlocal offered
        for _ in range(count):
            text, *what = others.reply(rng)
            say((others.ask(rng), text))
            offered = what if text.endswith("?") else None

    form = rng.random()
    if form < 0.1:  # small talk alone
        for _ in range(rng.choice([1, 1, 2, 3])):
            chatter(talk)
        return messages
    if form < 0.18:  # the story stands in the question
        story = Story(lexicon, rng, asked=EVERYTHING)
        (question, answer), *more = questions(rng, story, rng.choice([2, 3, 4]))
        say((rng.choice(ASK_ABOUT).format(story=story.text, question=question), answer), *more)
        return messages
    if rng.random() < 0.15:
        chatter(talk[:4])
    last = None
    for _ in range(rng.choices([1, 2, 3], [35, 30, 35])[0]):
        if rng.random() < 0.25:
            refused(rng.choice([1, 1, 2, 3]))
        chance = rng.random()
        if offered and chance < 0.5:
            ask, story = draw(rng, rng.choice(YES)), accepted(lexicon, rng, *offered)
        elif last and chance < 0.4:
            ask, story = follow_up(lexicon, rng, last)
        else:
            ask, story = request(lexicon, rng)
        if last and rng.random() < 0.2:
            before = rng.choice(AND_NOW)
            ask = before + (ask if before[-2] in ".!" else ask[:1].lower() + ask[1:])
        say((ask, story.text))
        last = story
        if rng.random() < 0.45:
            say(*questions(rng, story, rng.choice([1, 1, 2, 3, 4])))
        if rng.random() < 0.2:
            text = rng.choice(CANNOT).format(name=story.hero["name"])
            say((short(rng, CHANGE, name=story.hero["name"]), text))
            if rng.random() < 0.4:
                say((draw(rng, rng.choice(YES)), Story(lexicon, rng, hero=last.hero, asked=["any"]).text))
        if rng.random() < 0.2:
            chatter(talk if rng.random() < 0.4 else talk[4:5])
        if rng.random() < 0.12:
            refused(1)
    return messages


def accepted(lexicon, rng, kind, noun):
    """The story that was offered: of a kind and a thing, or None for any."""
    hero = lexicon.draw_person(rng, kind=kind) if kind else None
    thing = next((t for t in lexicon.things if t[0] == noun), None)
    while True:
        story = Story(lexicon, rng, hero=hero, thing=thing, asked=["any"])
        if not thing or thing[2]["category"] not in story.plot.skip:
            return story


def refusals(lexicon, rng, talk, others):
    """A short chat about anything but stories; at its end perhaps the beginning of one, so that the model still listens."""
    messages = []
    for _ in range(rng.choice([1, 2, 3, 4, 6])):
        if rng.random() < 0.35:
            messages += zip(("user", "assistant"), small(rng, talk))
        text, kind, noun = others.reply(rng)
        messages += [("user", others.ask(rng)), ("assistant", text)]
    if rng.random() < 0.5:
        yes = text.endswith("?") and rng.random() < 0.5
        ask, story = (draw(rng, rng.choice(YES)), accepted(lexicon, rng, kind, noun)) if yes else request(lexicon, rng)
        messages += [("user", ask), ("drill", story.text.split("\n\n")[0])]
    return messages
