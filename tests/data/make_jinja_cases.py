"""Writes jinja_cases.json: templates of our own and what Jinja2 makes of them.

Needs Jinja2 (written with 3.1.2). Run in this folder after adding cases. The environment is the one
in which the transformers library renders chat templates. Tests read only the JSON file.
"""
import datetime
import json

import jinja2.ext
from jinja2.sandbox import ImmutableSandboxedEnvironment


class Generation(jinja2.ext.Extension):
    """{% generation %}: a mark for training; its contents are rendered as they are."""
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_body"), [], [], body).set_lineno(line)

    def _body(self, caller):
        return caller()


def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators,
                      sort_keys=sort_keys)


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


ENV = ImmutableSandboxedEnvironment(
    trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])
ENV.filters["tojson"] = tojson
ENV.globals["raise_exception"] = raise_exception
ENV.globals["strftime_now"] = datetime.datetime(2026, 11, 5, 16, 4, 9).strftime

MESSAGES = [
    {"role": "system", "content": "Be kind."},
    {"role": "user", "content": "  Hi, <|im_end|> \u00fc\u4f60\n"},
    {"role": "assistant", "content": None,
     "tool_calls": [{"id": "a1b2c3d4e", "type": "function",
                     "function": {"name": "add", "arguments": {"a": 1, "b": [2.5, True, None]}}}]},
    {"role": "tool", "content": "3.5", "tool_call_id": "a1b2c3d4e"},
    {"role": "assistant", "content": "<think>\nhm\n</think>\n\nIt is 3.5"},
]
TOOLS = [{"type": "function",
          "function": {"name": "add", "description": "Adds \"two\" numbers & 'more'",
                       "parameters": {"type": "object", "required": ["a"],
                                      "properties": {"a": {"type": "number"},
                                                     "b": {"type": ["number", "null"],
                                                           "enum": [1, 2.0, "x\ty"]}}}}}]
VARS = {
    "messages": MESSAGES, "tools": TOOLS, "add_generation_prompt": True,
    "bos_token": "<s>", "eos_token": "</s>",
    "n": 7, "big": 9007199254740993, "f": 2.5, "t": True, "no": False, "nil": None, "s": "Hello, World",
    "uni": "\u00c4pfel \u4f60\u597d \U0001f600 \u00df", "lines": "one\n\n  two\r\nthree\n",
    "xs": [3, 1, 2], "words": ["b", "A", "c", "a"], "empty": [], "d": {"b": 1, "a": 2, "C": 3},
    "rows": [{"name": "x", "age": 3, "tags": {"k": "v"}}, {"name": "Y", "age": 1},
             {"name": "z", "age": 2, "tags": {"k": "w"}}],
    "nested": {"a": {"b": [10, {"c": "deep"}]}, "items": "mine", "1": "one"},
}

