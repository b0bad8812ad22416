#!/usr/bin/python3
"""Write a small GGUF model (as tests/data/families and hybrids have them) as the folder that Hugging
Face's libraries would write of it: config.json, safetensors, tokenizer. The way back of `pronk
convert`, written from the definitions of the families and not from that program: a converted folder
must be the model again, bit for bit. Needs nothing but Python.

  hf_folder.py models/default.gguf OUT            one file
  hf_folder.py MODEL OUT MODEL2 OUT2              of two models
  hf_folder.py MODEL OUT --shards 3               in parts, with an index
  hf_folder.py MODEL OUT --drop NAME              without this tensor
"""
import argparse, json, math, os, struct, sys
from array import array

FORMATS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}


class Gguf:
    """Keys, and tensors as (dims, type, bytes); dims[0] is the length of a row."""
    def __init__(self, path):
        with open(path, "rb") as f: self.data = f.read()
        self.at = 8
        n_tensors, n_keys = self.take("QQ")
        self.keys = {}
        for _ in range(n_keys):
            key = self.text()
            self.keys[key] = self.value(*self.take("I"))
        infos = []
        for _ in range(n_tensors):
            name, (n,) = self.text(), self.take("I")
            infos.append((name, self.take("%dQ" % n), *self.take("IQ")))
        start = (self.at + 31) // 32 * 32
        self.tensors = {}
        for name, dims, kind, offset in infos:
            n = math.prod(dims)
            size = {0: 4 * n, 1: 2 * n, 2: n // 32 * 18, 8: n // 32 * 34, 30: 2 * n, 39: n // 32 * 17}[kind]
            self.tensors[name] = (list(dims), kind, self.data[start + offset:start + offset + size])
        self.arch = self.keys["general.architecture"]

    def take(self, fmt):
        values = struct.unpack_from("<" + fmt, self.data, self.at)
        self.at += struct.calcsize("<" + fmt)
        return values

    def text(self):
        n, = self.take("Q")
        self.at += n
        return self.data[self.at - n:self.at].decode("utf-8", "surrogateescape")

    def value(self, kind):
        if kind == 8: return self.text()
        if kind == 9:
            inner, n = self.take("IQ")
            return [self.value(inner) for _ in range(n)]
        return self.take(FORMATS[kind])[0]

    def get(self, key, default=None): return self.keys.get(self.arch + "." + key, default)


def half(bits): return struct.unpack("<e", struct.pack("<H", bits))[0]


def floats(kind, data):
    if kind == 0: return array("f", data)
    if kind == 1: return array("f", [half(h) for h in array("H", data)])
    out = array("f")
    if kind == 2:
        for i in range(0, len(data), 18):
            d, qs = half(struct.unpack_from("<H", data, i)[0]), data[i + 2:i + 18]
            out.extend([d * ((q & 15) - 8) for q in qs]); out.extend([d * ((q >> 4) - 8) for q in qs])
        return out
    if kind == 8:
        for i in range(0, len(data), 34):
            d = half(struct.unpack_from("<H", data, i)[0])
            out.extend([d * q for q in struct.unpack_from("<32b", data, i + 2)])
        return out
    sys.exit("a type that this script does not read")


class T:
    """A tensor as rows of floats: shape as the folder has it, the length of a row last."""
    def __init__(self, shape, values, dtype="F32"): self.shape, self.values, self.dtype = list(shape), values, dtype

    @staticmethod
    def of(tensor):
        dims, kind, data = tensor
        return T(dims[::-1], floats(kind, data))

    def rows(self):
        n = self.shape[-1] if len(self.shape) > 1 else 1
        return [self.values[i:i + n] for i in range(0, len(self.values), n)]

    def pick(self, order):
        """The rows (or numbers of a vector) in this order."""
        rows, out = self.rows(), array(self.values.typecode)
        for i in order: out.extend(rows[i])
        first = len(order) // math.prod(self.shape[:-2] or [1]) if len(self.shape) > 2 else len(order)
        return T([*self.shape[:-2], first, self.shape[-1]] if len(self.shape) > 1 else [len(order)], out, self.dtype)

    def map(self, f, dtype="F32"): return T(self.shape, array("d" if dtype == "F64" else "f", [f(x) for x in self.values]), dtype)
    def view(self, *shape): return T(shape, self.values, self.dtype)

    def turned(self):
        """Each matrix with rows and columns exchanged."""
        *n, r, c = self.shape
        out = array("f")
        for m in range(math.prod(n or [1])):
            part = self.values[m * r * c:(m + 1) * r * c]
            for j in range(c): out.extend(part[j::c])
        return T([*n, c, r], out)

    def bytes(self): return self.values.tobytes()


def joined(a, b):
    """Matrices below each other, matrix by matrix of a stack."""
    n = math.prod(a.shape[:-2] or [1])
    out = array("f")
    for m in range(n):
        for t in (a, b):
            size = len(t.values) // n
            out.extend(t.values[m * size:(m + 1) * size])
    return T([*a.shape[:-2], a.shape[-2] + b.shape[-2], a.shape[-1]], out)


def halves(t, heads):
    """Neighbours that rope rotates together become numbers half a head apart."""
    n = len(t.rows()) // heads
    return t.pick([h * n + 2 * (i % (n // 2)) + i // (n // 2) for h in range(heads) for i in range(n)])


LLAMA = {"attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm", "attn_q": "self_attn.q_proj",
         "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj",
         "attn_q_norm": "self_attn.q_norm", "attn_k_norm": "self_attn.k_norm", "ffn_gate": "mlp.gate_proj",
         "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj", "ffn_gate_inp": "mlp.gate"}
AROUND = {"post_attention_norm": "post_attention_layernorm", "ffn_norm": "pre_feedforward_layernorm",
          "post_ffw_norm": "post_feedforward_layernorm"}
AFTER = {"post_attention_norm": "post_attention_layernorm", "post_ffw_norm": "post_feedforward_layernorm"}
PACKED = {"attn_qkv": "self_attn.qkv_proj", "ffn_up": "mlp.gate_up_proj"}
LFM2 = {"attn_norm": "operator_norm", "ffn_norm": "ffn_norm", "attn_output": "self_attn.out_proj",
        "attn_q_norm": "self_attn.q_layernorm", "attn_k_norm": "self_attn.k_layernorm",
        "shortconv.in_proj": "conv.in_proj", "shortconv.out_proj": "conv.out_proj", "ffn_gate": "feed_forward.w1",
        "ffn_down": "feed_forward.w2", "ffn_up": "feed_forward.w3", "ffn_gate_inp": "feed_forward.gate"}
PER_LAYER = {"inp_gate": "per_layer_input_gate", "proj": "per_layer_projection", "post_norm": "post_per_layer_input_norm"}
LAUREL = {"altup_correct_coef": "altup.correction_coefs", "altup_predict_coef": "altup.prediction_coefs",
          "altup_router": "altup.modality_router", "altup_router_norm": "altup.router_norm",
          "laurel_l": "laurel.linear_left", "laurel_r": "laurel.linear_right", "laurel_post_norm": "laurel.post_laurel_norm"}
GEMMA4 = {"ffn_gate_inp": "router.proj", "post_ffw_norm_1": "post_feedforward_layernorm_1",
          "pre_ffw_norm_2": "pre_feedforward_layernorm_2", "post_ffw_norm_2": "post_feedforward_layernorm_2"}
MLA = {"attn_q_a": "self_attn.q_a_proj", "attn_q_a_norm": "self_attn.q_a_layernorm", "attn_q_b": "self_attn.q_b_proj",
       "attn_kv_a_mqa": "self_attn.kv_a_proj_with_mqa", "attn_kv_a_norm": "self_attn.kv_a_layernorm"}
MAMBA = {"attn_norm": "norm", "ssm_in": "mixer.in_proj", "ssm_x": "mixer.x_proj", "ssm_dt": "mixer.dt_proj", "ssm_out": "mixer.out_proj"}
JAMBA = {"ffn_norm": "pre_ff_layernorm", **{"ssm_" + k: "mamba." + v for k, v in (
             ("in", "in_proj"), ("x", "x_proj"), ("dt", "dt_proj"), ("out", "out_proj"), ("dt_norm", "dt_layernorm"),
             ("b_norm", "b_layernorm"), ("c_norm", "c_layernorm"))},
         **{"ffn_" + k: "feed_forward.%s_proj" % k for k in ("gate", "up", "down")}, "ffn_gate_inp": "feed_forward.router"}
NEMOTRON = {"attn_norm": "norm", "attn_q": "mixer.q_proj", "attn_k": "mixer.k_proj", "attn_v": "mixer.v_proj",
            "attn_output": "mixer.o_proj", "ffn_up": "mixer.up_proj", "ffn_down": "mixer.down_proj", "ffn_gate_inp": "mixer.gate",
            "ffn_up_shexp": "mixer.shared_experts.up_proj", "ffn_down_shexp": "mixer.shared_experts.down_proj",
            "ffn_latent_down": "mixer.fc1_latent_proj", "ffn_latent_up": "mixer.fc2_latent_proj"}
FALCON_H1 = {"ffn_norm": "pre_ff_layernorm", **{"ffn_" + k: "feed_forward.%s_proj" % k for k in ("gate", "up", "down")}}
KIMI = {"ssm_beta": "self_attn.b_proj", "ssm_norm": "self_attn.o_norm", "ffn_gate_inp": "block_sparse_moe.gate",
        **{"ssm_" + k: "self_attn.%s_proj" % k for k in ("f_a", "f_b", "g_a", "g_b")}}
BERT = {**{"attn_" + k[0]: "attention.self." + k for k in ("query", "key", "value")}, "attn_output": "attention.output.dense",
        "attn_output_norm": "attention.output.LayerNorm", "ffn_up": "intermediate.dense", "ffn_down": "output.dense", "layer_output_norm": "output.LayerNorm"}
NOMIC = {"attn_qkv": "attn.Wqkv", "attn_output": "attn.out_proj", "attn_output_norm": "norm1", "layer_output_norm": "norm2", "ffn_up": "mlp.fc11",
         "ffn_gate": "mlp.fc12", "ffn_down": "mlp.fc2", "ffn_gate_inp": "mlp.router.layer"}
MODERN = {"attn_norm": "attn_norm", "attn_qkv": "attn.Wqkv", "attn_output": "attn.Wo", "ffn_norm": "mlp_norm", "ffn_up": "mlp.Wi", "ffn_down": "mlp.Wo"}
ENCODER_LAYERS = {"bert": "encoder.layer.%d.", "nomic-bert": "encoder.layers.%d.", "nomic-bert-moe": "encoder.layers.%d.", "modern-bert": "layers.%d."}
# Multipliers, so that each part of a matrix has its own; powers of two change no bits.
MULTIPLIERS = {"embedding_multiplier": 4.0, "lm_head_multiplier": 0.5, "attention_in_multiplier": 0.5, "key_multiplier": 0.25, "attention_out_multiplier": 2.0,
               "mlp_multipliers": [0.5, 4.0], "ssm_in_multiplier": 2.0, "ssm_multipliers": [0.5, 2.0, 4.0, 0.25, 8.0], "ssm_out_multiplier": 0.25}
BITNET = {"attn_sub_norm": "self_attn.attn_sub_norm", "ffn_sub_norm": "mlp.ffn_sub_norm"}
NEXTN = {"eh_proj": "fc", "enorm": "pre_fc_norm_embedding", "hnorm": "pre_fc_norm_hidden", "shared_head_norm": "norm",
         "embed_tokens": "embed_tokens", "shared_head_head": "lm_head"}  # of a part of its own
NEXTN_LAYER = {"embed_tokens": "embed_tokens", "shared_head_norm": "shared_head.norm", "shared_head_head": "shared_head.head"}
POST_IS_FFN = {"post_attention_norm": "post_attention_layernorm"}
BAILING = {"attn_qkv": "attention.query_key_value", "attn_output": "attention.dense", "attn_q_norm": "attention.query_layernorm",
           "attn_k_norm": "attention.key_layernorm", "layer_output_norm": "final_layernorm"}
AFMOE = {"post_attention_norm": "post_attention_layernorm", "ffn_norm": "pre_mlp_layernorm", "post_ffw_norm": "post_mlp_layernorm",
         "attn_gate": "self_attn.gate_proj", "ffn_gate_inp": "mlp.router.gate"}
STEP = {"attn_gate": "self_attn.g_proj", "ffn_gate_inp": "moe.gate", **{"ffn_%s_exps" % k: "moe.%s_proj" % k for k in ("gate", "up", "down")}}
DELTA = {"post_attention_norm": "post_attention_layernorm", "ssm_norm": "linear_attn.norm", "ssm_ba": "linear_attn.in_proj_ba"}
NAMES = {"gemma2": {**LLAMA, **AROUND}, "gemma3": {**LLAMA, **AROUND}, "olmo2": {**LLAMA, **AFTER}, "exaone4": {**LLAMA, **AFTER},
         "phi3": {**LLAMA, **PACKED}, "bitnet": {**LLAMA, **BITNET},
         "glm4": {**LLAMA, "post_attention_norm": "post_self_attn_layernorm", "post_ffw_norm": "post_mlp_layernorm", **PACKED},
         "hunyuan-dense": {**LLAMA, "attn_q_norm": "self_attn.query_layernorm", "attn_k_norm": "self_attn.key_layernorm"},
         "hunyuan-moe": {**LLAMA, "attn_q_norm": "self_attn.query_layernorm", "attn_k_norm": "self_attn.key_layernorm", "ffn_gate_inp": "mlp.gate.wg"},
         "bailingmoe2": {**LLAMA, **BAILING}, "glm4moe": {**LLAMA, **POST_IS_FFN}, "seed_oss": {**LLAMA, **POST_IS_FFN},
         "minimax-m2": {**LLAMA, "ffn_gate_inp": "block_sparse_moe.gate"}, "afmoe": {**LLAMA, **AFMOE}, "step35": {**LLAMA, **STEP},
         "laguna": {**LLAMA, "attn_gate": "self_attn.g_proj"}, "mimo2": {**LLAMA, "layer_output_norm": "final_layernorm"},
         "apertus": {**LLAMA, "attn_norm": "attention_layernorm", "ffn_norm": "feedforward_layernorm"},
         "gpt-oss": {**LLAMA, "post_attention_norm": "post_attention_layernorm", "ffn_gate_inp": "mlp.router"},
         "granitemoe": {**LLAMA, "ffn_gate_inp": "block_sparse_moe.router.layer"},
         "granitehybrid": {**LLAMA, "ffn_gate_inp": "block_sparse_moe.router.layer"},
         "lfm2": {**LLAMA, **LFM2}, "lfm2moe": {**LLAMA, **LFM2}, "deepseek2": {**LLAMA, **MLA},
         "gemma3n": {**LLAMA, **AROUND, **PER_LAYER, **LAUREL}, "gemma4": {**LLAMA, **AROUND, **PER_LAYER, **GEMMA4}, "gemma4-assistant": {**LLAMA, **AROUND},
         "qwen35": {**LLAMA, **DELTA}, "qwen35moe": {**LLAMA, **DELTA}, "qwen3next": {**LLAMA, **DELTA},
         "falcon-h1": {**LLAMA, **FALCON_H1}, "kimi-linear": {**LLAMA, **MLA, **KIMI}, "gemma-embedding": {**LLAMA, **AROUND}, "bert": BERT,
         "nomic-bert": NOMIC, "nomic-bert-moe": {**NOMIC, "ffn_up": "mlp.fc1"}, "modern-bert": MODERN,
         "mamba": MAMBA, "mamba2": {"attn_norm": "norm"}, "jamba": {**LLAMA, **JAMBA}, "nemotron_h": NEMOTRON, "nemotron_h_moe": NEMOTRON}
PAIRED = ("llama", "granite", "granitemoe", "granitehybrid", "smollm3", "mistral3", "arcee", "nanbeige")
PLUS_ONE = ("gemma2", "gemma3", "gemma-embedding", "qwen35", "qwen35moe", "qwen3next", "step35")
DELTA_NETS = ("qwen35", "qwen35moe", "qwen3next")
BIAS = {"lfm2moe": "feed_forward.expert_bias", "nemotron_h_moe": "mixer.gate.e_score_correction_bias", "bailingmoe2": "mlp.gate.expert_bias",
        "ernie4_5-moe": "mlp.moe_statics.e_score_correction_bias", "minimax-m2": "block_sparse_moe.e_score_correction_bias",
        "exaone-moe": "mlp.e_score_correction_bias", "afmoe": "mlp.expert_bias", "laguna": "mlp.experts.e_score_correction_bias",
        "step35": "moe.router_bias", "kimi-linear": "block_sparse_moe.gate.e_score_correction_bias"}
TOP = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head", "token_embd_norm": "model.embedding_norm",
       "per_layer_token_embd": "model.embed_tokens_per_layer", "per_layer_model_proj": "model.per_layer_model_projection",
       "per_layer_proj_norm": "model.per_layer_projection_norm", "dense_2": "2_Dense.linear", "dense_3": "3_Dense.linear",
       "nextn.pre_projection": "pre_projection", "nextn.post_projection": "post_projection"}
BERT_TOP = {"token_embd": "embeddings.word_embeddings", "token_types": "embeddings.token_type_embeddings", "position_embd": "embeddings.position_embeddings",
            "token_embd_norm": "embeddings.LayerNorm", "cls": "pooler.dense", "cls.output": "classifier"}
TOPS = {"bert": BERT_TOP, "nomic-bert": {**BERT_TOP, "token_embd_norm": "emb_ln"}, "nomic-bert-moe": {**BERT_TOP, "token_embd_norm": "emb_ln"},
        "modern-bert": {"token_embd": "embeddings.tok_embeddings", "token_embd_norm": "embeddings.norm", "output_norm": "final_norm",
                        "cls": "head.dense", "cls.norm": "head.norm", "cls.output": "classifier"}}


def weights(g):
    """The folder's tensors by name."""
    arch, out = g.arch, {}
    heads, kv = g.get("attention.head_count"), g.get("attention.head_count_kv")
    kv = max(kv) or heads if isinstance(kv, list) else kv
    names = NAMES.get(arch, dict(LLAMA))
    if arch == "llama": names["ffn_gate_inp"] = "block_sparse_moe.gate"
    root = "backbone" if arch.startswith(("nemotron", "mamba")) else "model"
    mixer = {"mamba": "mixer", "mamba2": "mixer", "jamba": "mamba", "granitehybrid": "mamba", "falcon-h1": "mamba", "nemotron_h": "mixer", "nemotron_h_moe": "mixer"}.get(arch, "linear_attn")
    dense_hybrid = arch == "granitehybrid" and not g.get("expert_count")
    nk, nv, n = g.get("ssm.group_count"), g.get("ssm.time_step_rank"), g.get("ssm.state_size")
    # Value heads alternate between key heads; the folder has those of a key head side by side.
    def grouped(t, skipped, length):
        per = nv // nk
        return t.pick(list(range(skipped)) + [skipped + ((h % per) * nk + h // per) * length + i for h in range(nv) for i in range(length)])
    layers = {}
    for name, tensor in g.tensors.items():
        if name.startswith("rope_f"): continue
        if not name.startswith("blk."):
            stem, _, suffix = name.rpartition(".")
            if stem in ("altup_proj", "altup_unembd_proj"):
                t, new = T.of(tensor), {"altup_proj": "altup_projections", "altup_unembd_proj": "altup_unembed_projections"}[stem]
                size = t.shape[1] * t.shape[2]
                for e in range(t.shape[0]): out["model.%s.%d.weight" % (new, e)] = T(t.shape[1:], t.values[e * size:(e + 1) * size])
                continue
            new = TOPS.get(arch, TOP)[stem]
            if arch in ("jamba", "falcon-h1") and stem == "output_norm": new = "model.final_layernorm"
            if arch == "bailingmoe2" and stem == "token_embd": new = "model.word_embeddings"
            if root == "backbone": new = {"token_embd": "backbone.embeddings", "output_norm": "backbone.norm_f"}.get(stem, new)
            t = T.of(tensor)
            if arch in PLUS_ONE and stem == "output_norm": t = t.map(lambda x: x - 1)
            out[new + "." + suffix] = t
            continue
        _, layer, rest = name.split(".", 2)
        layers.setdefault(int(layer), {})[rest] = tensor
    for i, layer in layers.items():
        base = "%s.layers.%d." % (root, i)
        if arch in ENCODER_LAYERS: base = ENCODER_LAYERS[arch] % i
        own_part = arch in DELTA_NETS or arch == "exaone-moe"
        if "nextn.eh_proj.weight" in layer:  # predicts further tokens
            if own_part: base = "mtp.layers.0."
            if arch == "mimo2": base = "model.mtp.layers.%d." % (i - (g.get("block_count") - g.get("nextn_predict_layers")))
        get = lambda name: T.of(layer[name])
        def put(name, t): out[base + name] = t
        for rest in layer:
            stem, _, suffix = rest.rpartition(".")
            if not stem: stem, suffix = rest, "weight" if rest == "ffn_norm" else ""
            if stem in ("attn_q", "attn_k") and arch in PAIRED:
                put("%s.%s" % (names[stem], suffix), halves(get(rest), heads if stem == "attn_q" else kv))
            elif stem.startswith("nextn."):
                t, new = get(rest), stem[6:]
                if arch in PLUS_ONE and stem.endswith("norm"): t = t.map(lambda x: x - 1)
                if own_part: out["mtp.%s.%s" % (NEXTN[new], suffix)] = t
                elif arch == "step35" and new.startswith("shared"): put("transformer.shared_head.%s.weight" % ("norm" if new.endswith("norm") else "output"), t)
                else: put("%s.%s" % (NEXTN_LAYER.get(new, new), suffix), t)
            elif stem == "ffn_gate_inp" and suffix == "scale": put("router.scale", get(rest))
            elif dense_hybrid and stem in ("ffn_gate", "ffn_up", "ffn_down"): continue
            elif arch in DELTA_NETS and stem in ("attn_qkv", "attn_gate"): continue
            elif stem in names:
                t = get(rest)
                if arch in PLUS_ONE and stem.endswith("norm") and stem != "ssm_norm": t = t.map(lambda x: x - 1)
                put("%s.%s" % (names[stem], suffix), t)
            elif arch == "kimi-linear" and stem.startswith("ssm_conv1d_"):
                t = get(rest)
                put("self_attn.%s_conv1d.weight" % stem[-1], t.view(t.shape[-3], 1, t.shape[-1]))
            elif arch == "kimi-linear" and stem == "ssm_a":
                t = get(rest).map(lambda x: math.log(-x), "F64")
                put("self_attn.A_log", t.view(1, 1, len(t.values), 1))
            elif arch == "kimi-linear" and stem == "ssm_dt": put("self_attn.dt_bias", get(rest))
            elif stem == "attn_sinks": put("self_attn.attention_sink_bias" if arch == "mimo2" else "self_attn.sinks", get(rest))
            elif stem == "shortconv.conv":
                t = get(rest)
                put("conv.conv.weight", t.view(t.shape[0], 1, t.shape[1]))
            elif rest == "exp_probs_b.bias":
                t = get(rest)
                put(BIAS.get(arch, "mlp.gate.e_score_correction_bias"), t.view(1, *t.shape) if arch == "ernie4_5-moe" else t)
            elif stem == "altup_correct_scale": put("altup.correct_output_scale", get(rest))
            elif stem == "layer_output_scale": put("layer_scalar", get(rest))
            elif rest == "ffn_down_exps.scale": put("router.per_expert_scale", get(rest))
            elif stem == "ffn_gate_inp_shexp":
                t = get(rest)
                put("mlp.shared_expert_gate.weight", t.view(1, *t.shape))
            elif stem in ("ssm_in", "ssm_out", "ssm_conv1d", "ssm_dt", "ssm_a", "ssm_d", "ssm_norm", "ssm_alpha", "ssm_beta"):
                t, per = get(rest), arch in ("qwen35", "qwen35moe")
                if stem == "ssm_a":
                    t = t.map(lambda x: math.log(-x), "F64")
                    if arch not in ("mamba", "jamba"): t = t.view(len(t.values))
                    put(mixer + ".A_log", grouped(t, 0, 1) if per else t)
                elif stem == "ssm_d": put(mixer + ".D", t.view(len(t.values)))
                elif stem == "ssm_dt": put(mixer + ".dt_bias", grouped(t, 0, 1) if per else t)
                elif stem == "ssm_norm": put(mixer + ".norm.weight", t.view(len(t.values)))
                elif stem == "ssm_in": put(mixer + ".in_proj.weight", t)
                elif stem == "ssm_out": put(mixer + ".out_proj.weight", grouped(t.turned(), 0, n).turned() if per else t)
                elif stem == "ssm_conv1d":
                    if suffix == "bias": put(mixer + ".conv1d.bias", t)
                    else:
                        if per: t = grouped(t, 2 * nk * n, n)
                        put(mixer + ".conv1d.weight", t.view(t.shape[0], 1, t.shape[1]))
                else: put(mixer + ".in_proj_%s.weight" % ("a" if stem == "ssm_alpha" else "b"), grouped(t, 0, 1))
            elif "exps" in stem or "shexp" in stem or stem in ("attn_k_b", "attn_v_b"): continue
            else: sys.exit("%s: no rule for %s" % (arch, rest))
        if arch in DELTA_NETS and "attn_gate.weight" in layer:
            qkv, z = get("attn_qkv.weight"), get("attn_gate.weight")
            if arch == "qwen3next":
                per, keys = nv // nk * n, nk * n
                both = joined(qkv, z)
                order = [r for k in range(nk) for r in [*range(k * n, k * n + n), *range(keys + k * n, keys + k * n + n),
                         *range(2 * keys + k * per, 2 * keys + (k + 1) * per),
                         *range(2 * keys + nk * per + k * per, 2 * keys + nk * per + (k + 1) * per)]]
                put("linear_attn.in_proj_qkvz.weight", both.pick(order))
            else:
                put("linear_attn.in_proj_qkv.weight", grouped(qkv, 2 * nk * n, n))
                put("linear_attn.in_proj_z.weight", grouped(z, 0, n))
        if "attn_k_b.weight" in layer:  # [latent, N] of each head, transposed, then [Dv, latent]
            both = joined(get("attn_k_b.weight").turned(), get("attn_v_b.weight"))
            put("self_attn.kv_b_proj.weight", both.view(both.shape[0] * both.shape[1], both.shape[2]))
        if dense_hybrid:
            put("shared_mlp.input_linear.weight", joined(get("ffn_gate.weight"), get("ffn_up.weight")))
            put("shared_mlp.output_linear.weight", get("ffn_down.weight"))
        shared(arch, layer, get, put)
        experts(arch, layer, get, put)
    if arch == "bitnet": pack(out)
    if arch == "falcon-h1": divide(g, out)
    if arch in ENCODER_LAYERS and g.get("pooling_type") == 4:  # as classifiers are published, and of old
        prefix = "model." if arch == "modern-bert" else "bert."
        out = {name if name.startswith(("classifier", "head")) else prefix + name: t for name, t in out.items()}
    if arch == "apertus":
        for i in range(len(layers)):
            for key in ("alpha_n", "alpha_p", "beta", "eps"): out["model.layers.%d.mlp.act_fn.%s" % (i, key)] = T([1], array("f", [g.keys["xielu." + key][i]]))
    return out


def multipliers(g):
    tied = "output.weight" not in g.tensors
    return {**MULTIPLIERS, **({"lm_head_multiplier": MULTIPLIERS["embedding_multiplier"]} if tied else {})}


def divide(g, out):
    """Takes Falcon-H1's multipliers out of its matrices."""
    m = multipliers(g)
    inner, group = g.get("ssm.inner_size"), g.get("ssm.group_count") * g.get("ssm.state_size")
    of_all = {"embed_tokens": m["embedding_multiplier"], "lm_head": m["lm_head_multiplier"], "q_proj": m["attention_in_multiplier"],
              "k_proj": m["attention_in_multiplier"] * m["key_multiplier"], "v_proj": m["attention_in_multiplier"], "o_proj": m["attention_out_multiplier"],
              "gate_proj": m["mlp_multipliers"][0], "down_proj": m["mlp_multipliers"][1], "mamba.out_proj": m["ssm_out_multiplier"]}
    for name, t in list(out.items()):
        for part, factor in of_all.items():
            if name.endswith(part + ".weight"): out[name] = t.map(lambda x: x / factor)
        if not name.endswith("mamba.in_proj.weight"): continue
        scaled, at = array("f"), 0
        for factor, n in zip(m["ssm_multipliers"], (inner, inner, group, group, t.shape[0])):
            for row in t.rows()[at:at + n]: scaled.extend([x / (factor * m["ssm_in_multiplier"]) for x in row])
            at += n
        out[name] = T(t.shape, scaled)


def pack(out):
    """Matrices of -s, 0 and s alone become bytes of four rows' numbers, and s."""
    for name, t in list(out.items()):
        scale = max(map(abs, t.values))
        if not name.endswith("_proj.weight") or not all(x in (-scale, 0, scale) for x in t.values): continue
        rows, quarter = t.rows(), t.shape[0] // 4
        assert t.shape[0] == 4 * quarter
        codes = [[1 + (x > 0) - (x < 0) for x in row] for row in rows]
        packed = array("B", [sum(codes[k * quarter + i][j] << 2 * k for k in range(4)) for i in range(quarter) for j in range(t.shape[1])])
        out[name] = T([quarter, t.shape[1]], packed, "U8")
        out[name + "_scale"] = T([1], array("f", [scale]))


def shared(arch, layer, get, put):
    if "ffn_gate_shexp.weight" not in layer: return
    if arch in ("granitemoe", "granitehybrid"):
        put("shared_mlp.input_linear.weight", joined(get("ffn_gate_shexp.weight"), get("ffn_up_shexp.weight")))
        put("shared_mlp.output_linear.weight", get("ffn_down_shexp.weight"))
        return
    name = {"qwen2moe": "mlp.shared_expert", "qwen35moe": "mlp.shared_expert", "qwen3next": "mlp.shared_expert", "laguna": "mlp.shared_expert",
            "hunyuan-moe": "mlp.shared_mlp", "step35": "share_expert", "kimi-linear": "block_sparse_moe.shared_experts"}.get(arch, "mlp.shared_experts")
    for part in ("gate", "up", "down"): put("%s.%s_proj.weight" % (name, part), get("ffn_%s_shexp.weight" % part))


def mxfp4(tensor):
    """Blocks and scales: neighbours in a byte, where GGUF has numbers 16 apart."""
    (cols, rows, n), _, data = tensor
    blocks, scales = bytearray(), bytearray()
    for at in range(0, len(data), 17):
        scales.append(data[at])
        q = [b & 15 for b in data[at + 1:at + 17]] + [b >> 4 for b in data[at + 1:at + 17]]
        blocks += bytes(q[2 * i] | q[2 * i + 1] << 4 for i in range(16))
    return T([n, rows, cols // 32, 16], array("B", blocks), "U8"), T([n, rows, cols // 32], array("B", scales), "U8")


def alternating(a, b):
    """Alternating rows of both, matrix by matrix."""
    n, r = a.shape[0], a.shape[1]
    width = len(a.values) // (n * r)
    out = array(a.values.typecode)
    for i in range(n * r):
        out.extend(a.values[i * width:(i + 1) * width]); out.extend(b.values[i * width:(i + 1) * width])
    return T([n, 2 * r, *a.shape[2:]], out, a.dtype)


def experts(arch, layer, get, put):
    if "ffn_down_exps.weight" not in layer: return
    if arch == "gpt-oss":
        for name in ("gate", "up", "down"): assert "ffn_%s_exps.bias" % name in layer
        gate, up = get("ffn_gate_exps.bias"), get("ffn_up_exps.bias")
        put("mlp.experts.gate_up_proj_bias", alternating(gate.view(*gate.shape, 1), up.view(*up.shape, 1)).view(gate.shape[0], 2 * gate.shape[1]))
        put("mlp.experts.down_proj_bias", get("ffn_down_exps.bias"))
        if layer["ffn_down_exps.weight"][1] == 39:
            for i, kind in enumerate(("blocks", "scales")):
                put("mlp.experts.gate_up_proj_" + kind, alternating(mxfp4(layer["ffn_gate_exps.weight"])[i], mxfp4(layer["ffn_up_exps.weight"])[i]))
                put("mlp.experts.down_proj_" + kind, mxfp4(layer["ffn_down_exps.weight"])[i])
        else:
            put("mlp.experts.gate_up_proj", alternating(get("ffn_gate_exps.weight"), get("ffn_up_exps.weight")).turned())
            put("mlp.experts.down_proj", get("ffn_down_exps.weight").turned())
        return
    if arch == "gemma4":
        both = get("ffn_gate_up_exps.weight") if "ffn_gate_up_exps.weight" in layer else joined(get("ffn_gate_exps.weight"), get("ffn_up_exps.weight"))
        put("experts.gate_up_proj", both); put("experts.down_proj", get("ffn_down_exps.weight"))
        return
    if arch in ("granitemoe", "granitehybrid"):
        put("block_sparse_moe.input_linear.weight", joined(get("ffn_gate_exps.weight"), get("ffn_up_exps.weight")))
        put("block_sparse_moe.output_linear.weight", get("ffn_down_exps.weight"))
        return
    if arch == "step35": return  # stacks
    if arch == "qwen3vlmoe":
        put("mlp.experts.gate_up_proj", joined(get("ffn_gate_exps.weight"), get("ffn_up_exps.weight")).turned())
        put("mlp.experts.down_proj", get("ffn_down_exps.weight").turned())
        return
    if arch == "nomic-bert-moe":
        for part, t in (("w1", get("ffn_up_exps.weight")), ("w2", get("ffn_down_exps.weight").turned())):
            put("mlp.experts.mlp." + part, t.view(t.shape[0] * t.shape[1], t.shape[2]))
        return
    base = {"llama": "block_sparse_moe", "kimi-linear": "block_sparse_moe", "minimax-m2": "block_sparse_moe", "lfm2moe": "feed_forward", "jamba": "feed_forward", "nemotron_h_moe": "mixer"}.get(arch, "mlp")
    parts = {"gate": "w1", "down": "w2", "up": "w3"} if arch in ("llama", "minimax-m2", "lfm2moe", "kimi-linear") else {k: k + "_proj" for k in ("gate", "up", "down")}
    for part, new in parts.items():
        if "ffn_%s_exps.weight" % part not in layer: continue
        t = get("ffn_%s_exps.weight" % part)
        size = t.shape[1] * t.shape[2]
        for e in range(t.shape[0]): put("%s.experts.%d.%s.weight" % (base, e, new), T(t.shape[1:], t.values[e * size:(e + 1) * size]))


CLASSES = {"llama": "LlamaForCausalLM", "qwen2": "Qwen2ForCausalLM", "qwen2moe": "Qwen2MoeForCausalLM", "qwen3": "Qwen3ForCausalLM",
           "qwen3moe": "Qwen3MoeForCausalLM", "phi3": "Phi3ForCausalLM", "granite": "GraniteForCausalLM", "granitemoe": "GraniteMoeForCausalLM",
           "smollm3": "SmolLM3ForCausalLM", "mistral3": "Ministral3ForCausalLM", "gemma2": "Gemma2ForCausalLM", "gemma3": "Gemma3ForCausalLM",
           "gpt-oss": "GptOssForCausalLM", "olmo2": "Olmo2ForCausalLM", "glm4": "Glm4ForCausalLM", "ernie4_5": "Ernie4_5ForCausalLM",
           "hunyuan-dense": "HunYuanDenseV1ForCausalLM", "bitnet": "BitNetForCausalLM", "exaone4": "Exaone4ForCausalLM", "lfm2": "Lfm2ForCausalLM", "lfm2moe": "Lfm2MoeForCausalLM",
           "qwen35": "Qwen3_5ForCausalLM", "qwen35moe": "Qwen3_5MoeForCausalLM", "qwen3next": "Qwen3NextForCausalLM",
           "gemma3n": "Gemma3nForCausalLM", "gemma4": "Gemma4ForCausalLM", "gemma4-assistant": "Gemma4AssistantForCausalLM", "deepseek2": "DeepseekV3ForCausalLM",
           "qwen2vl": "Qwen2VLForConditionalGeneration", "qwen3vl": "Qwen3VLForConditionalGeneration", "qwen3vlmoe": "Qwen3VLMoeForConditionalGeneration",
           "olmoe": "OlmoeForCausalLM", "ernie4_5-moe": "Ernie4_5_MoeForCausalLM", "bailingmoe2": "BailingMoeV2ForCausalLM",
           "glm4moe": "Glm4MoeForCausalLM", "hunyuan-moe": "HunYuanMoEV1ForCausalLM", "minimax-m2": "MiniMaxM2ForCausalLM",
           "seed_oss": "SeedOssForCausalLM", "cohere2": "Cohere2ForCausalLM", "dots1": "Dots1ForCausalLM", "exaone-moe": "ExaoneMoEForCausalLM",
           "afmoe": "AfmoeForCausalLM", "arcee": "ArceeForCausalLM", "apertus": "ApertusForCausalLM", "mimo2": "MiMoV2FlashForCausalLM",
           "laguna": "LagunaForCausalLM", "nanbeige": "NanbeigeForCausalLM", "step35": "Step3p5ForCausalLM",
           "falcon-h1": "FalconH1ForCausalLM", "kimi-linear": "KimiLinearForCausalLM", "gemma-embedding": "Gemma3TextModel", "bert": "BertModel",
           "nomic-bert": "NomicBertModel", "nomic-bert-moe": "NomicBertModel", "modern-bert": "ModernBertModel",
           "mamba": "MambaForCausalLM", "mamba2": "Mamba2ForCausalLM", "jamba": "JambaForCausalLM",
           "granitehybrid": "GraniteMoeHybridForCausalLM", "nemotron_h": "NemotronHForCausalLM", "nemotron_h_moe": "NemotronHForCausalLM"}


def config(g, names):
    arch, get, n = g.arch, g.get, g.get("block_count")
    if arch in ENCODER_LAYERS: return encoder(g, arch, get, n)
    kv = get("attention.head_count_kv", get("attention.head_count"))
    vocab = g.tensors["token_embd.weight"][0][1]
    c = {"architectures": [CLASSES[arch]], "hidden_size": get("embedding_length"), "num_hidden_layers": n - get("nextn_predict_layers", 0),
         "max_position_embeddings": get("context_length"), "num_attention_heads": get("attention.head_count"), "vocab_size": vocab,
         "num_key_value_heads": max(kv) or get("attention.head_count") if isinstance(kv, list) else kv, "rms_norm_eps": get("attention.layer_norm_rms_epsilon"),
         "tie_word_embeddings": "output.weight" not in g.tensors, "torch_dtype": "float32"}
    def put(key, value):
        if value is not None: c[key] = value
    ffn = get("feed_forward_length")
    if not isinstance(ffn, list): put("intermediate_size", ffn)
    put("head_dim", get("attention.key_length"))
    put("rope_theta", get("rope.freq_base"))
    turned, length = get("rope.dimension_count"), get("attention.key_length") or c["hidden_size"] // max(1, c["num_attention_heads"])
    if turned and turned != length: c["partial_rotary_factor"] = turned / length
    rope = {}
    kind = get("rope.scaling.type")
    if kind in ("linear", "yarn") and get("rope.scaling.factor"):
        rope = {"rope_type": kind, "factor": get("rope.scaling.factor")}
        if get("rope.scaling.original_context_length"): rope["original_max_position_embeddings"] = get("rope.scaling.original_context_length")
        for beta in ("beta_fast", "beta_slow"):
            if get("rope.scaling.yarn_" + beta): rope[beta] = get("rope.scaling.yarn_" + beta)
        if arch == "gpt-oss": rope["truncate"] = False
    window = get("attention.sliding_window")
    experts = get("expert_count")
    if experts: put("num_experts_per_tok", get("expert_used_count"))
    local, full = "sliding_attention", "full_attention"
    if arch == "llama" and experts: c["architectures"] = ["MixtralForCausalLM"]; c["num_local_experts"] = experts
    if arch in ("qwen2moe", "qwen3moe", "qwen3vlmoe", "qwen35moe", "qwen3next"):
        put("num_experts", experts); put("moe_intermediate_size", get("expert_feed_forward_length"))
        if arch in ("qwen3moe", "qwen3vlmoe"): c["norm_topk_prob"] = True
        put("shared_expert_intermediate_size", get("expert_shared_feed_forward_length"))
    if arch == "phi3":
        c["sliding_window"] = None  # files name a window that nobody uses
        if "rope_factors_short.weight" in g.tensors:
            rope = {"type": "longrope", "attention_factor": get("rope.scaling.attn_factor"),
                    **{k + "_factor": list(floats(0, g.tensors["rope_factors_%s.weight" % k][2])) for k in ("short", "long")}}
        c["original_max_position_embeddings"] = get("rope.scaling.original_context_length")
    if arch.startswith("granite"):
        for key, new in (("attention.scale", "attention_multiplier"), ("embedding_scale", "embedding_multiplier"),
                         ("residual_scale", "residual_multiplier"), ("logit_scale", "logits_scaling"),
                         ("expert_shared_feed_forward_length", "shared_intermediate_size")): put(new, get(key))
        put("num_local_experts", experts)
        if arch == "granitemoe" and get("expert_shared_feed_forward_length"): c["architectures"] = ["GraniteMoeSharedForCausalLM"]
    if arch == "bitnet":
        packed = any(name.endswith("_scale") for name in names)
        c["hidden_act"] = get("hidden_activation", "silu")
        c["quantization_config"] = {"quant_method": "bitnet", "linear_class": "autobitlinear", "quantization_mode": "offline" if packed else "online"}
    if arch == "smollm3": c["no_rope_layers"] = [int((i + 1) % 4 != 0) for i in range(n)]
    if arch == "mistral3":
        del c["rope_theta"]
        g_log = get("rope.scaling.yarn_log_multiplier")
        rope.update(rope_theta=get("rope.freq_base"), mscale=g_log, mscale_all_dim=g_log, llama_4_scaling_beta=get("attention.temperature_scale"))
    if arch in ("gemma2", "gemma3", "gemma-embedding"):
        c["hidden_activation"], c["sliding_window"] = "gelu_pytorch_tanh", window
        put("attn_logit_softcapping", get("attn_logit_softcapping")); put("final_logit_softcapping", get("final_logit_softcapping"))
        largest = n == {"gemma2": 46}.get(arch, 62)
        c["query_pre_attn_scalar"] = c["hidden_size"] // c["num_attention_heads"] if largest else c["head_dim"]
        period = 2 if arch == "gemma2" else get("attention.sliding_window_pattern", 6)
        c["layer_types"] = [full if i % period == period - 1 else local for i in range(n)]
        if arch == "gemma-embedding": c.update(use_bidirectional_attention=True, _sliding_window_pattern=period)
        if arch != "gemma2": put("rope_local_base_freq", get("rope.freq_base_swa", 10000.0))
    if arch == "gpt-oss": c.update(sliding_window=window, num_local_experts=experts, swiglu_limit=7.0, layer_types=[full if i % 2 else local for i in range(n)])
    if arch == "olmo2" and window:
        c.update(architectures=["Olmo3ForCausalLM"], sliding_window=window, layer_types=[full if i % 4 == 3 else local for i in range(n)])
        rope["attention_factor"] = 0.1 * math.log(rope["factor"]) + 1
    if arch == "exaone4" and n == 64: c.update(sliding_window=window, layer_types=[full if i % 4 == 3 else local for i in range(n)])
    if arch in ("lfm2", "lfm2moe"):
        c.update(conv_L_cache=get("shortconv.l_cache"), norm_eps=c.pop("rms_norm_eps"), layer_types=[full if k else "conv" for k in kv])
        c["block_ff_dim"] = 12345  # before rounding, as published folders have it; unused
        put("sliding_window", window)
        if arch == "lfm2moe": c.update(num_experts=experts, moe_intermediate_size=get("expert_feed_forward_length"), num_dense_layers=get("leading_dense_block_count"))
    if arch in ("qwen35", "qwen35moe", "qwen3next"):
        c.update(linear_conv_kernel_dim=get("ssm.conv_kernel"), linear_key_head_dim=get("ssm.state_size"), linear_value_head_dim=get("ssm.state_size"),
                 linear_num_key_heads=get("ssm.group_count"), linear_num_value_heads=get("ssm.time_step_rank"),
                 full_attention_interval=get("full_attention_interval"))
        if arch != "qwen3next":
            theta, part = c.pop("rope_theta"), c.pop("partial_rotary_factor", 1)
            c = {"architectures": c.pop("architectures"), "tie_word_embeddings": c.pop("tie_word_embeddings"), "text_config": c}
            if get("nextn_predict_layers"): c["text_config"]["mtp_num_hidden_layers"] = 1
            c["text_config"]["rope_parameters"] = {"rope_type": "default", "rope_theta": theta, "partial_rotary_factor": part,
                                                   "mrope_section": get("rope.dimension_sections")[:3]}
            c["architectures"] = [c["architectures"][0].replace("ForCausalLM", "ForConditionalGeneration")]
    if arch in ("gemma3n", "gemma4", "gemma4-assistant"):
        c["hidden_activation"] = "gelu_pytorch_tanh"
        c["layer_types"] = [local if s else full for s in get("attention.sliding_window_pattern")]
        c["hidden_size_per_layer_input"] = get("embedding_length_per_layer_input")
        c["num_kv_shared_layers"] = get("attention.shared_kv_layers")
        put("final_logit_softcapping", get("final_logit_softcapping")); put("sliding_window", window)
        base = get("rope.freq_base_swa")
        if arch == "gemma3n":
            c.update(rope_local_base_freq=base, altup_active_idx=0, altup_num_inputs=4, intermediate_size=ffn, vocab_size_per_layer_input=vocab,
                     activation_sparsity_pattern=[0.95 if x > 0 else 0.0 for x in get("activation_sparsity_scale")])
        else:
            ones = sum(x == 1 for x in floats(0, g.tensors["rope_freqs.weight"][2]))
            c["global_head_dim"], c["head_dim"] = c["head_dim"], get("attention.key_length_swa")
            c.pop("partial_rotary_factor", None)
            c["rope_parameters"] = {full: {"rope_type": "proportional", "rope_theta": c.pop("rope_theta"), "partial_rotary_factor": 2 * ones / c["global_head_dim"]},
                                    local: {"rope_type": "default", "rope_theta": base}}
            if isinstance(ffn, list): c["intermediate_size"], c["use_double_wide_mlp"] = min(ffn), max(ffn) > min(ffn)
            if isinstance(kv, list):
                c["num_key_value_heads"] = next(k for k, t in zip(kv, c["layer_types"]) if t == local)
                c["num_global_key_value_heads"] = next(k for k, t in zip(kv, c["layer_types"]) if t == full)
                c["attention_k_eq_v"] = True
            if experts:
                c.update(num_experts=experts, top_k_experts=c.pop("num_experts_per_tok"), moe_intermediate_size=get("expert_feed_forward_length"), enable_moe_block=True)
        if arch == "gemma4-assistant":
            c["num_hidden_layers"] = n
            c = {"architectures": c.pop("architectures"), "tie_word_embeddings": True, "backbone_hidden_size": get("embedding_length_out"),
                 "use_ordered_embeddings": False, "text_config": c}
    if arch == "deepseek2":
        latent = get("attention.kv_lora_rank")
        c.pop("head_dim"); c.pop("partial_rotary_factor", None)
        c.update(kv_lora_rank=latent, q_lora_rank=get("attention.q_lora_rank"), qk_rope_head_dim=turned, v_head_dim=get("attention.value_length_mla"),
                 qk_nope_head_dim=get("attention.key_length_mla") - turned, n_routed_experts=experts, moe_intermediate_size=get("expert_feed_forward_length"),
                 n_shared_experts=get("expert_shared_count"), routed_scaling_factor=get("expert_weights_scale"), norm_topk_prob=get("expert_weights_norm", False),
                 first_k_dense_replace=get("leading_dense_block_count"), num_nextn_predict_layers=get("nextn_predict_layers", 0), n_group=get("expert_group_count", 1), topk_group=get("expert_group_used_count", 1),
                 scoring_func="sigmoid" if get("expert_gating_func") == 2 else "softmax", num_key_value_heads=c["num_attention_heads"])
        log = get("rope.scaling.yarn_log_multiplier")
        if log: rope.update(mscale=10 * log, mscale_all_dim=10 * log)
    if arch == "kimi-linear":
        latent = get("attention.kv_lora_rank")
        c.pop("head_dim"); c.pop("partial_rotary_factor", None); c.pop("num_experts_per_tok")
        c.update(kv_lora_rank=latent, q_lora_rank=None, qk_rope_head_dim=turned, v_head_dim=get("attention.value_length_mla"), mla_use_nope=True,
                 qk_nope_head_dim=get("attention.key_length_mla") - turned, num_experts=experts, num_experts_per_token=get("expert_used_count"),
                 moe_intermediate_size=get("expert_feed_forward_length"), num_shared_experts=get("expert_shared_count"), moe_renormalize=True,
                 routed_scaling_factor=get("expert_weights_scale"), first_k_dense_replace=get("leading_dense_block_count"), moe_layer_freq=1,
                 num_expert_group=get("expert_group_count", 1), topk_group=get("expert_group_used_count", 1), num_key_value_heads=c["num_attention_heads"],
                 moe_router_activation_func="sigmoid" if get("expert_gating_func") == 2 else "softmax",
                 linear_attn_config={"full_attn_layers": [i + 1 for i, k in enumerate(kv) if k], "kda_layers": [i + 1 for i, k in enumerate(kv) if not k],
                                     "head_dim": get("kda.head_dim"), "num_heads": c["num_attention_heads"], "short_conv_kernel_size": get("ssm.conv_kernel")})
    if arch == "falcon-h1":
        c.update(multipliers(g), mamba_d_conv=get("ssm.conv_kernel"), mamba_d_state=get("ssm.state_size"), mamba_n_groups=get("ssm.group_count"),
                 mamba_n_heads=get("ssm.time_step_rank"), mamba_d_ssm=get("ssm.inner_size"), mamba_rms_norm="blk.0.ssm_norm.weight" in g.tensors,
                 mamba_norm_before_gate=False, attention_bias=False)
    if arch == "granitehybrid":
        c.update(mamba_d_conv=get("ssm.conv_kernel"), mamba_d_state=get("ssm.state_size"), mamba_n_groups=get("ssm.group_count"),
                 mamba_n_heads=get("ssm.time_step_rank"), mamba_expand=get("ssm.inner_size") // c["hidden_size"],
                 position_embedding_type="rope" if get("rope.scaling.finetuned") else "nope", layer_types=["attention" if k else "mamba" for k in kv])
        if not experts: c["shared_intermediate_size"], c["num_local_experts"] = ffn, 0
    if arch.startswith("nemotron"):
        c.update(layer_norm_epsilon=c.pop("rms_norm_eps"), conv_kernel=get("ssm.conv_kernel"), ssm_state_size=get("ssm.state_size"),
                 n_groups=get("ssm.group_count"), mamba_num_heads=get("ssm.time_step_rank"), mlp_hidden_act="relu2",
                 mamba_head_dim=get("ssm.inner_size") // get("ssm.time_step_rank"),
                 hybrid_override_pattern="".join("*" if k else ("E" if experts else "-") if f else "M" for k, f in zip(kv, ffn)))
        c["moe_intermediate_size" if experts else "intermediate_size"] = max(ffn)
        if experts:
            c.update(n_routed_experts=experts, moe_shared_expert_intermediate_size=get("expert_shared_feed_forward_length"),
                     n_shared_experts=get("expert_shared_count"), norm_topk_prob=get("expert_weights_norm"),
                     routed_scaling_factor=get("expert_weights_scale"), n_group=1, topk_group=1)
            put("moe_latent_size", get("moe_latent_size"))
    if rope: c["rope_scaling" if arch != "mistral3" else "rope_parameters"] = rope
    more(g, arch, get, n, c)
    return c


def encoder(g, arch, get, n):
    """config.json of encoders: each has its own names."""
    size = {"hidden_size": get("embedding_length"), "num_hidden_layers": n, "num_attention_heads": get("attention.head_count"),
            "intermediate_size": get("feed_forward_length"), "max_position_embeddings": get("context_length")}
    c = {"architectures": [CLASSES[arch]], "vocab_size": g.tensors["token_embd.weight"][0][1], "type_vocab_size": g.keys.get("tokenizer.ggml.token_type_count")}
    labels = get("classifier.output_labels", ["LABEL_0"])
    if get("pooling_type") == 4:
        c["architectures"] = [CLASSES[arch].replace("Model", "ForSequenceClassification")]
        c["id2label"] = {str(i): label for i, label in enumerate(labels)}
    if arch.startswith("nomic"):
        c.update(zip(("n_embd", "n_layer", "n_head", "n_inner"), size.values()), n_positions=4 * get("context_length"))
        c.update(layer_norm_epsilon=get("attention.layer_norm_epsilon"), rotary_emb_base=get("rope.freq_base"), rotary_emb_fraction=1.0, prenorm=False, causal=False,
                 activation_function="swiglu" if arch == "nomic-bert" else "gelu_new", moe_every_n_layers=get("moe_every_n_layers", 0),
                 num_experts=get("expert_count", 8), moe_top_k=get("expert_used_count", 2))
        return c
    c.update(size)
    if arch == "bert": c.update(hidden_act="gelu_new", layer_norm_eps=get("attention.layer_norm_epsilon"), position_embedding_type="absolute")
    else: c.update(hidden_activation=get("hidden_activation", "gelu").replace("gelu", "gelu_pytorch_tanh"), classifier_activation="gelu_pytorch_tanh", norm_eps=get("attention.layer_norm_epsilon"), global_rope_theta=get("rope.freq_base"),
                   local_rope_theta=get("rope.freq_base_swa", 10000.0), local_attention=get("attention.sliding_window", 0), classifier_pooling="mean",
                   global_attn_every_n_layers=get("attention.sliding_window_pattern", 3), tie_word_embeddings=True)
    return c


# For families of tests/data/more: their names of the keys of experts.
EXPERT_KEYS = {"expert_count": "num_experts", "expert_used_count": "num_experts_per_tok", "expert_feed_forward_length": "moe_intermediate_size",
               "expert_shared_count": "num_shared_experts", "leading_dense_block_count": "first_k_dense_replace",
               "expert_weights_scale": "routed_scaling_factor", "expert_weights_norm": "norm_topk_prob",
               "expert_group_count": "n_group", "expert_group_used_count": "topk_group", "nextn_predict_layers": "num_nextn_predict_layers"}
OTHER_KEYS = {"ernie4_5-moe": {"expert_count": "moe_num_experts", "expert_used_count": "moe_k", "expert_shared_count": "moe_num_shared_experts",
                               "leading_dense_block_count": "moe_layer_start_index"},
              "bailingmoe2": {"expert_shared_feed_forward_length": "moe_shared_expert_intermediate_size"},
              "afmoe": {"leading_dense_block_count": "num_dense_layers", "expert_weights_scale": "route_scale", "expert_weights_norm": "route_norm"},
              "laguna": {"expert_weights_scale": "moe_routed_scaling_factor", "expert_shared_feed_forward_length": "shared_expert_intermediate_size"},
              "step35": {"expert_count": "moe_num_experts", "expert_used_count": "moe_top_k", "expert_weights_scale": "moe_router_scaling_factor",
                         "expert_weights_norm": "norm_expert_weight", "expert_shared_feed_forward_length": "share_expert_dim"},
              **{arch: {"expert_count": "n_routed_experts", "expert_shared_count": "n_shared_experts"} for arch in ("glm4moe", "dots1", "mimo2")}}
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 64}


def more(g, arch, get, n, c):
    """config.json of families whose small models are in tests/data/more."""
    local, full = "sliding_attention", "full_attention"
    n -= get("nextn_predict_layers", 0)
    if get("rope.dimension_sections"):
        c.pop("partial_rotary_factor", None)
        if arch.startswith("qwen"): c["rope_scaling"] = {"type": "mrope", "mrope_section": get("rope.dimension_sections")[:4 if arch == "qwen2vl" else 3]}
        if arch.startswith("qwen3vl"): c["vision_config"] = {"deepstack_visual_indexes": [8, 16, 24]}
    if arch in OTHER_KEYS or arch in ("olmoe", "exaone-moe", "minimax-m2"):
        c.pop("num_experts_per_tok")
        for key, new in {**EXPERT_KEYS, **OTHER_KEYS.get(arch, {})}.items():
            if get(key) is not None: c[new] = get(key)
    if arch in ("mamba", "mamba2"):
        for key in ("num_attention_heads", "num_key_value_heads", "max_position_embeddings", "intermediate_size"): c.pop(key)
        if arch == "mamba": c.update(time_step_rank=get("ssm.time_step_rank"), intermediate_size=get("ssm.inner_size"))
        else: c.update(num_heads=get("ssm.time_step_rank"), head_dim=get("ssm.inner_size") // get("ssm.time_step_rank"), n_groups=get("ssm.group_count"))
        c.update(conv_kernel=get("ssm.conv_kernel"), state_size=get("ssm.state_size"), layer_norm_epsilon=c.pop("rms_norm_eps"))
        if get("ssm.dt_b_c_rms"): c.update(architectures=["FalconMambaForCausalLM"], mixer_rms_eps=c["layer_norm_epsilon"])
    if arch == "jamba":
        attends = [i for i, k in enumerate(get("attention.head_count_kv")) if k]
        c.update(attn_layer_offset=attends[0], attn_layer_period=attends[1] - attends[0] if len(attends) > 1 else n, mamba_d_conv=get("ssm.conv_kernel"),
                 mamba_d_state=get("ssm.state_size"), mamba_dt_rank=get("ssm.time_step_rank"), mamba_expand=get("ssm.inner_size") // c["hidden_size"],
                 num_experts=get("expert_count"))
    window = get("attention.sliding_window")
    if arch == "olmoe": c["norm_topk_prob"] = False
    if arch == "ernie4_5-moe":
        c["moe_layer_interval"], c["moe_layer_end_index"] = 1, -1
        # The only width that the folder can express.
        assert get("expert_shared_feed_forward_length") == c["moe_num_shared_experts"] * c["moe_intermediate_size"]
    if arch == "bailingmoe2": c["score_function"] = "sigmoid"
    if arch == "dots1": c["scoring_func"] = "noaux_tc"
    if arch == "hunyuan-moe":
        c.pop("num_experts_per_tok")
        c["moe_topk"], c["moe_intermediate_size"] = [get("expert_used_count")] * n, [get("expert_feed_forward_length")] * n
        c["num_experts"], c["num_shared_expert"] = get("expert_count"), [1] * n
        assert get("expert_shared_feed_forward_length") == c["intermediate_size"]
    if arch == "minimax-m2": c["rotary_dim"] = get("rope.dimension_count"); c["num_local_experts"] = c.pop("num_experts"); c.pop("moe_intermediate_size")
    if arch == "exaone-moe":
        c.update(sliding_window=window, layer_types=[full if i % 4 == 3 else local for i in range(n)], scoring_func="sigmoid")
        assert get("expert_shared_feed_forward_length") == c["num_shared_experts"] * c["moe_intermediate_size"]
    if arch == "afmoe": c.update(sliding_window=window, layer_types=[full if i % 4 == 3 else local for i in range(n)], score_func="sigmoid", mup_enabled=True)
    if arch == "nanbeige": c.update(num_loops=get("num_loops"), skip_loop_final_norm=get("skip_loop_final_norm"))
    if arch == "arcee": c["hidden_act"] = "relu2"
    if arch == "cohere2":
        c.update(layer_norm_eps=get("attention.layer_norm_epsilon"), logit_scale=get("logit_scale"), sliding_window=window, use_qk_norm=False,
                 sliding_window_pattern=4, layer_types=[full if i % 4 == 3 else local for i in range(n)])
        c.pop("rms_norm_eps")
    if arch == "apertus": c.update(hidden_act="xielu", rope_scaling=LLAMA3)
    if arch == "laguna":
        heads = get("attention.head_count")
        theta, scaling, part = c.pop("rope_theta"), c.pop("rope_scaling"), c.pop("partial_rotary_factor")
        c.update(num_attention_heads=heads[0], num_attention_heads_per_layer=heads, layer_types=[local if window and i % 4 else full for i in range(n)],
                 mlp_layer_types=["dense" if i < c.pop("first_k_dense_replace", 0) else "sparse" for i in range(n)],
                 rope_parameters={full: {**scaling, "rope_theta": theta, "partial_rotary_factor": part}})
        dense = get("leading_dense_block_count")
        c["mlp_layer_types"] = ["dense"] * dense + ["sparse"] * (n - dense)
        c["gating"] = True if g.tensors["blk.0.attn_gate.weight"][0][1] == heads[0] else "per-element"
        if window:
            c["sliding_window"] = window
            c["rope_parameters"][local] = {"rope_type": "default", "rope_theta": get("rope.freq_base_swa"),
                                           "partial_rotary_factor": get("rope.dimension_count_swa") / c["head_dim"]}
    if arch == "mimo2":
        kv, slides = get("attention.head_count_kv")[:n], get("attention.sliding_window_pattern")[:n]
        c.update(layernorm_epsilon=c.pop("rms_norm_eps"), v_head_dim=get("attention.value_length"), swa_v_head_dim=get("attention.value_length"),
                 swa_head_dim=c["head_dim"], swa_num_attention_heads=c["num_attention_heads"], hybrid_layer_pattern=slides, sliding_window=window,
                 num_key_value_heads=next(k for k, s in zip(kv, slides) if not s), swa_num_key_value_heads=next(k for k, s in zip(kv, slides) if s),
                 swa_rope_theta=get("rope.freq_base_swa"), attention_value_scale=get("attention.value_scale"), scoring_func="sigmoid")
    if arch == "step35":
        slides, heads, kv = (get("attention." + key) for key in ("sliding_window_pattern", "head_count", "head_count_kv"))
        of = lambda numbers, kind: next(k for k, s in zip(numbers, slides) if s == kind)
        c.pop("num_key_value_heads"); c.pop("first_k_dense_replace")
        c.update(num_attention_heads=of(heads, False), num_attention_groups=of(kv, False), sliding_window=window, zero_centered=True,
                 attention_other_setting={"num_attention_heads": of(heads, True), "num_attention_groups": of(kv, True)},
                 layer_types=[local if s else full for s in slides], rope_scaling=LLAMA3, moe_router_activation="sigmoid",
                 rope_theta=[get("rope.freq_base_swa") if s else get("rope.freq_base") for s in slides],
                 partial_rotary_factors=[1.0 if s else 0.5 for s in slides],
                 swiglu_limits=get("swiglu_clamp_exp"), swiglu_limits_shared=get("swiglu_clamp_shexp"))


PATTERNS = {"lfm2": r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
            "qwen2": r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
            "qwen35": r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
            "deepseek-v3": [r"\p{N}{1,3}", "[一-龥\u3040-ゟ゠-ヿ]+",
                            "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+"]}
PATTERNS["llama-bpe"] = PATTERNS["falcon-h1"] = PATTERNS["dbrx"] = PATTERNS["pixtral"] = PATTERNS["lfm2"]


def varint(n):
    out = b""
    while n >= 128: out += bytes([n & 127 | 128]); n >>= 7
    return out + bytes([n])


def field(number, data): return varint(number << 3 | 2) + varint(len(data)) + data


def tokenizer(g, out):
    k = lambda name, default=None: g.keys.get("tokenizer.ggml." + name, default)
    tokens, model, types = k("tokens"), k("model"), k("token_type")
    cfg = {"model_max_length": g.get("context_length")}
    if model == "bert": cfg.update(cls_token=tokens[k("bos_token_id")], sep_token=tokens[k("seperator_token_id")])
    for name, key in (("bos", "bos"), ("eos", "eos"), ("unk", "unknown"), ("pad", "padding")):
        if k(key + "_token_id") is not None: cfg[name + "_token"] = tokens[k(key + "_token_id")]
    for flag in ("add_bos_token", "add_eos_token"):
        if k(flag) is not None: cfg[flag] = k(flag)
    if "tokenizer.chat_template" in g.keys: cfg["chat_template"] = g.keys["tokenizer.chat_template"]
    if model == "llama":
        data = b"".join(field(1, field(1, t.encode("utf-8", "surrogateescape")) + b"\x15" + struct.pack("<f", s) + b"\x18" + varint(y))
                        for t, s, y in zip(tokens, k("scores"), types))
        data += field(2, b"\x18\x02") + field(3, field(1, b"identity") + b"\x18" + varint(int(k("add_space_prefix", True))))
        with open(os.path.join(out, "tokenizer.model"), "wb") as f: f.write(data)
    elif model == "bert":
        cut = lambda t, y: t if y == 3 else t[1:] if t.startswith("\u2581") else "##" + t
        cfg.pop("bos_token")
        j = {"added_tokens": [{"id": i, "content": t, "special": True} for i, (t, y) in enumerate(zip(tokens, types)) if y == 3],
             "normalizer": {"type": "BertNormalizer", "lowercase": True, "strip_accents": None}, "pre_tokenizer": {"type": "BertPreTokenizer"},
             "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
                       "vocab": {cut(t, y): i for i, (t, y) in enumerate(zip(tokens, types))}}}
        with open(os.path.join(out, "tokenizer.json"), "w") as f: json.dump(j, f)
    else:
        regexes = PATTERNS.get(k("pre"), PATTERNS["qwen2"]) if model == "gpt2" else []
        steps = [{"type": "Split", "pattern": {"Regex": r}, "behavior": "Isolated", "invert": False} for r in ([regexes] if isinstance(regexes, str) else regexes)]
        if model == "gpt2": steps.append({"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False})
        j = {"version": "1.0", "added_tokens": [{"id": i, "content": t, "special": y == 3} for i, (t, y) in enumerate(zip(tokens, types)) if y in (3, 4)],
             "pre_tokenizer": {"type": "Sequence", "pretokenizers": steps},
             "model": {"type": "BPE", "byte_fallback": model == "gemma4", "ignore_merges": k("pre") in ("lfm2", "llama-bpe", "falcon-h1", "pixtral"),
                       "vocab": {t: i for i, (t, y) in enumerate(zip(tokens, types)) if y not in (3, 4)},
                       "merges": [m.split(" ") if i % 2 else m for i, m in enumerate(k("merges"))]}}
        if model == "gemma4": j["normalizer"] = {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}
        with open(os.path.join(out, "tokenizer.json"), "w") as f: json.dump(j, f)
    with open(os.path.join(out, "tokenizer_config.json"), "w") as f: json.dump(cfg, f)


def roberta(tensors, padding):
    """Names and positions of XLM-RoBERTa; of a model that scores texts, two matrices in its classifier."""
    ranks, out = "classifier.weight" in tensors, {}
    for name, t in tensors.items():
        name = name.removeprefix("bert.")
        if "position_embeddings" in name: t = t.pick([0] * padding + list(range(t.shape[0])))
        if ranks: name = name.replace("classifier.", "classifier.out_proj.").replace("pooler.dense", "classifier.dense")
        out["roberta." + name if ranks and not name.startswith("classifier") else name] = t
    return out


def save(path, tensors):
    head, at = {"__metadata__": {"format": "pt"}}, 0
    for name, t in tensors.items():
        head[name] = {"dtype": t.dtype, "shape": t.shape, "data_offsets": [at, at + len(t.bytes())]}
        at += len(t.bytes())
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for t in tensors.values(): f.write(t.bytes())


def write(a, model, out):
    g = Gguf(model)
    os.makedirs(out, exist_ok=True)
    tensors = {name: t for name, t in weights(g).items() if name not in a.drop}
    if a.padding: tensors = roberta(tensors, a.padding)
    if g.get("pooling_type") in (1, 2, 3):  # as Sentence Transformers write it
        tensors = {name.removeprefix("model."): t for name, t in tensors.items()}
        os.makedirs(os.path.join(out, "1_Pooling"), exist_ok=True)
        kinds = ("mean_tokens", "cls_token", "lasttoken")
        with open(os.path.join(out, "1_Pooling", "config.json"), "w") as f:
            json.dump({"pooling_mode_" + kind: i + 1 == g.get("pooling_type") for i, kind in enumerate(kinds)}, f)
        modules = []
        def add(path, kind): modules.append({"idx": len(modules), "name": str(len(modules)), "path": path, "type": "sentence_transformers.models." + kind})
        add("", "Transformer"), add("1_Pooling", "Pooling")
        for name in [name for name in tensors if "_Dense." in name]:
            module, t = name.split(".")[0], tensors.pop(name)
            add(module, "Dense")
            os.makedirs(os.path.join(out, module), exist_ok=True)
            save(os.path.join(out, module, "model.safetensors"), {name.split(".", 1)[1]: t})
            with open(os.path.join(out, module, "config.json"), "w") as f:
                json.dump({"in_features": t.shape[1], "out_features": t.shape[0], "bias": False, "activation_function": "torch.nn.modules.linear.Identity"}, f)
        add("%d_Normalize" % len(modules), "Normalize")
        with open(os.path.join(out, "modules.json"), "w") as f: json.dump(modules, f)
    if a.shards == 1: save(os.path.join(out, "model.safetensors"), tensors)
    else:
        names, index = list(tensors), {}
        for s in range(a.shards):
            file = "model-%05d-of-%05d.safetensors" % (s + 1, a.shards)
            part = {name: tensors[name] for name in names[s::a.shards]}
            save(os.path.join(out, file), part)
            index.update({name: file for name in part})
        with open(os.path.join(out, "model.safetensors.index.json"), "w") as f: json.dump({"metadata": {}, "weight_map": index}, f)
    c = config(g, tensors)
    if a.padding:
        c.update(architectures=[c["architectures"][0].replace("Bert", "XLMRoberta")], model_type="xlm-roberta", pad_token_id=a.padding - 1,
                 max_position_embeddings=c["max_position_embeddings"] + a.padding)
    with open(os.path.join(out, "config.json"), "w") as f: json.dump(c, f, indent=1)
    tokenizer(g, out)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("pairs", nargs="+", metavar="MODEL OUT")
    p.add_argument("--shards", type=int, default=1)
    p.add_argument("--drop", action="append", default=[])
    p.add_argument("--padding", type=int, default=0, help="a BERT as XLM-RoBERTa is published: that many rows before the first position")
    a = p.parse_args()
    if len(a.pairs) % 2 != 0: p.error("expected an OUT for each MODEL")
    for model, out in zip(a.pairs[::2], a.pairs[1::2]): write(a, model, out)


if __name__ == "__main__":
    main()
