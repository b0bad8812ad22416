#!/usr/bin/env python3
"""Writes minilm.i8: the vectors that transformers makes of the lines of minilm.txt.

    minilm.py FOLDER      all-MiniLM-L6-v2 as a folder (tests/real/fetch minilm); needs torch and transformers

[lines][384] bytes: each vector times 127 / its largest magnitude, to the nearest integer. A vector's
length does not count, so this keeps its direction: the cosine between both is 1 - 384 (max / 127)^2 /
24 or so for a vector of length 1, more than 0.99995. All lines but the last are names by CLDR
(Unicode's licence) in 79 languages: of days, months, languages, countries, and of a date and some
quantities. The last ones are about what tokenizers find difficult.
"""
import os
import sys

import numpy
import torch
from transformers import AutoModel, AutoTokenizer

here = os.path.dirname(os.path.abspath(__file__))
lines = open(os.path.join(here, 'minilm.txt'), encoding='utf-8').read().splitlines()
tokenizer = AutoTokenizer.from_pretrained(sys.argv[1])
model = AutoModel.from_pretrained(sys.argv[1]).double()
vectors = []
for line in lines:
    ids = tokenizer(line, return_tensors='pt', truncation=True, max_length=256)
    with torch.no_grad():
        vectors.append(model(**ids).last_hidden_state[0].mean(0).numpy())
vectors = numpy.array(vectors)
most = numpy.abs(vectors).max(1, keepdims=True)
codes = numpy.rint(vectors * (127 / most))
cosines = (codes * vectors).sum(1) / numpy.linalg.norm(codes, axis=1) / numpy.linalg.norm(vectors, axis=1)
print(f'{len(lines)} lines, cosines of {cosines.min():.6f} or more', file=sys.stderr)
codes.astype(numpy.int8).tofile(os.path.join(here, 'minilm.i8'))
