#!/usr/bin/env python3
"""The error of each type: pronk quantize beside llama.cpp's llama-quantize --pure, on a model's matrices.

    tests/bench/type_errors.py --llama-quantize DIR/llama-quantize SmolLM2-135M-Instruct.Q4_1.gguf
    tests/bench/type_errors.py ... MODEL --types Q4_0 Q4_K

The model becomes F32 first. Matrices that both programs leave in F32 (positions) do not count. Rows that
are not whole blocks of 256 are joined, so that every type can hold every matrix; the numbers and their
order stay. The error is the sum of all squared differences
between the weights before and after as a share of the sum of the squares. llama-quantize needs an
importance matrix below three bits; it gets one of all ones. Needs numpy and five times the F32
model's size in --work.
"""
import argparse
import os
import shlex
import struct
import subprocess
import sys
import tempfile

import numpy as np

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TYPES = ("Q8_0 Q6_K Q5_1 Q5_K Q5_0 Q4_1 Q4_K Q4_0 IQ4_NL IQ4_XS Q3_K IQ3_S IQ3_XXS Q2_K IQ2_S IQ2_XS Q2_0 IQ2_XXS "
         "TQ2_0 IQ1_M TQ1_0 IQ1_S Q1_0").split()
THEIRS = {"Q5_K": "Q5_K_S", "Q4_K": "Q4_K_S", "Q3_K": "Q3_K_S", "IQ2_S": "IQ2_M"}  # mixes of the type
OURS = {"IQ2_S": "IQ2_M"}
SIZES = {0: 1, 1: 1, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8, 2: 2, 3: 2}  # of GGUF's values, in bytes
F32, STRING, ARRAY = 0, 8, 9


