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
    "huge": 18446744073709551615, "huger": 123456789012345678901234567890, "minus": -9223372036854775809,
    "nested": {"a": {"b": [10, {"c": "deep"}]}, "items": "mine", "1": "one"},
}

# Each is the inside of {{ }}.
EXPRESSIONS = r"""
1 + 2 * 3 - 4 / 2
7 // 2, -7 // 2, 7 % 3, -7 % 3, 7 % -3, 7.5 // 2, -7.5 % 2
1 / 3, 4 / 2, 1e3, 1.5e-7, 1e16, 123456789012345.0, 1e22, 0.1 + 0.2, 100000000000000000000.0
-n, +n, - -n, +t
n == 7.0, n != 7, 1 == true, 0 == false, "1" == 1, none == false
1 < 2 < 3, 1 < 3 < 2, 3 > 2 >= 2, 1 == 1 == 1
big, big + 1, big - 1 == 9007199254740992.0
"a" < "b", "a" < "B", "ab" < "abc"
true and 0, true and "x", 0 or "", "" or [] or "last", not 1, not not 1
not n == 7, not n in xs, n not in xs, 3 in xs, "a" in "cat", "a" in d, 1 in d
"x" ~ 1 ~ none ~ true ~ 2.0 ~ [1, "a"] ~ nothing ~ "."
"a" + "b" * 3 ~ "c", [1] + [2], (1,) + (2, 3), "x" * -1
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
"esc \n \t \\ \' \" \x41 \u00e9 \U0001F600 \q \a|", 'line\
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
xs is sequence, s is sequence, d is sequence, n is sequence, nil is sequence, xs is iterable, s is iterable, n is iterable, d is iterable, nil is iterable
n is eq 7, n is equalto(7), n is ne 7, n is lt 8, n is gt 8, n is le 7, n is ge 7, n is greaterthan 1, n is lessthan 1
3 is in xs, 9 is in xs, 9 is not in xs, "a" is in "cat"
t is sameas true, 1 is sameas true, nil is sameas none
range is callable, s is callable
s is defined and n is defined or nothing is defined
s | upper, s | lower, s | title, s | capitalize, s | length, s | count, s | reverse, s | list | length
"they're bill's (friends) from-the UK" | title, "they're bill's".title(), "aBC dEF" | capitalize, "ǆ ß é Ω" | upper, "ÀÉ ΑΣΑ Я" | lower
"  a b  " | trim, "xxaxx" | trim("x"), "\u00a0 a \u3000" | trim, "  a" | trim | length
s | replace("l", "L"), s | replace("l", "L", 1), s | replace("", "-"), 121 | replace(1, "x"), s | replace(old="H", new="J")
words | join, words | join(", "), words | join(d="/"), xs | join("-"), rows | join(",", attribute="name"), "abc" | join("."), [1, none, true, 2.5] | join(" "), d | join("+")
words | sort, words | sort(true), words | sort(case_sensitive=true), xs | sort(reverse=true), rows | sort(attribute="age") | map(attribute="name") | list
words | unique | list, ["a", "A", 1, 1.0, true] | unique | list, words | unique(true) | list
xs | first, xs | last, empty | first is defined, s | first, s | last, d | first
xs | reverse | list, "abc" | reverse, (1, 2) | reverse | list, d | list, d | reverse | list
words | map("upper") | list, rows | map(attribute="name") | list, rows[::2] | map(attribute="tags.k") | list, rows | map(attribute="tags", default="-") | list, rows | map(attribute="zz", default=0) | list, ["a b"] | map("replace", "a", "b") | list
xs | select("odd") | list, xs | reject("odd") | list, xs | select("gt", 1) | list, [0, 1, "", "a", none] | select | list, [0, 1] | reject | list, xs | select("in", [1, 2]) | list
rows | selectattr("age", "gt", 1) | map(attribute="name") | list, rows | selectattr("tags") | map(attribute="name") | list, rows | rejectattr("tags", "defined") | map(attribute="name") | list, rows[::2] | selectattr("tags.k", "equalto", "w") | list | length, messages | selectattr("role", "==", "user") | list | length
nil | map("upper") | list, nil | select | list, nothing | selectattr("x") | list
d | items | list, d.items() | list, d.keys() | list, d.values() | list, d.items() | length
d.items() | sort, [(2, "a"), (1, "b")] | sort, [[1, 2], [0, 3], [1]] | min, [[1, 2], [1, 2, 3]] | max, (1, 2) < (1, 3), [1, "a"] < [2, 3], (1, (2, 3)) >= (1, (2, 3)), [] < [0]
rows | sort(attribute="age,name") | map(attribute="name") | list, rows | sort(attribute="zz") | map(attribute="name") | list, rows | sort(attribute="name,age", reverse=true) | map(attribute="age") | list
d.copy(), xs.copy(), (d.copy() == d) ~ ([1].copy() == [1]), dict(d.copy(), z=1)
d | dictsort, d | dictsort(true), d | dictsort(by="value"), d | dictsort(reverse=true), d | dictsort(false, "value", true)
"42" | int, "42.7" | int, "x" | int, "x" | int(9), " 12 " | int, "-5" | int, 3.99 | int, -3.99 | int, true | int, none | int, "" | int, "+7" | int, "1e3" | int, "5" | int + 1
"2.5" | float, "x" | float, "x" | float(1.5), 3 | float, "1e3" | float, "inf" | float, "nan" | float, none | float, " 1.5 " | float, "-.5" | float, "1." | float
-3 | abs, 3.5 | abs, -2.5 | abs, true | abs, -0.0 | abs
"a\nb\n\nc" | indent, "a\nb\n\nc" | indent(2), "a\nb" | indent(2, true), "a\n\nb" | indent(2, blank=true), "a\nb" | indent("> "), "a\nb" | indent(width=1, first=true), "" | indent, "a\n" | indent
("<a href=\"x\">'&'</a>" | e) ~ ("<b>" | escape) ~ ("<b>" | safe), 5 | string, [1, "a"] | string, none | string
s.upper(), s.lower(), s.title(), s.capitalize()
"  x ".strip() ~ "|", "  x ".lstrip() ~ "|", "  x ".rstrip() ~ "|", "xyx".strip("x"), "xyzx".lstrip("xy"), "abcba".rstrip("ab"), "  x".strip(none), "a".strip("")
"a,b,,c".split(","), "a b  c ".split(), " a b c".split(none, 1), "a,b,c".split(",", 1), "a,b,c".rsplit(",", 1), "a b c ".rsplit(none, 1), " a  b c".rsplit(none, 1), "".split(), "".split(","), "a--b--c".split("--"), "aaa".split("aa"), "aaa".rsplit("aa"), "a,b,c".split(sep=",", maxsplit=1), "  ".split(), "a b ".split(none, 0)
lines.splitlines(), lines.splitlines(true), "a\n".splitlines(), "".splitlines(), "a\u2028b\x0bc\x1cd\x85e".splitlines()
s.startswith("Hell"), s.startswith("x"), s.endswith("World"), s.endswith(("x", "ld")), s.startswith(("a", "b")), s.startswith("")
s.replace("l", ""), s.replace("o", "0", 1), s.replace("zz", "y"), "aaa".replace("a", "b", 2), "abc".replace("", "-", 2), "aaaa".replace("aa", "b")
s.find("o"), s.find("zz"), uni.find("好"), s.count("l"), s.count(""), s.find("")
", ".join(words), "".join(["a", "b"]), "-".join("abc"), ",".join(d), ",".join(words | map("upper"))
"prefix-x".removeprefix("prefix-"), "x.txt".removesuffix(".txt"), "x".removeprefix("yy")
xs.index(1), xs.count(3), (1, 2).index(2), [1, 1.0, true].count(1)
range(5) | list, range(2, 5) | list, range(5, 0, -2) | list, range(0) | list, range(2, 3) | list, range(0, 10, 3) | list, range(5, 2) | list
range(0, 10, 3)[1:] | list, range(0, 10, 3)[::-1] | list, range(0, 10, 3)[1:3:2] | list, range(5)[3:1] | list
range(9223372036854775806, 9223372036854775807, 9223372036854775807) | list, range(3) | length, range(3)[1], range(3)[-1], 2 in range(3)
dict(a=1, b=2), dict({"x": 1}, y=2), dict([("a", 1), ["b", 2]]), dict()
namespace(a=1).a, namespace({"b": 2}).b, namespace().zz is defined
tools | tojson, tools[0].function.parameters | tojson(indent=2), d | tojson(sort_keys=true), "é\u2028<&>'\"\\/\b\f\x01\x7f" | tojson, "é😀\x7f" | tojson(ensure_ascii=true), [1.0, 1e20, 1e-7, 0.1, true, none] | tojson, [] | tojson, {} | tojson, [[], {}] | tojson(indent=2), {"a": [1, {"b": 2}]} | tojson(indent=4), (1, 2) | tojson, {1: 2, none: 3, true: 4, 1.5: 5} | tojson, d | tojson(separators=(",", ":")), {"a": 1} | tojson(indent=0), {"a": 1} | tojson(indent="\t"), "x" | tojson | length, nil | tojson, messages | tojson
strftime_now("%Y-%m-%d"), strftime_now("%d %b %Y"), strftime_now("%A, %B %-d, %Y %H:%M:%S %p %I %j %y %e %a %% %F %T %D %R %u %w"), strftime_now("")
strftime_now("%c | %x | %X | %h | %-m/%-d")
strftime_now("%H:%M %Z|%z|%P|%k|%l")
strftime_now("%C %G %g %V %U %W %r %f %%f 100%"), strftime_now("%-I:%M%%-d %-H")
"\u01c6 \u0149 \ufb01 \u1f80 \u00b5" | upper, "\u0130 \u1fb3 \u2160".lower(), "\u00df".islower(), "\u24d0".upper()
["\u00ad", "\u0600", "\u180e", "\u2028", "\ue000", "\u00e9", "\U0001f600", "\x7f"] | list, "\u00e9\u4f60".isprintable(), "\u200b".isprintable()
"abcabcabc".replace("bc", "x", 2), "aXbXc".rsplit("X", 1), ("ab" * 40).find("b" + "ab" * 20)
messages[0].role, messages[0]["content"], messages[-1].content.split("</think>")[-1].lstrip("\n"), messages[2].content is none, messages[2].tool_calls[0].function.name, messages | length, messages[1:] | length, messages[::-1][0].role, messages[0] == messages[0], messages[0] == messages[1], messages[0]
messages[-1].content.split("</think>")[0].rstrip("\n").split("<think>")[-1].lstrip("\n")
messages | map(attribute="role") | join(","), messages | selectattr("role", "in", ["user", "tool"]) | map(attribute="content") | list, (messages | selectattr("role", "equalto", "system") | list)[0].content, messages | rejectattr("content", "none") | list | length
"content" in messages[0], "tool_calls" in messages[2], messages[2].get("tool_calls", []) | length, messages[0].get("tool_calls") is none
[xs, words] | map("first") | list, [xs, words] | map("join", ",") | list, [1, [2, [3]]]
xs | map("string") | join, xs | map("float") | list, ["1", "2"] | map("int") | list
-1 | abs, -xs[0] | abs, (-1) | abs, not xs | length == 3, 1 + xs | length * 2, s | length > 5 and "long" or "short"
"a" "b" | upper, "a" ~ "b" | upper, ("a" ~ "b") | upper, "x" + "y" | upper
xs[n - 6], xs[0:n - 5], {"a": xs}["a"][1], [[1, 2], [3, 4]][1][0], ("a", "b")[1], "abc"[1]
loop is defined, caller is defined
d | length, d | count, (1, 2) | length, d.items() | length, {} | length
{"a": 1} == {"a": 1.0}, [1, 2] == [1, 2], [1] == (1,), (1, 2) == (1, 2), {} == [], "" == none, [1] != [1, 2], d.keys() | list == ["b", "a", "C"]
joiner("-")() ~ "|"
[{"a": 1}, {"a": 2}] | map(attribute="a") | list | tojson, rows | map("tojson") | list | length
n | string ~ "x", (1 > 0) | string, 1.0 | string | length
true + true, true * 3, -true, 3 - false, t ~ no
"abc" in ["abc"], none in [none], 1.0 in [1], [1] in [[1]], "" in "abc", nothing in [1], 1 in nothing
1 if nothing else 2, 1 if "" else 2, 1 if "0" else 2, 1 if [0] else 2, 1 if 0.0 else 2, 1 if {} else 2, 1 if none else 2, (1 if xs | select else 2)
"x".__class__ is defined
"%s %s" | format(1, 2), "%04d-%02d|%3d|%d%%" | format(7, -3, 5, 123456), [1, 2, 3][1:][0], xs[::2] | list
"Ünï" | upper | lower | capitalize, "ÜNÏ".lower(), "straße".upper(), "ΣΑΣ".lower() | length
"\t tab" | trim, "a\tb".split("\t"), "\x1f x \x1e" | trim | length, "\u200bx" | trim | length
"a" * 3 ~ "b" * 0 ~ "c", "ab" * true
"😀" | length, "e\u0301" | length, "你好"[1], "你好世界"[1:3], "a你b".find("b"), "你好" | list, "héllo" | reverse
[3, 1, 2] | min, [3, 1, 2] | max, ["b", "A"] | min, ["b", "A"] | max(case_sensitive=true), "hello" | max, [] | min, nothing | max
rows | min(attribute="age"), rows | max(attribute="age"), [[1, "x"], [0, "y"]] | min(attribute=0), [2, 2.0, 1, 1.0] | max, [1.0, 1] | min
[1, 2, 3] | sum, [1.5, 2] | sum, rows | sum(attribute="age"), [] | sum, [1] | sum(start=10), [[1], [2]] | sum(start=[]), nothing | sum, ["1", "2"] | map("int") | sum
42.55 | round, 42.55 | round(1), 42.55 | round(1, "floor"), 42.5 | round, 43.5 | round, -2.5 | round, 2 | round, 2.675 | round(2), 1e300 | round(2), 0.5 | round | int
42.55 | round(1, "ceil"), -42.55 | round(1, "ceil"), 42 | round(1, "floor"), 1234 | round(-2), 1250 | round(-2), 1350 | round(-2), -1250 | round(-2), 1234.5 | round(-2), 15 | round(-1)
[rows[0], rows[2]] | groupby("tags.k") | list, rows | groupby("age") | map("first") | list, rows | groupby("name", case_sensitive=true) | map(attribute="grouper") | list
rows | groupby("name") | map(attribute="list") | map("length") | list, rows | groupby("nope", default="none") | list
["a", "B", "A", "b"] | map("upper") | list | groupby(0) | list, [[1, 2], [1, 3], [0, 4]] | groupby(0) | list
[1, 2, 3, 4, 5] | batch(2) | list, [1, 2, 3, 4, 5] | batch(2, "x") | list, [] | batch(3) | list, range(4) | batch(4, 0) | list, [1, 2] | batch(1) | list, nothing | batch(2) | list
[1, 2, 3, 4, 5] | slice(2) | list, [1, 2, 3, 4, 5] | slice(3, "x") | list, [1] | slice(3) | list, [1, 2] | slice(1) | list, "abcd" | slice(3) | list
"abc" | center(10) ~ "|", "abc" | center(9) ~ "|", "abcd" | center(9) ~ "|", "abcd" | center(10) ~ "|", "abc" | center(2), "\u4f60" | center(4) ~ "|", 5 | center(3) ~ "|"
"foo bar baz qux" | truncate(9), "foo bar baz qux" | truncate(9, True), "foo bar baz qux" | truncate(11), "foo bar baz qux" | truncate(11, False, "...", 0), "foobarbazqux" | truncate(6), "foo bar baz" | truncate(6, end="\u2026"), nothing | truncate(9)
"Hello, big World_2!" | wordcount, "" | wordcount, "\u00fcber \u4f60\u597d a-b" | wordcount, nothing | wordcount, 12.5 | wordcount, lines | wordcount
"a b/c?d=e&f+\u00fc~" | urlencode, {"a": 1, "b c": "d/e f"} | urlencode, [("x", 1), ("y", "\u00e9")] | urlencode, "" | urlencode, 12 | urlencode
"a" | attr("upper") is callable, d | attr("b") is defined, d | attr("keys") is callable, nested | attr("items") is callable, n | attr("nope") is defined
[7] | random, ["x", "x"] | random, "aaa" | random, [] | random is defined
"11" | int(base=2), "ff" | int(base=16), "0xff" | int(base=16), "0xff" | int(base=0), "0b101" | int(base=0), "-0x1F" | int(0, 16), "zz" | int(7, 36), "12" | int(base=2), "11" | int(base=99), "1.9" | int(base=16), "z" | int(base=10)
"abc" is lower, "aBc" is lower, "ABC" is upper, "1" is upper, "A1" is upper, "" is lower, 1 is lower, "\u00e4" is lower, "\u00c4B" is upper, nothing is lower
"trim" is filter, "nope" is filter, "min" is filter, "sequence" is test, "nope" is test, "upper" is test, "a" is escaped, 1 is escaped
2 ** 3, 2 ** -1, 2 ** 0.5, 2 ** 3 ** 2, -2 ** 2, (-2) ** 3, 2.0 ** 10, 0 ** 0, 10 ** 18, 2 * 3 ** 2, 9 ** 0.5 | int, true ** 2, 7 % 2 ** 2
"%s %d" % ("a", 5), "%s" % "x", "%5.2f|%-8s|%+d|% d|%05d" % (3.14159, "ab", 7, 8, 42), "%x %X %o %#x %#o" % (255, 255, 8, 255, 8), "100%%" % (), "%e %g %G" % (12345.678, 0.00001, 1e20)
"%(a)s-%(b)05d" % {"a": "x", "b": 42}, "%r %s %a" % ("q'", none, "z"), "%c%c" % (65, "z"), "%s" % [1, 2], "%s" % {"a": 1}, "%*d|%-*d|" % (5, 1, 4, 2), "%.3s|%.0f|%.10g" % ("abcdef", 2.5, 0.1), "%s" % (1,)
"%s and %s" | format("a", 2), "%(x)s" | format(x=5), "%5d|%-5d|" | format(3, 4), "%d" % 3.99, "%i %u" % (1, -2), "%.3d" % 5, "%+.1f" % -0.04, "%s%%" % 5, "%08.3f" % -3.14159, "%5s|%-5s|" % ("\u4f60", "\u00fc")
"{} {}".format(1, "a"), "{1} {0}".format("x", "y"), "{a} {b[k]} {c.x}".format(a=1, b={"k": "v"}, c={"x": 2}), "{{}} {}".format(1), "{0[1]}".format([1, 2]), "{0.nope}.".format(1), "{!r} {!s}".format("q", "q"), "".format()
"{:>5}|{:<5}|{:^5}|{:*^7}|{:5}|".format("a", "b", "c", "d", "e"), "{:5}|{:<5}|{:05d}|{:+d}|{:,}|{:_}|{:x}|{:#X}|{:b}|{:o}".format(1, 2, 42, 3, 1234567, 1234567, 255, 255, 5, 8)
"{:.2f} {:8.3f}| {:e} {:g} {:%} {:.1%} {:,.2f} {:.3} {}".format(3.14159, 2.5, 12345.678, 0.0001, 0.25, 0.125, 1234567.891, 2.0, 1e16), "{:.3}|{:>6.2}|".format("abcdef", "xyz"), "{:{}}|{:>{w}}".format("a", 4, "b", w=3), "{:=+6d}|{:06.1f}|{:c}".format(5, -2.55, 65), "{:d} {}".format(true, false)
"a,b,c".partition(","), "abc".partition(","), "a,b,c".rpartition(","), "abc".rpartition(","), "abcabc".index("c"), "abcabc".rindex("b"), "abcabc".rfind("z"), "abcabc".find("b", 2), "abcabc".find("b", 2, 4), "abcabc".count("b", 2), "abcabc".index("a", -3), "abc".find("", 3), "abc".find("", 4)
"5".zfill(3), "-5".zfill(4), "+5".zfill(2), "abc".zfill(2), "".zfill(2), "a".ljust(3) ~ "|", "a".rjust(3), "a".ljust(3, "."), "a".rjust(3, "\u00fc"), "ab".center(5) ~ "|", "ab".center(5, "*"), "abc".center(6, "*")
"12".isdigit(), "1.2".isdigit(), "".isdigit(), "\u00b2".isdigit(), "\u0663".isdigit(), "12".isdecimal(), "\u00b2".isdecimal(), "\u00bd".isnumeric(), "ab".isalpha(), "a1".isalpha(), "\u4f60\u00fc".isalpha(), "a1".isalnum(), "a b".isalnum(), " \t".isspace(), "".isspace()
"ab".islower(), "aB".islower(), "AB".isupper(), "A1".isupper(), "Hello World".istitle(), "Hello world".istitle(), "abc".isascii(), "\u00fc".isascii(), "".isascii(), "a\n".isprintable(), "aBc".swapcase(), "ABC".casefold(), "hello".startswith("l", 2), "hello".endswith("l", 0, 4), "hello".startswith(("x", "he"))
3 * "ab", [1] * 3, 2 * [1, 2], (1, 2) * 2, [1] * 0, [] * 5, [[]] * 2, 0 * "x"
{(0, 0): 5, 0: 1, none: 2, "0": 4, true: 6}, {(1, 2): "t"}[(1, 2)], (1, 2) in {(1, 2): 3}, {(1, (2, "3")): 1} == {(1, (2, "3")): 1}, {0: 1, 1.0: 3} == {false: 1, 1: 3}, d[(1, 2)] is defined, [(1, 2), (1, 2)] | unique | list
d[] is undefined, d[nothing] is undefined, xs[nothing] is defined, d[] | default("x")
range(*[1, 4]) | list, dict(b=2, **{"a": 1}), "abc".replace(*["a", "b"]), "%s%s" | format(*[1, 2]), [1, 2] | join(*["-"])
huge, huge | string, [huge], huge | tojson, huge is integer, huge is number, huge == huge, "%d %s" % (huge, huge), "{}".format(huge), huge | int, {"a": huge}, minus, huger, [minus, huger] | tojson
namespace(a=1) is mapping, range(3) is sequence, "" is sequence, cycler is defined and false
items is defined, keys is undefined, d.keys is defined, d.get("zz") is none, d.get("zz", 5), ("a", "b", "c")[::-1], "abcdef"[-1:1:-1], "abcdef"[::-2]
"x" | string | length, 3.0 | string, -0.0, 1e-5, 1e5 | int, 5 // 2.0, -1 ** 2, 1_000, 0x1F, 0b11, 0o17""".strip("\n")

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
range("a")
"abc".split("")
"%s %s" | format("a")
"%s" | format("a", "b")
["b", 1] | sort
[[1, "a"], [1, 2]] | sort
[1] < (2,)
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
"x" | abs
nothing | int
nothing | float
namespace(1)
xs | select(2).x.y
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
@
a ? b
a = b
a && b
!a
1 if
"\x4"
"\u12"
x.5.

