"""Trains the default model on the CPU: python3 train.py WORK [--steps N].

WORK holds the vocabulary (vocab.json) and receives log.csv and checkpoint.pt. The corpus is drawn while training,
in pools of documents, each from its own seed: a run that was stopped continues from its checkpoint with the same
batches. One row of a batch is one document, and rows of similar length share a batch, so that there is hardly any
padding and no document sees another.

It begins with copying drills. Without them, three million tokens of stories taught the plots but not one name (5% of
repeated names right): in long texts copying pays off late. After 300 steps of short lines full of names the model copies, and it
does not unlearn it. The drills then thin out and end after 60% of the steps: with a share to the end, one story in ten slipped
into drilling. A second run continues from the first and teaches the model to listen: requests with only the start of their
stories (--requests).

--from continues a shipped file, with a fresh optimizer; models/README.md says what for. Its mixture needs drills (--drills), but not alone:
about 400 steps of nothing else made it forget its stories.

--emphasis gives targets weights for such a run: what was asked for counts more than the rest. Used from the start, it keeps the model from learning to
write (perplexity 8.5 instead of 4.0 after 600 steps, with pieces of words as tokens).

The learning rate warms up, stays, and then falls to zero over the last `--decay` of the steps, or of the minutes of --budget.
"""
import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import random
import re
import time

import torch
import torch.nn.functional as F

import corpus
import vocab
from grammar import Lexicon, Story
from model import Llama, Shape
from muon import Muon
from sample import read_gguf

POOL = 2048  # documents that are sorted by length together


def batches(documents, tokens, n_ctx, rng):
    """Lists of id lists whose padded size is at most `tokens`, in random order."""
    documents = sorted((d for d in documents if len(d) <= n_ctx + 1), key=len)
    groups, current = [], []
    for ids in documents:
        if current and padded(len(ids)) * (len(current) + 1) > tokens:
            groups.append(current)
            current = []
        current.append(ids)
    rng.shuffle(groups)  # `current` is left out: a small batch of the longest
    return groups


def padded(length):
    """Whole multiples of 32: oneDNN compiles a kernel per shape."""
    return (length - 1 + 31) // 32 * 32


def learned(ids):
    """For each id whether it is a target. The words of users and systems are read, not learned."""
    speaks, out = True, []
    for token in ids:
        out.append(speaks)
        speaks = token not in (vocab.SYSTEM, vocab.USER) and (speaks or abs(token) == vocab.END)
    return out