# Each is the inside of {{ }}.
EXPRESSIONS = r"""
1 + 2 * 3 - 4 / 2
7 // 2, -7 // 2, 7 % 3, -7 % 3, 7 % -3, 7.5 // 2, -7.5 % 2
2 ** 10, 2 ** 3 ** 2, 2 ** -1, 2.0 ** 0.5, -2 ** 2, 0 ** 0
1 / 3, 4 / 2, 1e3, 1.5e-7, 1e16, 123456789012345.0, 1e22, 0.1 + 0.2, 100000000000000000000.0
1_000 + 0x1f + 0o17 + 0b11
-n, +n, - -n, +t
n == 7.0, n != 7, 1 == true, 0 == false, "1" == 1, none == false
1 < 2 < 3, 1 < 3 < 2, 3 > 2 >= 2, 1 == 1 == 1
big, big + 1, big == 9007199254740993.0, 9007199254740992 == 9007199254740992.0
"a" < "b", "a" < "B", "ab" < "abc", [1, 2] < [1, 3], (1, 2) < (1, 2, 0)
true and 0, true and "x", 0 or "", "" or [] or "last", not 1, not not 1
not n == 7, not n in xs, n not in xs, 3 in xs, "a" in "cat", "a" in d, 1 in d
"x" ~ 1 ~ none ~ true ~ 2.0 ~ [1, "a"] ~ nothing ~ "."
"a" + "b" * 3 ~ "c", 3 * "ab", [1] * 2 + [2], (1,) + (2, 3), "x" * -1, [] * 3
"yes" if t else "no", "yes" if no, ("yes" if no) is undefined, 1 if 0 else 2 if 0 else 3
s[0], s[-1], s[2:5], s[::-1], s[:-3], s[-3:], s[::2], s[10:2:-3], s[99:], s[-99:2]
uni[0], uni[6:8], uni[-3], uni | length, uni[::-1], uni[7:]
xs[0], xs[-1], xs[1:], xs[::-1], xs[5:], xs[-2:], (1, 2, 3)[1:], xs[True]
xs[9], xs[9] is defined, s[99] is defined, d["zz"] is defined, nil.x is defined, n.x is defined
d.a, d["a"], d.get("a"), d.get("z"), d.get("z", 5), d["C"], d.items is callable
nested.a.b[1].c, nested["a"]["b"][0], nested.a.b.0, nested["items"], nested["1"], nested.zz is defined
nested.items() | list | length
[1, 2.0, "a'b", 'q"q', "both'\"", none, true, [1], (1,), (), {"k": 1}, "\n\t\\é\x00\u200b"]
{"a": 1, 2: "b", none: true}, {1: "a", 1.0: "b", true: "c"}, {"a": 1, "a": 2}
(1), (1,), (1, 2), (), [1, 2,], {"a": 1,}
1, 2
"adjacent" " strings" 'join'
"esc \n \t \\ \' \" \x41 \u00e9 \U0001F600 \101 \q \a|", 'line\
goes on'
'single "inside"', "double 'inside'"
none, None, true, True, false, False
nothing, nothing is defined, nothing is undefined, nothing | default("d"), nothing == nothing, nothing == none
nothing | length, nothing | list, nothing | join, nothing | upper, nothing | trim, nothing | string, nothing | first is defined
nil | default("d"), nil | default("d", true), "" | default("d", boolean=true), 0 | d(5), no | d(5, true)
n is odd, n is even, 6 is divisibleby 3, 6 is divisibleby(4), n is number, t is number, s is number, 3.0 is odd
n is integer, t is integer, f is integer, f is float, n is float, t is boolean, n is boolean, t is true, 1 is true, no is false
nil is none, n is none, nil is not none, not nil is none, nothing is none
s is string, n is string, s is mapping, d is mapping, xs is mapping, messages[0] is mapping
xs is sequence, s is sequence, d is sequence, n is sequence, nil is sequence, xs is iterable, s is iterable, n is iterable, d is iterable, nil is iterable, d.items() is sequence
"abc" is lower, "ABC" is upper, "aBC" is lower, "1" is upper, "é" is lower
n is eq 7, n is equalto(7), n is ne 7, n is lt 8, n is gt 8, n is le 7, n is ge 7, n is greaterthan 1, n is lessthan 1
3 is in xs, 9 is in xs, 9 is not in xs, "a" is in "cat"
t is sameas true, 1 is sameas true, nil is sameas none
range is callable, s is callable, "upper" is filter, "nope" is filter, "odd" is test, "nope" is test
s is defined and n is defined or nothing is defined
s | upper, s | lower, s | title, s | capitalize, s | length, s | count, s | reverse, s | list | length
"they're bill's (friends) from-the UK" | title, "they're bill's".title(), "aBC dEF" | capitalize, "ǆ ß é Ω" | upper, "ÀÉ ΑΣΑ Я" | lower
"  a b  " | trim, "xxaxx" | trim("x"), "\u00a0 a \u3000" | trim, "  a" | trim | length
s | replace("l", "L"), s | replace("l", "L", 1), s | replace("", "-"), 121 | replace(1, "x"), s | replace(old="H", new="J")
words | join, words | join(", "), words | join(d="/"), xs | join("-"), rows | join(",", attribute="name"), "abc" | join("."), [1, none, true, 2.5] | join(" "), d | join("+")
words | sort, words | sort(true), words | sort(case_sensitive=true), xs | sort(reverse=true), rows | sort(attribute="age") | map(attribute="name") | list, rows | sort(attribute="name,age") | map(attribute="name") | join
words | unique | list, ["a", "A", 1, 1.0, true] | unique | list, words | unique(true) | list
xs | min, xs | max, words | min, words | max, words | max(true), empty | min is defined, rows | max(attribute="age"), [1, 2.5] | max
xs | sum, xs | sum(start=10), rows | sum(attribute="age"), empty | sum, [0.1, 0.2] | sum
xs | first, xs | last, empty | first is defined, s | first, s | last, d | first
xs | reverse | list, "abc" | reverse, (1, 2) | reverse | list, d | list, d | reverse | list
words | map("upper") | list, rows | map(attribute="name") | list, rows[::2] | map(attribute="tags.k") | list, rows | map(attribute="tags", default="-") | list, rows | map(attribute="zz", default=0) | list, ["a b"] | map("replace", "a", "b") | list
xs | select("odd") | list, xs | reject("odd") | list, xs | select("gt", 1) | list, [0, 1, "", "a", none] | select | list, [0, 1] | reject | list, xs | select("in", [1, 2]) | list
rows | selectattr("age", "gt", 1) | map(attribute="name") | list, rows | selectattr("tags") | map(attribute="name") | list, rows | rejectattr("tags", "defined") | map(attribute="name") | list, rows[::2] | selectattr("tags.k", "equalto", "w") | list | length, messages | selectattr("role", "==", "user") | list | length
nil | map("upper") | list, nil | select | list, nothing | selectattr("x") | list
d | items | list, d.items() | list, d.keys() | list, d.values() | list, d.items(), d.keys(), d.values()
d | dictsort, d | dictsort(true), d | dictsort(by="value"), d | dictsort(reverse=true), d | dictsort(false, "value", true)
rows | groupby("age") | length, words | groupby(0) | list, rows | groupby("age") | map("first") | list
xs | batch(2) | list, xs | batch(2, 0) | list, xs | slice(2) | list, xs | slice(2, "x") | list, range(10) | slice(4) | list
42.55 | round, 42.55 | round(1), 2.5 | round, 3.5 | round, 42 | round, 42.55 | round(1, "floor"), 42.51 | round(1, "ceil"), 2.675 | round(2), -2.5 | round, 1234.5 | round(-2), 1e300 | round(2), 15 | round(-1), 25 | round(-1)
"42" | int, "42.7" | int, "x" | int, "x" | int(9), " 12 " | int, "1_000" | int, "0x1f" | int(0, 16), "ff" | int(base=16), "-5" | int, 3.99 | int, -3.99 | int, true | int, none | int, "" | int, "+7" | int, "1e3" | int, "5" | int + 1
"2.5" | float, "x" | float, "x" | float(1.5), 3 | float, "1e3" | float, "inf" | float, "nan" | float, none | float, " 1.5 " | float, "-.5" | float, "1." | float
-3 | abs, 3.5 | abs, -2.5 | abs, true | abs, -0.0 | abs
"a\nb\n\nc" | indent, "a\nb\n\nc" | indent(2), "a\nb" | indent(2, true), "a\n\nb" | indent(2, blank=true), "a\nb" | indent("> "), "a\nb" | indent(width=1, first=true), "" | indent, "a\n" | indent
("<a href=\"x\">'&'</a>" | e) ~ ("<b>" | escape) ~ ("<b>" | safe), 5 | string, [1, "a"] | string, none | string
"foo bar baz qux" | truncate(9), "foo bar baz qux" | truncate(9, true), "foo bar baz qux" | truncate(11), "foo bar baz qux" | truncate(11, false, "..", 0), "abc" | truncate(3)
"foo bar-baz qux_1" | wordcount, "x" | center(9), "xy" | center(7), "abc" | center(2)
"%s is %d years and %.2f" | format("x", 3, 2.5), "%s" % "a", "%s %s" % ("a", 1), "%5d|%-5d|%05d|%+d" % (1, 2, 3, 4), "%x %X %o %e %g %r %c %%" % (255, 255, 8, 12345.678, 0.0001, "q'", "z"), "%(a)s-%(b)s" % {"a": 1, "b": 2}, "%s" % none, "%s" % [1, 2] | string
"%5s|%-5s|%.2s|%5.1f|%s" % ("ab", "cd", "xyz", 2.25, true), "%d" % 3.9, "%i" % true, "%#x" % 255, "%5.1f%%" % 99.5
"{} {}".format(1, "a"), "{1} {0}".format(1, 2), "{a} {b}".format(a=1, b=[2]), "{0:>5}|{0:<5}|{0:^5}|{0:*^7}".format("ab"), "{:05d} {:,} {:.3f} {:x} {:+d} {:%}".format(42, 1234567, 3.14159, 255, 5, 0.25), "{{}} {!r} {!s}".format("a", "b"), "{0[k]} {0[k]}".format({"k": 1}), "{:5}|{:<5}|{:5}".format(1, 2, "a"), "{:e} {:g}".format(12345.678, 0.00001), "{:_}".format(1000000)
"{:d}".format(7), "{:b} {:o} {:#x}".format(5, 8, 255), "{}".format(1.0), "{}".format(none), "{:s}".format("x"), "{:.2}".format("xyz")
s.upper(), s.lower(), s.title(), s.swapcase(), s.capitalize(), s.casefold()
"  x ".strip() ~ "|", "  x ".lstrip() ~ "|", "  x ".rstrip() ~ "|", "xyx".strip("x"), "xyzx".lstrip("xy"), "abcba".rstrip("ab"), "  x".strip(none), "a".strip("")
"a,b,,c".split(","), "a b  c ".split(), " a b c".split(none, 1), "a,b,c".split(",", 1), "a,b,c".rsplit(",", 1), "a b c ".rsplit(none, 1), " a  b c".rsplit(none, 1), "".split(), "".split(","), "a--b--c".split("--"), "aaa".split("aa"), "aaa".rsplit("aa"), "a,b,c".split(sep=",", maxsplit=1), "  ".split(), "a b ".split(none, 0)
lines.splitlines(), lines.splitlines(true), "a\n".splitlines(), "".splitlines(), "a\u2028b\x0bc\x1cd\x85e".splitlines()
s.startswith("Hell"), s.startswith("x"), s.endswith("World"), s.endswith(("x", "ld")), s.startswith(("a", "b")), s.startswith("l", 2), s.startswith("l", 2, 3), s.endswith("o", 0, 5), s.startswith("")
s.replace("l", ""), s.replace("o", "0", 1), s.replace("zz", "y"), "aaa".replace("a", "b", 2), "abc".replace("", "-", 2), "aaaa".replace("aa", "b")
s.find("o"), s.find("zz"), s.rfind("o"), s.index("l"), s.find("o", 5), s.find("l", 4, 9), s.rfind("l", 0, 4), uni.find("好"), s.count("l"), s.count("o", 5), s.count(""), s.find(""), s.rfind(""), s.rindex("l")
", ".join(words), "".join(["a", "b"]), "-".join("abc"), ",".join(d), ",".join(words | map("upper"))
"a=b=c".partition("="), "a=b=c".rpartition("="), "abc".partition("="), "abc".rpartition("=")
"42".isdigit(), "4a".isdigit(), "".isdigit(), "ab".isalpha(), "a1".isalnum(), "  ".isspace(), "AB".isupper(), "ab".islower(), "a b".isalpha(), "é".isalpha(), "42".isnumeric(), "42".isdecimal(), "é".isascii()
"7".zfill(3), "-7".zfill(4), "+".zfill(3), "ab".ljust(4) ~ "|", "ab".rjust(4), "ab".center(5, "*"), "ab".center(6), "abc".center(6, "*"), "abc".ljust(5, ".")
"prefix-x".removeprefix("prefix-"), "x.txt".removesuffix(".txt"), "x".removeprefix("yy")
xs.index(1), xs.count(3), (1, 2).index(2), xs.copy(), d.copy(), [1, 1.0, true].count(1)
range(5) | list, range(2, 5) | list, range(5, 0, -2) | list, range(0) | list, range(3), range(2, 3), range(0, 6, 2), range(0, 10, 3), range(10, 0, -3), range(5, 2), range(5, 2, 3),
range(0, 10, 3)[1:], range(0, 10, 3)[::-1], range(0, 10, 3)[1:3:2], range(5)[::100], range(5)[3:1], range(0)[1:],
range(9223372036854775806, 9223372036854775807, 9223372036854775807), range(3) | length, range(3)[1], range(3)[-1], 2 in range(3)
dict(a=1, b=2), dict({"x": 1}, y=2), dict([("a", 1), ["b", 2]]), dict()
namespace(a=1).a, namespace({"b": 2}).b, namespace().zz is defined
tools | tojson, tools[0].function.parameters | tojson(indent=2), d | tojson(sort_keys=true), "é\u2028<&>'\"\\/\b\f\x01\x7f" | tojson, "é😀\x7f" | tojson(ensure_ascii=true), [1.0, 1e20, 1e-7, 0.1, true, none] | tojson, [] | tojson, {} | tojson, [[], {}] | tojson(indent=2), {"a": [1, {"b": 2}]} | tojson(indent=4), (1, 2) | tojson, {1: 2, none: 3, true: 4, 1.5: 5} | tojson, d | tojson(separators=(",", ":")), {"a": 1} | tojson(indent=0), {"a": 1} | tojson(indent="\t"), "x" | tojson | length, nil | tojson, messages | tojson
strftime_now("%Y-%m-%d"), strftime_now("%d %b %Y"), strftime_now("%A, %B %-d, %Y %H:%M:%S %p %I %j %y %e %a %% %F %T %D %R %u %w"), strftime_now("")
strftime_now("%c | %x | %X | %h | %-m/%-d")
messages[0].role, messages[0]["content"], messages[-1].content.split("</think>")[-1].lstrip("\n"), messages[2].content is none, messages[2].tool_calls[0].function.name, messages | length, messages[1:] | length, messages[::-1][0].role, messages[0] == messages[0], messages[0] == messages[1], messages[0]
messages[-1].content.split("</think>")[0].rstrip("\n").split("<think>")[-1].lstrip("\n")
messages | map(attribute="role") | join(","), messages | selectattr("role", "in", ["user", "tool"]) | map(attribute="content") | list, (messages | selectattr("role", "equalto", "system") | list)[0].content, messages | rejectattr("content", "none") | list | length
"content" in messages[0], "tool_calls" in messages[2], messages[2].get("tool_calls", []) | length, messages[0].get("tool_calls") is none
[xs, words] | map("first") | list, [xs, words] | map("join", ",") | list, [[1, 2], [3]] | sum(start=[]), [1, [2, [3]]]
xs | map("string") | join, xs | map("float") | list, ["1", "2"] | map("int") | sum
-1 | abs, -xs[0] | abs, (-1) | abs, 2 ** -1 | abs, not xs | length == 3, 1 + xs | length * 2, s | length > 5 and "long" or "short"
"a" "b" | upper, "a" ~ "b" | upper, ("a" ~ "b") | upper, "x" + "y" | upper
xs[n - 6], xs[0:n - 5], {"a": xs}["a"][1], [[1, 2], [3, 4]][1][0], ("a", "b")[1], "abc"[1]
loop is defined, caller is defined, varargs is defined
d | length, d | count, (1, 2) | length, d.items() | length, {} | length
{"a": 1} == {"a": 1.0}, [1, 2] == [1, 2], [1] == (1,), (1, 2) == (1, 2), {} == [], "" == none, [1] != [1, 2], d.keys() | list == ["b", "a", "C"]
cycler("a", "b").current, joiner("-")() ~ "|"
[{"a": 1}, {"a": 2}] | map(attribute="a") | list | tojson, rows | map("tojson") | list | length
(n | string).zfill(3), n | string ~ "x", (1 > 0) | string, 1.0 | string | length
true + true, true * 3, -true, 3 - false, t ~ no
"abc" in ["abc"], none in [none], 1.0 in [1], [1] in [[1]], "" in "abc", nothing in [1], 1 in nothing
1 if nothing else 2, 1 if "" else 2, 1 if "0" else 2, 1 if [0] else 2, 1 if 0.0 else 2, 1 if {} else 2, 1 if none else 2, (1 if xs | select else 2)
xs | attr("count") is defined, d | attr("a") is defined
"x".__class__ is defined
"%s %s" | format(1, 2), "%(a)s" | format(a=1), [1, 2, 3][1:][0], xs[::2] | list
"Ünï" | upper | lower | capitalize, "ÜNÏ".lower(), "straße".upper(), "ΣΑΣ".lower() | length
"\t tab" | trim, "a\tb".split("\t"), "\x1f x \x1e" | trim | length, "\u200bx" | trim | length
"a" * 3 ~ "b" * 0 ~ "c", "ab" * true
"😀" | length, "e\u0301" | length, "你好"[1], "你好世界"[1:3], "a你b".find("b"), "你".center(3, "-"), "你好" | list, "héllo" | reverse
""".strip("\n")

