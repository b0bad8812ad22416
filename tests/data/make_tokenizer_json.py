#!/usr/bin/env python3
"""Writes tokenizer_json.json: make_tokenizer_json.py > tokenizer_json.json

Small tokenizers as tokenizer.json has them, changes of one field at a time, and the ids that Hugging
Face's library (pip install tokenizers, 0.23) makes of texts with each. A case without ids is one that
pronk convert must refuse, naming the field.
"""
import json

from tokenizers import Tokenizer


def alphabet():
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    rest = [b for b in range(256) if b not in printable]
    return [chr(b) if b in printable else chr(256 + rest.index(b)) for b in range(256)]


def added(content, id, **more):
    flags = dict(single_word=False, lstrip=False, rstrip=False, normalized=False, special=False)
    return {"id": id, "content": content, **flags, **more}


def bpe():
    merges = ["h e", "l l", "he ll", "hell o", "Ġ hello", "Ã ©", "1 2", "Ġ a", "A B", "a b"]
    tokens = alphabet() + [m.replace(" ", "") for m in merges] + ["xyz"]
    n = len(tokens)
    model = dict(type="BPE", dropout=None, unk_token=None, continuing_subword_prefix=None,
                 end_of_word_suffix=None, fuse_unk=False, byte_fallback=False, ignore_merges=False,
                 vocab={t: i for i, t in enumerate(tokens)}, merges=merges)
    byte_level = dict(type="ByteLevel", add_prefix_space=False, trim_offsets=True, use_regex=True)
    return dict(version="1.0", truncation=None, padding=None,
                added_tokens=[added("<s>", n, special=True), added("<|end|>", n + 1, special=True),
                              added("<tool>", n + 2)],
                normalizer=None, pre_tokenizer=byte_level, post_processor=None, decoder=byte_level, model=model)


def spm():
    tokens = ["<unk>", "<s>", "</s>"] + ["<0x%02X>" % i for i in range(256)] + list("▁helowrdA.12")
    merges = ["h e", "l l", "he ll", "hell o", "▁ hello", "▁ w", "o r", "▁w or", "▁wor l", "▁worl d", "▁ ▁"]
    tokens += [m.replace(" ", "") for m in merges]
    n = len(tokens)
    model = dict(type="BPE", dropout=None, unk_token="<unk>", continuing_subword_prefix=None,
                 end_of_word_suffix=None, fuse_unk=True, byte_fallback=True, ignore_merges=False,
                 vocab={t: i for i, t in enumerate(tokens)}, merges=merges)
    normalizer = sequence(dict(type="Prepend", prepend="▁"), replace(" ", "▁"))
    return dict(version="1.0", truncation=None, padding=None,
                added_tokens=[added("<unk>", 0, special=True), added("<s>", 1, special=True),
                              added("</s>", 2, special=True), added("<|end|>", n, special=True),
                              added("<tool>", n + 1)],
                normalizer=normalizer, pre_tokenizer=None, post_processor=template(["<s>"], []),
                decoder=dict(type="ByteFallback"), model=model)


def pieces():
    scores = {"<unk>": 0, "<s>": 0, "</s>": 0, "▁": -2, "▁hello": -3, "hello": -4, "▁a": -4, "a": -5, "b": -5, "ab": -7,
              "▁ab": -8, "h": -9, "e": -9, "l": -9, "o": -9, "\u00e9": -6, "1": -6}
    normalizer = sequence(dict(type="Strip", strip_left=False, strip_right=True), runs())
    tokens = list(scores)
    return dict(version="1.0", truncation=None, padding=None,
                added_tokens=[added(t, tokens.index(t), special=True) for t in ("<unk>", "<s>", "</s>")] +
                             [added("<|end|>", len(tokens), special=True), added("<tool>", len(tokens) + 1)],
                normalizer=normalizer, pre_tokenizer=metaspace(prepend_scheme="always", split=True),
                post_processor=template(["<s>"], ["</s>"]), decoder=metaspace(),
                model=dict(type="Unigram", unk_id=0, byte_fallback=False, vocab=[[t, s] for t, s in scores.items()]))


def runs(content="▁"):
    return dict(type="Replace", pattern=dict(Regex=" {2,}"), content=content)


def words():
    tokens = ["[UNK]", "[CLS]", "[SEP]", "hello", "##o", "he", "##llo", "##l", "a", "b", "##b", "cafe",
              "café", "CAFE", "中", "國", ",", "ᄉ", "##ᅡ", "ह", "##ि", "1", "##2", "x", "中國", "[OTHER]"]
    special = [added(t, tokens.index(t), special=True) for t in ("[UNK]", "[CLS]", "[SEP]")]
    around = template(["[CLS]"], ["[SEP]"])
    return dict(version="1.0", truncation=None, padding=None, added_tokens=special, normalizer=bert(),
                pre_tokenizer=dict(type="BertPreTokenizer"), post_processor=around,
                decoder=dict(type="WordPiece", prefix="##", cleanup=True),
                model=dict(type="WordPiece", unk_token="[UNK]", continuing_subword_prefix="##",
                           max_input_chars_per_word=100, vocab={t: i for i, t in enumerate(tokens)}))