class Emphasis:
    """How much each target counts. Of three hundred tokens of a story all but about ten follow from its plot: those that say for the first
    time, or again, what was asked for decide whether the model listened, and the first ones of a turn whether it tells or refuses."""
    COPY, START, SHORT, NAME, PRONOUN = 4.0, 5.0, 6.0, 3.0, 2.0  # START: of every turn; SHORT: the rest of an answer
    FIRST = 5.0  # what the story says for the first time: a name, or what was asked for
    HEARD = 10.0  # how what was asked for begins (its token, or the space and the first letter): most words that are none begin with another one
    FORK = 10.0  # a letter of a spelled word after two that another letter has followed before
    NEW = 16.0  # how a name begins that nobody has said: a friend's is not the hero's
    AGAIN = 1.5  # how a name begins that the story has said: where a copy counts more than what else may come there, friends get the
    #              hero's name, and "X saw X. X liked X." is a story
    MENTION = 2.5  # the sentence that has a word of the request for the first time
    ONLY = " only know stories"  # which animal a refusal then offers is drawn, and nothing to learn

    def __init__(self, vocabulary, lexicon):
        self.text = vocabulary.texts
        self.names = {name.lower() for group in lexicon.names.values() for name in group}
        counts = collections.Counter()
        rng = random.Random(7)
        for _ in range(300):
            counts.update(set(re.findall(r"[a-z]+", Story(lexicon, rng).text.lower())))
        self.common = {word for word, count in counts.items() if count > 9} - self.names - set(lexicon.nouns)

    def words(self, ids):
        """(first, end, the word) of each word, whether it is one token or spelled."""
        first, word = None, ""
        for at, token in enumerate([*ids, vocab.PAD]):
            text = self.text[abs(token)]
            letters = text.lstrip(' "')
            if first is not None and (letters != text or not letters.isalpha()):
                if word:
                    yield first, at, word
                first, word = None, ""
            if letters.isalpha() or text == " ":
                first, word = (at if first is None else first), word + letters

    def __call__(self, ids):
        speaks = learned(ids)
        weights = [float(say) for say in speaks]
        seen, heard, asked, told = set(), set(), set(), set()  # by anybody; by the user; by the user and not yet in a story; in a story
        followed = collections.defaultdict(set)  # what two letters of spelled words were followed by
        for first, end, word in self.words(ids):
            is_name, word = word[0].isupper(), word.lower()
            if not speaks[first]:
                asked.add(word)
                heard.add(word)
            else:
                if word in asked and word not in self.common:
                    asked.discard(word)
                    at = first
                    while speaks[at] and ids[at] != vocab.ASSISTANT and not set(".!?") & set(self.text[abs(ids[at])]):
                        weights[at] = max(weights[at], self.MENTION)
                        at -= 1
                value = self.PRONOUN if word in ("he", "she", "his", "her", "him") else 1.0
                if word in self.names or word in seen and word not in self.common:
                    value = self.FIRST if word not in told else self.NAME if word in self.names else self.COPY
                begin = value
                if value > self.PRONOUN:
                    begin = self.NEW if word not in seen else self.HEARD if word not in told else self.AGAIN if is_name or word not in heard else self.COPY
                head = first + 2 if self.text[abs(ids[first])] == " " else first + 1  # that it is spelled, and the first letter
                for at in range(first, min(end + 1, len(ids))):  # and where the word ends
                    weights[at] = max(weights[at], (begin if at < head else value) * speaks[at])
                told.add(word)
            for at in range(first + 2, min(end + 1, len(ids))) if end - first > 1 else ():
                pair, letter = "".join(self.text[abs(token)] for token in ids[at - 2:at]).lower(), self.text[abs(ids[at])].lower() if at < end else ""
                followed[pair].add(letter)
                if len(followed[pair]) > 1:
                    weights[at] = max(weights[at], self.FORK * speaks[at])
            seen.add(word)
        starts = [at for at, token in enumerate(ids) if token == vocab.ASSISTANT]
        for start in starts:
            end = next((at for at in range(start, len(ids)) if abs(ids[at]) == vocab.END), len(ids) - 1)
            is_answer = end - start < 30 and self.ONLY not in "".join(self.text[abs(token)] for token in ids[start:end])
            for at in range(start + 1, end + 1):
                floor = self.START if at < start + (5 if is_answer else 8) else self.SHORT if is_answer else 0.0
                weights[at] = max(weights[at], floor * speaks[at])
        return weights


def tensors(group, emphasis=learned):
    """inputs, targets and their weights [rows, time]; targets below 0 (padding, the words of users, ends of drills) are left out of the loss."""
    time_steps = padded(max(map(len, group)))
    inputs = torch.zeros(len(group), time_steps, dtype=torch.long)
    targets = torch.full((len(group), time_steps), -1)
    weights = torch.zeros(len(group), time_steps)
    for row, ids in enumerate(group):
        values = emphasis(ids)[1:]
        inputs[row, :len(ids) - 1] = torch.tensor(ids[:-1]).abs()
        targets[row, :len(ids) - 1] = torch.tensor([t if value else -1 for t, value in zip(ids[1:], values)])
        weights[row, :len(ids) - 1] = torch.tensor(values, dtype=torch.float)
    return inputs, targets, weights * (targets >= 0)


def pool(vocabulary, lexicon, seed, index, tokens, n_ctx, drills=0.0, requests=0.0):
    rng = random.Random(seed * 1_000_003 + index)
    documents = corpus.documents(rng.getrandbits(48), POOL, lexicon, drills, requests)
    return batches([vocab.encode(vocabulary, d) for d in documents], tokens, n_ctx, rng)


def loss_of(model, inputs, targets, weights):
    """Weighted sum of the negative log-likelihoods of all targets."""
    targets, weights = targets.flatten(), weights.flatten()
    wanted = (targets >= 0).nonzero().squeeze(1)  # logits of nothing else: they are a third of the work
    wanted = F.pad(wanted, (0, -len(wanted) % 128))  # oneDNN compiles a kernel per shape
    padding = torch.arange(len(wanted)) >= (targets >= 0).sum()
    losses = F.cross_entropy(model(inputs, wanted).float(), targets[wanted].masked_fill(padding, -1), ignore_index=-1, reduction="none")
    return losses @ weights[wanted].masked_fill(padding, 0)


