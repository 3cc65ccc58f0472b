"""The language of rules."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom.policy.paths import ANY, ROOT
from greenroom.policy.rules import BadRule, Level, Rule, parse, parse_all

WORD = st.text(st.characters(blacklist_categories=["C", "Z"], blacklist_characters="\u180e"), min_size=1, max_size=8)
TEXT = st.lists(WORD, min_size=1, max_size=3).map(" ".join)
LEVELS: list[Level] = ["allow", "notify", "ask", "deny"]
LEVEL = st.sampled_from(LEVELS)
PART = st.one_of(WORD, TEXT).filter(lambda name: "/" not in name and "**" not in name and name not in {".", "..", "~"})
NAMES = st.lists(
    PART.filter(lambda name: not name.startswith("~") and name.count("*") < 2 and name.strip() == name),
    min_size=1,
    max_size=3,
).map(tuple)


@st.composite
def rules(draw: st.DrawFn) -> Rule:
    level = draw(LEVEL)
    kind = draw(st.sampled_from(["command", "line", "path", "host", "tool"]))
    match kind:
        case "command":
            words = draw(st.lists(TEXT, max_size=4).map(tuple))
            return Rule(level=level, kind="command", words=words)
        case "line":
            return Rule(level=level, kind="line", words=(draw(TEXT),))
        case "path":
            names = draw(st.tuples(st.sampled_from([(), (ROOT,), (ANY,)]), NAMES, st.sampled_from([(), (ANY,)])))
            return Rule(
                level=level, kind="path", words=sum(names, ()), access=draw(st.sampled_from(["", "read", "write"]))
            )
        case "host":
            name = draw(
                st.sampled_from(["*", "example.org", "*.example.org", "127.0.0.1", "::1", "xn--e1aybc.xn--p1ai"])
            )
            return Rule(level=level, kind="host", words=(name, str(draw(st.sampled_from([0, 80, 8080])))))
        case _:
            return Rule(
                level=level, kind="tool", words=(draw(st.sampled_from(["*", "patch", "mcp__files__*", "a.b-c"])),)
            )


@given(rules())
def test_a_rule_is_read_as_it_is_written(rule: Rule) -> None:
    assert parse(str(rule)) == rule


@given(
    st.text(max_size=60)
    | st.tuples(LEVEL, st.sampled_from(["command", "path", "host", "tool", "line"]), st.text()).map(" ".join)
)
def test_no_text_breaks_the_reader(text: str) -> None:
    rule = read(text)
    if isinstance(rule, str):
        assert rule.startswith("The rule ")
    else:
        assert parse(str(rule)) == rule


def read(text: str) -> Rule | str:
    try:
        return parse(text)
    except BadRule as bad:
        return str(bad)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("alow command git", ["'alow'", "not a level", "Did you mean 'allow'?", "There are: allow, notify, ask, deny"]),
        ("", ["''", "not a level"]),
        ("allow comand git", ["'comand'", "Did you mean 'command'?"]),
        ("allow", ["''", "There are: command, line, path, host, tool"]),
        ("allow command", ["is incomplete", "allow command git fetch origin"]),
        ("allow command git status; ls", ["';'", "is special to the shell"]),
        ("allow command git status > x", ["'>'", "allow line"]),
        ("allow command ls $HOME", ["'$'", "quote it"]),
        ("allow command ls *", ["'*'", "covers all words that follow"]),
        ("allow command 'git", ["unclosed quotation mark"]),
        ("allow path", ["is incomplete", "secrets/**"]),
        ("allow path a b", ["'b'", "quote a path with spaces", "read, write"]),
        ("allow path a rite", ["'rite'", "Did you mean 'write'?"]),
        ("allow path a b c", ["quote a path"]),
        ("allow path ~/x", ["~", "Write the absolute path"]),
        ("allow path ../x", ["'..'", "from the workspace's root"]),
        ("allow path a**b", ["'**' beside other characters"]),
        ("allow path a*b*c*d*e*f*g*h", ["stars"]),
        ("allow path 'a", ["unclosed quotation mark"]),
        ("allow path .", ["names no path"]),
        ("allow host exa mple", ["'exa mple'"]),
        ("allow host *.org", ["top-level domain"]),
        ("allow host example.org.", ["not a valid host name"]),
        ("allow host me@example.org", ["not a valid host name"]),
        ("allow host example.org:x", ["'x'", "port"]),
        ("allow host example.org:70000", ["'70000'"]),
        ("allow host [::1", ["not a valid address"]),
        ("allow host [::g]", ["not a valid IPv6 address"]),
        ("allow host [fe80::1%eth0]", ["interface"]),
        ("allow host 1.2.3", ["unusual form"]),
        ("allow tool a*b", ["'a*b'", "A star is allowed only at the end"]),
        ("allow tool a b", ["not a tool name"]),
        ("allow line a\nb", ["invisible characters"]),
        ("allow line \u200bls", ["invisible characters"]),
        ("allow line " + "x" * 2000, ["longer than 1000"]),
    ],
)
def test_a_bad_rule_says_what_which_and_what_to_do(text: str, words: list[str]) -> None:
    with pytest.raises(BadRule) as bad:
        parse(text)
    for word in words:
        assert word in str(bad.value)


@pytest.mark.parametrize(("other", "level"), [("public", "allow"), ("confirm", "ask"), ("restricted", "deny")])
def test_the_words_of_artifactflow_are_levels_too(other: str, level: str) -> None:
    assert parse(f"{other} tool patch") == parse(f"{level} tool patch")


def test_a_folder_with_a_slash_is_all_in_it() -> None:
    assert parse("deny path secrets/") == parse("deny path secrets/**") == parse("deny path ./secrets//**/**")


def test_lines_of_a_file_may_be_empty_or_comments() -> None:
    found = parse_all(["", "# mine", " allow tool a ", "ask tool b\n\n# more\ndeny tool c"])
    assert [str(rule) for rule in found] == ["allow tool a", "ask tool b", "deny tool c"]


@pytest.mark.parametrize(
    "rule",
    [
        "allow command CI=1 npm test",
        "allow command 'a b' 'c;d' '$x'",
        "allow command find . ! -name '*.py'",
        r"allow command echo a\ b",
        "allow command time make",
        "allow line for f in a b; do echo $f; done",
    ],
)
def test_a_rule_that_was_saved_before_is_still_read(rule: str) -> None:
    assert parse(str(parse(rule))) == parse(rule)