def sequence(*steps):
    return dict(type="Sequence", normalizers=list(steps))


def replace(text, content):
    return dict(type="Replace", pattern=dict(String=text), content=content)


def bert(**more):
    flags = dict(clean_text=True, handle_chinese_chars=True, strip_accents=None, lowercase=True)
    return dict(type="BertNormalizer", **{**flags, **more})


def metaspace(**more):
    return dict(type="Metaspace", **{**dict(replacement="▁", prepend_scheme="first", split=False), **more})


def byte_level(**more):
    return dict(type="ByteLevel", **{**dict(add_prefix_space=False, trim_offsets=True, use_regex=True), **more})


def split(regex, **more):
    flags = dict(behavior="Isolated", invert=False)
    return dict(type="Split", pattern=dict(Regex=regex), **{**flags, **more})


def template(before, after):
    special = [dict(SpecialToken=dict(id=t, type_id=0)) for t in before]
    last = [dict(SpecialToken=dict(id=t, type_id=0)) for t in after]
    return dict(type="TemplateProcessing", single=special + [dict(Sequence=dict(id="A", type_id=0))] + last,
                pair=[dict(Sequence=dict(id="A", type_id=0)), dict(Sequence=dict(id="B", type_id=1))],
                special_tokens={t: dict(id=t, ids=[BASES[-1]["ids"][t]], tokens=[t]) for t in before + after})


GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
TEXTS = {
    "bpe": ["hello hello", "xyz", " hello  hello\n", "cafe\u0301 caf\u00e9 \ufb01 \u00bd", "AB ab \u00c9\u0130",
            "<tool>hello", "a <tool>  hello", "x<tool>y <|end|>\n ab", "12 12, 1212", "<|END|> <TOOL>", "a\u00a0<|end|>\u3000a",
            "\u1100\u1161\u11a8 \uac01", "q\u0307\u0323", "\U00031350\U00031351 \u1c89x", "<|end|>hello", ""],
    "spm": ["hello world", " hello", "hello<|end|>hello", "<|end|>hello", "<|end|> hello", "  hello  world", "\u00e9 \ua740\t",
            "\u2581hello", "hello<tool>world", "hello <tool> hello", "A\u0301.", "12<|end|>\n hello", "hello\u4e2d\u6587\U0001f600", "\tq", "\u00c9\u4e2d\u00c9hello", "\u4e2d\u00c9", "\u00c9\u4e2d \u00c9\u00c9",
            "\u00c9\u4e2d<|end|>\u4e2d", ""],
    "pieces": ["hello hello", " a", "  a", "a ", "a  b", "  ab  hello  ", "", " ", "  ", "a\nb", "\n a\n", "\u00e9 \u4e2d\u6587 \u4e2d",
               "a\u2581 b", "a<|end|>b", "<|end|> b", "a <|end|>  b ", "<tool>a <tool> b", "a\u00a0b\u3000", "hello1"],
    "words": ["hello, abb cafe\u0301 Caf\u00e9 CAFE", "\uc0ac", "\u0939\u093f", "\u4e2d\u570b", "a\u200bb\u0000b", "1\ufeff2 xx",
              "[SEP]a [CLS]", "hellllllo", "\u0130 \u00df", "a<foo>b <foo> hello", "aBBb BB a", ""],
}
BASES = [dict(ids={})]


def change(base, changes):
    tokenizer = json.loads(json.dumps(base))
    for key, value in changes.items():
        if key == "model":
            tokenizer["model"].update(value)
        else:
            tokenizer[key] = value
    return tokenizer


def ids(tokenizer, texts):
    library = Tokenizer.from_str(json.dumps(tokenizer))
    library.no_truncation()
    library.no_padding()
    return [library.encode(text).ids for text in texts]


def with_flags(base, index, **flags):
    tokens = json.loads(json.dumps(base["added_tokens"]))
    tokens[index].update(flags)
    return tokens