class Header:
    """Where a GGUF file has its tensors: {name: (dims, type, begin)}, and where each one's dims are."""

    def __init__(self, path):
        with open(path, "rb") as f:
            self.data = f.read(64 << 20)
        self.at = 8
        n_tensors, n_keys = self.read("QQ")
        alignment = 32
        for _ in range(n_keys):
            key = self.string()
            kind = self.read("I")[0]
            if key == b"general.alignment":
                alignment = struct.unpack_from("<I", self.data, self.at)[0]
            self.skip(kind)
        self.tensors, self.dims_at = {}, {}
        for _ in range(n_tensors):
            name = self.string()
            n_dims = self.read("I")[0]
            self.dims_at[name] = self.at
            dims = self.read("%dQ" % n_dims)
            self.tensors[name] = (dims,) + self.read("IQ")
        begin = -(-self.at // alignment) * alignment
        self.tensors = {name: (dims, kind, begin + offset) for name, (dims, kind, offset) in self.tensors.items()}

    def read(self, form):
        values = struct.unpack_from("<" + form, self.data, self.at)
        self.at += struct.calcsize("<" + form)
        return values

    def string(self):
        size = self.read("Q")[0]
        self.at += size
        return self.data[self.at - size:self.at]

    def skip(self, kind):
        if kind == STRING:
            self.string()
        elif kind == ARRAY:
            kind, n = self.read("IQ")
            if kind in SIZES:
                self.at += n * SIZES[kind]
            else:
                for _ in range(n):
                    self.skip(kind)
        else:
            self.at += SIZES[kind]


def run(command):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode != 0:
        sys.exit("type_errors: failed: %s\n%s" % (shlex.join(command), done.stdout[-2000:].decode(errors="replace")))


def join_rows(path):
    """Makes every matrix one of rows of 256, in place. Returns the names of those that are."""
    header = Header(path)
    joined = []
    with open(path, "r+b") as f:
        for name, (dims, kind, _) in header.tensors.items():
            n = int(np.prod(dims))
            if len(dims) != 2 or n % 256 or kind != F32 or not name.endswith(b".weight") or b"norm" in name:
                continue
            f.seek(header.dims_at[name])
            f.write(struct.pack("<QQ", 256, n // 256))
            joined.append(name)
    return joined


def write_importance(path, names):
    """An importance matrix of all ones, as llama-imatrix writes it."""
    def text(s):
        return struct.pack("<Q", len(s)) + s

    keys = [text(b"general.type") + struct.pack("<I", STRING) + text(b"imatrix"),
            text(b"imatrix.datasets") + struct.pack("<IIQ", ARRAY, STRING, 1) + text(b"ones"),
            text(b"imatrix.chunk_count") + struct.pack("<II", 4, 1),
            text(b"imatrix.chunk_size") + struct.pack("<II", 4, 512)]
    infos, data = [], b""
    for name in names:
        for suffix, values in ((b".in_sum2", [1.0] * 256), (b".counts", [1.0])):
            infos.append(text(name + suffix) + struct.pack("<IQQIQ", 2, len(values), 1, F32, len(data)))
            data += struct.pack("<%df" % len(values), *values)
            data += bytes(-len(data) % 32)
    head = b"GGUF" + struct.pack("<IQQ", 3, len(infos), len(keys)) + b"".join(keys + infos)
    with open(path, "wb") as f:
        f.write(head + bytes(-len(head) % 32) + data)


def error(original, changed, names):
    """The squared differences of the matrices as a share of the squares."""
    before, after = Header(original), Header(changed)
    squares = differences = 0.0
    for name in names:
        x, y = (np.memmap(path, "<f4", "r", header.tensors[name][2], (int(np.prod(header.tensors[name][0])),))
                for path, header in ((original, before), (changed, after)))
        for i in range(0, x.size, 1 << 22):
            a, b = x[i:i + (1 << 22)].astype(np.float64), y[i:i + (1 << 22)]
            squares += float(np.dot(a, a))
            differences += float(np.dot(a - b, a - b))
    return differences / squares


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--types", nargs="+", default=TYPES)
    parser.add_argument("--pronk", default=os.path.join(ROOT, "build/bin/pronk"), help="default: build/bin/pronk")
    parser.add_argument("--llama-quantize", default="llama-quantize", metavar="COMMAND")
    parser.add_argument("--work", help="folder for the files (default: a temporary one)")
    args = parser.parse_args()

    with tempfile.TemporaryDirectory(dir=args.work) as work:
        original, small, back, ones = (os.path.join(work, name) for name in
                                       ("f32.gguf", "small.gguf", "back.gguf", "ones.gguf"))
        run([args.pronk, "quantize", args.model, original, "F32", "--pure"])
        names = join_rows(original)
        write_importance(ones, names)
        print("%s: %d matrices\n" % (os.path.basename(args.model), len(names)))
        print("| type | pronk | llama.cpp | ratio |\n|---|---:|---:|---:|")
        for kind in args.types:
            found, kinds = [], []
            needs_ones = kind.startswith(("IQ1", "IQ2")) or kind == "IQ3_XXS"
            theirs = shlex.split(args.llama_quantize) + (["--imatrix", ones] if needs_ones else [])
            for command in ([args.pronk, "quantize", original, small, OURS.get(kind, kind), "--pure"],
                            theirs + ["--pure", original, small, THEIRS.get(kind, kind)]):
                run(command)
                tensors = Header(small).tensors
                kinds.append({name: tensors[name][1] for name in names if tensors[name][1] != F32})
                run([args.pronk, "quantize", small, back, "F32", "--pure"])
                found.append(error(original, back, kinds[-1]))
            if kinds[0] != kinds[1] or len(set(kinds[0].values())) != 1:
                sys.exit("type_errors: %s: types differ" % kind)
            print("| %s | %s |" % (kind, " | ".join(["%.3g%%" % (100 * x) for x in found] +
                                                  ["%.2f" % (found[0] / found[1]) if found[1] else ""])), flush=True)


if __name__ == "__main__":
    main()
