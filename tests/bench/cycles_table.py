#!/usr/bin/python3
"""What the inner loops of products cost by llvm-mca's models of CPUs: two Markdown tables.

    tests/bench/cycles_table.py build-neon                             64-bit Arm, from a cross build
    tests/bench/cycles_table.py build                                  x86
    tests/bench/cycles_table.py build --cpus znver4 --types Q4_0
    tests/bench/cycles_table.py build --bench build/bin/kernels_bench --ghz 4.2

The loops are taken from the build's object files. The first table has the cycles for 256 weights and
one token, with the bytes of weights a cycle; the second the cycles of a batch's register tile for 32
columns, with the part of them in which the CPU could do nothing but the tile's dot products: what
it takes for those alone, in as many chains, by the same model. A model knows execution units and
latencies; all loads hit the first-level cache. With --bench a third figure is measured: the same
code on this CPU, at --ghz, on a matrix in its cache. Needs llvm-mca (Debian: llvm-19) and objdump.
"""
import argparse
import glob
import re
import subprocess
import sys

BYTES = {"Q4_0": 144, "Q8_0": 272, "Q4_K": 144, "Q6_K": 210, "IQ4_XS": 136, "Q5_K": 176, "Q3_K": 110,
         "Q2_K": 84, "IQ2_XXS": 66, "IQ3_XXS": 98}  # of 256 weights
# The forms of panels (kernels/types/shared/unpack-inl.h): scales and minimums for 32 weights.
FORMS = {"Q4_0, Q8_0, IQ4_XS": (1, 0), "Q4_K": (1, 1), "Q6_K": (2, 0)}  # one of many bits where they differ
# The namespaces of kernels: one token, batches.
ARM = ("N_NEON_DOT", "N_NEON_DOT")
I8MM = ("N_NEON_DOT", "N_NEON_I8MM")
CPUS = {
    "arm": {"cortex-a76": ARM, "apple-m1": ARM, "neoverse-n2": I8MM, "neoverse-v2": I8MM, "apple-m2": I8MM},
    "x86": {"skylake-avx512": ("N_AVX3",) * 2, "alderlake": ("N_AVX2_VNNI",) * 2, "znver4": ("N_AVX3_DL",) * 2},
}
TARGETS = {"N_AVX3": "avx512", "N_AVX2_VNNI": "avxvnni", "N_AVX3_DL": "avx512vnni"}
DOT = re.compile(r"(?:{vex} )?(sdot|smmla|vpdpbusd|vpmaddubsw)\s")
JUMP = re.compile(r"(?:b|b\.\w+|cbn?z|tbn?z|j\w+)\s+(?:\S+,\s*)*([0-9a-f]+) <")


def functions(objdump, path, wanted):
    """(name, [(address, instruction)]) of the functions whose name has one of `wanted`."""
    text = subprocess.run([objdump, "-d", "--no-show-raw-insn", path], stdout=subprocess.PIPE, text=True,
                          check=True).stdout
    for name, body in re.findall(r"^[0-9a-f]+ <(\S+)>:\n((?:.+\n)*)", text, re.M):
        if any(part in name for part in wanted):
            lines = re.findall(r"^\s*([0-9a-f]+):\t(.*)$", body, re.M)
            yield name, [(int(at, 16), re.split(r"\s*(?://|#\s)", line)[0]) for at, line in lines]


def inner_loops(body):
    """The instructions of loops without loops inside, without jumps."""
    index = {at: i for i, (at, _) in enumerate(body)}
    loops = []
    for i, (at, line) in enumerate(body):
        jump = JUMP.match(line)
        if jump and int(jump[1], 16) <= at and int(jump[1], 16) in index:
            loops.append((index[int(jump[1], 16)], i))
    for first, last in loops:
        if not any((a, b) != (first, last) and first <= a and b <= last for a, b in loops):
            yield [line.split(" <")[0] for _, line in body[first:last + 1] if not JUMP.match(line)]


def cycles(mca, arch, cpu, lines):
    """For an iteration."""
    triple = ["-mtriple=aarch64-linux-gnu", "-mattr=+dotprod,+i8mm"] if arch == "arm" else ["-mtriple=x86_64"]
    iterations = 100
    done = subprocess.run([mca, *triple, "-mcpu=" + cpu, "-iterations=%d" % iterations], input="\n".join(lines),
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    return int(re.search(r"Total Cycles:\s+(\d+)", done.stdout)[1]) / iterations


def measured(bench, ghz, name, target):
    """Cycles of this CPU for 256 weights and one token, or None."""
    command = [bench, "--benchmark_filter=^Few/%s/%s/tokens:1/" % (name, target), "--benchmark_min_time=0.2"]
    ns = re.search(r"ns=([\d.]+)", subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                                  text=True).stdout)
    return float(ns[1]) * ghz if ns else None