def main():
    bases = {}
    for name, make, all_ids in [("bpe", bpe, {}), ("spm", spm, {"<s>": 1, "</s>": 2}),
                                ("pieces", pieces, {"<s>": 1, "</s>": 2}),
                                ("words", words, {"[CLS]": 1, "[SEP]": 2})]:
        BASES.append(dict(ids=all_ids))
        bases[name] = make()
    cases = []

    def case(base, **changes):
        tokenizer = change(bases[base], changes)
        cases.append(dict(base=base, changes=changes, ids=ids(tokenizer, TEXTS[base])))

    def refused(base, field, **changes):
        cases.append(dict(base=base, changes=changes, refused=field))

    for base in bases:
        case(base)
        case(base, decoder=None)
        refused(base, "version", version="1.1")
        case(base, truncation=dict(direction="Right", max_length=3, strategy="LongestFirst", stride=0))
        case(base, padding=dict(strategy=dict(Fixed=9), direction="Right", pad_to_multiple_of=None, pad_id=0,
                                pad_type_id=0, pad_token="x"))
        refused(base, "extra", extra=1)
        refused(base, "extra", model=dict(extra=1))
        refused(base, "extra", added_tokens=with_flags(bases[base], 0, extra=True))
    for base in ["bpe", "spm"]:
        n = len(bases[base]["added_tokens"])
        for index in (n - 2, n - 1):
            for flag in ("lstrip", "rstrip", "single_word"):
                case(base, added_tokens=with_flags(bases[base], index, **{flag: True}))
            case(base, added_tokens=with_flags(bases[base], index, lstrip=True, rstrip=True))
        case(base, added_tokens=with_flags(bases[base], n - 1, normalized=True))
        case(base, added_tokens=with_flags(bases[base], n - 1, special=True))
        for key in ("dropout",):
            refused(base, key, model={key: 0.5})
        for key in ("continuing_subword_prefix", "end_of_word_suffix"):
            refused(base, key, model={key: "##"})
        case(base, model=dict(continuing_subword_prefix="", end_of_word_suffix=""))
        case(base, model=dict(merges=bases[base]["model"]["merges"][:1] + bases[base]["model"]["merges"][:0:-1])
             if base == "bpe" else dict(fuse_unk=False))

    plain = ["NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents"]
    for name in plain:
        case("bpe", normalizer=dict(type=name))
        marked = [dict(type=name), dict(type="Prepend", prepend="▁"), replace(" ", "▁")]
        case("spm", normalizer=sequence(*marked))
    case("bpe", normalizer=sequence(dict(type="NFD"), dict(type="StripAccents"), dict(type="Lowercase")))
    case("bpe", normalizer=sequence())
    for left in (False, True):
        case("bpe", normalizer=dict(type="Strip", strip_left=left, strip_right=not left))
    case("bpe", normalizer=replace("he", "AB"))
    case("bpe", normalizer=dict(type="Prepend", prepend="ab"))
    case("bpe", normalizer=dict(type="Lowercase"), added_tokens=with_flags(bases["bpe"], 2, normalized=True))
    refused("bpe", "pattern", normalizer=dict(type="Replace", pattern=dict(Regex="a+"), content="b"))
    for name in ("Nmt", "ByteLevel"):
        refused("bpe", "type", normalizer=dict(type=name))
    refused("bpe", "type", normalizer=bert())
    refused("bpe", "extra", normalizer=dict(type="NFC", extra=1))

    case("bpe", pre_tokenizer=byte_level(add_prefix_space=True))
    case("bpe", pre_tokenizer=byte_level(trim_offsets=False))
    refused("bpe", "pre_tokenizer", pre_tokenizer=byte_level(use_regex=False))
    pre = lambda *steps: dict(type="Sequence", pretokenizers=list(steps))
    last = byte_level(use_regex=False)
    case("bpe", pre_tokenizer=pre(split(GPT2), last))
    case("bpe", pre_tokenizer=pre(split(GPT2, behavior="Removed", invert=True), last))
    for behavior in ("Removed", "MergedWithPrevious", "MergedWithNext", "Contiguous"):
        refused("bpe", "behavior", pre_tokenizer=pre(split(GPT2, behavior=behavior), last))
    refused("bpe", "behavior", pre_tokenizer=pre(split(GPT2, invert=True), last))
    refused("bpe", "pre_tokenizer", pre_tokenizer=split(GPT2))
    refused("bpe", "type", pre_tokenizer=pre(dict(type="Whitespace"), last))
    case("bpe", pre_tokenizer=pre(dict(type="WhitespaceSplit"), last))
    case("bpe", pre_tokenizer=pre(dict(type="Digits", individual_digits=True), byte_level()))
    refused("bpe", "pre_tokenizer", pre_tokenizer=pre(dict(type="Digits", individual_digits=False), byte_level()))
    refused("bpe", "add_prefix_space",
            pre_tokenizer=pre(dict(type="Digits", individual_digits=True), byte_level(add_prefix_space=True)))
    case("bpe", model=dict(ignore_merges=True))
    for ends in [(["<s>"], []), (["<s>", "<|end|>"], []), (["<s>"], ["<|end|>"]), ([], [])]:
        n = len(bases["bpe"]["model"]["vocab"])
        BASES.append(dict(ids={"<s>": n, "<|end|>": n + 1}))
        case("bpe", post_processor=template(*ends))
        case("bpe", post_processor=dict(type="Sequence", processors=[byte_level(), template(*ends)]))
    refused("bpe", "single", post_processor=template(["<s>"], ["<|end|>", "<|end|>"]))
    case("bpe", post_processor=dict(type="RobertaProcessing", sep=["<|end|>", n + 1], cls=["<s>", n],
                                    trim_offsets=True, add_prefix_space=True))
    refused("bpe", "type", post_processor=dict(type="Other"))

    for scheme in ("first", "always", "never"):
        case("spm", normalizer=None, pre_tokenizer=metaspace(prepend_scheme=scheme))
    refused("spm", "prepend_scheme", normalizer=None, pre_tokenizer=metaspace(prepend_scheme="x"))
    refused("spm", "replacement", normalizer=None, pre_tokenizer=metaspace(replacement="_"))
    refused("spm", "split", normalizer=None, pre_tokenizer=metaspace(split=True))
    case("spm", normalizer=replace(" ", "▁"))
    for flag in (False, True):  # not normalized: merges alone make two spaces one token
        two = added("▁▁", bases["spm"]["model"]["vocab"]["▁▁"], normalized=flag)
        case("spm", normalizer=replace(" ", "▁"), added_tokens=bases["spm"]["added_tokens"][:3] + [two])
    case("spm", normalizer=replace(" ", "▁"),
         pre_tokenizer=dict(type="Split", pattern=dict(String=" "), behavior="MergedWithPrevious", invert=False))
    refused("spm", "type", pre_tokenizer=dict(type="Whitespace"))
    refused("spm", "type", model=dict(byte_fallback=False))
    refused("spm", "ignore_merges", model=dict(ignore_merges=True))
    refused("spm", "merges", model=dict(merges=bases["spm"]["model"]["merges"][1:]))
    less = {t: i for t, i in bases["spm"]["model"]["vocab"].items() if t not in ("<0x09>", "<0xC3>")}
    case("spm", model=dict(vocab={**less, "\t": 12, "q": 198}))
    refused("spm", "fuse_unk", model=dict(vocab={**less, "\t": 12, "q": 198}, fuse_unk=False))

    refused("spm", "pre_tokenizer", normalizer=None)
    strip = lambda left, right: dict(type="Strip", strip_left=left, strip_right=right)
    for scheme in ("always", "never"):
        for whole in (False, True):
            alone = metaspace(prepend_scheme=scheme, split=whole)
            case("pieces", normalizer=None, pre_tokenizer=alone)
            case("pieces", normalizer=sequence(strip(True, True), runs(" ")), pre_tokenizer=alone)
            case("pieces", normalizer=strip(True, True), pre_tokenizer=alone)
            case("pieces", normalizer=strip(False, True), pre_tokenizer=alone)
            refused("pieces", "normalizer", normalizer=runs(" "), pre_tokenizer=alone)
    case("pieces", normalizer=replace("e", "a"), pre_tokenizer=alone)
    refused("pieces", "normalizer", pre_tokenizer=alone)
    refused("pieces", "prepend_scheme", pre_tokenizer=metaspace(prepend_scheme="first", split=True))
    refused("pieces", "normalizer", pre_tokenizer=pre(dict(type="WhitespaceSplit"), metaspace(prepend_scheme="always")))
    refused("pieces", "pre_tokenizer", pre_tokenizer=None)
    refused("pieces", "type", normalizer=sequence(runs(), strip(False, True)))

    for flag in ("clean_text", "handle_chinese_chars", "lowercase"):
        case("words", normalizer=bert(**{flag: False}))
    for strip in (False, True):
        case("words", normalizer=bert(strip_accents=strip, lowercase=not strip))
    case("words", normalizer=None)
    case("words", normalizer=sequence(dict(type="NFC"), dict(type="Lowercase")))
    case("words", model=dict(max_input_chars_per_word=4))
    case("words", model=dict(unk_token="[OTHER]"))
    n = len(bases["words"]["model"]["vocab"])
    for flags in ({}, dict(single_word=True), dict(lstrip=True), dict(rstrip=True)):
        more = [added("<foo>", n, **flags), added("BB", n + 1, **flags)]
        case("words", added_tokens=bases["words"]["added_tokens"] + more)
    refused("words", "continuing_subword_prefix", model=dict(continuing_subword_prefix="@@"))
    refused("words", "type", pre_tokenizer=dict(type="Whitespace"))
    print(json.dumps(dict(bases=bases, texts=TEXTS), ensure_ascii=True)[:-1] + ', "cases": [')
    print(",\n".join(json.dumps(one) for one in cases) + "]}")


main()