# Expressions that Jinja refuses.
BAD_EXPRESSIONS = r"""
nothing.x
nothing["x"]
nothing + 1
nothing()
nothing < 1
-nothing
nil.x.y
messages[0].zz.y
xs[9].a
1 / 0
1 // 0
1 % 0
0 ** -1
"a" + 1
1 + "a"
[1] + (2,)
none + 1
"a" - "b"
"a" < 1
none < 1
{} < {}
1 in 5
1 in "a"
n()
"x"()
s.index("zz")
xs.index(99)
"x" | nope
"x" is nope
xs | map("nope") | list
xs | select("nope") | list
raise_exception("stop: " ~ n)
5 | length
none | length
none | join
5 | list
5 | first
xs | map("upper") | length
xs | map("upper") | last
nothing | tojson
range | tojson
range(1000000)
range(1, 2, 0)
'%d' % ((s[:0] ~ "nan") | float)
'%d' % ((s[:0] ~ "inf") | float)
range("a")
"abc".split("")
"abc".partition("")
"%d" % "x"
"%s %s" % ("a",)
"%s" % ("a", "b")
"{} {}".format(1)
"{a}".format(b=1)
"{:d}".format("x")
["b", 1] | sort
[1, "a"] | max
[{}] | unique | list
{[]: 1}
{}[[]].x
"-".join([1, 2])
" ".join(5)
xs[::0]
"x".strip(5)
"x".replace("a")
d | dictsort(by="x")
5 | items | list
5 | round(1, "x")
"x" | abs
"x" | round
nothing | int
nothing | float
namespace(1)
cycler()
xs | batch(2).x.y
(1, 2
[1, 2
{1: 2
1 +
"abc
s.
s[
x |
x is
1 2
)
}
a b
'a' 'b
x is defined is defined
x is defined if 0 else 1
n is == 7
rows | map(attribute="tags.k") | list
foo(a=1, 2)
foo(**a, *b)
foo(**a, b)
@
a ? b
a = b
a && b
!a
1 if
007
"\x4"
"\u12"
x.5.
""".strip("\n")

