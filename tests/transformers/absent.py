"""absent.py OUT [FAMILY...]: takes one key at a time out of config.json, so that transformers' default counts. pronk must compute the same or refuse."""
import os, sys, json, shutil, warnings
warnings.filterwarnings('ignore')
here = os.path.dirname(os.path.abspath(__file__)); name = [f for f in ('keys.py', 'transformers_keys.py') if os.path.exists(os.path.join(here, f))][0]
src = open(os.path.join(here, name)).read().split('for fam in sys.argv[2:]')[0]
exec(compile(src, 'keys', 'exec'))
transformers.utils.logging.set_verbosity_error()
for fam in sys.argv[2:] or [f for f in FAMILIES if f not in RELATIVES]:
    d = f'{out}/{fam}'; shutil.rmtree(d, ignore_errors=True)
    try:
        m, w0 = build(fam, {}); save(fam, m, d); got, why = ours(fam, d, ids, w0.shape[1])
        if got is None or nmse(got, w0) > 1e-5: print(f'{fam}: base', why[:150] if got is None else nmse(got, w0), flush=True); continue
    except Exception as e: print(f'{fam}: base', str(e)[:150], flush=True); continue
    full = json.load(open(d + '/config.json')); tried = same = refused = 0
    for k in list(full):
        if k in ('architectures', 'model_type', 'transformers_version', 'dtype'): continue
        c = dict(full); del c[k]; json.dump(c, open(d + '/config.json', 'w'))
        try:
            model, info = class_of(fam).from_pretrained(d, attn_implementation='eager', output_loading_info=True)
            if info['missing_keys'] or info['unexpected_keys']: continue  # the default is of other weights
            w = theirs(fam, model.float().eval(), ids)
        except Exception: continue
        if not np.isfinite(w).all() or w.shape != w0.shape: continue
        tried += 1; got, why = ours(fam, d, ids, w0.shape[1])
        if got is None: refused += 1
        elif nmse(got, w) < 1e-5: same += 1
        else: print(f'DEFAULT {fam:16} {k} absent (was {str(full[k])[:60]}): nmse {nmse(got, w):.1e}, transformers itself moved {nmse(w, w0):.1e}', flush=True)
    print(f'{fam}: {tried} keys taken out: {same} as transformers, {refused} refused, {tried - same - refused} another default', flush=True)
