#!/usr/bin/env python3
"""make_blocks.py writes blocks/TYPE.blocks and blocks/TYPE.f32 for types that llama.cpp does not have: random blocks, and
their weights by a definition that is written here a second time, without pronk's code. Needs numpy.

i2_s follows bitnet.cpp, pq2_0 and ptq1_0 follow PrismML's llama.cpp; the weights lack the tensor's scale. For a type of
your own add some lines at the end, so that the random numbers of the others stay: at least 1,024 weights.
"""
import os

import numpy as np

here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "blocks")
N = 16  # blocks of 128 weights
rng = np.random.default_rng(1)


def write(name, blocks, weights):
    blocks.astype(np.uint8).tofile(os.path.join(here, name + ".blocks"))
    weights.astype("<f4").tofile(os.path.join(here, name + ".f32"))


def scales(n=N): return rng.normal(0, 0.05, (n, 1)).astype("<f2")


# Byte k has weights k, k + 32, k + 64 and k + 96 from its highest bits down.
bytes_ = rng.integers(0, 256, (N, 32))
write("i2_s", bytes_, np.concatenate([(bytes_ >> shift & 3) - 1 for shift in (6, 4, 2, 0)], 1))

# Scale, then weight j in bits 2 (j % 4) of byte j / 4.
d, bytes_ = scales(), rng.integers(0, 256, (N, 32))
codes = np.stack([bytes_ >> shift & 3 for shift in (0, 2, 4, 6)], 2).reshape(N, 128)
write("pq2_0", np.concatenate([d.view(np.uint8), bytes_], 1), d.astype("<f4") * (codes - np.float32(1)))

# Five digits to the base of 3 in each of 24 bytes, in runs of 16 and of 8; four in two more; then the scale.
d, weights, out = scales(), [], []
for n_bytes, n_digits in ((16, 5), (8, 5), (2, 4)):
    digits = rng.integers(0, 3, (N, n_digits, n_bytes))
    number = np.zeros((N, n_bytes), np.int64)
    for n in range(5): number = 3 * number + (digits[:, n] if n < n_digits else 0)
    out.append(-(-number * 256 // 243))  # rounded up
    weights.append(digits.reshape(N, -1))
out.append(d.view(np.uint8))
write("ptq1_0", np.concatenate(out, 1), d.astype("<f4") * (np.concatenate(weights, 1) - np.float32(1)))
