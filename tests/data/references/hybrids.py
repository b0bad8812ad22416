"""The logits of models whose layers are not all plain attention: those of hybrids/.

Short convolutions (lfm2), gated delta nets (qwen35, qwen3next, kimi-linear), Mamba (mamba, jamba), Mamba-2 (mamba2,
granitehybrid, nemotron_h, falcon-h1), compressed keys and values (deepseek2, kimi-linear), per-layer embeddings (gemma4)
and parallel streams (gemma3n). Written from the definitions of the families alone, not from the engine. A recurrence runs
token by token.
"""
import numpy as np

from references.arithmetic import (gelu, largest, linear, rms_norm, rotate, sigmoid, silu, softmax, stretched,
                                   unit_rms)


def softplus(x):
    return np.where(x > 20, x, np.log1p(np.exp(np.minimum(x, 20))))


# --- Attention ------------------------------------------------------------------------------------

def rope(model, x, base, adjacent=False, n=None, divisors=1.0):
    """Rotates pairs of the first n values of every head. x: [T, heads, D]."""
    n = n or x.shape[-1]
    theta = np.arange(len(x))[:, None] * base ** (-2.0 * np.arange(n // 2) / n) / divisors
    theta, m = stretched(model, base, n, theta)
    if model.arch == "deepseek2" and model.key("rope.scaling.yarn_log_multiplier", 0):
        m = 1.0  # the scores' scale includes it
    return rotate(x, m * np.cos(theta), m * np.sin(theta), adjacent)


def attend(q, k, v, scale, window=0):
    """softmax(scale q k) v over the keys that a position sees. q: [T, H, D]; k, v: [T, K, D]; result [T, H * D]."""
    p = np.arange(len(q))
    visible = p[None, :] <= p[:, None]
    if window:
        visible &= p[None, :] > p[:, None] - window
    group = q.shape[1] // k.shape[1]
    heads = [softmax(np.where(visible, scale * (q[:, h] @ k[:, h // group].T), -np.inf)) @ v[:, h // group]
             for h in range(q.shape[1])]
    return np.concatenate(heads, axis=-1)


def by_head(x, heads):
    return x.reshape(len(x), heads, -1)


def plain_attention(model, l, x):
    """Of lfm2, granitehybrid, nemotron_h, jamba and falcon-h1."""
    q, k, v = (by_head(linear(model, l, "attn_" + name, x), heads)
               for name, heads in (("q", model.H), ("k", model.kv_heads(l)), ("v", model.kv_heads(l))))
    scale, window = 1 / np.sqrt(q.shape[-1]), 0
    if model.arch in ("lfm2", "lfm2moe"):
        q, k = rms_norm(model, l, "attn_q_norm", q), rms_norm(model, l, "attn_k_norm", k)
        window = model.key("attention.sliding_window", 0)
    if model.arch == "granitehybrid":
        scale = model.key("attention.scale", 0) or scale
    if model.arch in ("lfm2", "lfm2moe", "falcon-h1") or (model.arch == "granitehybrid" and model.key("rope.scaling.finetuned", True)):
        base, adjacent = model.key("rope.freq_base", 10000.0), model.arch == "granitehybrid"
        n = model.key("rope.dimension_count", None)
        q, k = rope(model, q, base, adjacent, n), rope(model, k, base, adjacent, n)
    return linear(model, l, "attn_output", attend(q, k, v, scale, window))


def text_pairs(model, n):
    """The pairs that rope.dimension_sections gives to the text's position: all but those that it leaves to nobody."""
    j = np.arange(n // 2)
    if model.arch == "qwen3next":
        return j >= 0
    s = model.key("rope.dimension_sections")
    m = j % sum(s)
    return np.select([m % 3 == i for i in range(3)], [m < 3 * s[i] for i in range(3)])


def gated_attention(model, l, x):
    """Of qwen35, qwen35moe and qwen3next."""
    D = model.key("attention.key_length")
    q, gate = np.split(by_head(linear(model, l, "attn_q", x), model.H), [D], axis=-1)
    k, v = (by_head(linear(model, l, "attn_" + name, x), model.kv_heads(l)) for name in "kv")
    n, base = model.key("rope.dimension_count"), model.key("rope.freq_base", 10000.0)
    divisors = np.where(text_pairs(model, n), 1.0, np.inf)
    q, k = (rope(model, rms_norm(model, l, "attn_%s_norm" % name, t), base, n=n, divisors=divisors)
            for name, t in (("q", q), ("k", k)))
    heads = attend(q, k, v, 1 / np.sqrt(D)) * sigmoid(gate.reshape(len(x), -1))
    return linear(model, l, "attn_output", heads)


def slides(model, l):
    if model.arch == "gemma3n":
        return l % 5 < 4
    return bool(model.of_layer(l, "attention.sliding_window_pattern"))


def gemma_attention(model, l, x):
    """Of gemma4 and gemma3n: scores are not scaled, and the last layers use keys and values of earlier ones."""
    local = slides(model, l)
    kind = "_swa" if local and model.arch == "gemma4" else ""
    D = model.key("attention.key_length" + kind)
    n = model.key("rope.dimension_count" + kind, model.key("rope.dimension_count", D))
    base = model.key("rope.freq_base_swa", 10000.0) if local else model.key("rope.freq_base", 10000.0)
    divisors = 1.0 if local else model.tensors.get("rope_freqs.weight", 1.0)
    own = 20 if model.arch == "gemma3n" else model.n_layers - model.key("attention.shared_kv_layers", 0)

    def normed(name, t):
        return rope(model, rms_norm(model, l, name, t.reshape(len(x), -1, D)), base, n=n, divisors=divisors)

    q = normed("attn_q_norm", linear(model, l, "attn_q", x))
    if l < own:
        k = linear(model, l, "attn_k", x)
        v = linear(model, l, "attn_v", x) if model.has(l, "attn_v") else k
        model.kept[l] = normed("attn_k_norm", k), unit_rms(model, v.reshape(len(x), -1, D))
    k, v = model.kept[l if l < own else own - (2 if local else 1)]
    window = model.key("attention.sliding_window") if local else 0
    return linear(model, l, "attn_output", attend(q, k, v, 1.0, window))


def latent_attention(model, l, x):
    """Of deepseek2 and kimi-linear: keys and values of all heads are made of C numbers, but for the part of the keys that is rotated."""
    n, C = model.key("rope.dimension_count"), model.key("attention.kv_lora_rank")
    Dk = model.key("attention.key_length_mla", model.key("attention.key_length"))
    base = model.key("rope.freq_base", 10000.0)
    if model.has(l, "attn_q_a"):
        q = linear(model, l, "attn_q_b", rms_norm(model, l, "attn_q_a_norm", linear(model, l, "attn_q_a", x)))
    else:
        q = linear(model, l, "attn_q", x)
    turn = (lambda t: t) if model.arch == "kimi-linear" else (lambda t: rope(model, t, base, adjacent=True))
    plain, turned = np.split(by_head(q, model.H), [Dk - n], axis=-1)
    q = np.concatenate([plain, turn(turned)], axis=-1)
    c, r = np.split(linear(model, l, "attn_kv_a_mqa", x), [C], axis=-1)
    c = rms_norm(model, l, "attn_kv_a_norm", c)
    r = np.repeat(turn(r[:, None, :]), model.H, axis=1)
    if model.has(l, "attn_kv_b"):
        k, v = np.split(by_head(linear(model, l, "attn_kv_b", c), model.H), [Dk - n], axis=-1)
    else:  # attn_k_b: [H, C, N], attn_v_b: [H, Dv, C]
        k = np.einsum("tc,hcn->thn", c, model.tensor(l, "attn_k_b.weight"))
        v = np.einsum("tc,hvc->thv", c, model.tensor(l, "attn_v_b.weight"))
    m, f = 1.0, model.key("rope.scaling.factor", 1.0)
    if model.key("rope.scaling.type", "") == "yarn" and f > 1:
        m = 1 + 0.1 * np.log(f) * (10 * model.key("rope.scaling.yarn_log_multiplier", 0) or 1)
    heads = attend(q, np.concatenate([k, r], axis=-1), v, m * m / np.sqrt(Dk))
    return linear(model, l, "attn_output", heads)


# --- Recurrent layers -----------------------------------------------------------------------------

def convolution(u, kernel):
    """Each channel by itself, over this token and the L - 1 before. u: [T, C], kernel: [C, L], the last tap for this token."""
    L = kernel.shape[1]
    past = np.concatenate([np.zeros((L - 1, u.shape[1])), u])
    return sum(past[i:i + len(u)] * kernel[:, i] for i in range(L))


def short_convolution(model, l, x):
    b, c, u = np.split(linear(model, l, "shortconv.in_proj", x), 3, axis=-1)
    return linear(model, l, "shortconv.out_proj", c * convolution(b * u, model.tensor(l, "shortconv.conv.weight")))


def delta_inputs(model, l, x, nk, nv, N):
    """(q, k, v before the convolution, z, beta, alpha): what the file's matrices give, whichever it has."""
    T, r = len(x), nv // nk
    if model.has(l, "ssm_in"):  # by key head: q, k, r times v, r times z
        parts = np.split(by_head(linear(model, l, "ssm_in", x), nk), np.cumsum([N, N, r * N]), axis=-1)
        q, k, v, z = (part.reshape(T, -1) for part in parts)
        c = np.concatenate([q, k, v], axis=-1)
    else:
        c, z = linear(model, l, "attn_qkv", x), linear(model, l, "attn_gate", x)
    if model.has(l, "ssm_ba"):  # by key head: r betas, r alphas
        beta, alpha = (part.reshape(T, -1) for part in np.split(by_head(linear(model, l, "ssm_ba", x), nk), 2, axis=-1))
    else:
        beta, alpha = linear(model, l, "ssm_beta", x), linear(model, l, "ssm_alpha", x)
    return c, by_head(z, nv), sigmoid(beta), alpha


def delta_net(model, l, x):
    """Corrects, for every token, what its state S answers to the token's key."""
    nk, nv, N = model.key("ssm.group_count"), model.key("ssm.time_step_rank"), model.key("ssm.state_size")
    c, z, beta, alpha = delta_inputs(model, l, x, nk, nv, N)
    decay = np.exp(softplus(alpha + model.tensor(l, "ssm_dt.bias")) * model.tensor(l, "ssm_a"))
    c = silu(convolution(c, model.tensor(l, "ssm_conv1d.weight")))
    q, k, v = (part.reshape(len(x), -1, N) for part in np.split(c, [nk * N, 2 * nk * N], axis=-1))
    q, k = (t / np.sqrt((t * t).sum(-1, keepdims=True) + 1e-6) for t in (q, k))
    of_head = np.arange(nv) // (nv // nk) if model.arch == "qwen3next" else np.arange(nv) % nk
    q, k = q[:, of_head] / np.sqrt(N), k[:, of_head]
    S, o = np.zeros((nv, N, N)), np.empty_like(v)  # S: [head, key, value]
    for t in range(len(x)):
        S *= decay[t, :, None, None]
        d = beta[t, :, None] * (v[t] - np.einsum("hkv,hk->hv", S, k[t]))
        S += k[t, :, :, None] * d[:, None, :]
        o[t] = np.einsum("hkv,hk->hv", S, q[t])
    y = rms_norm(model, l, "ssm_norm", o) * silu(z)
    return linear(model, l, "ssm_out", y.reshape(len(x), -1))


def delta_net_by_channel(model, l, x):
    """Each row of S, a channel of the keys, has its own decay."""
    H, N, T = model.H, model.key("kda.head_dim"), len(x)
    q, k, v = (by_head(silu(convolution(linear(model, l, "attn_" + name, x), model.tensor(l, "ssm_conv1d_%s.weight" % name).reshape(H * N, -1))), H)
               for name in "qkv")
    q, k = (t / np.sqrt((t * t).sum(-1, keepdims=True) + 1e-6) for t in (q, k))
    q = q / np.sqrt(N)
    f = linear(model, l, "ssm_f_b", linear(model, l, "ssm_f_a", x)) + model.tensor(l, "ssm_dt.bias")
    decay = np.exp(by_head(softplus(f), H) * model.tensor(l, "ssm_a").reshape(H, 1))
    beta, gate = sigmoid(linear(model, l, "ssm_beta", x)), linear(model, l, "ssm_g_b", linear(model, l, "ssm_g_a", x))
    S, o = np.zeros((H, N, N)), np.empty_like(v)
    for t in range(T):
        S *= decay[t, :, :, None]
        d = beta[t, :, None] * (v[t] - np.einsum("hkv,hk->hv", S, k[t]))
        S += k[t, :, :, None] * d[:, None, :]
        o[t] = np.einsum("hkv,hk->hv", S, q[t])
    return linear(model, l, "attn_output", rms_norm(model, l, "ssm_norm", o).reshape(T, -1) * sigmoid(gate))


def mamba(model, l, x):
    N, R = model.key("ssm.state_size"), model.key("ssm.time_step_rank")
    u, z = np.split(linear(model, l, "ssm_in", x), 2, axis=-1)
    u = silu(convolution(u, model.tensor(l, "ssm_conv1d.weight")) + model.tensor(l, "ssm_conv1d.bias"))
    parts = np.split(linear(model, l, "ssm_x", u), [R, R + N], axis=-1)
    if model.arch == "jamba":
        parts = [rms_norm(model, l, "ssm_%s_norm" % name, part) for name, part in zip(("dt", "b", "c"), parts)]
    elif model.key("ssm.dt_b_c_rms", False):
        parts = [unit_rms(model, part) for part in parts]
    dt, B, C = parts
    dt, A = softplus(linear(model, l, "ssm_dt", dt)), model.tensor(l, "ssm_a")  # A: [channel, N]
    S, y = np.zeros(A.shape), np.empty_like(u)
    for t in range(len(x)):
        S = S * np.exp(dt[t, :, None] * A) + (dt[t] * u[t])[:, None] * B[t]
        y[t] = S @ C[t] + model.tensor(l, "ssm_d") * u[t]
    return linear(model, l, "ssm_out", silu(z) * y)


def mamba2(model, l, x):
    I, N, M = model.key("ssm.inner_size"), model.key("ssm.state_size"), model.key("ssm.time_step_rank")
    G, T = model.key("ssm.group_count"), len(x)
    z, c, dt = np.split(linear(model, l, "ssm_in", x), [I, 2 * I + 2 * G * N], axis=-1)
    bias = model.tensors.get("blk.%d.ssm_conv1d.bias" % l, 0)
    c = silu(convolution(c, model.tensor(l, "ssm_conv1d.weight")) + bias)
    u, B, C = np.split(c, [I, I + G * N], axis=-1)
    u = by_head(u, M)
    B, C = (np.repeat(by_head(t, G), M // G, axis=1) for t in (B, C))  # [T, M, N]
    dt = softplus(dt + model.tensor(l, "ssm_dt.bias"))
    A, D = model.tensor(l, "ssm_a").reshape(M), model.tensor(l, "ssm_d").reshape(M)
    S, y = np.zeros((M, I // M, N)), np.empty_like(u)
    for t in range(T):
        S = S * np.exp(dt[t] * A)[:, None, None] + (dt[t, :, None] * u[t])[:, :, None] * B[t, :, None, :]
        y[t] = np.einsum("mpn,mn->mp", S, C[t]) + D[:, None] * u[t]
    y = silu(z) * y.reshape(T, I)
    if model.has(l, "ssm_norm") or model.arch != "falcon-h1":
        y = unit_rms(model, by_head(y, G)) * model.tensor(l, "ssm_norm.weight").reshape(G, -1)
    return linear(model, l, "ssm_out", y.reshape(T, I))


# --- Feed-forward ---------------------------------------------------------------------------------

def feed_forward(model, l, x, suffix="", expert=None):
    """down(activation(gate x) * (up x)); nemotron_h's has no gate."""
    if model.has(l, "ffn_gate_up" + suffix):
        gate, up = np.split(linear(model, l, "ffn_gate_up" + suffix, x, expert), 2, axis=-1)
    elif model.arch in ("nemotron_h", "nemotron_h_moe"):
        hidden = np.maximum(0, linear(model, l, "ffn_up" + suffix, x, expert)) ** 2
        return linear(model, l, "ffn_down" + suffix, hidden, expert)
    else:
        gate, up = linear(model, l, "ffn_gate" + suffix, x, expert), linear(model, l, "ffn_up" + suffix, x, expert)
    if model.arch == "gemma3n" and l < 10:  # the largest twentieth, if they were normally distributed
        gate = np.maximum(0, gate - gate.mean(-1, keepdims=True) - 1.6448533535 * gate.std(-1, ddof=1, keepdims=True))
    activation = gelu if model.arch in ("gemma4", "gemma3n") else silu
    return linear(model, l, "ffn_down" + suffix, activation(gate) * up, expert)


def experts_taken(model, biased):
    """[T, experts]"""
    G = model.key("expert_group_count", 0)
    if G > 1:
        runs = by_head(biased, G)
        best = largest(model, np.sort(runs, axis=-1)[..., -2:].sum(axis=-1), model.key("expert_group_used_count"))
        biased = np.where(best[:, :, None], runs, -np.inf).reshape(biased.shape)
    return largest(model, biased, model.key("expert_used_count"))


def routed(model, l, x, inputs=None):
    """The sum over each token's experts of weight * feed_forward. inputs: what the router sees, if not x."""
    r = (x if inputs is None else inputs) @ model.tensor(l, "ffn_gate_inp.weight").T
    by_sigmoid = {name: model.key("expert_gating_func", 0) == 2 for name in ("lfm2moe", "deepseek2", "kimi-linear")}
    by_sigmoid["nemotron_h_moe"] = True
    p = sigmoid(r) if by_sigmoid.get(model.arch, False) else softmax(r)
    taken = experts_taken(model, p + model.tensors.get("blk.%d.exp_probs_b.bias" % l, 0))
    weight = np.where(taken, p, 0)
    if model.arch not in ("deepseek2", "nemotron_h_moe", "jamba") or model.key("expert_weights_norm", False):
        weight /= np.maximum(weight.sum(axis=-1, keepdims=True), 6.103515625e-5)
    if model.arch in ("deepseek2", "nemotron_h_moe", "kimi-linear"):
        weight *= model.scale("expert_weights_scale")
    latent = linear(model, l, "ffn_latent_down", x) if model.has(l, "ffn_latent_down") else x
    y = np.zeros_like(latent)
    for e in range(r.shape[1]):
        tokens = taken[:, e]
        y[tokens] += weight[tokens, e, None] * feed_forward(model, l, latent[tokens], "_exps", e)
    return linear(model, l, "ffn_latent_up", y) if model.has(l, "ffn_latent_down") else y


def with_shared_expert(model, l, x):
    y = routed(model, l, x)
    if model.has(l, "ffn_up_shexp"):
        gate = sigmoid(x @ model.tensor(l, "ffn_gate_inp_shexp.weight"))[:, None] if model.has(l, "ffn_gate_inp_shexp") else 1
        y = y + gate * feed_forward(model, l, x, "_shexp")
    return y


def ffn(model, l, x):
    return (with_shared_expert if model.has(l, "ffn_gate_inp") else feed_forward)(model, l, x)


# --- Layers ---------------------------------------------------------------------------------------

def lfm2_layer(model, l, x):
    mixer = plain_attention if model.kv_heads(l) > 0 else short_convolution
    x = x + mixer(model, l, rms_norm(model, l, "attn_norm", x))
    return x + ffn(model, l, rms_norm(model, l, "ffn_norm", x))


def qwen_layer(model, l, x):
    flags = model.key("attention.recurrent_layers", None)
    recurrent = flags[l] if flags else (l + 1) % model.key("full_attention_interval", 4) != 0
    x = x + (delta_net if recurrent else gated_attention)(model, l, rms_norm(model, l, "attn_norm", x))
    return x + ffn(model, l, rms_norm(model, l, "post_attention_norm", x))


def deepseek2_layer(model, l, x):
    x = x + latent_attention(model, l, rms_norm(model, l, "attn_norm", x))
    return x + ffn(model, l, rms_norm(model, l, "ffn_norm", x))


def granitehybrid_layer(model, l, x):
    scale = model.scale("residual_scale")
    mixer = plain_attention if model.kv_heads(l) > 0 else mamba2
    x = x + scale * mixer(model, l, rms_norm(model, l, "attn_norm", x))
    return x + scale * ffn(model, l, rms_norm(model, l, "ffn_norm", x))


def nemotron_h_layer(model, l, x):
    part = plain_attention if model.kv_heads(l) > 0 else ffn if model.of_layer(l, "feed_forward_length") > 0 else mamba2
    return x + part(model, l, rms_norm(model, l, "attn_norm", x))


def mamba_layer(model, l, x):
    return x + (mamba if model.arch == "mamba" else mamba2)(model, l, rms_norm(model, l, "attn_norm", x))


def jamba_layer(model, l, x):
    x = x + (plain_attention if model.kv_heads(l) > 0 else mamba)(model, l, rms_norm(model, l, "attn_norm", x))
    return x + ffn(model, l, rms_norm(model, l, "ffn_norm", x))


def falcon_h1_layer(model, l, x):
    h = rms_norm(model, l, "attn_norm", x)
    x = x + plain_attention(model, l, h) + mamba2(model, l, h)
    return x + ffn(model, l, unit_rms(model, x) * model.tensor(l, "ffn_norm"))


def kimi_linear_layer(model, l, x):
    mixer = latent_attention if model.kv_heads(l) > 0 else delta_net_by_channel
    x = x + mixer(model, l, rms_norm(model, l, "attn_norm", x))
    return x + ffn(model, l, rms_norm(model, l, "ffn_norm", x))


def layer_embeddings(model, ids, x):
    """e_i of every layer, [layers, T, P]: what the id and the embedding x give to it. None where there are none."""
    P = model.key("embedding_length_per_layer_input")
    if not P:
        return None
    w = model.tensors["per_layer_proj_norm.weight"]
    of_x = unit_rms(model, by_head(x @ model.tensors["per_layer_model_proj.weight"].T / np.sqrt(model.E), model.n_layers)) * w
    of_id = np.sqrt(P) * by_head(model.tensors["per_layer_token_embd.weight"][ids], model.n_layers)
    return ((of_x + of_id) / np.sqrt(2)).transpose(1, 0, 2)


def from_layer_embedding(model, l, y, e):
    gate = linear(model, l, "inp_gate", y)
    return rms_norm(model, l, "post_norm", linear(model, l, "proj", gelu(gate) * e))


def gemma4_ffn(model, l, a):
    dense = feed_forward(model, l, rms_norm(model, l, "ffn_norm", a))
    if not model.has(l, "ffn_gate_inp"):
        return dense
    seen = unit_rms(model, a) / np.sqrt(model.E) * model.tensor(l, "ffn_gate_inp.scale")
    experts = routed(model, l, rms_norm(model, l, "pre_ffw_norm_2", a), seen)
    return rms_norm(model, l, "post_ffw_norm_1", dense) + rms_norm(model, l, "post_ffw_norm_2", experts)


def gemma4_layer(model, l, x, e):
    h = gemma_attention(model, l, rms_norm(model, l, "attn_norm", x))
    a = x + rms_norm(model, l, "post_attention_norm", h)
    y = a + rms_norm(model, l, "post_ffw_norm", gemma4_ffn(model, l, a))
    if e is not None:
        y = y + from_layer_embedding(model, l, y, e[l])
    return y * model.tensors.get("blk.%d.layer_output_scale.weight" % l, 1.0)


def length(x):
    return np.linalg.norm(x, axis=-1, keepdims=True)


def gemma3n_layer(model, l, s, e):
    """s: the four streams, [4, T, E]. Predicts all of them, runs the layer on the first, corrects all by its
    result."""
    def router(v):
        return np.tanh(linear(model, l, "altup_router", rms_norm(model, l, "altup_router_norm", v) / model.E))

    coefficients = linear(model, l, "altup_predict_coef", router(s[0])).reshape(-1, 4, 4)  # [T, to, from]
    g = s + np.einsum("tof,fte->ote", coefficients, s)
    h = rms_norm(model, l, "attn_norm", g[0])
    laurel = h + rms_norm(model, l, "laurel_post_norm", linear(model, l, "laurel_r", linear(model, l, "laurel_l", h)))
    attention = rms_norm(model, l, "post_attention_norm", gemma_attention(model, l, h))
    a = (attention + g[0] + laurel) / np.sqrt(2)
    y = a + rms_norm(model, l, "post_ffw_norm", feed_forward(model, l, rms_norm(model, l, "ffn_norm", a)))
    corrections = 1 + linear(model, l, "altup_correct_coef", router(y))  # [T, 4]
    s = g + corrections.T[:, :, None] * (y - g[0])
    s[1:] += from_layer_embedding(model, l, s[0] * model.tensor(l, "altup_correct_scale.weight"), e[l])
    return s


def gemma3n_trunk(model, x, e):
    streams = [x @ w.T for w in model.tensors["altup_proj.weight"]]
    s = np.stack([x] + [u * length(x) / length(u) for u in streams])
    for l in range(model.n_layers):
        s = gemma3n_layer(model, l, s, e)
    back = [t @ w.T for t, w in zip(s[1:], model.tensors["altup_unembd_proj.weight"])]
    return sum([u * length(s[0]) / length(u) for u in back], s[0]) / 4


LAYERS = {
    "lfm2": lfm2_layer, "lfm2moe": lfm2_layer,
    "qwen35": qwen_layer, "qwen35moe": qwen_layer, "qwen3next": qwen_layer,
    "deepseek2": deepseek2_layer,
    "granitehybrid": granitehybrid_layer,
    "nemotron_h": nemotron_h_layer, "nemotron_h_moe": nemotron_h_layer,
    "mamba": mamba_layer, "mamba2": mamba_layer, "jamba": jamba_layer, "falcon-h1": falcon_h1_layer, "kimi-linear": kimi_linear_layer,
}


def trunk(model, ids):
    """[T, E]: what the last norm reads."""
    x = model.tensors["token_embd.weight"][ids]
    if model.arch == "granitehybrid":
        x = x * model.scale("embedding_scale")
    if model.arch in ("gemma4", "gemma3n"):
        x = x * np.sqrt(model.E)
        e = layer_embeddings(model, ids, x)
        if model.arch == "gemma3n":
            return gemma3n_trunk(model, x, e)
        for l in range(model.n_layers):
            x = gemma4_layer(model, l, x, e)
        return x
    for l in range(model.n_layers):
        x = LAYERS[model.arch](model, l, x)
    return x


def logits(model, ids):
    """[T, vocabulary]"""
    norm = "token_embd_norm" if model.arch in ("lfm2", "lfm2moe") else "output_norm"
    x = unit_rms(model, trunk(model, ids)) * model.tensors[norm + ".weight"]
    y = x @ model.tensors["output.weight" if "output.weight" in model.tensors else "token_embd.weight"].T
    if model.arch == "granitehybrid":
        y = y / model.scale("logit_scale")
    if model.arch in ("gemma4", "gemma3n"):
        cap = 30.0 if model.arch == "gemma3n" else model.key("final_logit_softcapping", 30.0)
        y = cap * np.tanh(y / cap) if cap else y
    return y