TEMPLATES = [
    # white space
    "a\n{% if true %}\nb\n{% endif %}\nc\n",
    "a\n   {% if true %}   \nb\n   {% endif %}\nc",
    "a\n   {%+ if true %}\nb\n   {%- endif %}\nc",
    "a  {%- if true -%}  b  {%- endif -%}  c",
    "a\n\n{%- if true %}\n\nb{% endif -%}\n\n c",
    "a {% if true +%}\nb{% endif +%}\nc",
    "x {{- ' y ' -}} z", "x\n {{ 'y' }}\n z\n\n", "  {{ 1 }}  \n",
    "{# c #}\na\n  {# c #}  \nb {# c #} c\n{#- c -#}\n d", "a{# {{ x }} {% if %} #}b", "{##}a{#-#} b",
    "a\n\t {% set x = 1 %}\n\tb", "{% set x = 1 %}\n\n{% set y = 2 %}\n{{ x }}{{ y }}",
    "a\r\nb\r{% if true %}\r\nc{% endif %}\r\n", "a\n\n", "a\n\n\n", "\n", "", "\n\n{{ 1 }}\n",
    "{% raw %}{{ x }} {% if %} {# #}{% endraw %}", "a\n  {% raw %}\n  b {{ c }}\n  {% endraw %}\nd",
    "a {%- raw -%}  b  {%- endraw -%}  c", "{% raw %}{% endraw %}x", "{% raw %}{% raw %}{% endraw %}",
    "{{ '}}' }}{{ \"{{\" }}{{ '%}' }}", "{{ {'a': {'b': 1}}.a.b }}{{ {'a': {}} }}", "{{{'a': 1}.a}}",
    "{ { } } {a} }} %} #} {", "{{ 'a\nb' }}", "{{\n1\n+\n2\n}}", "{%\nif true\n%}x{%\nendif\n%}",
    "\u00a0{%- if true -%}\u3000x{% endif %}", "a\u00a0\n \u00a0 {% if true %}x{% endif %}",
    "{%if true%}x{%endif%}", "{%-if true-%} x {%-endif-%}", "{{1}}{{-1}}{{- 1 }}{{+1}}",
    "<{{ 'a' -}}\n>{{- 'b' }}\n<", "{% if true %}\n\n  a\n\n{% endif %}\n\nb",
    "{% for x in xs %}\n  {{ x }}\n{% endfor %}\nend", "{% for x in xs -%}\n  {{ x }}\n{%- endfor %}\nend",
    "  {%- for x in xs %}\n    {{- x }}\n  {%- endfor %}\n",
    # if
    "{% if n > 5 %}big{% elif n > 3 %}mid{% else %}small{% endif %}",
    "{% if n > 9 %}big{% elif n > 3 %}mid{% else %}small{% endif %}",
    "{% if n > 9 %}a{% elif n > 8 %}b{% elif n > 7 %}c{% else %}d{% endif %}",
    "{% if not nothing %}x{% endif %}{% if xs %}y{% endif %}{% if empty %}z{% else %}w{% endif %}",
    "{% if t and (no or n) %}ok{% endif %}", "{% if a is defined and a.b.c %}x{% else %}y{% endif %}",
    # for
    "{% for x in xs %}{{ x }}{% if not loop.last %},{% endif %}{% endfor %}",
    "{% for x in xs %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}"
    "{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.depth }}{{ loop.depth0 }} {% endfor %}",
    "{% for x in xs %}[{{ loop.previtem }}<{{ x }}>{{ loop.nextitem }}]"
    "{{ loop.previtem is defined }}{% endfor %}",
    "{% for x in xs %}{{ loop.cycle('a', 'b') }}{{ loop.changed(x > 1) }}{% endfor %}",
    "{% for x in empty %}x{% else %}none{% endfor %}", "{% for x in nothing %}x{% else %}none{% endfor %}",
    "{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}", "{% for k in d %}{{ k }}{% endfor %}",
    "{% for k, v in d | dictsort %}{{ k }}{{ v }}{% endfor %}", "{% for c in 'aé' %}{{ c }}.{% endfor %}",
    "{% for x in xs if x > 1 %}{{ loop.index }}:{{ x }}/{{ loop.length }} {% endfor %}",
    "{% for x in xs if x > 9 %}x{% else %}none{% endfor %}",
    "{% for (a, b) in [(1, 2), (3, 4)] %}{{ a + b }} {% endfor %}",
    "{% for a, (b, c) in [(1, (2, 3))] %}{{ a }}{{ b }}{{ c }}{% endfor %}",
    "{% for x in 1, 2, 3 %}{{ x }}{% endfor %}", "{% for i in range(3) %}{{ i }}{% endfor %}",
    "{% for x in xs %}{% for y in words %}{{ loop.index }}{% endfor %}{{ loop.index }};{% endfor %}",
    "{% for x in xs %}{% set outer = loop %}{% for y in xs %}{{ outer.index }}{% endfor %}{% endfor %}",
    "{% for x in range(9) %}{% if x == 2 %}{% continue %}{% endif %}{% if x == 5 %}{% break %}"
    "{% endif %}{{ x }}{% endfor %}",
    "{% for x in xs %}{% for y in xs %}{% break %}{% endfor %}{{ x }}{% else %}no{% endfor %}",
    "{% for x in xs %}{% break %}{% else %}no{% endfor %}after",
    "{% for x in xs %}{{ x }}{% endfor %}{{ x is defined }}{{ loop is defined }}",
    "{% set x = 0 %}{% for x in xs %}{{ x }}{% endfor %}{{ x }}",
    "{% set c = 0 %}{% for x in xs %}{% set c = c + x %}{{ c }}{% endfor %}{{ c }}",
    "{% for x in xs %}{% set q = x %}{% if q > 1 %}{{ q }}{% endif %}{% endfor %}{{ q is defined }}",
    "{% for x in xs %}{% if loop.first %}{% set seen = 1 %}{% endif %}{{ seen is defined }}{% endfor %}",
    "{% for m in messages[1:] %}{{ m.role }}{{ '' if loop.last else ',' }}{% endfor %}",
    "{% for m in messages[::-1] %}{% set i = (messages | length - 1) - loop.index0 %}{{ i }}{% endfor %}",
    "{% for row in rows recursive %}{{ row.name }}{% endfor %}",
    "{% for x in [[1, [2]], [3]] recursive %}{% if x is sequence %}({{ loop(x) }}){{ loop.depth }}"
    "{% else %}{{ x }}{{ loop.depth0 }}{% endif %}{% endfor %}",
    "{% for x in xs | map('string') | list %}{{ x }}{% endfor %}",
    "{% for x in xs | map('string') %}{{ loop.length }}{% endfor %}",
    "{% for a in xs %}{% for b in xs if b > a %}{{ a }}{{ b }} {% else %}- {% endfor %}{% endfor %}",
    "{% set g = xs | map('string') %}{{ g | list }}{{ g | list }}",
    # set
    "{% set a = 1 %}{% set b, c = 2, 3 %}{{ a }}{{ b }}{{ c }}", "{% set a = 1, 2 %}{{ a }}",
    "{% set a %}x{{ n }}{% endset %}[{{ a }}]", "{% set a | upper | trim %} x{{ n }} {% endset %}[{{ a }}]",
    "{% set a | replace('x', 'y') %}xx{% endset %}{{ a }}", "{% if true %}{% set a = 5 %}{% endif %}{{ a }}",
    "{% if false %}{% set a = 5 %}{% endif %}{{ a is defined }}", "{% set (a, b) = [1, 2] %}{{ b }}",
    "{% set ns = namespace(found=false, n=0) %}{% for x in xs %}{% set ns.n = ns.n + x %}"
    "{% if x == 1 %}{% set ns.found = true %}{% endif %}{% endfor %}{{ ns.found }}{{ ns.n }}",
    "{% set ns = namespace() %}{% set ns.a = [1] %}{% set ns.a = ns.a + [2] %}{{ ns.a }}{{ ns['a'] }}",
    "{% set ns = namespace() %}{% set ns.t %}a{{ 1 }}{% endset %}{{ ns.t }}",
    "{% set a = 'x' %}{% set a = a ~ 'y' %}{{ a }}", "{% set d2 = dict(d, z=1) %}{{ d2 }}",
    "{% set x = [] %}{% for i in xs %}{% set x = x + [i] %}{% endfor %}{{ x }}",
    # macros
    "{% macro m(a, b=2) %}{{ a }}-{{ b }};{% endmacro %}{{ m(1) }}{{ m(1, 3) }}{{ m(b=5, a=4) }}{{ m() }}",
    "{% macro m(a, b=a) %}{{ a }}{{ b }}{% endmacro %}{{ m(1) }}{{ m(1, 2) }}",
    "{% macro m() %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2, x=3) }}{{ m() }}",
    "{% macro m(x) %}{% if x > 0 %}{{ x }}{{ m(x - 1) }}{% endif %}{% endmacro %}{{ m(5) }}",
    "{% macro outer() %}<{{ caller() }}>{% endmacro %}{% call outer() %}in{{ n }}{% endcall %}",
    "{% macro outer() %}{% for x in xs %}{{ caller(x, loop.index) }}{% endfor %}{% endmacro %}"
    "{% call(a, b) outer() %}[{{ a }}{{ b }}]{% endcall %}",
    "{% macro a() %}A{% if caller %}{{ caller() }}{% endif %}{% endmacro %}{{ a() }}",
    "{% set x = 1 %}{% macro m() %}{{ x }}{% set x = 2 %}{{ x }}{% endmacro %}{{ m() }}{{ x }}",
    "{% macro m() %}{{ y }}{% endmacro %}{% set y = 3 %}{{ m() }}",
    "{% macro m(x) %}  {{ x }}  {% endmacro %}[{{ m(1) }}][{{ m(1) | trim }}]{{ m('a') | length }}",
    "{% macro m(x) -%}\n  {{ x }}\n{%- endmacro %}[{{ m(1) }}]", "{{ m is defined }}{% macro m() %}{% endmacro %}{{ m is defined }}{{ m is callable }}",
    "{% macro m(a) %}{{ a is defined }}{{ a }}{% endmacro %}{{ m() }}", "{% macro m(a, b) %}{{ a }}{{ b }}{% endmacro %}{{ m(*[1, 2]) }}{{ m(**{'a': 3, 'b': 4}) }}",
    "{% macro json(x, i=0) %}{% if x is mapping %}{ {%- for k, v in x.items() %}{{ k }}: {{ json(v, i + 1) }}"
    "{% if not loop.last %}, {% endif %}{% endfor -%} }{% elif x is string %}'{{ x }}'{% elif x is iterable %}"
    "[{% for v in x %}{{ json(v, i + 1) }}{% if not loop.last %}, {% endif %}{% endfor %}]{% else %}{{ x }}"
    "{% endif %}{% endmacro %}{{ json(tools) }}",
    "{% macro m(n) %}{{ m.name }}{{ m.arguments }}{% endmacro %}{{ m(1) }}",
    "{% for x in xs %}{% macro m() %}{{ x }}{% endmacro %}{{ m() }}{% endfor %}",
    # blocks
    "{% filter upper %}a{{ 'b' }}{% endfilter %}", "{% filter upper | replace('A', 'x') %}abc{% endfilter %}",
    "{% with a = 1, b = 2 %}{{ a }}{{ b }}{% endwith %}{{ a is defined }}", "{% with %}{% set z = 1 %}{{ z }}{% endwith %}{{ z is defined }}",
    "{% set a = 1 %}{% with a = 2, b = a %}{{ a }}{{ b }}{% endwith %}",
    "{% generation %}a{{ n }}{% endgeneration %}b", "{%- generation -%} a {%- endgeneration -%} b",
    "{% for m in messages %}{% generation %}{{ m.role }}{% endgeneration %}{% endfor %}",
    "{% set j = joiner(', ') %}{% for x in xs %}{{ j() }}{{ x }}{% endfor %}",
    "{% set c = cycler('a', 'b') %}{{ c.next() }}{{ c.next() }}{{ c.current }}{{ c.next() }}{{ c.reset() }}{{ c.next() }}",
    # as chat templates are written
    "{{ bos_token }}{% for m in messages %}{% if m['role'] == 'user' %}[INST] {{ m['content'] | trim }} [/INST]"
    "{% elif m['role'] == 'assistant' and m['content'] %}{{ m['content'] + eos_token }}{% endif %}{% endfor %}",
    "{%- for message in messages %}\n    {%- if message.content is string %}\n        {{- '<|' + message.role + '|>\\n' + message.content }}\n"
    "    {%- elif message.tool_calls is defined and message.tool_calls is not none %}\n        {%- for call in message.tool_calls %}\n"
    "            {%- if call.function is defined %}\n                {%- set call = call.function %}\n            {%- endif %}\n"
    "            {{- '{\"name\": \"' + call.name + '\", \"arguments\": ' + (call.arguments | tojson) + '}' }}\n        {%- endfor %}\n    {%- endif %}\n{%- endfor %}\n",
    "{%- if tools %}\n{{- 'Tools:\\n' }}\n{%- for tool in tools %}\n{{- tool | tojson(indent=4) + '\\n' }}\n{%- endfor %}\n{%- endif %}",
    "{%- for key, val in tools[0].function.items() if key != 'parameters' %}{{ key }}: {{ val if val is string else val | tojson }}{{ ', ' if not loop.last }}{%- endfor %}",
    "{%- set ns = namespace(last=-1) %}{%- for m in messages %}{%- if m.role == 'user' %}{%- set ns.last = loop.index0 %}{%- endif %}{%- endfor %}{{ ns.last }}",
    "{%- set system = messages[0].content if messages[0].role == 'system' else 'none' -%}{{ system }}",
    "{%- set loop_messages = messages[1:] if messages[0]['role'] == 'system' else messages -%}{{ loop_messages | length }}",
    "{%- for m in messages %}{%- if loop.index0 > 0 and messages[loop.index0 - 1].role == 'tool' %}after tool{%- endif %}{%- endfor %}",
    "{%- macro render(content) -%}{%- if content is string -%}{{- content -}}{%- elif content is iterable -%}{%- for part in content -%}{{- part.text -}}{%- endfor -%}{%- endif -%}{%- endmacro -%}"
    "{{ render('a') }}{{ render([{'text': 'b'}, {'text': 'c'}]) }}{{ render(none) }}",
    "{% if add_generation_prompt is defined and add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}",
    "{% if enable_thinking is defined and enable_thinking is false %}x{% else %}y{% endif %}",
    "{% if messages[0]['role'] == 'system' %}{% set sys = messages[0]['content'] | trim %}{% set messages = messages[1:] %}{% endif %}{{ sys }}{{ messages | length }}",
    "{% if builtin_tools is defined or tools is not none %}tools{% endif %}{{ documents is none }}",
]

