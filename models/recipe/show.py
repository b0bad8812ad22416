"""What models/SAMPLES.md shows a part of, six stories, and ten conversations of a newcomer: python3 show.py PRONK FILE.gguf stories|chats

Text that is drawn depends on how a CPU rounds, so the instruction set is named: --cpu sse4, which all x86-64 CPUs of today have.
"""
import re
import subprocess
import sys
import textwrap

from grammar import rows


def quoted(text):
    """Paragraphs as a Markdown quotation."""
    paragraphs = [textwrap.wrap(paragraph, 104) for paragraph in text.strip().split("\n\n")]
    return "\n>\n".join("\n".join("> " + line for line in lines) for lines in paragraphs)


def stories(program, model):
    for seed in range(1, 7):
        command = [program, "run", "-m", model, "--cpu", "sse4", "-p", "Once upon a time", "-n", "400", "-s", str(seed)]
        text = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout
        print(f"### Seed {seed}\n\n{quoted(text)}\n")


def chats(program, model):
    for number, line in enumerate(rows("chats.txt"), 1):
        requests = line.split(" | ")
        command = [program, "chat", "-m", model, "--cpu", "sse4", "-s", "1"]
        text = subprocess.run(command, input="\n".join(requests) + "\n", stdout=subprocess.PIPE, check=True, text=True).stdout
        replies = re.split(r"(?<!\n)\n(?!\n)", text.strip())  # paragraphs are two line feeds apart, replies one
        print(f"### Chat {number}\n")
        for request, reply in zip(requests, replies):
            print(f"**{request}**\n\n{quoted(reply)}\n")


if __name__ == "__main__":
    {"stories": stories, "chats": chats}[sys.argv[3]](*sys.argv[1:3])
