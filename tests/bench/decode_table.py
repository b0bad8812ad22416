#!/usr/bin/python3
"""How fast tokens are generated, a line of a Markdown table for each weight type.

    tests/bench/decode_table.py --bin build/bin                        every type
    tests/bench/decode_table.py --bin build/bin --types Q4_0 Q8_0 --peer llama-bench
    tests/bench/decode_table.py --bin build/bin --cpu avx2             limited to AVX2

Models of 1.1 billion random weights are made under --models as they are needed (0.3 to 4.4 GB each)
and stay there. In each round pronk runs with one and with two threads, then the peer, any program
that takes llama-bench's arguments, with two; what is printed are medians over the rounds. "share" is
the part of the bandwidth that the same threads reach when they only read the file, measured in the
same process. Measure on a quiet machine.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys

TYPES = ["Q4_0", "Q8_0", "Q4_K_M", "Q6_K", "Q5_K", "Q3_K", "Q2_K", "Q5_0", "Q5_1", "Q4_1", "IQ4_XS", "IQ4_NL",
         "F16", "BF16", "IQ1_S", "IQ1_M", "IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ3_XXS", "IQ3_S", "TQ1_0", "TQ2_0",
         "MXFP4"]


def results(command):
    """The array that a bench prints as JSON, or None where it cannot run the model."""
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        return json.loads(done.stdout) if done.returncode == 0 else None
    except ValueError:
        return None


def measure(args, model):
    """Rows of (pronk with 1 thread, with 2, the peer or None), one for each round."""
    tests = ["-p", "0", "-n", str(args.tokens), "-r", "1", "-o", "json"]
    pronk = [args.bin + "/pronk", "bench", "-m", model, "-t", "1,2"] + tests
    if args.cpu:
        pronk += ["--cpu", args.cpu]
    for _ in range(args.rounds):
        ours = results(pronk)
        if ours is None:
            sys.exit("failed: " + " ".join(pronk))
        theirs = results(args.peer.split() + ["-m", model, "-t", "2"] + tests) if args.peer else None
        yield ours[0], ours[1], theirs[0] if theirs else None


def table_row(args, name):
    model = os.path.join(args.models, name + ".gguf")
    if not os.path.exists(model):
        subprocess.run([args.bin + "/random_model", name, model], check=True)
    rounds = list(measure(args, model))
    cells = [name, "%.3f" % (rounds[0][0]["model_size"] / 1e9)]
    for i in (0, 1):
        cells.append("%.1f" % statistics.median(r[i]["avg_ts"] for r in rounds))
        cells.append("%.1f" % (statistics.median(r[i]["bytes_per_second"] for r in rounds) / 1e9))
        cells.append("%.2f" % statistics.median(r[i]["share_of_ceiling"] for r in rounds))
    if args.peer:
        if any(r[2] is None for r in rounds):
            cells += ["", ""]
        else:
            theirs = statistics.median(r[2]["avg_ts"] for r in rounds)
            cells += ["%.1f" % theirs, "%.2f" % (statistics.median(r[1]["avg_ts"] for r in rounds) / theirs)]
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
    args = parser.parse_args()
    os.makedirs(args.models, exist_ok=True)
    columns = ["type", "GB", "1 thread: t/s", "GB/s", "share", "2 threads: t/s", "GB/s", "share"]
    columns += ["peer: t/s", "ratio"] if args.peer else []
    print("| " + " | ".join(columns) + " |\n|" + "---|" * len(columns))
    for name in args.types:
        print(table_row(args, name), flush=True)


if __name__ == "__main__":
    main()