[1, "a"] | min
["a"] | sum
"a" | round
1 | round(1, "up")
[1] | groupby
[1] | batch
5 | batch(2) | list
[1] | slice(0) | list
"abcdef" | truncate(2)
"%s" % ()
"%s" % (1, 2)
"%d" % "x"
"%d" % none
"%q" % 1
"%(a)s" % 1
"%(a)s" % {"b": 1}
"%x" % 1.5
"%s" % nothing.x
"%" % 1
"%c" % "ab"
"{}".format()
"{a}".format(1)
"{".format(1)
"}".format(1)
"{:d}".format("a")
"{:s}".format(1)
"{:zz}".format(1)
"{!x}".format(1)
"%s %s" | format("a", x=1)
"abc".index("z")
"abc".partition("")
"a".ljust(3, "ab")
0 ** -1
"a" ** 2
"a" * "b"
[1] * 1.5
[1] * [2]
{[1]: 2}
{(1, [2]): 3}
range(*5)
range(*nothing)
dict(**[1])
"x".upper(*[1])
huge + nothing.x""".strip("\n")

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
    "{{ loop.first }}{{ loop.last }}{{ loop.length }} {% endfor %}",
    "{% for x in xs %}[{{ loop.previtem }}<{{ x }}>{{ loop.nextitem }}]"
    "{{ loop.previtem is defined }}{% endfor %}",
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
    "{% macro m(x) %}{% if x > 0 %}{{ x }}{{ m(x - 1) }}{% endif %}{% endmacro %}{{ m(5) }}",
    "{% macro outer() %}<{{ caller() }}>{% endmacro %}{% call outer() %}in{{ n }}{% endcall %}",
    "{% macro outer() %}{% for x in xs %}{{ caller(x, loop.index) }}{% endfor %}{% endmacro %}"
    "{% call(a, b) outer() %}[{{ a }}{{ b }}]{% endcall %}",
    "{% macro a() %}A{% if caller %}{{ caller() }}{% endif %}{% endmacro %}{{ a() }}",
    "{% set x = 1 %}{% macro m() %}{{ x }}{% set x = 2 %}{{ x }}{% endmacro %}{{ m() }}{{ x }}",
    "{% macro m() %}{{ y }}{% endmacro %}{% set y = 3 %}{{ m() }}",
    "{% macro m(x) %}  {{ x }}  {% endmacro %}[{{ m(1) }}][{{ m(1) | trim }}]{{ m('a') | length }}",
    "{% macro m(x) -%}\n  {{ x }}\n{%- endmacro %}[{{ m(1) }}]", "{{ m is defined }}{% macro m() %}{% endmacro %}{{ m is defined }}{{ m is callable }}",
    "{% macro m(a) %}{{ a is defined }}{{ a }}{% endmacro %}{{ m() }}",
    "{% macro json(x, i=0) %}{% if x is mapping %}{ {%- for k, v in x.items() %}{{ k }}: {{ json(v, i + 1) }}"
    "{% if not loop.last %}, {% endif %}{% endfor -%} }{% elif x is string %}'{{ x }}'{% elif x is iterable %}"
    "[{% for v in x %}{{ json(v, i + 1) }}{% if not loop.last %}, {% endif %}{% endfor %}]{% else %}{{ x }}"
    "{% endif %}{% endmacro %}{{ json(tools) }}",
    "{% for x in xs %}{% macro m() %}{{ x }}{% endmacro %}{{ m() }}{% endfor %}",
    # blocks
    "{% filter upper %}a{{ 'b' }}{% endfilter %}", "{% filter upper | replace('A', 'x') %}abc{% endfilter %}",
    "{% with a = 1, b = 2 %}{{ a }}{{ b }}{% endwith %}{{ a is defined }}", "{% with %}{% set z = 1 %}{{ z }}{% endwith %}{{ z is defined }}",
    "{% set a = 1 %}{% with a = 2, b = a %}{{ a }}{{ b }}{% endwith %}",
    "{% generation %}a{{ n }}{% endgeneration %}b", "{%- generation -%} a {%- endgeneration -%} b",
    "{% for m in messages %}{% generation %}{{ m.role }}{% endgeneration %}{% endfor %}",
    "{% set j = joiner(', ') %}{% for x in xs %}{{ j() }}{{ x }}{% endfor %}",
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

# The features of the language that the templates of newer families use, on texts of our own.
FAMILY_TEMPLATES = [
    # gpt-oss: types of parameters, an effort by default, what the last call was
    """{%- macro kind(spec, needed, nullable=false) -%}
    {%- if spec.type == "array" -%}
        {%- if spec['items'] -%}{{- kind(spec['items'], needed) + "[]" -}}{%- else -%}any[]{%- endif -%}
        {%- if spec.nullable or nullable -%}{{- " | null" -}}{%- endif -%}
    {%- elif spec.type is defined and spec.type is iterable and spec.type is not string and spec.type is not mapping and spec.type[0] is defined -%}
        {%- if spec.type | length > 1 -%}{{- spec.type | join(" | ") -}}{%- else -%}{{- spec.type[0] -}}{%- endif -%}
    {%- elif spec.oneOf -%}
        {%- for v in spec.oneOf -%}{{- kind(v, needed) -}}{%- if v.default is defined -%}{{- "// default: " + v.default | tojson -}}{%- endif -%}{%- if not loop.last -%}{{- " | " }}{%- endif -%}{%- endfor -%}
    {%- elif spec.enum -%}{{- '"' + spec.enum | join('" | "') + '"' -}}
    {%- elif spec.type in ["number", "integer"] -%}number
    {%- elif spec.type == "object" and spec.properties -%}
        {{- "{\\n" -}}{%- for name, one in spec.properties.items() -%}{{- name -}}{%- if name not in (spec.required or []) -%}{{- "?" -}}{%- endif -%}{{- ": " }}{{ kind(one, spec.required or []) }}{%- if not loop.last -%}{{- ", " -}}{%- endif -%}{%- endfor -%}{{- "}" -}}
    {%- else -%}any{%- endif -%}
{%- endmacro -%}
{%- for tool in tools %}{%- set tool = tool.function %}
{{- "// " + tool.description + "\\n" }}{{- "type " + tool.name + " = " }}{{ kind(tool.parameters, []) }}
{%- endfor %}
{{ kind({"type": "array", "items": {"oneOf": [{"type": "number", "default": 1.5}, {"enum": ["a", "b"]}]}, "nullable": true}, []) }}
{{ kind({"type": ["string"]}, []) }}{{ kind({"type": "array"}, [], nullable=true) }}""",
    """{%- set effort = "medium" if reasoning_effort is not defined else reasoning_effort %}
{{- "Today: " + strftime_now("%Y-%m-%d") + "\\nEffort: " + effort + "\\n" }}
{%- set last_call = namespace(name=none) %}
{%- for message in messages -%}
    {%- if message.role == 'assistant' -%}
        {%- if "content" in message and message.content is string and ("<|mark|>" in message.content or "<think>" in message.content) %}{{- "thinks," }}{%- endif %}
        {%- if "tool_calls" in message %}
            {%- set call = message.tool_calls[0] %}{%- if call.function %}{%- set call = call.function %}{%- endif %}
            {{- "<to=functions." ~ call.name ~ " " ~ (call.content_type if call.content_type is defined else "json") ~ ">" ~ call.arguments | tojson }}
            {%- set last_call.name = call.name %}
        {%- elif loop.last and not add_generation_prompt %}{{- "<return>" }}
        {%- else %}{{- "<end>" }}{%- set last_call.name = none %}{%- endif %}
    {%- elif message.role == 'tool' -%}
        {%- if last_call.name is none %}{{- raise_exception("A tool answers but none was called") }}{%- endif %}
        {{- "<functions." + last_call.name + ">" + message.content | tojson }}
    {%- elif message.role == 'user' -%}{{- message.content }}
    {%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}<start>{%- endif -%}""",
    # mistral3: yesterday by arithmetic on dates, contents in blocks, roles that alternate
    """{%- set today = strftime_now("%Y-%m-%d") %}
{%- set y, m, d = today[:4] | int, today[5:7] | int, today.split("-")[2] | int %}
{%- if d > 1 %}{%- set d = d - 1 %}
{%- else %}
    {%- if m == 1 %}{%- set y = y - 1 %}{%- set m = 12 %}{%- else %}{%- set m = m - 1 %}{%- endif %}
    {%- set leap = (y % 4 == 0 and y % 100 != 0) or y % 400 == 0 %}
    {%- set d = {1: 31, 2: 29 if leap else 28, 3: 31, 4: 30}[m] | default(31) %}
{%- endif %}
{%- set text = "It is {today}, {yesterday} is over.".replace("{today}", today).replace("{yesterday}", "%04d-%02d-%02d" | format(y, m, d)) %}
{{- bos_token + "[SYS]" + text + "[/SYS]" }}
{%- set ns = namespace(index=0) %}
{%- for message in messages if message.role in ["user", "assistant"] and message.tool_calls is not defined %}
    {%- if (message["role"] == "user") != (ns.index % 2 == 0) %}{{- raise_exception("roles must alternate") }}{%- endif %}
    {%- set ns.index = ns.index + 1 %}
    {%- set content = [{"type": "text", "text": message.content}, {"type": "image_url"}] if loop.first else message.content %}
    {%- if content is string %}{{- content }}
    {%- else %}{%- for block in content | sort(attribute="type", reverse=true) %}
        {%- if block["type"] == "text" %}{{- block["text"] }}{%- elif block["type"] in ["image", "image_url"] %}[IMG]{%- else %}{{- raise_exception("type?") }}{%- endif %}
    {%- endfor %}{%- endif %}
{%- endfor %}{{ eos_token }}""",
    "{%- set user_messages = messages | selectattr('role', 'equalto', 'user') | list %}"
    "{%- for m in messages %}{%- if tools is not none and m == user_messages[-1] %}[TOOLS]{{ tools | map(attribute='function') | map(attribute='name') | join(', ') }}{%- endif %}"
    "{%- if m.tool_call_id is defined and m.tool_call_id | length == 9 %}{{ '{\"id\": ' ~ (m.tool_call_id | string) ~ '}' }}{%- endif %}{%- endfor %}",
    "{%- for today in ['2024-03-01', '2025-01-01', '2100-03-01', '2000-03-01', '2026-12-10'] %}"
    "{%- set y, m, d = today[:4] | int, today[5:7] | int, today[8:] | int - 1 %}"
    "{%- if d == 0 %}{%- set m = m - 1 or 12 %}{%- set y = y - 1 if m == 12 else y %}"
    "{%- set leap = (y % 4 == 0 and y % 100 != 0) or y % 400 == 0 %}"
    "{%- set d = {2: 29 if leap else 28, 4: 30, 6: 30, 9: 30, 11: 30}.get(m, 31) %}{%- endif %}"
    "{{ y }}-{{ '%02d' | format(m) }}-{{ '0' ~ d if d < 10 else d }} {%- endfor %}",
    # glm4: tools as JSON, contents by lines, observations
    """[gM]<s>{%- if tools -%}<|system|>
