"""A text's vector or scores, of the families of vectors/. Written from the definitions alone, not from the engine."""
import numpy as np

from references.arithmetic import gelu, largest, linear, rms_norm, rotate, silu, softmax, unit_rms


def window(model, l):
    """How far a token of layer l sees to each side; None: to the ends."""
    width, period = model.key("attention.sliding_window", 0), model.key("attention.sliding_window_pattern", 0)
    if model.arch == "gemma-embedding":
        period = model.key("attention.sliding_window_pattern", 6)
        slides = period == 0 or l % period < period - 1
    else:
        slides = width > 0 and l % (period or 3) != 0
    return width // 2 if slides else None


def norm(model, name, x):
    """LayerNorm."""
    x = unit_rms(model, x - x.mean(axis=-1, keepdims=True)) * model.tensors[name + ".weight"]
    return x + model.tensors.get(name + ".bias", 0.0)


def layer_norm(model, l, name, x):
    return norm(model, "blk.%d.%s" % (l, name), x) if model.has(l, name) else x


def angles(model, l, n):
    """(cosines, sines) [n, pairs] of the positions of layer l."""
    base = model.key("rope.freq_base", 10000.0)
    if window(model, l) is not None:
        base = model.key("rope.freq_base_swa", 10000.0)
    theta = np.arange(n)[:, None] * base ** (-2.0 * np.arange(model.D // 2) / model.D)
    return np.cos(theta), np.sin(theta)


def queries_keys_values(model, l, x):
    if model.has(l, "attn_qkv"):
        q, k, v = np.split(linear(model, l, "attn_qkv", x), 3, axis=-1)
    else:
        q, k, v = (linear(model, l, "attn_" + name, x) for name in "qkv")
    q, k, v = (t.reshape(len(x), -1, model.D) for t in (q, k, v))
    if model.has(l, "attn_q_norm"):
        q, k = rms_norm(model, l, "attn_q_norm", q), rms_norm(model, l, "attn_k_norm", k)
    if model.arch == "bert":
        return q, k, v
    table = angles(model, l, len(x))
    return rotate(q, *table, False), rotate(k, *table, False), v


def attention(model, l, x):
    q, k, v = queries_keys_values(model, l, x)
    distance = np.arange(len(x))[:, None] - np.arange(len(x))[None, :]  # [query, key]
    visible = np.ones(distance.shape, bool)
    if model.arch == "qwen3":
        visible = distance >= 0
    elif window(model, l) is not None:
        visible = np.abs(distance) <= window(model, l)
    heads = np.empty_like(q)
    for h in range(model.H):
        kv_head = h // (q.shape[1] // k.shape[1])
        scores = np.where(visible, q[:, h] @ k[:, kv_head].T / np.sqrt(model.D), -np.inf)
        heads[:, h] = softmax(scores) @ v[:, kv_head]
    return linear(model, l, "attn_output", heads.reshape(len(x), -1))


def activation(model):
    named = silu if model.key("hidden_activation", "") in ("silu", "swish", "swiglu") else gelu
    return silu if model.arch in ("qwen3", "nomic-bert") else named


def feed_forward(model, l, x):
    if model.has(l, "ffn_gate_inp"):
        return experts(model, l, x)
    up = linear(model, l, "ffn_up", x)
    if model.has(l, "ffn_gate"):
        hidden = activation(model)(linear(model, l, "ffn_gate", x)) * up
    elif model.arch == "modern-bert":
        gate, up = np.split(up, 2, axis=-1)
        hidden = activation(model)(gate) * up
    else:
        hidden = gelu(up)
    return linear(model, l, "ffn_down", hidden)


def experts(model, l, x):
    weights = softmax(linear(model, l, "ffn_gate_inp", x))
    taken = largest(model, weights, model.key("expert_used_count"))
    y = np.zeros_like(x)
    for e in range(weights.shape[1]):
        t = taken[:, e]
        y[t] += weights[t, e, None] * linear(model, l, "ffn_down_exps", gelu(linear(model, l, "ffn_up_exps", x[t], e)), e)
    return y


def layer(model, l, x):
    if model.arch == "modern-bert":
        x = x + attention(model, l, layer_norm(model, l, "attn_norm", x))
        return x + feed_forward(model, l, layer_norm(model, l, "ffn_norm", x))
    if "bert" in model.arch:
        x = layer_norm(model, l, "attn_output_norm", x + attention(model, l, x))
        return layer_norm(model, l, "layer_output_norm", x + feed_forward(model, l, x))
    post = lambda name, y: rms_norm(model, l, name, y) if model.has(l, name) else y
    x = x + post("post_attention_norm", attention(model, l, rms_norm(model, l, "attn_norm", x)))
    return x + post("post_ffw_norm", feed_forward(model, l, rms_norm(model, l, "ffn_norm", x)))


def hidden(model, ids):
    """[T, E] after the last norm."""
    x = model.tensors["token_embd.weight"][ids]
    if model.arch == "gemma-embedding":
        x = x * np.sqrt(model.E)
    if "token_types.weight" in model.tensors:
        x = x + model.tensors["token_types.weight"][0]
    if model.arch == "bert":
        x = x + model.tensors["position_embd.weight"][:len(x)]
    if "bert" in model.arch:
        x = norm(model, "token_embd_norm", x)
    for l in range(model.n_layers):
        x = layer(model, l, x)
    if "bert" in model.arch:
        return norm(model, "output_norm", x) if model.arch == "modern-bert" else x
    return unit_rms(model, x) * model.tensors["output_norm.weight"]


def matrix(model, name, x):
    if name + ".weight" not in model.tensors:
        return x
    return x @ model.tensors[name + ".weight"].T + model.tensors.get(name + ".bias", 0.0)


def scores(model, x):
    y = {"qwen3": x[-1], "modern-bert": x.mean(axis=0)}.get(model.arch, x[0])
    if "cls.weight" in model.tensors:
        y = matrix(model, "cls", y)
        y = gelu(y) if model.arch == "modern-bert" else np.tanh(y)
    if "cls.norm.weight" in model.tensors:
        y = norm(model, "cls.norm", y)
    y = matrix(model, "cls.output", y)
    return softmax(y) if model.arch == "qwen3" else y


def result(model, ids):
    x, pooling = hidden(model, ids), model.key("pooling_type", 0)
    if pooling == 4:
        return scores(model, x)
    y = {1: x.mean(axis=0), 2: x[0], 3: x[-1]}[pooling]
    y = matrix(model, "dense_3", matrix(model, "dense_2", y))
    return y / np.linalg.norm(y)
