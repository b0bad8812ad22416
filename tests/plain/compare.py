#!/usr/bin/env python3
"""The plain pass (engine/plain.cc), operation by operation, beside NumPy or PyTorch.

  compare.py PROGRAM MODEL.gguf... [--torch] [--ids "1 300 12"] [--set KEY=NUMBER]

PROGRAM is bin/plain_operations of a build with tests; MODEL a llama, qwen2 or qwen3 without experts. Each operation is computed again from the
file's weights and from what the plain pass itself gave the operation to read, so an error shows where it is made, not
in all that follows. Prints for each operation the largest error of a layer: the squared differences as a share of the
squares. Exits with 1 if one is above LIMIT, 77 without NumPy. --set tells this side (not the program) another value
of a key of the file, to see that a difference is found.
"""
import argparse
import pathlib
import subprocess
import sys
import tempfile

try:
    import numpy as np
except ModuleNotFoundError:
    sys.exit(77)

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "data"))
from references.arithmetic import read_gguf

# Both sides compute in f64: what they differ by is around 1e-30, and a factor of 1 + 1e-6 somewhere is 1e-12.
LIMIT = 1e-15


class NumPy:
    """Operations on arrays of f64; T tokens, D numbers of a head."""

    array = staticmethod(np.asarray)

    def linear(x, w):
        return x @ w.T

    def rms_norm(x, w, epsilon):
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + epsilon) * w

    def rope(x, angles, halves):
        """x [T][heads][D], angles [T][pairs]: pairs (2i, 2i + 1) are rotated, or (i, i + pairs) by halves."""
        n = 2 * angles.shape[-1]
        first, second = (slice(0, n // 2), slice(n // 2, n)) if halves else (slice(0, n, 2), slice(1, n, 2))
        cos, sin, out = np.cos(angles)[:, None], np.sin(angles)[:, None], x.copy()
        out[..., first] = x[..., first] * cos - x[..., second] * sin
        out[..., second] = x[..., first] * sin + x[..., second] * cos
        return out

    def scores(q, k):
        """q [T][heads][D], k [T][heads][D] to [T][heads][T], 0 for later tokens."""
        return np.tril(np.einsum("thd,phd->htp", q, k) / np.sqrt(q.shape[-1])).transpose(1, 0, 2)

    def softmax(scores):
        t, _, n = scores.shape
        shares = np.exp(scores - scores.max(-1, keepdims=True)) * np.tri(t, n)[:, None]
        return shares / shares.sum(-1, keepdims=True)

    def mean(shares, v):
        return np.einsum("thp,phd->thd", shares, v)

    def swiglu(gate, up):
        return gate / (1 + np.exp(-gate)) * up

    def repeat(x, times):
        return np.repeat(x, times, axis=1)


def torch_operations():
    """The same by PyTorch's own operations where it has them."""
    import torch
    import torch.nn.functional as F

    class Torch:
        array = staticmethod(lambda x: torch.tensor(np.ascontiguousarray(x), dtype=torch.float64))
        linear = staticmethod(F.linear)

        def rms_norm(x, w, epsilon):
            return F.normalize(x, dim=-1) * x.norm(dim=-1, keepdim=True) * torch.rsqrt(x.square().mean(-1, keepdim=True) + epsilon) * w

        def rope(x, angles, halves):
            n = 2 * angles.shape[-1]
            pairs = x[..., :n].unflatten(-1, (2, -1)).transpose(-1, -2).contiguous() if halves else x[..., :n].unflatten(-1, (-1, 2))
            turned = torch.view_as_complex(pairs) * torch.polar(torch.ones_like(angles), angles)[:, None]
            turned = torch.view_as_real(turned)
            return torch.cat(((turned.transpose(-1, -2) if halves else turned).flatten(-2), x[..., n:]), -1)

        def scores(q, k):
            return (q.transpose(0, 1) @ k.permute(1, 2, 0) / q.shape[-1] ** 0.5).tril().transpose(0, 1)

        def softmax(scores):
            later = torch.ones(len(scores), scores.shape[-1], dtype=torch.bool).triu(1)
            return torch.softmax(scores.masked_fill(later[:, None], -torch.inf), -1)

        def mean(shares, v):
            return (shares.transpose(0, 1) @ v.transpose(0, 1)).transpose(0, 1)

        def swiglu(gate, up):
            return F.silu(gate) * up

        def repeat(x, times):
            return x.repeat_interleave(times, 1)

    return Torch


def expected(ops, path, seen, ids, keys):
    """Yields the name of each operation of the pass, in its order, and what it gives for the recorded inputs."""
    metadata, tensors = read_gguf(path)
    metadata.update(keys)
    weights = {name: ops.array(values) for name, values in tensors.items()}
    family = metadata["general.architecture"]
    key = lambda name, *default: metadata.get(f"{family}.{name}", *default) if default else metadata[f"{family}.{name}"]
    n_heads, epsilon = key("attention.head_count"), key("attention.layer_norm_rms_epsilon")
    n_kv_heads = key("attention.head_count_kv", n_heads)
    head_dim = key("attention.key_length", key("embedding_length") // n_heads)
    n_rotated = key("rope.dimension_count", head_dim)
    frequency = key("rope.freq_base", 10000.0) ** (-np.arange(0, n_rotated, 2) / n_rotated) / tensors.get("rope_freqs.weight", 1)
    angles = ops.array(np.arange(len(ids))[:, None] * frequency)

    def read(name, *shape):
        values = ops.array(seen[name])
        return values.reshape(len(ids), *shape) if shape else values

    def linear(prefix, name, x):
        y = ops.linear(x, weights[prefix + name + ".weight"])
        return y + weights[prefix + name + ".bias"] if prefix + name + ".bias" in weights else y

    yield "token_embd", weights["token_embd.weight"][ids]
    x = "token_embd"
    for layer in range(key("block_count")):
        p = f"blk.{layer}."
        yield p + "attn_norm", ops.rms_norm(read(x), weights[p + "attn_norm.weight"], epsilon)
        for name in ("attn_q", "attn_k", "attn_v"):
            yield p + name, linear(p, name, read(p + "attn_norm"))
        for name, heads in (("attn_q", n_heads), ("attn_k", n_kv_heads)):
            by_head = read(p + name, heads, head_dim)
            if f"{p}{name}_norm.weight" in weights:
                yield f"{p}{name}_norm", ops.rms_norm(by_head, weights[f"{p}{name}_norm.weight"], epsilon)
                by_head = read(f"{p}{name}_norm", heads, head_dim)
            yield p + name + "_rope", ops.rope(by_head, angles, halves=family != "llama")
        shared = lambda name: ops.repeat(read(p + name, n_kv_heads, head_dim), n_heads // n_kv_heads)
        yield p + "attn_scores", ops.scores(read(p + "attn_q_rope", n_heads, head_dim), shared("attn_k_rope"))
        yield p + "attn_softmax", ops.softmax(read(p + "attn_scores", n_heads, len(ids)))
        yield p + "attn_mean", ops.mean(read(p + "attn_softmax", n_heads, len(ids)), shared("attn_v"))
        yield p + "attn_output", linear(p, "attn_output", read(p + "attn_mean"))
        yield p + "attn_residual", read(x) + read(p + "attn_output")
        yield p + "ffn_norm", ops.rms_norm(read(p + "attn_residual"), weights[p + "ffn_norm.weight"], epsilon)
        for name in ("ffn_gate", "ffn_up"):
            yield p + name, linear(p, name, read(p + "ffn_norm"))
        yield p + "ffn_swiglu", ops.swiglu(read(p + "ffn_gate"), read(p + "ffn_up"))
        yield p + "ffn_down", linear(p, "ffn_down", read(p + "ffn_swiglu"))
        yield p + "ffn_residual", read(p + "attn_residual") + read(p + "ffn_down")
        x = p + "ffn_residual"
    yield "output_norm", ops.rms_norm(read(x), weights["output_norm.weight"], epsilon)
    yield "output", linear("", "output" if "output.weight" in weights else "token_embd", read("output_norm"))


def compare(ops, path, seen, ids, keys):
    """Prints the errors by operation; the names of those that differ."""
    errors, unread = {}, set(seen)
    for name, value in expected(ops, path, seen, ids, keys):
        unread.discard(name)
        value = np.asarray(value).reshape(seen[name].shape)
        error = np.square(seen[name] - value).sum() / np.square(value).sum()
        errors.setdefault(name.rpartition(".")[2], []).append(error)
    worst = {name: max(of, key=lambda error: error if error == error else np.inf) for name, of in errors.items()}
    for name, error in worst.items():
        print(f"{name:14} {error:9.1e}  in {len(errors[name])} places")
    differ = [name for name, error in worst.items() if not error <= LIMIT] + sorted(unread)
    print(f"{path}: " + ("differ: " + ", ".join(differ) if differ else f"all within {LIMIT:g} of the energy"))
    return differ


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("models", nargs="+")
    parser.add_argument("--torch", action="store_true")
    parser.add_argument("--ids", default="1 300 12 45 99 319 7 263 264 265 300 301")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=NUMBER")
    a = parser.parse_args()
    ids = [int(number) for number in a.ids.split()]
    keys = {key: float(number) for key, _, number in (pair.partition("=") for pair in a.set)}
    wrong = False
    with tempfile.TemporaryDirectory() as folder:
        for path in a.models:
            npz = folder + "/operations.npz"
            subprocess.run([a.program, path, npz, *map(str, ids)], check=True)
            with np.load(npz) as arrays:
                seen = {name: arrays[name] for name in arrays.files}
            wrong |= bool(compare(torch_operations() if a.torch else NumPy, path, seen, ids, keys))
    return wrong


if __name__ == "__main__":
    sys.exit(main())
