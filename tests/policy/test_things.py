"""Paths, hosts, tools, and what binds agents."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom.core.ports.tool import Target
from greenroom.core.state.spec import ToolGroup
from greenroom.policy.paths import covers, locate_path
from greenroom.policy.policy import build_rules_policy
from greenroom.policy.rules import BadRule
from tests.policy.house import ME, ROOT, card, policy, reach, touch, user


@pytest.mark.parametrize(
    "path",
    ["src/a.py", ".", "", "src/", "./src//a.py", f"{ROOT}/src", "a/../b", "../project/a", "x/.env.example", "a b"],
)
def test_the_workspace_is_read_and_written_silently(path: str) -> None:
    assert touch(policy(), path).verdict == "allow"
    assert touch(policy(), path, writes=True).verdict == "allow"


@pytest.mark.parametrize(
    "path", ["..", "../x", "/etc/passwd", "a/../../b", f"{ROOT}x/a", f"{ROOT}/../other", "~/x", "~root/x"]
)
def test_what_is_outside_asks(path: str) -> None:
    assert touch(policy(), path).verdict == "ask"
    assert touch(policy(), path, writes=True).verdict == "ask"


@pytest.mark.parametrize(
    "path",
    [
        *(".env", ".ENV", ".env.local", "conf/x.pem", "id_rsa", "ID_RSA.bak", ".npmrc", ".ssh/config", ".git/config"),
        *(".env ", ".e\u200dnv", "\uff0eenv"),
    ],
)
def test_likely_secrets_are_read_only_with_a_persons_word(path: str) -> None:
    ruling = touch(policy(), path)
    assert ruling.verdict == "ask"
    assert "secret" in ruling.why or "characters" in ruling.why


@pytest.mark.parametrize(
    "path",
    [
        *(".git", ".git/config", "sub/.git/hooks/x", ".GIT/config", ".git./config", "GIT~1/config"),
        *(".greenroom/config.toml", "x/../.git/a", f"{ROOT}/.git/x"),
    ],
)
def test_what_governs_us_is_not_written(path: str) -> None:
    ruling = touch(user("allow path **", "allow path .git/**"), path, writes=True, grants=[f"allow path {ROOT}/**"])
    assert ruling.verdict == "deny"


GOVERNING = (
    *("AGENTS.md", "agents.md", "api/CLAUDE.md", ".mcp.json", ".claude/settings.json", ".vscode/tasks.json", ".envrc"),
    *(".husky/pre-commit", ".github/workflows/ci.yml", "web/.Claude/agents/x.md"),
)


@pytest.mark.parametrize("path", GOVERNING)
def test_in_a_worktree_they_are_changed_without_a_person(path: str) -> None:
    tree = build_rules_policy({}, ROOT, in_worktree=True)
    assert touch(tree, path, writes=True).verdict == "allow"
    assert touch(tree, ".greenroom/config.toml", writes=True).verdict == "deny"


@pytest.mark.parametrize("path", GOVERNING)
def test_what_agents_are_told_tomorrow_is_changed_with_a_person_only(path: str) -> None:
    assert touch(policy(), path).verdict == ("ask" if path == ".envrc" else "allow"), "it may hold secrets"
    asked = touch(policy(), path, writes=True)
    assert (asked.verdict, asked.grant) == ("ask", f"allow path {path} write")
    assert touch(policy(), path, writes=True, grants=[asked.grant]).verdict == "allow"


@pytest.mark.parametrize("path", [".git/a\nb", ".GIT/\x1b[2K", "sub/.greenroom/a\x00b"])
def test_odd_signs_in_a_path_do_not_open_what_is_forbidden(path: str) -> None:
    ruling = touch(policy({"granted": ["allow path ** write"]}), path, writes=True)
    assert (ruling.verdict, ruling.grant) == ("deny", "")


@pytest.mark.parametrize("path", ["a\0b", "a\nb", "a\x1b[2Kb", "x" * 5000])
def test_names_that_no_file_has_are_not_touched_silently(path: str) -> None:
    assert touch(user("allow path **"), path).verdict in {"ask", "deny"}


@pytest.mark.parametrize(
    ("rule", "path", "verdict"),
    [
        ("deny path secrets", "secrets/deep/x", "deny"),
        ("deny path secrets", "a/b/SECRETS/x", "deny"),
        ("deny path *.sql", "db/dump.sql", "deny"),
        ("deny path docs/*.md", "docs/a.md", "deny"),
        ("deny path docs/*.md", "docs/sub/a.md", "allow"),
        ("deny path a/**/z", "a/z", "deny"),
        ("deny path a/**/z", "a/b/c/z/more", "deny"),
        ("deny path a/**/z", "b/z", "allow"),
        ("deny path a write", "a/x", "allow"),
        (f"deny path {ROOT}/a/**", "a/x", "deny"),
        ("allow path /usr/lib/** read", "/usr/lib/x/y", "allow"),
        ("allow path /usr/lib/**", "/usr/lib64/x", "ask"),
        ("allow path /usr/lib/**", "/USR/lib/x", "ask"),
        ("allow path /usr/lib/**", "/usr/lib/../x", "ask"),
        ("allow path **", "/etc/x", "ask"),
        ("allow path /etc", "/etc/x", "ask"),
        ("deny path *.pem", "a/b[1].pem", "deny"),
        ("deny path **/x", "a/**/x", "deny"),
        ("allow path /**", "/etc/x", "allow"),
        ("notify path docs/**", "docs/x", "notify"),
    ],
)
def test_globs_are_generous_in_closing_and_exact_in_opening(rule: str, path: str, verdict: str) -> None:
    assert touch(user(rule), path).verdict == verdict


@given(
    st.lists(st.sampled_from(["a", "b", "*", "**", "a*"]), max_size=6),
    st.lists(st.sampled_from(["a", "b", "ab"]), max_size=6),
)
def test_a_pattern_matches_what_a_slow_matcher_says(pattern: list[str], parts: list[str]) -> None:
    def slow(left: list[str], right: list[str]) -> bool:
        if not left:
            return not right
        if left[0] == "**":
            return slow(left[1:], right) or (bool(right) and slow(left, right[1:]))
        fits = bool(right) and (left[0] in {"*", right[0]} or (left[0] == "a*" and right[0].startswith("a")))
        return fits and slow(left[1:], right[1:])

    assert covers(tuple(pattern), tuple(parts)) == slow(pattern, parts)


@given(st.lists(st.sampled_from(["..", ".", "a", "", "project", "me"]), max_size=8).map("/".join).map("./{}".format))
def test_a_path_written_in_two_ways_is_one_place(path: str) -> None:
    place = locate_path(path, ROOT)
    assert locate_path(str(place), ROOT) == place
    assert locate_path(f"{path}/.//x/..", ROOT) == place


# ------------------------------------------------------------------------------------------------------------ hosts


NAMES = "a@b.org ex.org. ex..org .ex.org -a.org a_b.org 0x7f.1 127.1 2130706433 017.0.0.1 exämple.org ex.org/x"
PORTS = "ex.org:0 ex.org:99999 ex.org: ex.org:80:90 * *.org [::1 ::1"
NO_HOSTS = [*NAMES.split(), *PORTS.split(), "evil\0.org", "", " ", "a" * 300]


@pytest.mark.parametrize("host", NO_HOSTS)
def test_what_two_programs_could_read_in_two_ways_is_no_host(host: str) -> None:
    assert reach(user("allow host *"), host).verdict == "deny"


@pytest.mark.parametrize(
    ("rule", "host", "verdict"),
    [
        ("allow host example.org", "example.org", "allow"),
        ("allow host example.org", "EXAMPLE.org:443", "allow"),
        ("allow host example.org", "example.org:8080", "ask"),
        ("allow host example.org:8080", "example.org:8080", "allow"),
        ("allow host example.org:8080", "example.org", "ask"),
        ("allow host example.org", "a.example.org", "ask"),
        ("allow host *.example.org", "a.b.example.org", "allow"),
        ("allow host *.example.org", "example.org", "ask"),
        ("allow host *.example.org", "evilexample.org", "ask"),
        ("allow host example.org", "example.org.evil.com", "ask"),
        ("allow host xn--e1aybc.xn--p1ai", "xn--e1aybc.xn--p1ai", "allow"),
        ("allow host [::1]:8000", "[0:0::1]:8000", "allow"),
        ("deny host example.org", "a.example.org:9", "deny"),
        ("deny host *.example.org", "example.org", "ask"),
        ("deny host example.org:22", "example.org", "deny"),
        ("deny host example.org:22", "example.org:80", "ask"),
        ("deny host *", "localhost", "deny"),
    ],
)
def test_hosts_are_exact_in_opening(rule: str, host: str, verdict: str) -> None:
    assert reach(user(rule), host).verdict == verdict


def test_a_wide_rule_for_hosts_opens_no_narrow_one() -> None:
    rules = ["allow host *.example.org", "ask host db.example.org"]
    assert reach(user(*rules), "db.example.org").verdict == "ask"
    assert reach(user(*rules), "db.example.org", ["allow host *.example.org"]).verdict == "ask"
    assert reach(user(*rules), "db.example.org", ["allow host db.example.org"]).verdict == "allow"


# ------------------------------------------------------------------------------------------------ tools and limits


@pytest.mark.parametrize(
    ("group", "source", "verdict"),
    [
        ("read", "built-in", "allow"),
        ("human", "built-in", "allow"),
        ("edit", "built-in", "ask"),
        ("read", "mcp: x", "ask"),
        ("memory", "a.py", "ask"),
    ],
)
def test_only_our_own_tools_that_look_are_silent(group: ToolGroup, source: str, verdict: str) -> None:
    assert policy().decide(ME, card("t", group, source), ()).verdict == verdict
    assert policy().decide(ME, card("t", group, source), (Target(kind="tool", value="t"),)).verdict == verdict


def test_rules_about_a_tool_tighten_what_it_touches_and_open_nothing_of_it() -> None:
    push = (Target(kind="command", value="git push"),)
    look = (Target(kind="command", value="ls"),)
    assert user("allow tool execute_script").decide(ME, card(), push).verdict == "ask"
    assert user("ask tool execute_script").decide(ME, card(), look).verdict == "ask"
    assert user("deny tool execute_*").decide(ME, card(), look).verdict == "deny"
    assert user("allow tool mcp__*").decide(ME, card("mcp__a__b", "mcp", "mcp: a"), ()).verdict == "allow"
    assert user("allow tool mcp__a__b").decide(ME, card("mcp__a__c", "mcp", "mcp: a"), ()).verdict == "ask"


def test_a_tool_with_a_wild_name_has_no_rule() -> None:
    for name in ("a b", "a*", "", "a\nallow tool b"):
        ruling = policy().decide(ME, card(name, "mcp", "mcp: a"), ())
        assert (ruling.verdict, ruling.grant) == ("ask", "")


def test_what_binds_an_agent_only_tightens_and_a_persons_word_opens_what_asks() -> None:
    house, run = user("allow command make"), (Target(kind="command", value="make test"),)
    assert house.decide(ME, card(), run).verdict == "allow"
    assert house.decide(ME, card(), run, (), ["ask command make"]).verdict == "ask"
    assert house.decide(ME, card(), run, ["allow command make test"], ["ask command make"]).verdict == "allow"
    assert house.decide(ME, card(), run, ["allow command make test"], ["deny command make"]).verdict == "deny"
    assert house.decide(ME, card(), (Target(kind="command", value="rm x"),), (), ["allow command rm"]).verdict == "ask"
    with pytest.raises(BadRule):
        house.decide(ME, card(), run, (), ["never make"])


def test_too_many_things_at_once_are_asked_about() -> None:
    many = tuple(Target(kind="path", value=f"f{number}") for number in range(500))
    ruling = policy().decide(ME, card("patch", "edit"), many)
    assert (ruling.verdict, ruling.grant) == ("ask", "")


@pytest.mark.parametrize(
    ("source", "verdict"),
    [("yours:a.py", "allow"), ("project:a.py", "allow"), ("package:a", "allow"), ("mcp:a", "ask")],
)
def test_of_a_file_we_believe_that_it_only_looks_and_of_a_server_nothing(source: str, verdict: str) -> None:
    pure = replace(card("t", "command", source), effect="pure")
    assert policy().decide(ME, pure, (Target(kind="tool", value="t"),)).verdict == verdict
    assert policy().decide(ME, card("t", "read", source), ()).verdict == "ask", "an effect is asked about in any group"


@pytest.mark.parametrize(("source", "said"), [("built-in", "without saying what it touches"), ("mcp:x", "is known")])
def test_only_of_a_strangers_tool_nothing_is_known_but_its_name(source: str, said: str) -> None:
    ruling = policy().decide(ME, card("rewrite", "edit", source), ())
    assert ruling.verdict == "ask"
    assert (
        ruling.why == f"It would call the tool `rewrite`, {'of which only the name ' * (source != 'built-in')}{said}."
    )
