#!/usr/bin/env python3
"""Writes tokenizer/unicode_data.cc: make_unicode.py > tokenizer/unicode_data.cc

Needs the packages tokenizers (Hugging Face's library, whose properties of characters these are: it
normalizes by an older Unicode than it splits by) and unicodedata2 16. Python's own unicodedata is
the Unicode that the program's regular expressions are sure to know: run it with Python 3.11 (14).
"""
import textwrap
import unicodedata as known

import unicodedata2 as unicode
from tokenizers import normalizers, pre_tokenizers

CHARACTERS = [i for i in range(0x110000) if not 0xD800 <= i < 0xE000]
SYLLABLES = range(0xAC00, 0xD7A4)
nfc, nfd = normalizers.NFC(), normalizers.NFD()
nfkd, strip = normalizers.NFKD(), normalizers.StripAccents()
bert = dict(clean_text=False, handle_chinese_chars=False, strip_accents=False, lowercase=False)
clean = normalizers.BertNormalizer(**{**bert, "clean_text": True})
accents = normalizers.BertNormalizer(**{**bert, "strip_accents": True})
words = pre_tokenizers.BertPreTokenizer()


def runs(codes):
    found = []
    for code in sorted(codes):
        if found and found[-1][1] == code - 1:
            found[-1][1] = code
        else:
            found.append([code, code])
    return found


def write(name, comment, text):
    print(f"// {comment}")
    print(f"const std::string_view {name} =")
    lines = textwrap.wrap(text, 92, break_long_words=False, break_on_hyphens=False)
    print("\n".join(f'    "{line} "' for line in lines) + ";\n")


def write_runs(name, comment, codes):
    write(name, comment, " ".join(f"{a:X}" if a == b else f"{a:X}-{b:X}" for a, b in runs(codes)))


def is_in(normalizer, code):
    return normalizer.normalize_str("a" + chr(code)) == "a"


def decompositions():
    last, out = 0, []
    for code in CHARACTERS:
        if code in SYLLABLES:
            continue
        text = chr(code)
        canonical, full = nfd.normalize_str(text), nfkd.normalize_str(text)
        if full == text:
            continue
        entry = "" if code == last + 1 else f"{code:X}:"
        last = code
        if canonical != text:
            # "=": the composition of its two parts in NFC
            entry += ("=" if nfc.normalize_str(canonical) == text else "!") + parts(canonical)
        if full != canonical:
            entry += "~" + parts(full)
        out.append(entry)
    return " ".join(out)


def parts(text):
    return ",".join(f"{ord(c):X}" for c in text)


def newer():
    rows = []
    for code in CHARACTERS:
        category = unicode.category(chr(code))
        if category == known.category(chr(code)):
            continue
        if rows and rows[-1][1] == code - 1 and rows[-1][2] == category:
            rows[-1][1] = code
        else:
            rows.append([code, code, category])
    out = []
    for first, last, category in rows:
        assert len(chr(first).encode()) == len(chr(last).encode())
        like = min((i for i in CHARACTERS if known.category(chr(i)) == category == unicode.category(chr(i))
                    and len(chr(i).encode()) == len(chr(first).encode())), key=lambda i: abs(i - first))
        out.append(f"{first:X}" + ("" if first == last else f"-{last:X}") + f":{like:X}")
    return " ".join(out)


def cases(mapped):
    """FIRST[-LAST][/STRIDE]:CASE: the case of FIRST, one character or several; later ones of a run
    are as far from their case as FIRST."""
    rows = []
    for code in CHARACTERS:
        case = [ord(c) for c in mapped(chr(code))]
        if case == [code]:
            continue
        if rows and len(case) == 1 and len(rows[-1][3]) == 1:
            first, last, stride, to = rows[-1]
            if case[0] - code == to[0] - first and code - last == (stride or code - last) <= 2:
                rows[-1][1:3] = code, code - last
                continue
        rows.append([code, code, 0, case])
    return " ".join(f"{first:X}" + (f"-{last:X}" if last > first else "") + ("/2" if stride == 2 else "") +
                    ":" + parts("".join(map(chr, to))) for first, last, stride, to in rows)


marks = [i for i in CHARACTERS if is_in(strip, i)]
classes = {}
for i in marks:
    if unicode.combining(chr(i)):
        classes.setdefault(unicode.combining(chr(i)), []).append(i)

print("""// Properties of characters, by tests/data/make_unicode.py: see there and in unicode_data.h.
// clang-format off
#include "tokenizer/unicode_data.h"

namespace tokenizer {
""")
write("kDecompositions", "CODE:=CANONICAL~COMPATIBLE; without CODE that of the character after the last; ! for = does not compose.",
      decompositions())
write("kCombiningClasses", "Combining classes other than 0.",
      " ".join(f"{a:X}-{b:X}:{kind}" for kind, codes in sorted(classes.items()) for a, b in runs(codes)))
write_runs("kMarks", "Marks, which StripAccents removes.", marks)
write_runs("kAccents", "Marks that take no space, which BERT's normalizer removes.",
           [i for i in CHARACTERS if is_in(accents, i)])
write_runs("kRemoved", "Control characters and the like, which BERT's normalizer removes.",
           [i for i in CHARACTERS if clean.normalize_str(f"a{chr(i)}a") == "aa"])
write_runs("kPunctuation", "Characters that are words alone for BERT.",
           [i for i in CHARACTERS if len(words.pre_tokenize_str(f"a{chr(i)}a")) == 3])
write("kLowerCase", "FIRST[-LAST][/STRIDE]:CASE, as far from FIRST as LAST's is from LAST.",
      cases(normalizers.Lowercase().normalize_str))
write("kUpperCase", "The upper case of characters, as above; several characters are joined by commas.", cases(str.upper))
write("kNewerCharacters", "Characters that Unicode 14 has not, and an older one of the same class and length.",
      newer())
print("}  // namespace tokenizer")
