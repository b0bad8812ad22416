"""The network of the default model, as it is trained: LLaMA in PyTorch, small enough to read at once.

It is the same arithmetic that the engine runs: RMS norm, grouped-query attention with rotary positions
on adjacent pairs (2i, 2i+1), SwiGLU, and an output matrix tied to the embedding. The exporter copies the
weights without reordering anything, because the pairs are adjacent here already.

Matrix products run in bfloat16 and everything between them in float32. Not for memory: Debian's PyTorch
has only a reference BLAS for float32 (3 GFLOP/s measured), while bfloat16 goes through oneDNN
(420 GFLOP/s on two Zen 4 cores).
"""
import math
from dataclasses import asdict, dataclass

import torch
import torch.nn.functional as F


CHUNK = 256  # queries at once


@dataclass
class Shape:
    """Sizes of the model. Every row length is a multiple of 256, so that each K-quant fits."""
    n_vocab: int = 1536
    n_layers: int = 6
    n_embd: int = 256
    n_heads: int = 8
    n_kv_heads: int = 4
    head_dim: int = 32
    n_ffn: int = 768
    n_ctx: int = 512
    rope_base: float = 10000.0
    rms_eps: float = 1e-5

    def as_dict(self):
        return asdict(self)


def linear(x, weight):
    """x [..., in] times weight [out, in], rounded to bfloat16 on the way in and out."""
    return F.linear(x.to(torch.bfloat16), weight.to(torch.bfloat16))


class RmsNorm(torch.autograd.Function):
    """y = x / rms(x) * gain, with a hand-written backward: autograd's own chain of small operations costs
    as much as a matrix product at these widths."""

    @staticmethod
    def forward(ctx, x, gain, eps):
        inverse = torch.rsqrt(x.square().mean(-1, keepdim=True) + eps)
        unit = x * inverse
        ctx.save_for_backward(unit, inverse, gain)
        return (unit * gain).to(torch.bfloat16)

    @staticmethod
    def backward(ctx, dy):
        unit, inverse, gain = ctx.saved_tensors
        dy = dy.float()
        d_gain = (dy * unit).flatten(0, -2).sum(0)
        du = dy * gain
        dx = (du - unit * (du * unit).mean(-1, keepdim=True)) * inverse
        return dx, d_gain, None


def rope_table(shape, n_positions):
    """cos and sin of position * frequency: [positions, 1, head_dim / 2] each."""
    frequency = shape.rope_base ** (-torch.arange(0, shape.head_dim, 2).double() / shape.head_dim)
    angle = torch.arange(n_positions).double()[:, None] * frequency[None]
    return angle.cos().float()[:, None], angle.sin().float()[:, None]


def rope(x, cos, sin):
    """Rotate each adjacent pair of x [batch, time, heads, head_dim] by its angle."""
    pairs = x.float().unflatten(-1, (-1, 2))
    a, b = pairs[..., 0], pairs[..., 1]
    return torch.stack((a * cos - b * sin, a * sin + b * cos), -1).flatten(-2).to(torch.bfloat16)


class Block(torch.nn.Module):
    def __init__(self, s):
        super().__init__()
        self.shape = s
        q_rows, kv_rows = s.n_heads * s.head_dim, s.n_kv_heads * s.head_dim

        def matrix(rows, columns, scale=1.0):
            return torch.nn.Parameter(torch.randn(rows, columns) * scale / math.sqrt(columns))

        # Matrices that write into the residual stream start smaller, so that depth adds no variance.
        out_scale = 1 / math.sqrt(2 * s.n_layers)
        self.attn_norm = torch.nn.Parameter(torch.ones(s.n_embd))
        self.attn_q = matrix(q_rows, s.n_embd)
        self.attn_k = matrix(kv_rows, s.n_embd)
        self.attn_v = matrix(kv_rows, s.n_embd)
        self.attn_output = matrix(s.n_embd, q_rows, out_scale)
        self.ffn_norm = torch.nn.Parameter(torch.ones(s.n_embd))
        self.ffn_gate = matrix(s.n_ffn, s.n_embd)
        self.ffn_up = matrix(s.n_ffn, s.n_embd)
        self.ffn_down = matrix(s.n_embd, s.n_ffn, out_scale)

    def attention(self, x, cos, sin, mask):
        s, (batch, time, _) = self.shape, x.shape
        group = s.n_heads // s.n_kv_heads
        q = rope(linear(x, self.attn_q).view(batch, time, s.n_heads, s.head_dim), cos, sin)
        k = rope(linear(x, self.attn_k).view(batch, time, s.n_kv_heads, s.head_dim), cos, sin)
        v = linear(x, self.attn_v).view(batch, time, s.n_kv_heads, s.head_dim)
        # The query heads of a group are stacked, so that keys are never copied: [batch * kv, group * time, d] x [batch * kv, d, time].
        q = q.view(batch, time, s.n_kv_heads, group, s.head_dim).permute(0, 2, 3, 1, 4)
        q = q.reshape(batch * s.n_kv_heads, group, time, s.head_dim)
        k = k.transpose(1, 2).reshape(batch * s.n_kv_heads, time, s.head_dim)
        v = v.transpose(1, 2).reshape(batch * s.n_kv_heads, time, s.head_dim)
        parts = []
        for start in range(0, time, CHUNK):  # no position sees a later one: products with those are left out
            end = min(start + CHUNK, time)
            bias = mask[start:end, :end].repeat(group, 1)[None].expand(len(q), -1, -1)
            scores = torch.baddbmm(bias, q[:, :, start:end].flatten(1, 2), k[:, :end].transpose(1, 2), alpha=s.head_dim ** -0.5)
            parts.append((torch.softmax(scores, -1) @ v[:, :end]).unflatten(1, (group, end - start)))
        y = torch.cat(parts, 2).unflatten(0, (batch, s.n_kv_heads)).permute(0, 3, 1, 2, 4)
        return linear(y.reshape(batch, time, -1), self.attn_output)

    def forward(self, x, cos, sin, mask):
        h = RmsNorm.apply(x, self.attn_norm, self.shape.rms_eps)
        x = x + self.attention(h, cos, sin, mask)
        h = RmsNorm.apply(x, self.ffn_norm, self.shape.rms_eps)
        return x + linear(F.silu(linear(h, self.ffn_gate)) * linear(h, self.ffn_up), self.ffn_down)


class Llama(torch.nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.shape = shape
        self.token_embd = torch.nn.Parameter(torch.randn(shape.n_vocab, shape.n_embd) * 0.02)
        self.blk = torch.nn.ModuleList(Block(shape) for _ in range(shape.n_layers))
        self.output_norm = torch.nn.Parameter(torch.ones(shape.n_embd))

    def forward(self, ids, wanted=None):
        """ids [batch, time] to logits [batch, time, vocab], bfloat16; or [n, vocab] of the n `wanted` positions, counted row by row."""
        time = ids.shape[1]
        cos, sin = rope_table(self.shape, time)
        mask = torch.full((time, time), -1e9).triu(1).to(torch.bfloat16)
        x = F.embedding(ids, self.token_embd)
        for block in self.blk:
            x = block(x, cos, sin, mask)
        if wanted is not None:
            x = x.flatten(0, 1)[wanted]
        return linear(RmsNorm.apply(x, self.output_norm, self.shape.rms_eps), self.token_embd)