def gradients(model, group, team, workers, emphasis):
    """Weighted mean loss of a batch, its gradients left in p.grad, and the number of targets.

    Each worker takes a share of the rows through the whole network on one core. Two cores that meet once in a step
    lose much less than two that meet at every matrix product when other work runs beside them; and as shares and
    sums have a fixed order, the result does not depend on timing."""
    parameters = list(model.parameters())

    def share(index):
        inputs, targets, weights = tensors(group[index::workers], emphasis)
        loss = loss_of(model, inputs, targets, weights)
        return loss.item(), weights.sum().item(), int((targets >= 0).sum()), torch.autograd.grad(loss, parameters)

    parts = list(team.map(share, range(min(workers, len(group)))))
    total = sum(part[1] for part in parts)
    for p, *grads in zip(parameters, *(part[3] for part in parts)):
        p.grad = sum(grads[1:], grads[0]) / total
    return sum(part[0] for part in parts) / total, sum(part[2] for part in parts)


@torch.no_grad()
def held_out_loss(model, groups):
    total, count = 0.0, 0
    for group in groups:
        inputs, targets, weights = tensors(group)
        total += loss_of(model, inputs, targets, weights).item()
        count += int((targets >= 0).sum())
    return total / count


def drill_share(step, alone, share, steps):
    """Share of drills in a pool that begins at this step. It follows the steps, never the clock: a seed has one order of batches."""
    return 1.0 if step < alone else share * max(0.0, 1 - step / (0.6 * steps))


