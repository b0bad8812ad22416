"""tiny.py OUT [FAMILY...]: random small models of transformers' own classes, saved as folders, converted by pronk and held against
transformers' logits (f32). One line a family: the NMSE, or what refused. SEED, SHAPE (0, 1) change the model."""
import json, os, shutil, subprocess, sys, traceback, warnings
os.environ['TRANSFORMERS_VERBOSITY'] = 'error'; warnings.filterwarnings('ignore')
import numpy as np, torch, transformers; transformers.utils.logging.disable_progress_bar()
from transformers import AutoConfig, AutoModel, AutoModelForCausalLM, PreTrainedTokenizerFast, CONFIG_MAPPING
from tokenizers import Tokenizer, models, pre_tokenizers, decoders, trainers
from safetensors.numpy import load_file, save_file
P = os.environ.get('PRONK', 'build/bin/pronk'); SEED = int(os.environ.get('SEED', 0)); SHAPE = int(os.environ.get('SHAPE', 0))
out = sys.argv[1]; os.makedirs(out, exist_ok=True)
def tokenizer(path, bos=True):
    t = Tokenizer(models.BPE(fuse_unk=True)); 
    from tokenizers import Regex
    pat = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(pat), 'isolated', False), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    t.decoder = decoders.ByteLevel()
    tr = trainers.BpeTrainer(vocab_size=317, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), special_tokens=['<|begin_of_text|>', '<|end_of_text|>', '<|pad|>'], show_progress=False)
    t.train_from_iterator(['the cat sat on the mat and the dog ran over the hill to the sea ' * 3], tr)
    while t.get_vocab_size() < 320: t.add_special_tokens(['<|extra_%d|>' % t.get_vocab_size()])
    f = PreTrainedTokenizerFast(tokenizer_object=t, bos_token='<|begin_of_text|>', eos_token='<|end_of_text|>', pad_token='<|pad|>', unk_token='<|pad|>'); f.save_pretrained(path)
    # Gemma 4's vocabulary needs an unknown token; others ignore it.
    j = json.load(open(path + '/tokenizer.json')); j['model']['unk_token'] = '<|pad|>'; json.dump(j, open(path + '/tokenizer.json', 'w'))
s = SHAPE
H = (64, 96)[s]; NH = (4, 6)[s]; KV = (2, 2)[s]; L = (3, 5)[s]; FF = (96, 160)[s]; E = (4, 8)[s]
base = dict(vocab_size=320, hidden_size=H, intermediate_size=FF, num_hidden_layers=L, num_attention_heads=NH, num_key_value_heads=KV, max_position_embeddings=512,
            bos_token_id=0, eos_token_id=1, pad_token_id=2)