BAD_TEMPLATES = [
    "{% if %}x{% endif %}", "{% if true %}x", "{% for x in xs %}x", "{% for in xs %}{% endfor %}", "{% endif %}", "{% else %}",
    "{% if true %}{% endfor %}", "{% nope %}", "{% set %}", "{% set x %}", "{% set 1 = 2 %}", "{% set x = %}", "{{ }}", "{{ x", "{% if true",
    "{# never closed", "{% raw %}never closed", "{% macro %}{% endmacro %}", "{% macro m( %}{% endmacro %}", "{% macro m(a=1, b) %}{% endmacro %}",
    "{% for x in xs %}{% else %}{% else %}{% endfor %}", "{% break %}", "{% continue %}", "{% set ns.x = 1 %}", "{% set n.x = 1 %}",
    "{% for a, b in xs %}{% endfor %}", "{% set a, b = 1, 2, 3 %}", "{% set a, b = [1] %}", "{% for x in 5 %}{% endfor %}", "{% for x in none %}{% endfor %}",
    "{% macro m(a) %}{% endmacro %}{{ m(1, 2) }}", "{% macro m(a) %}{% endmacro %}{{ m(b=1) }}", "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
    "{% for x in xs %}{{ loop(xs) }}{% endfor %}", "{% call m %}{% endcall %}", "{% set true = 1 %}", "{% filter nope %}x{% endfilter %}",
    "a\nb\n{% if messages %}\n{{ raise_exception('Conversation roles must alternate') }}\n{% endif %}", "{{ 1 }}\n{{ raise_exception('') }}",
    "{% for x in xs %}{% macro m() %}{% break %}{% endmacro %}{% endfor %}", "{{ 1 if }}", "{% with a %}{% endwith %}", "{% for x in xs %}{% endfor x %}",
]