def rate(step, warmup, progress, decay, power):
    """Share of the full learning rate; `progress` from 0 to 1 is the share of the training that is done."""
    return max(0.0, min(1.0, (step + 1) / warmup, max(0.0, (1 - progress) / decay) ** power))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", type=pathlib.Path)
    parser.add_argument("--steps", type=int, default=4000)
    parser.add_argument("--budget", type=float, help="minutes to train, on machines that have other work too; --steps then only says when drills end")
    parser.add_argument("--stop", type=int, help="leave after this step, to go on later, perhaps with other settings")
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--width", type=int, default=256, help="a multiple of 64; K-quants need one of 256")
    parser.add_argument("--tokens", type=int, default=4096, help="per step, padding included")
    parser.add_argument("--lr", type=float, default=0.02, help="of Muon; AdamW has its own")
    parser.add_argument("--adam-lr", type=float, default=0.004)
    parser.add_argument("--drill-steps", type=int, default=300, help="steps at the start with nothing but copying drills")
    parser.add_argument("--drills", type=float, default=0.3, help="share of drills after that, fading")
    parser.add_argument("--requests", type=float, default=0.0, help="share of requests with only the start of their stories")
    parser.add_argument("--emphasis", action="store_true", help="what was asked for counts more than the rest: once the plots are known")
    parser.add_argument("--warmup", type=int, default=50)
    parser.add_argument("--decay", type=float, default=0.5)
    parser.add_argument("--power", type=float, default=1.0, help="above 1 the rate falls faster at first: more time for the last digits")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--from", dest="file", help="start from the weights and the vocabulary of this GGUF file")
    parser.add_argument("--ctx", type=int, default=512, help="the longest document; a conversation of three stories has about 1000 tokens")
    parser.add_argument("--workers", type=int, default=2, help="cores to use")
    parser.add_argument("--minutes", type=float, default=5, help="between checkpoints")
    a = parser.parse_args()
    torch.set_num_threads(1)
    team = concurrent.futures.ThreadPoolExecutor(a.workers)
    torch.manual_seed(a.seed)
    a.work.mkdir(parents=True, exist_ok=True)
    (a.work / "train.pid").write_text(f"{os.getpid()}\n")

    if a.file:
        meta, weights = read_gguf(a.file)
        (a.work / "vocab.json").write_text(json.dumps(meta["tokenizer.ggml.tokens"]))
    vocabulary = vocab.Vocabulary(json.loads((a.work / "vocab.json").read_text()))
    heads = a.width // 32
    model = Llama(Shape(n_vocab=len(vocabulary), n_layers=a.layers, n_embd=a.width, n_heads=heads, n_kv_heads=heads // 2,
                        n_ffn=3 * a.width, n_ctx=a.ctx))
    if a.file:
        model.load_state_dict({name: torch.tensor(values) for name, values in weights.items()})
    matrices = [p for p in model.blk.parameters() if p.ndim == 2]
    others = [p for p in model.parameters() if p.ndim == 1] + [model.token_embd]
    optimizers = [Muon(matrices, lr=a.lr), torch.optim.AdamW(others, lr=a.adam_lr, betas=(0.9, 0.99), weight_decay=0.0)]
    base_rates = [a.lr, a.adam_lr]
    print(f"{sum(p.numel() for p in model.parameters()):,} parameters", flush=True)

    lexicon = Lexicon()
    emphasis = Emphasis(vocabulary, lexicon) if a.emphasis else learned
    n_ctx = model.shape.n_ctx
    held_out = pool(vocabulary, lexicon, corpus.HELD_OUT_SEED, 0, a.tokens, n_ctx)[:24]
    state = {"step": 0, "pool": 0, "batch": 0, "tokens": 0, "seconds": 0.0, "requests": a.requests,
             "drills": drill_share(0, a.drill_steps, a.drills, a.steps)}
    checkpoint = a.work / "checkpoint.pt"
    if checkpoint.exists():
        saved = torch.load(checkpoint)
        state |= saved["state"]
        model.load_state_dict(saved["model"])
        for optimizer, values in zip(optimizers, saved["optimizers"]):
            optimizer.load_state_dict(values)

    if state["requests"] != a.requests:  # gone on with another mixture: that is another pool
        state |= {"requests": a.requests, "pool": state["pool"] + 1, "batch": 0}

    def save():
        torch.save({"state": state, "shape": model.shape.as_dict(), "model": model.state_dict(),
                    "optimizers": [o.state_dict() for o in optimizers]}, str(checkpoint) + ".new")
        os.replace(str(checkpoint) + ".new", checkpoint)

    def progress():
        return state["seconds"] / (60 * a.budget) if a.budget else state["step"] / a.steps

    def ended():
        return progress() >= 1 or state["step"] == a.stop

    groups = pool(vocabulary, lexicon, a.seed, state["pool"], a.tokens, n_ctx, state["drills"], a.requests)
    log = open(a.work / "log.csv", "a", buffering=1)
    clock = last_save = time.monotonic()
    mean_loss = None
    while not ended():
        if state["batch"] == len(groups):
            state["pool"], state["batch"] = state["pool"] + 1, 0
            state["drills"] = drill_share(state["step"], a.drill_steps, a.drills, a.steps)
            groups = pool(vocabulary, lexicon, a.seed, state["pool"], a.tokens, n_ctx, state["drills"], a.requests)
        loss, count = gradients(model, groups[state["batch"]], team, a.workers, emphasis)
        for optimizer, base in zip(optimizers, base_rates):
            optimizer.param_groups[0]["lr"] = base * rate(state["step"], a.warmup, progress(), a.decay, a.power)
            optimizer.step()
        now = time.monotonic()
        state["seconds"] += now - clock
        clock = now
        state["step"] += 1
        state["batch"] += 1
        state["tokens"] += count
        mean_loss = loss if mean_loss is None else 0.95 * mean_loss + 0.05 * loss
        if state["step"] % 20 == 0:
            print(f"step {state['step']} loss {mean_loss:.4f} tokens {state['tokens']:,} {state['tokens'] / state['seconds']:.0f} t/s", flush=True)
        if state["step"] in (1, 250) or state["step"] % 500 == 0 or ended():
            value = held_out_loss(model, held_out)
            log.write(f"{state['step']},{state['tokens']},{state['seconds']:.0f},{mean_loss:.4f},{value:.4f}\n")
            print(f"step {state['step']} held-out {value:.4f}", flush=True)
            clock = time.monotonic()
        if now - last_save > 60 * a.minutes or ended():
            save()
            last_save = now
    (a.work / "train.pid").unlink()


if __name__ == "__main__":
    main()
