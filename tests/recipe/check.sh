#!/bin/bash
# Makes a model from nothing: runs the commands of models/README.md ("A small model in two minutes") as
# they are in the text, and then the recipe's own test. Needs numpy and PyTorch.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../../models"
export PYTHONDONTWRITEBYTECODE=1 TMPDIR
TMPDIR=$(mktemp -d) # where the text's commands make their folder
trap 'rm -rf "$TMPDIR"' EXIT

# The first indented lines after the heading.
commands=$(awk '/^#/ { here = $0 ~ /^#### A small model in two minutes$/ } here && /^    / { print substr($0, 5) }' README.md)
[ "$(wc -l <<<"$commands")" -ge 6 ]
# The template lowers what a user shouts; vocab.heard says the same to the training.
read -r -d '' checks <<'END' || true
echo '[{"role": "user", "content": "TELL ME 2!"}]' | ../pronk template -m "$work/small.gguf" --messages - | grep '^Tell me 2!'
# Python's ids are the program's.
for said in "Zoë's  10 fish_es!" "a    b" 'said."  No'; do
  ours=$(cd recipe && python3 -c 'import sys, vocab; from sample import read_gguf
print([vocab.BOS] + vocab.Vocabulary(read_gguf(sys.argv[1])[0]["tokenizer.ggml.tokens"]).encode(sys.argv[2]))' "$work/small.gguf" "$said")
  [ "$(../pronk tokenize "$work/small.gguf" --ids -p "$said")" = "$ours" ]
done
END
bash -xeuo pipefail -c "$commands"$'\n'"$checks" | tee "$TMPDIR/log"
# What it told after the prompt: more words than the beginning has.
[ "$(grep -A 99 '^ *Once upon a time' "$TMPDIR/log" | wc -w)" -ge 40 ]
python3 "$here/batches_test.py" | tail -n 1