moe = dict(num_experts=E, num_local_experts=E, n_routed_experts=E, num_experts_per_tok=2, moe_intermediate_size=32 + 32 * s)
F = {  # family: overrides (youtu: as published; transformers zeroes a padding's row of a tied matrix when it reads it)
 'llama': {}, 'mistral': dict(sliding_window=8), 'mixtral': dict(num_local_experts=E), 'qwen2': {}, 'qwen2_moe': dict(**moe, shared_expert_intermediate_size=64), 'qwen3': dict(head_dim=32), 'qwen3_moe': dict(**moe, head_dim=32),
 'qwen3_next': dict(**moe, head_dim=32, shared_expert_intermediate_size=64, linear_key_head_dim=16, linear_value_head_dim=16, linear_num_key_heads=2, linear_num_value_heads=4, num_hidden_layers=4, rope_parameters=dict(rope_type='default', rope_theta=10000.0, partial_rotary_factor=0.25)),
 'qwen3_5_text': dict(head_dim=32, linear_key_head_dim=16, linear_value_head_dim=16, linear_num_key_heads=2, linear_num_value_heads=4, num_hidden_layers=4),
 'qwen3_5_moe_text': dict(**moe, head_dim=32, shared_expert_intermediate_size=64, linear_key_head_dim=16, linear_value_head_dim=16, linear_num_key_heads=2, linear_num_value_heads=4, num_hidden_layers=4),
 'gemma': dict(head_dim=32), 'gemma2': dict(head_dim=32, sliding_window=8, num_hidden_layers=4, query_pre_attn_scalar=32), 'gemma3_text': dict(head_dim=32, sliding_window=8, num_hidden_layers=6, query_pre_attn_scalar=32),
 'gemma4_text': dict(vocab_size_per_layer_input=320, hidden_size_per_layer_input=32, head_dim=32, sliding_window=8, num_hidden_layers=6), 'phi': {}, 'phi3': dict(rope_scaling=None), 'phimoe': dict(num_local_experts=E), 'granite': dict(attention_multiplier=0.2, embedding_multiplier=2.0, residual_multiplier=0.5, logits_scaling=3.0),
 'granitemoe': dict(num_local_experts=E, num_experts_per_tok=2), 'granitemoeshared': dict(num_local_experts=E, num_experts_per_tok=2, shared_intermediate_size=64),
 'granite_swa': dict(attention_multiplier=0.2, embedding_multiplier=2.0, residual_multiplier=0.5, logits_scaling=3.0, sliding_window=8, num_hidden_layers=5, layer_rope_theta=[10000.0, 0, 10000.0, 10000.0, 0]),
 'granitemoe_swa': dict(attention_multiplier=0.2, embedding_multiplier=2.0, residual_multiplier=0.5, logits_scaling=3.0, num_local_experts=E, num_experts_per_tok=2, shared_intermediate_size=64 * s, sliding_window=8, num_hidden_layers=5),
 'granitemoehybrid': dict(num_local_experts=E, num_experts_per_tok=2, shared_intermediate_size=64, layer_types=['mamba', 'attention', 'mamba'] + ['mamba'] * (L - 3), mamba_n_heads=8, mamba_d_state=16, mamba_d_head=2 * H // 8, mamba_n_groups=1),
 'olmo': {}, 'olmo2': {}, 'olmo3': dict(sliding_window=8, num_hidden_layers=4), 'olmoe': dict(num_experts=E, num_experts_per_tok=2), 'cohere': dict(logit_scale=0.2), 'cohere2': dict(logit_scale=0.2, sliding_window=8, num_hidden_layers=4), 'cohere2_moe': dict(num_experts=E, num_experts_per_tok=2, num_shared_experts=1, head_dim=16, logit_scale=0.2, sliding_window=8, num_hidden_layers=6, first_k_dense_replace=1, prefix_dense_intermediate_size=112, expert_selection_fn=('sigmoid', 'softmax')[s], rms_norm_eps=(None, 1e-5)[s]),
 'glm': dict(head_dim=16, partial_rotary_factor=0.5), 'glm4': dict(head_dim=16, partial_rotary_factor=0.5), 'glm4_moe': dict(**moe, head_dim=16, n_shared_experts=1, first_k_dense_replace=1, n_group=1, topk_group=1, partial_rotary_factor=0.5),
 'deepseek_v2': dict(**moe, num_key_value_heads=NH, n_shared_experts=1, first_k_dense_replace=1, kv_lora_rank=32, q_lora_rank=None, qk_rope_head_dim=16, qk_nope_head_dim=16, v_head_dim=16, n_group=1, topk_group=1, head_dim=16),
 'deepseek_v3': dict(**moe, num_key_value_heads=NH, n_shared_experts=1, first_k_dense_replace=1, kv_lora_rank=32, q_lora_rank=32, qk_rope_head_dim=16, qk_nope_head_dim=16, v_head_dim=16, n_group=2, topk_group=1, head_dim=16),
 'gpt_oss': dict(num_local_experts=E, num_experts_per_tok=2, head_dim=32, sliding_window=8, num_hidden_layers=4), 'smollm3': {}, 'lfm2': dict(num_hidden_layers=4, block_auto_adjust_ff_dim=False, layer_types=['conv', 'full_attention', 'conv', 'full_attention']),
 'lfm2_moe': dict(**moe, num_hidden_layers=4, num_dense_layers=1, layer_types=['conv', 'full_attention', 'conv', 'full_attention']), 'mamba': dict(state_size=16), 'mamba2': dict(num_heads=8, head_dim=2 * H // 8, state_size=16, n_groups=1),
 'falcon_mamba': dict(state_size=16), 'falcon_h1': dict(head_dim=16, mamba_norm_before_gate=False, mamba_rms_norm=False, mamba_d_ssm=2 * H, mamba_n_heads=8, mamba_d_head=2 * H // 8, mamba_d_state=16, mamba_n_groups=1), 'jamba': dict(num_experts=E, num_hidden_layers=8, mamba_d_state=16, mamba_dt_rank=4, use_mamba_kernels=False),
 'nemotron': {}, 'nemotron_h': dict(head_dim=16, hybrid_override_pattern='M*-M', num_hidden_layers=4, mamba_num_heads=8, mamba_head_dim=2 * H // 8, ssm_state_size=16, n_groups=2), 'stablelm': {}, 'starcoder2': {}, 'gpt2': dict(n_embd=H, n_layer=L, n_head=NH, n_positions=512, n_inner=FF), 'gpt_neox': {}, 'bloom': dict(n_head=NH, n_layer=L), 'opt': dict(ffn_dim=FF, word_embed_proj_dim=H), 'mpt': dict(d_model=H, n_heads=NH, n_layers=L, max_seq_len=512),
 'falcon': dict(new_decoder_architecture=True, num_kv_heads=KV, bias=False), 'exaone4': dict(sliding_window=8, num_hidden_layers=4, head_dim=16, sliding_window_pattern=4), 'dots1': dict(**moe, head_dim=16, n_shared_experts=1, first_k_dense_replace=1, n_group=1, topk_group=1), 'hunyuan_v1_dense': dict(head_dim=16), 'hunyuan_v1_moe': dict(head_dim=16, num_experts=E, moe_topk=2, num_shared_expert=1),
 'seed_oss': dict(head_dim=16), 'arcee': {}, 'apertus': {}, 'afmoe': dict(**moe, head_dim=16, mup_enabled=True, num_dense_layers=1, sliding_window=8, num_hidden_layers=4, num_shared_experts=1), 'minimax_m2': dict(**moe, head_dim=16), 'ernie4_5': dict(head_dim=16), 'ernie4_5_moe': dict(moe_num_experts=E, moe_k=2, moe_intermediate_size=32, moe_num_shared_experts=1), 'ministral3': dict(head_dim=16), 'ministral': dict(head_dim=16, sliding_window=8),
 'glm4_moe_lite': dict(**moe, num_key_value_heads=NH, n_shared_experts=1, first_k_dense_replace=1, kv_lora_rank=32, q_lora_rank=32, qk_rope_head_dim=16, qk_nope_head_dim=16, v_head_dim=16, n_group=1, topk_group=1),
 'helium': dict(head_dim=16), 'diffllama': {}, 'minimax': dict(num_local_experts=E, head_dim=16, full_attn_alpha_factor=(1, 1.5)[s], linear_attn_alpha_factor=(1, 1.5)[s], mlp_alpha_factor=(1, 1.5)[s]), 'persimmon': {}, 'bamba': dict(head_dim=16, attn_layer_indices=[1], mamba_n_heads=8, mamba_d_head=2 * H // 8, mamba_d_state=16, mamba_n_groups=1), 'exaone_moe': dict(**moe, head_dim=16), 'solar_open': dict(**moe, head_dim=16), 'youtu': dict(pad_token_id=None, num_key_value_heads=NH, kv_lora_rank=32, q_lora_rank=32, qk_rope_head_dim=16, qk_nope_head_dim=16, v_head_dim=16), 'cwm': dict(head_dim=16, sliding_window=8), 'vaultgemma': dict(head_dim=32, sliding_window=8), 'laguna': dict(**moe, head_dim=16), 'flex_olmo': dict(num_experts=E, num_experts_per_tok=2), 'nanochat': {}, 'hy_v3': dict(**moe, head_dim=16, num_shared_experts=1), 'kimi_linear': dict(**moe, linear_head_dim=16, linear_num_heads=NH, num_key_value_heads=NH, kv_lora_rank=32, q_lora_rank=None, qk_rope_head_dim=16, qk_nope_head_dim=16, v_head_dim=16, num_hidden_layers=4, layer_types=['linear_attention', 'linear_attention', 'linear_attention', 'full_attention']), 'bailing_hybrid': dict(**moe, num_shared_experts=1, num_key_value_heads=NH, kv_lora_rank=32, q_lora_rank=(None, 32)[s], qk_rope_head_dim=16, qk_nope_head_dim=16, v_head_dim=16, head_dim=(16, 24)[s], n_group=2, topk_group=1, first_k_dense_replace=1, num_hidden_layers=4, layer_group_size=4), 'mimo_v2_flash': dict(**moe, head_dim=24, v_head_dim=8, num_key_value_heads=(2, 3)[s], swa_num_key_value_heads=(4, 6)[s], sliding_window=8, num_hidden_layers=4), 'gptj': dict(n_embd=H, n_layer=L, n_head=NH, rotary_dim=8), 'codegen': dict(n_embd=H, n_layer=L, n_head=NH, rotary_dim=8), 'recurrent_gemma': {}, 'xglm': {}, 'jais2': {}, 'gpt_bigcode': dict(n_embd=H, n_layer=L, n_head=NH, n_positions=512), 'internlm3': {}, 'exaone': {}, 'iquestcoder': dict(head_dim=16),
 'mellum': dict(**moe, head_dim=32, sliding_window=8, num_hidden_layers=4, layer_types=['sliding_attention', 'full_attention', 'sliding_attention', 'sliding_attention']), 'minicpm3': dict(num_key_value_heads=NH, kv_lora_rank=32, q_lora_rank=32, qk_rope_head_dim=16, qk_nope_head_dim=16, v_head_dim=16), 'hyperclovax': dict(head_dim=16, attention_multiplier=0.2, embedding_multiplier=2.0, residual_multiplier=0.5, logits_scaling=0.4),
 'gpt_neo': dict(num_heads=NH, num_layers=4, num_hidden_layers=4, attention_types=[[['global', 'local'], 2]], window_size=8), 'biogpt': {}, 
}
# Models that make vectors: AutoModel's last hidden states are compared, as the vectors of length 1 that three poolings make of them.
POOLINGS = ('mean', 'cls', 'last')
ENCODERS = {  # name: model_type, overrides
 'bert': ('bert', dict(type_vocab_size=2)), 'roberta': ('roberta', dict(type_vocab_size=1)), 'xlm_roberta': ('xlm-roberta', dict(type_vocab_size=1)), 'camembert': ('camembert', dict(type_vocab_size=1)),
 'modernbert': ('modernbert', dict(local_attention=12, num_hidden_layers=5, cls_token_id=0, sep_token_id=1)), 'nomic_bert': ('nomic_bert', dict(type_vocab_size=2)), 'jina_embeddings_v3': ('jina_embeddings_v3', dict(type_vocab_size=1)),
 'eurobert': ('eurobert', dict(num_key_value_heads=KV)), 'mpnet': ('mpnet', {}), 'qwen3_embed': ('qwen3', dict(F['qwen3'], num_key_value_heads=KV)),
 'gemma3_text_embed': ('gemma3_text', dict(F['gemma3_text'], num_key_value_heads=KV, use_bidirectional_attention=True)),
}
# Families whose code is not in transformers, each by a class that computes the same from other names and orders:
# model_type, its overrides, config.json's other keys, other names, tensors of other rows (or columns): what is joined, and the old index of each new one;
# and what is a tensor for each expert, or several of its rows.
def rows(n_heads, n_groups, head):
    """Rows of q, k and v, each of all heads, in the order of groups of heads that have q, k and v each."""
    q, k = np.arange(n_heads * head), n_heads * head + np.arange(KV * head)
    return np.concatenate([x for g in range(n_groups) for x in (np.split(q, n_groups)[g], np.split(k, n_groups)[g], np.split(k + KV * head, n_groups)[g])])
HEAD, HALF = H // NH, H // NH // 2
PLAMO = np.concatenate([np.arange(HEAD) + HEAD * (g * (NH // KV) + s) for s in range(NH // KV) for g in range(KV)])  # its heads' columns
NEIGHBOURS = np.arange(HEAD).reshape(HALF, 2).T.ravel()  # of a head whose halves are pairs
def halves(rows): return np.concatenate([h[NEIGHBOURS] for h in np.split(rows, len(rows) // HEAD)])
QKV = ['self_attn.q_proj', 'self_attn.k_proj', 'self_attn.v_proj']
RELATIVES = {
 'xverse': ('llama', {}, lambda c: dict(architectures=['XverseForCausalLM']), {}, {}),
 'internlm2': ('llama', {}, lambda c: dict(architectures=['InternLM2ForCausalLM']),
               {'model.embed_tokens': 'model.tok_embeddings', 'lm_head': 'output', 'input_layernorm': 'attention_norm', 'post_attention_layernorm': 'ffn_norm', 'self_attn.o_proj': 'attention.wo',
                'mlp.gate_proj': 'feed_forward.w1', 'mlp.down_proj': 'feed_forward.w2', 'mlp.up_proj': 'feed_forward.w3'}, {'attention.wqkv': (QKV, rows(NH, KV, HEAD))}),
 'baichuan': ('llama', dict(num_key_value_heads=NH), lambda c: dict(architectures=['BaichuanForCausalLM'], num_key_value_heads=None), {}, {'self_attn.W_pack': (QKV, np.arange(3 * H))}),
 'minicpm': ('granite', dict(attention_multiplier=HEAD ** -0.5, embedding_multiplier=12.0, residual_multiplier=1.4 / L ** 0.5, logits_scaling=H / 16),
             lambda c: dict(architectures=['MiniCPMForCausalLM'], scale_emb=12, scale_depth=1.4, dim_model_base=16, attention_multiplier=None, embedding_multiplier=None, residual_multiplier=None, logits_scaling=None), {}, {}),
 'minicpm_moe': ('granitemoe', dict(attention_multiplier=HEAD ** -0.5, embedding_multiplier=12.0, residual_multiplier=1.4 / L ** 0.5, logits_scaling=H / 16, num_local_experts=E, num_experts_per_tok=2),
                 lambda c: dict(architectures=['MiniCPMForCausalLM'], num_experts=E, num_local_experts=None, scale_emb=12, scale_depth=1.4, dim_model_base=16, attention_multiplier=None, embedding_multiplier=None, residual_multiplier=None, logits_scaling=None),
                 {'block_sparse_moe.router.layer': 'mlp.gate'}, {}, {'block_sparse_moe.input_linear': ('mlp.experts.%d.w1', 'mlp.experts.%d.w3'), 'block_sparse_moe.output_linear': ('mlp.experts.%d.w2',)}),
 'orion': ('stablelm', dict(num_key_value_heads=NH, rope_parameters=dict(rope_type='default', rope_theta=10000.0, partial_rotary_factor=1.0)),
           lambda c: dict(architectures=['OrionForCausalLM'], rms_norm_eps=c['layer_norm_eps'], layer_norm_eps=None, rope_parameters=None), {}, {}),
 'plamo': ('cohere2_moe', dict(num_experts=E, num_experts_per_tok=2, num_shared_experts=0, head_dim=HEAD, logit_scale=1.0, first_k_dense_replace=L, prefix_dense_intermediate_size=FF, layer_types=['full_attention'] * L, rms_norm_eps=1e-6, tie_word_embeddings=False),
           lambda c: dict(architectures=['PlamoForCausalLM'], n_shared_head=NH // KV, num_key_value_heads=NH, layer_types=None, num_experts=None, rope_parameters=None, logit_scale=None, layer_norm_eps=None), {'model.layers': 'model.layers.layers', 'input_layernorm': 'norm'},
           {'self_attn.q_proj': (['self_attn.q_proj'], halves(PLAMO)), 'self_attn.k_proj': (['self_attn.k_proj'], halves(np.arange(KV * HEAD))), 'self_attn.o_proj': (['self_attn.o_proj'], (PLAMO,))}),
}
def as_relative(n, c, t):
    """A class's config.json and tensors by the family's names and in its order."""
    _, _, keys, names, joins, *experts = RELATIVES[n]
    c = {k: v for k, v in {**c, **keys(c), 'model_type': n}.items() if v is not None}
    for new, (old, order) in joins.items():
        for k in [k for k in t if old[0] in k]:
            parts = [t.pop(k.replace(old[0], o)) for o in old]
            t[k.replace(old[0], new)] = np.ascontiguousarray(np.concatenate(parts)[order] if isinstance(order, np.ndarray) else parts[0][:, order[0]])
    for old, parts in (experts[0] if experts else {}).items():
        for k in [k for k in t if old in k]:
            for e, x in enumerate(t.pop(k)): t.update((k.replace(old, p % e), np.ascontiguousarray(y)) for p, y in zip(parts, np.split(x, len(parts))))
    for old, new in names.items(): t = {k.replace(old, new): v for k, v in t.items()}
    return c, t
def as_class(n, t, like):
    """The way back, to tensors like the class's."""
    places = {k: np.arange(v.size).reshape(v.shape) for k, v in like.items()}; ends = np.cumsum([0] + [v.size for v in like.values()])
    for i, k in enumerate(places): places[k] = places[k] + ends[i]
    flat = np.zeros(ends[-1], 'f4')
    for k, at in as_relative(n, {'layer_norm_eps': 0}, places)[1].items(): flat[at] = t[k]
    return {k: flat[ends[i]:ends[i + 1]].reshape(v.shape) for i, (k, v) in enumerate(like.items())}
F.update({n: r[1] for n, r in RELATIVES.items()})
FAMILIES = [*F, *ENCODERS]
def is_encoder(n): return n in ENCODERS
def type_of(n): return ENCODERS[n][0] if is_encoder(n) else RELATIVES[n][0] if n in RELATIVES else n
def config_of(n, change={}, absent=()):
    """The configuration of a row, with other keys and without some."""
    kw = {**base, **F[n]} if not is_encoder(n) else {**{k: v for k, v in base.items() if k != 'num_key_value_heads'}, **ENCODERS[n][1]}
    c = CONFIG_MAPPING[type_of(n)](**{k: v for k, v in {**kw, **change}.items() if k not in absent})
    c.tie_word_embeddings = getattr(c, 'tie_word_embeddings', False)
    return c
def class_of(n): return AutoModel if is_encoder(n) else AutoModelForCausalLM
def sentence_files(n, m):
    """Sentence Transformers' files, which tell a model that makes vectors from one that writes text."""
    if not is_encoder(n): return {}
    parts = [('', 'Transformer'), ('1_Pooling', 'Pooling'), ('2_Normalize', 'Normalize')]
    return {'1_Pooling/config.json': dict(word_embedding_dimension=m.config.hidden_size, pooling_mode_mean_tokens=True),
            'modules.json': [dict(idx=i, name=str(i), path=p, type='sentence_transformers.models.' + t) for i, (p, t) in enumerate(parts)]}
def save(n, m, d):
    """Saves a model as a folder."""
    m.save_pretrained(d); tokenizer(d)
    if n in RELATIVES:
        path = d + '/model.safetensors'; c, t = as_relative(n, json.load(open(d + '/config.json')), load_file(path))
        json.dump(c, open(d + '/config.json', 'w')); save_file(t, path, {'format': 'pt'})
    if n.startswith('gemma4'):  # merges of characters, with marked spaces
        j = json.load(open(d + '/tokenizer.json')); j['pre_tokenizer'] = j['decoder'] = None
        j['normalizer'] = {'type': 'Replace', 'pattern': {'String': ' '}, 'content': '\u2581'}; json.dump(j, open(d + '/tokenizer.json', 'w'))
    for name, value in sentence_files(n, m).items():
        os.makedirs(os.path.dirname(d + '/' + name), exist_ok=True); json.dump(value, open(d + '/' + name, 'w'))
def theirs(n, m, ids):
    """Rows of logits, or the vectors."""
    with torch.no_grad(): r = m(torch.tensor([ids]))
    if not is_encoder(n): return r.logits[0].numpy().astype('f8')
    x = r.last_hidden_state[0].numpy().astype('f8'); v = np.stack([x.mean(0), x[0], x[-1]])
    return v / np.linalg.norm(v, axis=1, keepdims=True)
def ours(n, d, ids, columns):
    """The same by pronk, or None; and what it says on standard error."""
    r = subprocess.run([P, 'convert', d, d + '.gguf', 'F32'], capture_output=True, text=True); notes = r.stderr.strip()
    if r.returncode: return None, 'convert: ' + notes
    text = ' '.join(map(str, ids)); commands = [['logits', '-m', d + '.gguf', '--kv', 'f32', '--ids', text, d + '.f32']]
    if is_encoder(n): commands = [['embed', '-m', d + '.gguf', '--pooling', p, '--ids', text, d + '.f32'] for p in POOLINGS]
    got = []
    for c in commands:
        r = subprocess.run([P, *c], capture_output=True, text=True)
        if r.returncode: return None, 'run: ' + r.stderr.strip()
        got.append(np.fromfile(d + '.f32', '<f4').astype('f8').reshape(1 if is_encoder(n) else len(ids), -1)[:, :columns])
    return np.concatenate(got), notes
names = sys.argv[2:] or FAMILIES
g = np.random.default_rng(SEED + 5); ids = [int(x) for x in g.integers(3, 319, 30)]
for n in names:
    d = f'{out}/{n}'; shutil.rmtree(d, ignore_errors=True)
    try:
        if type_of(n) not in CONFIG_MAPPING: print(f'{n:20} - not in transformers {transformers.__version__}'); continue
        torch.manual_seed(SEED)
        m = class_of(n).from_config(config_of(n), attn_implementation='eager').float().eval()
        with torch.no_grad():
            for k, p in m.named_parameters():
                if any(x in k for x in ('A_log', 'dt_bias', '.D', 'dt_proj', 'conv1d')): p.add_(torch.randn_like(p) * 0.05); continue
                if p.ndim >= 2: p.copy_(torch.randn_like(p) * (1.2 / p.shape[-1] ** 0.5))
                elif 'norm' in k and k.endswith('weight') or k.endswith('layernorm.weight') or 'ln_' in k and k.endswith('weight'): p.add_(torch.randn_like(p) * 0.2)
                else: p.add_(torch.randn_like(p) * 0.1)
            for k, b in m.named_buffers():
                if 'e_score_correction_bias' in k or 'expert_bias' in k: b.copy_(torch.randn_like(b) * 0.1)
        want = theirs(n, m, ids); save(n, m, d)
    except Exception as e:
        print(f'{n:20} transformers: {type(e).__name__} {str(e)[:160]!r}', flush=True); continue
    got, notes = ours(n, d, ids, want.shape[1])
    if got is None: print(f'{n:20} {notes[:8]} {notes[-230:]}', flush=True); continue
    nm = ((got - want) ** 2).sum() / (want ** 2).sum(); print(f'{n:20} nmse {nm:.2e} {"ok" if nm < 1e-6 else "WRONG"} {(got.argmax(1) == want.argmax(1)).mean():.2f}  {notes[:160]}', flush=True)
