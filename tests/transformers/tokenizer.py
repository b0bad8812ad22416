"""tokenizer.py FOLDER TEXT...: each line of the texts as pronk cuts it, by FOLDER converted, and as Hugging Face's library does, by FOLDER's
tokenizer.json. FOLDER needs only tokenizer.json and its like: a small random Llama is put around it. `SPECIAL=1` reads special tokens in
the texts. Prints the numbers of lines, tokens and different lines, and the shortest of these. Needs tokenizers."""
import json, os, shutil, struct, subprocess, sys, tempfile
from tokenizers import Tokenizer
PRONK, SPECIAL, LINES = os.environ.get('PRONK', 'pronk'), bool(os.environ.get('SPECIAL')), 200
def llama(folder, out, n):
    """A folder with these files and a model of one layer, all zeros."""
    shapes = {'model.embed_tokens': [n, 32], 'model.norm': [32]}
    layer = dict(input_layernorm=[32], post_attention_layernorm=[32], **{'self_attn.%s_proj' % c: [32, 32] for c in 'qkvo'}, **{'mlp.%s_proj' % c: [32, 32] for c in ('gate', 'up', 'down')})
    shapes.update({'model.layers.0.' + k: s for k, s in layer.items()})
    head, at = {}, 0
    for name, shape in shapes.items():
        size = 2 * shape[0] * (shape[1] if len(shape) > 1 else 1)
        head[name + '.weight'] = dict(dtype='BF16', shape=shape, data_offsets=[at, at + size]); at += size
    text = json.dumps(head).encode(); text += b' ' * (-len(text) % 8)
    with open(out + '/model.safetensors', 'wb') as f: f.write(struct.pack('<Q', len(text)) + text + bytes(at))
    config = dict(architectures=['LlamaForCausalLM'], model_type='llama', hidden_size=32, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=2,
                  vocab_size=n, max_position_embeddings=256, rms_norm_eps=1e-5, rope_theta=1e4, hidden_act='silu', tie_word_embeddings=True)
    with open(out + '/config.json', 'w') as f: json.dump(config, f)
    for name in ('tokenizer.json', 'tokenizer_config.json', 'special_tokens_map.json'):
        if os.path.exists(f'{folder}/{name}'): shutil.copy(f'{folder}/{name}', out)
def main():
    folder, paths = sys.argv[1], sys.argv[2:]
    library = Tokenizer.from_file(folder + '/tokenizer.json'); library.no_truncation(); library.no_padding()
    if not SPECIAL: library.encode_special_tokens = True
    lines = [l for p in paths for l in open(p, encoding='utf-8', newline='').read().split('\n') if l]
    with tempfile.TemporaryDirectory() as dir:
        os.mkdir(dir + '/folder'); llama(folder, dir + '/folder', library.get_vocab_size(with_added_tokens=True))
        subprocess.run([PRONK, 'convert', dir + '/folder', dir + '/out.gguf'], check=True, stdout=subprocess.DEVNULL)
        def ours(text):
            with open(dir + '/text', 'w', encoding='utf-8', newline='') as f: f.write(text)
            return json.loads(subprocess.run([PRONK, 'tokenize', '-m', dir + '/out.gguf', '--ids', '-f', dir + '/text'] + ['--special'] * SPECIAL, check=True, capture_output=True).stdout)
        def different(part):
            """The lines that differ alone, two halves at a time; or all together, if none does."""
            text = '\n'.join(part)
            if ours(text) == library.encode(text).ids: return []
            halves = different(part[:len(part) // 2]) + different(part[len(part) // 2:]) if len(part) > 1 else []
            return halves or [text]
        bad = [l for i in range(0, len(lines), LINES) for l in different(lines[i:i + LINES])]
        print(f'{folder}: {len(lines)} lines, {sum(len(e.ids) for e in library.encode_batch(lines))} tokens, {len(bad)} lines differ')
        for line in sorted(bad, key=len)[:8]: print(repr(line[:120]), ours(line)[:24], library.encode(line).ids[:24])
main()