def case(template):
    try:
        return {"template": template, "expected": ENV.from_string(template).render(VARS, documents=None)}
    except jinja2.exceptions.TemplateError as e:
        if type(e) is jinja2.exceptions.TemplateError:
            return {"template": template, "raised": e.message or ""}
        return {"template": template, "error": f"{type(e).__name__}: {e}"}
    except Exception as e:  # what Python raises inside a template
        return {"template": template, "error": f"{type(e).__name__}: {e}"}


def main():
    # An expression may go on in the next line after a backslash: one item per template.
    expressions = EXPRESSIONS.replace("\\\n", "\0").split("\n")
    good = ["{{ " + e.replace("\0", "\\\n") + " }}" for e in expressions] + TEMPLATES
    bad = ["{{ " + e + " }}" for e in BAD_EXPRESSIONS.split("\n")] + BAD_TEMPLATES
    cases = [case(t) for t in good + bad]
    for c in cases[:len(good)]:
        if "error" in c:
            print("unexpected:", c)
    for c in cases[len(good):]:
        if "expected" in c:
            print("unexpected:", c)
    with open("jinja_cases.json", "w") as out:
        json.dump({"variables": VARS, "cases": cases}, out, indent=1, ensure_ascii=False)
        out.write("\n")
    print(len(cases), "cases")


if __name__ == "__main__":
    main()
