#!/usr/bin/env python3
"""golden.py OUT [NAME...]: tests/data/transformers, what tests/convert/transformers_test.cc reads. Needs torch and transformers.

Each NAME.json has the config.json of a small model of transformers' own class, its tensors as the class saves them, and some of
transformers' logits (f32), or of a model that makes vectors those of three poolings. Weights are not stored: number i of a tensor is offset + 2^exponent * (h / 2^24 - 1/2), where h is the upper
24 bits of a hash of the tensor's name and i (murmur3's finish), and both numbers are in "tensors": "SHAPE OFFSET EXPONENT": [NAME, ...].
A name with a "-" is a model of tiny.py's table with other keys, as VARIANTS says; None takes a key out, so that the class's default counts.
One with "-long" reads 480 tokens, not 48.

golden.py OUT --gguf [NAME...]: for tests/data/hybrids, NAME.gguf ($PRONK converts it) and NAME.f32, the class's logits for the ids of ids.txt.
"""
import json, math, os, shutil, sys
here = os.path.dirname(os.path.abspath(__file__))
source = open(os.path.join(here, "tiny.py")).read().split("names = sys.argv[2:]")[0]
exec(compile(source, "tiny.py", "exec"))
from safetensors.numpy import load_file, save_file

def yarn(**more): return dict(rope_parameters=dict(rope_type="yarn", rope_theta=10000.0, factor=4.0, original_max_position_embeddings=16, **more))
LATE = ["full_attention", "sliding_attention", "sliding_attention", "full_attention"]
VARIANTS = {
    "llama-yarn": yarn(), "llama-yarn-truncate": yarn(truncate=False), "llama-yarn-attention": yarn(attention_factor=1.3),
    "llama-yarn-mscale": yarn(mscale=1.0, mscale_all_dim=1.0), "llama-yarn-mscales": yarn(mscale=0.7, mscale_all_dim=0.3), "llama-yarn-betas": yarn(beta_fast=4.0, beta_slow=2.0),
    "llama-linear": dict(rope_parameters=dict(rope_type="linear", rope_theta=10000.0, factor=4.0)), "llama-dynamic": dict(rope_parameters=dict(rope_type="dynamic", rope_theta=10000.0, factor=2.0)),
    "llama-llama3": dict(rope_parameters=dict(rope_type="llama3", rope_theta=10000.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=32)),
    "qwen3-yarn-truncate": yarn(truncate=False), "deepseek_v3-yarn": yarn(), "deepseek_v3-yarn-mscale": yarn(mscale=1.0, mscale_all_dim=1.0), "deepseek_v3-yarn-mscales": yarn(mscale=0.7, mscale_all_dim=0.3),
    "ministral3-yarn": yarn(mscale=0.7, mscale_all_dim=0.3), "gpt_oss-yarn": yarn(), "gpt_oss-yarn-truncate": yarn(truncate=False),
    "qwen2_moe-normed": dict(norm_topk_prob=True), "qwen3_moe-normed": dict(norm_topk_prob=True), "qwen3_next-plain": dict(norm_topk_prob=False), "lfm2_moe-scaled": dict(routed_scaling_factor=2.5),
    "qwen3_moe-absent": dict(norm_topk_prob=None), "deepseek_v3-absent": dict(norm_topk_prob=None, routed_scaling_factor=None, rope_parameters=None), "glm4_moe-absent": dict(norm_topk_prob=None, routed_scaling_factor=None),
    "granite-absent": dict(attention_multiplier=None, rope_parameters=None), "gemma2-absent": dict(query_pre_attn_scalar=None), "gemma3_text-scalar": dict(query_pre_attn_scalar=48), "gemma3_text-absent": dict(sliding_window=None, rope_parameters=None),
    "ernie4_5-absent": dict(rope_parameters=None), "phi-absent": dict(rope_parameters=None), "mistral-plain": dict(sliding_window="none"), "phi3-window": dict(sliding_window=8),
    "gemma2-layers": dict(layer_types=LATE), "gpt_oss-layers": dict(layer_types=LATE), "ministral-layers": dict(num_hidden_layers=4, layer_types=LATE), "starcoder2-window": dict(sliding_window=8),
    "stablelm-parallel": dict(use_parallel_residual=True, qk_layernorm=True, use_qkv_bias=True), "gpt_neox-sequential": dict(use_parallel_residual=False, hidden_act="gelu_new"), "falcon-7b": dict(new_decoder_architecture=False, num_kv_heads=None, bias=True),
    "falcon-one": dict(num_ln_in_parallel_attn=1), "bloom-odd": dict(n_head=6, hidden_size=96), "olmo-clip": dict(clip_qkv=0.5), "cohere-norm": dict(use_qk_norm=True), "mpt-clip": dict(attn_config=dict(clip_qkv=0.5, softmax_scale=0.2)),
    "minimax-scaled": dict(num_hidden_layers=4, num_attention_heads=3, num_key_value_heads=1, layer_types=["linear_attention", "linear_attention", "full_attention", "linear_attention"], full_attn_alpha_factor=1.5, linear_attn_alpha_factor=1.5, mlp_alpha_factor=1.5),
    "baichuan-2": dict(z_loss_weight=0), "mimo_v2_flash-absent": dict(attention_value_scale=None, rope_parameters=None),
    "phi-norm": dict(qk_layernorm=True), "gpt_bigcode-heads": dict(multi_query=False), "opt-gelu": dict(activation_function="gelu"),
    "nemotron_h-moe": dict(layers_block_type=["linear_attention", "full_attention", "moe", "linear_attention"], hybrid_override_pattern=None, moe_intermediate_size=32, moe_shared_expert_intermediate_size=48, n_routed_experts=4, num_experts_per_tok=2, num_hidden_layers=None),
}