# Tools{% for tool in tools %}{% if tool['type'] == 'function' %}
## {{ tool['function']['name'] }}

{{ tool['function'] | tojson(indent=4, ensure_ascii=False) }}
{%- endif %}{%- endfor %}{%- endif -%}
{%- for msg in messages %}{%- if msg.role == 'tool' %}<|observation|>
{%- if msg.content is string %}{{ '\\n' + msg.content }}{%- else %}{% for tr in msg.content %}{{ tr.output if tr.output is defined else tr }}{% endfor %}{% endif %}
{%- elif msg.role == 'assistant' and not msg.content %}{% for tc in msg.tool_calls %}<|assistant|>{{ tc.function.name }}
{{ tc.function.arguments | tojson(ensure_ascii=False) }}{% endfor %}
{%- else %}<|{{ msg.role }}|>{{ msg.metadata or '' }}
{%- for line in (msg.content or '').split('\\n') if line.strip() %}
{{ loop.index }}:{{ line.rstrip() }}{%- endfor %}{%- endif %}{%- endfor %}
{%- if add_generation_prompt %}<|assistant|>{{ '\\n<think></think>' if (enable_thinking is defined and not enable_thinking) else '' }}{% endif %}""",
    # granite: tools and documents that may not be there, controls
    """{%- set tools_system = namespace(message='') %}
{%- if available_tools is defined and available_tools %}{%- set shown = available_tools %}{%- elif tools %}{%- set shown = tools %}{%- endif %}
{%- for tool in shown or [] %}{%- set tools_system.message = tools_system.message + '\\n' + (tool | tojson) %}{%- endfor %}
{%- set documents = documents or [{'doc_id': 7, 'text': 'x "y"'}, {'text': 'z'}] %}
{%- if messages[0]['role'] == 'system' %}{%- set system_message = messages[0]['content'] %}{%- set loop_messages = messages[1:] %}
{%- else %}{%- set system_message = "Today's Date: " + strftime_now('%B %d, %Y') + "." %}{%- set loop_messages = messages %}{%- endif %}
{%- if tools and documents %}{%- set system_message = system_message + " With both." %}{%- endif %}
{{- '<r>system</r>' + system_message ~ tools_system.message + '\\n' }}
{%- for doc in documents %}{{- '<r>document ' + (doc['doc_id'] | string if doc.doc_id is defined else loop.index | string) + '</r>' ~ doc.text ~ '\\n' }}{%- endfor %}
{%- for message in loop_messages %}
    {{- '<r>' + message['role'] + '</r>' }}{{- message['content'] if message['content'] is not none else message.tool_calls | tojson }}{{- '\\n' }}
    {%- if loop.last and add_generation_prompt %}{{- '<r>assistant' }}{%- if controls %}{{- ' ' + controls | tojson }}{%- endif %}{{- '</r>' }}{%- endif %}
{%- endfor %}""",
    # gemma: a system message before the first user's, the other name of the assistant
    """{{ bos_token }}{%- if messages[0]['role'] == 'system' -%}
    {%- if messages[0]['content'] is string -%}{%- set prefix = messages[0]['content'] + '\\n\\n' -%}{%- else -%}{%- set prefix = messages[0]['content'][0]['text'] -%}{%- endif -%}
    {%- set loop_messages = messages[1:] -%}
{%- else -%}{%- set prefix = "" -%}{%- set loop_messages = messages -%}{%- endif -%}
{%- for message in loop_messages -%}
    {%- if (message['role'] == 'assistant') -%}{%- set role = "model" -%}{%- else -%}{%- set role = message['role'] -%}{%- endif -%}
    {{ '<turn>' + role + '\\n' + (prefix if loop.first else "") }}
    {%- if message['content'] is string -%}{{ message['content'] | trim }}
    {%- elif message['content'] is iterable -%}{%- for item in message['content'] -%}{{ item['text'] | trim }}{%- endfor -%}
    {%- elif not message.tool_calls -%}{{ raise_exception("Invalid content type") }}{%- endif -%}
    {{ '<end>\\n' }}
{%- endfor -%}""",
    "{{ bos_token }}{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}",
    "{% for m in messages %}{% if (m['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('Conversation roles must alternate user/assistant') }}{% endif %}{% endfor %}",
    # gemma4: arguments sorted, thoughts cut out, macros that call each other
    """{%- macro argument(value, escape=True) -%}
    {%- if value is string -%}{{- '<q>' + value + '<q>' if escape else value -}}
    {%- elif value is boolean -%}{{- 'true' if value else 'false' -}}
    {%- elif value is mapping -%}{{- '{' -}}{%- set ns = namespace(some=false) -%}{%- for key, v in value | dictsort -%}{%- if ns.some %},{% endif -%}{%- set ns.some = true -%}{{- key -}}:{{- argument(v, escape=escape) -}}{%- endfor -%}{{- '}' -}}
    {%- elif value is sequence -%}{{- '[' -}}{%- for v in value -%}{{- argument(v) -}}{%- if not loop.last %},{% endif -%}{%- endfor -%}{{- ']' -}}
    {%- else -%}{{- value -}}{%- endif -%}
{%- endmacro -%}
{%- macro without_thoughts(text) -%}{%- set ns = namespace(out='') -%}
    {%- for part in text.split('</think>') -%}{%- if '<think>' in part -%}{%- set ns.out = ns.out + part.split('<think>')[0] -%}{%- else -%}{%- set ns.out = ns.out + part -%}{%- endif -%}{%- endfor -%}
    {{- ns.out | trim -}}
{%- endmacro -%}
{%- for m in messages -%}{%- for call in m['tool_calls'] or [] -%}<call>{{- call['function']['name'] -}}{{- argument(call['function']['arguments']) -}}{%- endfor -%}
{%- if m.content is string -%}{{- without_thoughts(m.content) -}}|{%- endif -%}{%- endfor -%}
{{- argument(tools[0].function.parameters.properties, escape=false) -}}{{- tools[0]['function']['parameters']['type'] | upper == 'OBJECT' -}}""",
    # deepseek: what is before the end of a thought goes; several calls of one turn
    """{% if not add_generation_prompt is defined %}{% set add_generation_prompt = false %}{% endif %}{% if not thinking is defined %}{% set thinking = false %}{% endif %}
{%- set ns = namespace(is_first=false, is_tool=false, is_output_first=true, system_prompt='', is_first_sp=true, is_last_user=false) %}
{%- for message in messages %}{%- if message['role'] == 'system' %}{%- if ns.is_first_sp %}{% set ns.system_prompt = ns.system_prompt + message['content'] %}{% set ns.is_first_sp = false %}{%- else %}{% set ns.system_prompt = ns.system_prompt + '\\n\\n' + message['content'] %}{%- endif %}{%- endif %}{%- endfor %}
{{- bos_token }}{{ ns.system_prompt }}
{%- for message in messages %}
{%- if message['role'] == 'user' %}{%- set ns.is_tool = false -%}{%- set ns.is_last_user = true -%}{{'<U>' + message['content']}}{%- endif %}
{%- if message['role'] == 'assistant' and message['tool_calls'] is defined and message['tool_calls'] is not none %}{%- set ns.is_last_user = false -%}
{%- for tool in message['tool_calls'] %}{%- if not ns.is_first %}{%- if message['content'] is none %}{{'<A><calls>' + tool['type'] + '<sep>' + tool['function']['name'] + '\\n' + tool['function']['arguments'] | tojson}}{%- else %}{{message['content']}}{%- endif %}{%- set ns.is_first = true -%}{%- endif %}{%- endfor %}
{%- elif message['role'] == 'assistant' %}{%- if ns.is_tool %}{{'</outputs>'}}{%- set ns.is_tool = false -%}{%- endif %}{% set content = message['content'] %}{% if '</think>' in content %}{% set content = content.split('</think>', 1)[1] if thinking else content.split('</think>')[-1] %}{% endif %}{{'<A>' + content + eos_token}}{%- endif %}
{%- if message['role'] == 'tool' %}{%- set ns.is_tool = true -%}{%- if ns.is_output_first %}{{'<outputs>' + message['content']}}{%- set ns.is_output_first = false %}{%- endif %}{%- endif %}
{%- endfor -%}{% if ns.is_tool %}{{'</outputs>'}}{% endif %}{% if add_generation_prompt and not ns.is_tool %}{{'<A>'}}{% if not thinking %}{{'</think>'}}{% endif %}{% endif %}""",
    # exaone4: roles by a dictionary, the last question searched from the end
    """{%- set roles = {'user': '[|user|]\\n', 'assistant': '[|assistant|]\\n', 'system': '[|system|]\\n', 'tool': '[|tool|]\\n'} %}
{%- set end = '[|end|]\\n' %}{%- set ns = namespace(turn=-1, more=true) %}
{%- for message in messages[::-1] %}{%- if ns.more and message.role == "user" %}{%- set ns.turn = (messages | length - 1) - loop.index0 %}{%- set ns.more = false %}{%- endif %}{%- endfor %}
{%- for i in range(messages | length) %}{%- set msg = messages[i] %}{%- set role = msg.role %}
{%- if role not in roles %}{{- raise_exception('Unknown role: ' ~ role) }}{%- endif %}
{{- roles[role] }}
{%- if role == 'assistant' and msg.content %}
    {%- if i > ns.turn and '</think>' in msg.content %}{%- set thought = msg.content.split('</think>')[0].strip().lstrip('<think>').strip() %}{{- '<think>\\n' ~ thought ~ '\\n</think>\\n\\n' }}{{- msg.content.split('</think>')[-1].strip() }}
    {%- else %}{{- msg.content }}{%- endif %}
{%- elif role == 'assistant' %}{%- for tool_call in msg.tool_calls %}{%- if tool_call.function is defined %}{%- set tool_call = tool_call.function %}{%- endif %}{%- if tool_call.arguments is defined %}{%- set arguments = tool_call.arguments %}{%- else %}{%- set arguments = tool_call.parameters %}{%- endif %}{{- '{"name": "' ~ tool_call.name ~ '", "arguments": ' ~ (arguments if arguments is string else arguments | tojson(ensure_ascii=False)) ~ '}' }}{{- '\\n' if not loop.last }}{%- endfor %}
{%- else %}{{- msg.content if msg.content is string else msg.content[0].text }}{%- endif %}{{- end }}{%- endfor %}""",
    # qwen35 and similar: keys that were not handled, values by their types
    """{%- macro extra(d, handled) %}{%- if d is mapping %}{%- for key in d if key not in handled %}{%- if d[key] is mapping or (d[key] is sequence and d[key] is not string) %}{{- '\\n<' ~ key ~ '>' ~ (d[key] | tojson | safe) ~ '</' ~ key ~ '>' }}{%- else %}{{- '\\n<' ~ key ~ '>' ~ (d[key] | string) ~ '</' ~ key ~ '>' }}{%- endif %}{%- endfor %}{%- endif %}{%- endmacro %}
{%- for tool in tools %}{%- if tool.function is defined %}{%- set tool = tool.function %}{%- endif %}{{- extra(tool, ['name', 'description']) }}
{%- for name, fields in (tool.parameters.properties if tool.parameters is defined and tool.parameters is mapping else {}) | items %}{{- extra(fields, ['type']) }}{%- if fields.type is defined %}{{- name ~ ':' ~ (fields.type | string) }}{%- endif %}{%- endfor %}{%- endfor %}
{%- for message in messages %}{%- set content = message.content if message.content is string else '' %}
{%- if message.reasoning_content is string %}{%- set thought = message.reasoning_content %}{%- elif '</think>' in content %}{%- set thought = content.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') %}{%- set content = content.split('</think>')[-1].lstrip('\\n') %}{%- else %}{%- set thought = '' %}{%- endif %}
{{- message.role ~ '\\n' ~ (('<think>\\n' ~ thought.strip('\\n') ~ '\\n</think>\\n\\n') if thought and (loop.last or not loop.nextitem) else '') ~ content }}
{%- for call in message.tool_calls or () %}{%- for k, v in call.function.arguments | items %}{%- set v = v | tojson | safe if v is mapping or (v is sequence and v is not string) else v | string %}{{- '<' ~ k ~ '>\\n' ~ v ~ '\\n' }}{%- endfor %}{%- endfor %}
{%- if loop.previtem and loop.previtem.role == 'tool' or loop.first %}!{%- endif %}{%- endfor %}""",
    # lfm2, ernie4_5, hunyuan, nemotron_h: defaults of what is not there
    """{%- if not add_generation_prompt is defined -%}{%- set add_generation_prompt = true -%}{%- endif -%}
{%- if not cls_token is defined -%}{%- set cls_token = "<|begin|>" -%}{%- endif -%}{{- cls_token -}}
{%- set ns = namespace(system_prompt="", keep=keep_past_thinking | default(false), last=-1) -%}
{%- for message in messages -%}{%- if message["role"] == "assistant" -%}{%- set ns.last = loop.index0 -%}{%- endif -%}{%- endfor -%}
{%- if messages[0]["role"] == "system" -%}{%- set ns.system_prompt = messages[0]["content"] -%}{%- set messages = messages[1:] -%}{%- endif -%}
{%- if tools -%}{%- set ns.system_prompt = ns.system_prompt + ("\\n" if ns.system_prompt else "") + "List of tools: [" -%}{%- for tool in tools -%}{%- if tool is not string -%}{%- set tool = tool | tojson -%}{%- endif -%}{%- set ns.system_prompt = ns.system_prompt + tool -%}{%- if not loop.last -%}{%- set ns.system_prompt = ns.system_prompt + ", " -%}{%- endif -%}{%- endfor -%}{%- set ns.system_prompt = ns.system_prompt + "]" -%}{%- endif -%}
{{- ns.system_prompt + "\\n" if ns.system_prompt else "" -}}
{%- for message in messages -%}{%- set content = message["content"] or "" -%}
{%- if message["role"] == "assistant" and not ns.keep and loop.index0 != ns.last -%}{%- if "</think>" in content -%}{%- set content = content.split("</think>")[-1] | trim -%}{%- endif -%}{%- endif -%}
{%- if content is not string -%}{%- set content = content | tojson -%}{%- endif -%}
{{- message["role"] | capitalize + ": " + content.replace("<think>", "").strip() ~ "\\n" * 2 -}}
{%- endfor -%}{%- if add_generation_prompt is not defined or add_generation_prompt is true -%}{{- "Assistant: " -}}{%- if enable_thinking is defined and enable_thinking is false -%}<think></think>{%- endif -%}{%- endif -%}""",
    "{% macro f(a, b) %}{{ a }}{{ b }}{% endmacro %}{{ f(*[1, 2]) }}{{ f(1, *[2]) }}{{ f(**{'a': 3, 'b': 4}) }}{{ f(*[5], **{'b': 6}) }}{{ f(*[7], b=8) }}{{ f(*(9, 10)) }}{{ f(*'ab') }}",
    "{% macro m(x) %}{{ x }}:{{ varargs }}:{{ kwargs }};{% endmacro %}{{ m(1) }}{{ m(1, 2, 3) }}{{ m(x=1, y=2) }}{{ m(1, 2, z='q') }}{{ m() }}",
    "{% macro m() %}{{ varargs | join('-') }}|{{ kwargs.items() | list }}{% endmacro %}{{ m('a', 'b', k=1) }}{{ m() }}",
    "{% macro m(a) %}{{ caller(a) if caller is defined and caller else 'none' }}{{ kwargs }}{% endmacro %}{% call(x) m(1, q=2) %}[{{ x }}]{% endcall %}{{ m(2) }}",
    "{% set macros = [m1] %}{% macro m1(a, b) %}<{{ a }}{{ b }}>{% endmacro %}{% set macros = [m1, m1] %}{% set params = [[1, 2], ['x', 'y']] %}{% for i in range(2) %}{{ macros[i](*params[i]) }}{% endfor %}",
    "{% for x in xs %}{{ loop.cycle('odd', 'even') }}{{ loop.changed(x > 1) }}{{ loop.depth }}{{ loop.depth0 }} {% endfor %}",
    "{% for x in [1, 1, 2, 2, 1] %}{% if loop.changed(x) %}{{ x }}{% endif %}{% endfor %}",
    "{% for n in [{'v': 1, 'c': [{'v': 2, 'c': [{'v': 3, 'c': []}]}, {'v': 4, 'c': []}]}, {'v': 5, 'c': []}] recursive %}{{ loop.depth }}:{{ n.v }}{% if n.c %}({{ loop(n.c) }}){% endif %}{% if not loop.last %},{% endif %}{% endfor %}",
    "{% for a in [1, [2, [3, 4]], 5] if a recursive %}{% if a is number %}{{ a }}{% else %}<{{ loop(a) }}>{% endif %}{% else %}empty{% endfor %}",
    "{% for k, v in {'b': {'x': 1}, 'a': 2}.items() recursive %}{{ k }}={% if v is mapping %}{ {{- loop(v.items()) -}} }{% else %}{{ v }}{% endif %};{% endfor %}",
    "{% for g in rows | groupby('age') %}{{ g.grouper }}:{% for r in g.list %}{{ r.name }}{% endfor %} {% endfor %}{% for age, rs in rows | groupby('age') %}{{ age }}{{ rs | length }}{% endfor %}",
    "{% for row in [1, 2, 3, 4, 5] | batch(2, '-') %}{{ row | join(',') }};{% endfor %}{% for col in range(5) | slice(2) %}{{ col | join(',') }};{% endfor %}",
    "{% set d = {0: 1, none: 2, 1.0: 3, '0': 4, (0, 0): 5, false: 6, 1: 7} %}{{ d[(0, 0)] + d[0] + d[none] + d['0'] + d[false] + d[1.0] + d[1] }} {{ d }}",
    "{% if {0: 1, none: 2, 1.0: 3, '0': 4, true: 5} == {false: 1, none: 2, 1: 5, '0': 4} %}equal{% endif %}{% if [0, 1.0, false] == [false, 1, 0.0] %}equal{% endif %}",
    "{% for m in messages %}{{ '%-10s|%s' | format(m.role, (m.content or '')[:3]) }}\n{% endfor %}",
    "{% set tool_calls_count = 2 %}{% set tool_sep_count = 1 %}{{ [tool_calls_count, tool_sep_count] | min }}{{ [tool_calls_count, tool_sep_count] | max }}",
    "{{ 'fail' if ff is undefined }}{% macro nest(o, i) %}{{- caller(i) }}{%- for k, v in o | items %}{{- k ~ ':' }}{% if v is mapping %}{% call(f) nest(v, i ~ ' ') %}<{{ f }}>{% endcall %}{% else %}{{- v }}{% endif %}{%- endfor %}{%- endmacro %}{%- call(f) nest({'r': 1, 's': {'t': 1, 'u': {'w': 2}}}, '.') %}[{{ f }}]{% endcall %}",
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
    "{% for x in xs %}{{ loop(xs) }}{% endfor %}", "{% macro m(a) %}{% endmacro %}{{ m(1, **{'a': 2, 'b': 3}) }}", "{% macro m(a) %}{% endmacro %}{{ m(b=1, **{'b': 2}) }}", "{{ range(*[1], 2) }}", "{{ dict(**{}, a=1) }}",
    "{{ range(*[1], *[2]) }}", "{% for x in [1] recursive %}{{ loop(5) }}{% endfor %}", "{% for x in xs %}{{ loop.cycle() }}{% endfor %}", "{% for x in [[]] recursive %}{{ loop([x]) }}{% endfor %}",
    "{% macro m() %}{% endmacro %}{{ m(1) }}", "{% for x in xs %}{{ loop.nope.x }}{% endfor %}",
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
    # A backslash continues an expression in the next line: one item per template.
    expressions = EXPRESSIONS.replace("\\\n", "\0").split("\n")
    good = ["{{ " + e.replace("\0", "\\\n") + " }}" for e in expressions] + TEMPLATES + FAMILY_TEMPLATES
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
