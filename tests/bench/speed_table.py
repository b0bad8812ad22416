#!/usr/bin/python3
"""How fast tokens are generated, or prompts read: a line of a Markdown table for each weight type.

    tests/bench/speed_table.py --bin build/bin                        every type, generating
    tests/bench/speed_table.py --bin build/bin --prompt 512           every type, reading 512 tokens
    tests/bench/speed_table.py --bin build/bin --types Q4_0 Q8_0 --peer llama-bench
    tests/bench/speed_table.py --bin build/bin --cpu avx2             limited to AVX2

Models of 1.1 billion random weights are made under --models as they are needed (0.3 to 4.4 GB each)
and stay there. In each round pronk runs with one and with two threads (--prompt: with two), then
the peer, any program that takes llama-bench's arguments, with two; what is printed are medians over
the rounds, and the ratio is that of the medians. "share" is the part of what the same threads reach
when they only read the file, or only multiply bytes, measured in the same process. Measure on a
quiet machine.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys

TYPES = ["Q4_0", "Q8_0", "Q4_K_M", "Q6_K", "Q5_K", "Q3_K", "Q2_K", "Q5_0", "Q5_1", "Q4_1", "IQ4_XS", "IQ4_NL",
         "F16", "BF16", "IQ1_S", "IQ1_M", "IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ3_XXS", "IQ3_S", "TQ1_0", "TQ2_0",
         "I2_S", "MXFP4", "NVFP4", "Q1_0", "Q2_0", "PQ2_0", "PTQ1_0"]


def results(command):
    """The array that a bench prints as JSON, or None where it cannot run the model."""
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        return json.loads(done.stdout) if done.returncode == 0 else None
    except ValueError:
        return None


def measure(args, model):
    """Rounds of (pronk's results in the order of args.threads, the peer's or None)."""
    work = ["-p", str(args.prompt), "-n", "0"] if args.prompt else ["-p", "0", "-n", str(args.tokens)]
    tests = work + ["-r", "1", "-o", "json"]
    pronk = [args.bin + "/pronk", "bench", "-m", model, "-t", ",".join(args.threads)] + tests
    if args.cpu:
        pronk += ["--cpu", args.cpu]
    for _ in range(args.rounds):
        ours = results(pronk)
        if ours is None:
            sys.exit("failed: " + " ".join(pronk))
        theirs = results(args.peer.split() + ["-m", model, "-t", "2"] + tests) if args.peer else None
        yield ours, theirs


def table_row(args, name):
    model = os.path.join(args.models, name + ".gguf")
    if not os.path.exists(model):
        subprocess.run([args.bin + "/random_model", name, model], check=True)
    rounds = list(measure(args, model))
    median = lambda key, i: statistics.median(ours[i][key] for ours, _ in rounds)
    cells = [name, "%.3f" % (rounds[0][0][0]["model_size"] / 1e9)]
    for i in range(len(args.threads)):
        cells.append("%.1f" % median("median_ts", i))
        if not args.prompt:
            cells.append("%.1f" % (median("bytes_per_second", i) / 1e9))
        cells.append("%.2f" % median("share_of_limit", i))
    if args.peer:
        if any(theirs is None for _, theirs in rounds):
            cells += ["", ""]
        else:
            peer = statistics.median(theirs[0]["avg_ts"] for _, theirs in rounds)
            cells += ["%.1f" % peer, "%.2f" % (median("median_ts", -1) / peer)]
    return "| " + " | ".join(cells) + " |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default="build/bin", help="where pronk and random_model are")
    parser.add_argument("--models", default="/tmp/models", help="where the models are kept")
    parser.add_argument("--types", nargs="+", default=TYPES, metavar="TYPE")
    parser.add_argument("--peer", help="a command that takes llama-bench's arguments")
    parser.add_argument("--cpu", help="limit pronk to an instruction set, as pronk's --cpu")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tokens", type=int, default=24)
    parser.add_argument("--prompt", type=int, default=0, metavar="N", help="read N tokens instead")
    args = parser.parse_args()
    args.threads = ["2"] if args.prompt else ["1", "2"]
    os.makedirs(args.models, exist_ok=True)
    columns = ["type", "GB"]
    for n in args.threads:
        speed = "%s thread%s: t/s" % (n, "s" if n != "1" else "")
        columns += [speed, "share"] if args.prompt else [speed, "GB/s", "share"]
    columns += ["peer: t/s", "ratio"] if args.peer else []
    print("| " + " | ".join(columns) + " |\n|" + "---|" * len(columns))
    for name in args.types:
        print(table_row(args, name), flush=True)


if __name__ == "__main__":
    main()