VARIANTS.update({"bloom-long": VARIANTS["bloom-odd"], "mpt-long": {}, "minimax-long": VARIANTS["minimax-scaled"]})

FILES = {  # name: a row of tiny.py's table, and its keys
    "minimax-01": ("minimax", dict(hidden_size=8, intermediate_size=8, num_hidden_layers=4, num_attention_heads=3, num_key_value_heads=1, head_dim=6, block_size=4, num_local_experts=5,
                                   layer_types=["linear_attention", "linear_attention", "full_attention", "linear_attention"], full_attn_alpha_factor=1.5, linear_attn_alpha_factor=1.5, mlp_alpha_factor=1.5)),
    "bloom": ("bloom", dict(hidden_size=12, n_head=3, n_layer=2)),  # ALiBi
}

VECTORS = {"bert-tanh": dict(hidden_act="gelu_new"), "bert-relu": dict(hidden_act="relu"), "modernbert-silu": dict(hidden_activation="silu"), "modernbert-tanh": dict(hidden_activation="gelu_pytorch_tanh"), "eurobert-bias": dict(attention_bias=True, mlp_bias=True)}

def hashed(name, n):
    seed = 2166136261
    for byte in name.encode(): seed = (seed ^ byte) * 16777619 & 0xFFFFFFFF
    with np.errstate(over="ignore"):
        x = np.uint32(seed) + np.arange(n, dtype=np.uint32) * np.uint32(2654435761)
        x ^= x >> np.uint32(16); x *= np.uint32(0x85EBCA6B); x ^= x >> np.uint32(13); x *= np.uint32(0xC2B2AE35); x ^= x >> np.uint32(16)
    return (x >> np.uint32(8)).astype(np.float32) * np.float32(2.0 ** -24) - np.float32(0.5)

def kind(name, tensor):
    """(offset, exponent) of a tensor's numbers."""
    if name.endswith("A_log"): return 0.5, -1
    if "dt_bias" in name or name.endswith("dt_proj.bias"): return -2, 0
    if name.endswith(".D"): return 1, -1
    if "conv" in name: return 0, 0 if tensor.ndim > 1 else -2
    if "correction_bias" in name or "expert_bias" in name: return 0, -2
    if "act_fn" in name: return float(np.round(tensor.mean() * 4) / 4), -3
    if tensor.ndim >= 2 and "norm" not in name: return 0, round(math.log2(4.15 / tensor.shape[-1] ** 0.5))
    if "norm" in name or "ln_" in name or "layer_scalar" in name or "scale" in name: return float(np.round(tensor.mean())), -1
    return 0, -2