def dots_alone(arch, lines):
    """The dots among `lines`, in eight chains that wait for nothing else."""
    dots = [line for line in lines if DOT.match(line)]
    for i, line in enumerate(dots):
        registers = re.findall(r"\bv\d+|%[xyz]mm\d+", line)
        new = re.sub(r"\d+$", str(i % 8), registers[0 if arch == "arm" else -1])
        sources = iter([re.sub(r"\d+$", str(10 + k), registers[0]) for k in range(4)])
        if arch == "arm":
            dots[i] = "%s %s.4s, v10.16b, v11.16b" % (DOT.match(line)[1], new)
        else:
            dots[i] = "%s %s, %s, %s" % (DOT.match(line)[0], next(sources), next(sources), new)
    return dots


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--cpus", nargs="+")
    parser.add_argument("--types", nargs="+", default=["Q4_0", "Q8_0", "Q4_K", "Q6_K", "IQ4_XS"])
    parser.add_argument("--mca", default="llvm-mca-19")
    parser.add_argument("--bench", help="kernels_bench of the same build")
    parser.add_argument("--ghz", type=float, default=4.0, help="the clock of this CPU (4)")
    args = parser.parse_args()

    objects = glob.glob(args.build + "/kernels/CMakeFiles/pronk_kernels.dir/**/*.o", recursive=True)
    objects = [path for path in objects if re.search(r"/(types_\d|avx_vnni|neon_\w+)\.cc\.o$", path)]
    arch = "arm" if any("neon_" in path for path in objects) else "x86"
    objdump = "aarch64-linux-gnu-objdump" if arch == "arm" else "objdump"
    loops = {}
    for path in objects:
        for name, body in functions(objdump, path, ["MultiplyRowsI", "MultiplyTileI"]):
            loops.setdefault(name, []).extend(inner_loops(body))
    cpus = {cpu: CPUS[arch][cpu] for cpu in args.cpus or CPUS[arch]}

    def loop_of(namespace, function, argument, needs):
        """The shortest loop with the most dots, of those that have an instruction that `needs` matches."""
        begin = re.compile(r"_ZN7kernels%d%s%d%sI%s" % (len(namespace), namespace, len(function), function, argument))
        found = [loop for name in loops if begin.match(name) for loop in loops[name]
                 if any(DOT.match(line) for line in loop) and any(re.match(needs, line) for line in loop)]
        return min(found, key=lambda loop: (-sum(bool(DOT.match(line)) for line in loop), len(loop)), default=None)

    def print_row(name, cells):
        print("| " + " | ".join([name, *cells]) + " |")

    print_row("type", cpus)
    print("|---" * (len(cpus) + 1) + "|")
    for name in args.types:
        cells = []
        for cpu, (namespace, _) in cpus.items():
            loop = loop_of(namespace, "MultiplyRows", "NS0_%d%sE" % (len(name), name), r"prf|prefetch")
            if loop is None:
                cells.append("-")
                continue
            # Each dot of an unpacked vector; a row has 256 weights.
            dots = [line for line in loop if DOT.match(line)]
            width = 64 if "zmm" in dots[0] else 32 if "ymm" in dots[0] else 16
            rows = len(dots) * width / 256
            c = cycles(args.mca, arch, cpu, loop) / rows
            cells.append("%.1f (%.1f)" % (c, BYTES[name] / c))
            here = measured(args.bench, args.ghz, name, TARGETS.get(namespace)) if args.bench else None
            if here:
                cells[-1] += ", %.1f" % here
        print_row(name, cells)
    print()
    print_row("tile", cpus)
    print("|---" * (len(cpus) + 1) + "|")
    for name, (scales, mins) in FORMS.items():
        cells = []
        for cpu, (_, namespace) in cpus.items():
            form = r"Lm\dENS0_10PanelBlockINS0_9PanelFormILi\dELm%dELm%dEEE" % (scales, mins)
            loop = loop_of(namespace, "MultiplyTile", form, "")
            alone = cycles(args.mca, arch, cpu, dots_alone(arch, loop))
            c = cycles(args.mca, arch, cpu, loop)
            cells.append("%.1f (%.2f)" % (c, alone / c))
        print_row(name, cells)


if __name__ == "__main__":
    main()
