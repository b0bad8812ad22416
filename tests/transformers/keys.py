"""keys.py OUT [FAMILY...]: changes one key of config.json at a time (the weights stay). Where transformers' logits change, pronk must follow
or refuse: anything else is a key dropped in silence. Prints those, and a count for each family."""
import os, sys, io, contextlib, json, copy, shutil, subprocess, warnings
warnings.filterwarnings('ignore')
here = os.path.dirname(os.path.abspath(__file__)); src = open(os.path.join(here, [f for f in ('tiny.py', 'transformers_tiny.py') if os.path.exists(os.path.join(here, f))][0])).read().split('names = sys.argv[2:]')[0]
exec(compile(src, 'tiny', 'exec'))
ids = [int(x) for x in np.random.default_rng(9).integers(3, 319, 40)]
SKIP = {'vocab_size', 'hidden_size', 'num_hidden_layers', 'pad_token_id', 'bos_token_id', 'eos_token_id', 'max_position_embeddings', 'initializer_range', 'transformers_version', 'architectures', 'model_type', 'dtype', 'use_cache', 'torch_dtype', 'output_router_logits',
        'attention_dropout', 'router_aux_loss_coef', 'return_dict', 'output_hidden_states', 'output_attentions', 'is_encoder_decoder', 'chunk_size_feed_forward', 'pretraining_tp', 'problem_type', 'num_key_value_heads', '_attn_implementation', 'id2label', 'label2id'}
def build(fam, change):
    cfg = config_of(fam)
    for k, v in change.items(): setattr(cfg, k, v)
    torch.manual_seed(SEED)
    m = class_of(fam).from_config(cfg, attn_implementation='eager').float().eval(); torch.manual_seed(SEED)
    with torch.no_grad():
        for k, p in sorted(m.named_parameters()):
            g = torch.Generator().manual_seed(abs(hash(k)) % 2**31)
            r = torch.randn(p.shape, generator=g)
            if any(x in k for x in ('A_log', 'dt_bias', '.D', 'dt_proj', 'conv1d')): p.add_(r * 0.05)
            elif p.ndim >= 2: p.copy_(r * (1.2 / p.shape[-1] ** 0.5))
            elif 'norm' in k and k.endswith('weight') or 'layernorm.weight' in k: p.copy_(torch.ones_like(p) * (0 if 'gemma' in fam or 'qwen3_next' in fam or 'qwen3_5' in fam else 1) + r * 0.2)
            else: p.copy_(r * 0.1)
        for k, b in m.named_buffers():
            if 'e_score_correction_bias' in k or 'expert_bias' in k: b.copy_(torch.randn(b.shape, generator=torch.Generator().manual_seed(3)) * 0.1)
        return m, theirs(fam, m, ids)
def nmse(a, b): return ((a - b) ** 2).sum() / (b ** 2).sum() if a.shape == b.shape else 9
def reloaded(fam, d):
    """What the class computes from the folder, which counts: some classes drop a key when they read it."""
    return theirs(fam, class_of(fam).from_pretrained(d, attn_implementation='eager').float().eval(), ids)
def variants(k, v):
    if isinstance(v, bool): return [not v]
    if isinstance(v, float): return [v * 1.5 + (0.1 if v == 0 else 0)]
    if isinstance(v, int) and v > 0: return [v + 1, v * 2]
    if k in ('hidden_act', 'hidden_activation', 'activation_function'): return ['gelu', 'relu', 'gelu_pytorch_tanh', 'silu']
    if v is None and ('softcap' in k or 'scal' in k or 'multiplier' in k): return [2.0]
    if v is None and k == 'sliding_window': return [8]
    return []
for fam in sys.argv[2:] or [f for f in FAMILIES if f not in RELATIVES]:
    d = f'{out}/{fam}'; shutil.rmtree(d, ignore_errors=True)
    try:
        m, w0 = build(fam, {}); save(fam, m, d); got, why = ours(fam, d, ids, w0.shape[1])
        if got is None: print(f'{fam}: {why[:150]}', flush=True); continue
        if nmse(got, w0) > 1e-5: print(f'{fam}: base differs {nmse(got, w0):.1e}', flush=True); continue
        cfg0 = m.config.to_dict()
    except Exception as e: print(fam, 'base', str(e)[:100]); continue
    tried = same = refused = 0
    for k, v in cfg0.items():
        if k in SKIP or k.startswith('_'): continue
        for nv in variants(k, v):
            try: m, w = build(fam, {k: nv})
            except Exception: continue
            if nmse(w, w0) < 1e-9: continue
            shutil.rmtree(d, ignore_errors=True)
            try: save(fam, m, d)
            except Exception: continue
            c = json.load(open(d + '/config.json'))
            if c.get(k, '?') != nv: continue
            try: w = reloaded(fam, d)
            except Exception: continue
            if nmse(w, w0) < 1e-9: continue
            tried += 1; got, why = ours(fam, d, ids, w0.shape[1])
            if got is None: refused += 1
            elif nmse(got, w) < 1e-5: same += 1
            else: print(f'DROPPED {fam:16} {k} = {nv} (was {v}): nmse {nmse(got, w):.1e} {why}', flush=True)
    print(f'{fam}: {tried} keys that matter: {same} followed, {refused} refused, {tried - same - refused} dropped', flush=True)