def make(family, change, d):
    """Saves a model as the folder d. Its config.json, its tensors by kind, and the model."""
    absent = [key for key, value in change.items() if value is None]
    torch.manual_seed(0)
    config = config_of(family, {key: None if value == "none" else value for key, value in change.items() if value is not None}, absent)
    shutil.rmtree(d, ignore_errors=True)
    class_of(family).from_config(config).float().save_pretrained(d)
    path = os.path.join(d, "config.json"); c = json.load(open(path))
    for key in absent: c.pop(key, None)
    for key in ("transformers_version", "dtype", "initializer_range"): c.pop(key, None)
    json.dump(c, open(path, "w"))
    tensors, kinds = {}, {}
    like = load_file(os.path.join(d, "model.safetensors")); old = like
    for t in [t for t in old if t.endswith(("_decay", ".slope_rate"))]: del old[t]  # MiniMax-01 computes these
    if family in RELATIVES: c, old = as_relative(family, c, dict(like))
    for t, x in sorted(old.items()):
        offset, exponent = kind(t, x)
        tensors[t] = (np.float32(offset) + np.float32(2.0 ** exponent) * hashed(t, x.size)).astype(np.float32).reshape(x.shape)
        kinds.setdefault("%s %g %d" % ("x".join(map(str, x.shape)), offset, exponent), []).append(t)
    if family in RELATIVES: tensors = as_class(family, tensors, like)
    if "z_loss_weight" in c: tensors["lm_head.weight"] /= np.linalg.norm(tensors["lm_head.weight"], axis=1, keepdims=True)  # Baichuan 2
    save_file(tensors, os.path.join(d, "model.safetensors"), {"format": "pt"})
    return c, kinds, class_of(family).from_pretrained(d, attn_implementation="eager").float().eval()

def write(name, out):
    family, d = name.partition("-")[0], os.path.join(out, "." + name)
    c, kinds, model = make(family, {**VARIANTS, **VECTORS}.get(name, {}), d)
    n = 480 if name.endswith("-long") else 48
    ids = [int(x) for x in np.random.default_rng(1).integers(3, 319, n)]
    result = theirs(family, model, ids)
    rows, step = ([0, 1, 2], 1) if is_encoder(family) else ([0, 7, 23, 47] if n == 48 else [63, 255, 256, 479], 11)
    part = [float("%.9g" % x) for r in rows for x in result[r, ::step]]
    text = {"config": c, "tensors": kinds, "ids": ids, "rows": rows, "step": step, "vectors" if is_encoder(family) else "logits": part}
    if is_encoder(family): text["files"] = sentence_files(family, model)
    with open(os.path.join(out, name + ".json"), "w") as f: f.write("{" + ",\n".join(json.dumps(k) + ": " + json.dumps(v, separators=(",", ":")) for k, v in text.items()) + "}\n")
    shutil.rmtree(d)

def write_files(name, out):
    d = os.path.join(out, name); model = make(*FILES[name], d)[2]; tokenizer(d)
    subprocess.run([P, "convert", d, d + ".gguf", "F32"], check=True); shutil.rmtree(d)
    ids = [int(x) for x in open(os.path.join(here, "../data/hybrids/ids.txt")).read().split()]
    theirs(FILES[name][0], model, ids).astype("<f4").tofile(d + ".f32")

if __name__ == "__main__":
    os.makedirs(out, exist_ok=True)
    names, to = sys.argv[2:], write
    if names[:1] == ["--gguf"]: names, to = names[1:] or list(FILES), write_files
    elif not os.path.exists(out + "/tokenizer.json"): tokenizer(out)
    for name in names or [*FAMILIES, *VARIANTS, *VECTORS]:
        try: to(name, out); print(name, flush=True)
        except Exception as e: print(name, type(e).__name__, str(e)[:200], flush=True)
