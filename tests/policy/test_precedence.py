"""Which rule holds: properties that no set of rules may break."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from greenroom.core.ports.tool import PolicyDecision, Target
from greenroom.policy.rulebook import Layer
from tests.policy.house import ME, card, looser, policy, run, touch

WHAT = [
    *(
        f"command {words}"
        for words in ("git", "git push", "git push origin", "git status", "npm test", "sudo", "*", "cat")
    ),
    "line git push origin main",
    *(
        f"path {path}"
        for path in ("**", "docs/**", "docs/a.md", "docs/a.md write", ".env read", "**/.env", "/etc/**", "*.md")
    ),
    *(f"host {name}" for name in ("example.org", "*.example.org", "*")),
    *(f"tool {name}" for name in ("execute_script", "mcp__*", "*")),
]
LAYERS: list[Layer] = ["built-in", "user", "project", "granted"]
RULE = st.builds("{} {}".format, st.sampled_from(["allow", "notify", "ask", "deny"]), st.sampled_from(WHAT))
RULES = st.lists(st.tuples(st.sampled_from(LAYERS), RULE), max_size=6)
TARGETS = [
    *(
        Target(kind="command", value=text)
        for text in (
            "git push origin main",
            "git push --force origin",
            "git status",
            "npm test",
            "sudo git push",
            "git status && npm test > docs/a.md",
            "cat .env docs/a.md",
            "git -c a=b push",
            "for x in y; do z; done",
            "cat /etc/passwd",
        )
    ),
    *(
        Target(kind="path", value=path, writes=writes)
        for path in ("docs/a.md", ".env", "/etc/hosts", ".git/config", "DOCS/a.md")
        for writes in (False, True)
    ),
    *(Target(kind="host", value=host) for host in ("example.org", "a.example.org:8080", "other.org")),
    Target(kind="tool", value="mcp__x"),
]
TARGET = st.sampled_from(TARGETS)
Said = list[tuple[Layer, str]]
unmeasured = pytest.mark.no_cover
"""They reach no line that other tests do not, and to be measured takes them twice as long."""


def decided(rules: Said, target: Target) -> PolicyDecision:
    house = policy({layer: [rule for where, rule in rules if where == layer] for layer in LAYERS})
    name = "mcp__x" if target.kind == "tool" else "execute_script"
    return house.decide(ME, card(name, "mcp", "mcp: x"), (target,))


@unmeasured
@settings(max_examples=120)
@given(RULES, RULE, TARGET)
def test_a_rule_of_the_project_never_loosens(rules: Said, more: str, target: Target) -> None:
    before, after = decided(rules, target), decided([*rules, ("project", more)], target)
    assert not looser(after, before), (before, after)


@unmeasured
@settings(max_examples=120)
@given(RULES, st.sampled_from(LAYERS), st.sampled_from(["ask", "deny"]), st.sampled_from(WHAT), TARGET)
def test_a_rule_that_asks_or_denies_never_loosens(
    rules: Said, layer: Layer, level: str, what: str, target: Target
) -> None:
    before, after = decided(rules, target), decided([*rules, (layer, f"{level} {what}")], target)
    assert not looser(after, before), (before, after)


@unmeasured
@settings(max_examples=100)
@given(RULES, st.sampled_from(LAYERS), st.sampled_from(WHAT), TARGET)
def test_a_rule_that_allows_never_tightens(rules: Said, layer: Layer, what: str, target: Target) -> None:
    before, after = decided(rules, target), decided([*rules, (layer, f"allow {what}")], target)
    assert not looser(before, after), (before, after)


@unmeasured
@settings(max_examples=100)
@given(RULES.flatmap(lambda rules: st.tuples(st.just(rules), st.permutations(rules))), TARGET)
def test_the_order_of_rules_says_nothing(orders: tuple[Said, Said], target: Target) -> None:
    assert decided(orders[0], target) == decided(orders[1], target)


@unmeasured
@settings(max_examples=100)
@given(RULES, TARGET)
def test_a_denial_is_never_opened_by_a_grant(rules: Said, target: Target) -> None:
    if decided(rules, target).verdict == "deny":
        everything: Said = [("granted", f"allow {what}") for what in WHAT]
        assert decided([*rules, *everything], target).verdict == "deny"


@unmeasured
@settings(max_examples=100)
@given(RULES, st.lists(TARGET, min_size=1, max_size=3))
def test_a_call_is_as_strict_as_the_strictest_thing_it_touches(rules: Said, targets: list[Target]) -> None:
    house = policy({layer: [rule for where, rule in rules if where == layer] for layer in LAYERS})
    tool = card("execute_script")
    parts = [house.decide(ME, tool, (target,)) for target in targets if target.kind != "tool"]
    whole = house.decide(ME, tool, tuple(targets))
    assert not any(looser(whole, part) for part in parts)


@pytest.mark.parametrize(
    ("rules", "verdict"),
    [
        ([("user", "ask command git push"), ("granted", "allow command git push origin")], "allow"),
        ([("user", "ask command git push"), ("granted", "allow command git push")], "allow"),
        ([("user", "ask command git push"), ("granted", "allow command git")], "ask"),
        ([("user", "ask command git push"), ("granted", "allow command *")], "ask"),
        ([("project", "ask command git push"), ("user", "allow command git push origin")], "ask"),
        ([("project", "ask command git push"), ("granted", "allow command git push origin")], "allow"),
        ([("project", "allow command git push")], "ask"),
        ([("project", "notify command git push")], "ask"),
        ([("user", "allow command git push"), ("project", "notify command git")], "notify"),
        ([("user", "allow command git push origin"), ("user", "ask command git push")], "allow"),
        ([("user", "allow command git push"), ("user", "ask command git push")], "ask"),
        ([("user", "allow command git"), ("user", "ask command git push")], "ask"),
        ([("user", "allow command git push"), ("user", "ask command git")], "allow"),
        ([("user", "deny command git"), ("granted", "allow line git push origin main")], "deny"),
        ([("user", "ask command git"), ("user", "allow line git push origin main")], "allow"),
        ([("project", "ask command git"), ("user", "allow line git push origin main")], "ask"),
        ([("user", "deny command push"), ("granted", "allow command git push")], "ask"),
        ([("user", "notify command git push"), ("built-in", "ask command git push")], "notify"),
    ],
)
def test_who_overrules_whom(rules: Said, verdict: str) -> None:
    for order in itertools.permutations(rules):
        assert decided(list(order), Target(kind="command", value="git push origin main")).verdict == verdict


def test_a_wide_rule_for_paths_opens_no_secret() -> None:
    assert touch(policy({"user": ["allow path **"]}), ".env").verdict == "ask"
    assert touch(policy({"user": ["allow path conf/** read"]}), "conf/server.pem").verdict == "ask"
    assert touch(policy({"user": ["allow path **/*.pem read"]}), "conf/server.pem").verdict == "allow"
    assert touch(policy({"user": ["allow path conf/.env"]}), "conf/.env").verdict == "allow"


def test_what_may_be_denied_is_asked_and_only_the_exact_line_answers() -> None:
    house = policy({"user": ["deny command git push", "allow command sudo"]})
    assert run(house, "sudo git push").verdict == "ask"
    assert "may be what your rule `deny command git push` forbids" in run(house, "sudo git push").why
    assert run(house, "sudo git push", ["allow command sudo git push"]).verdict == "ask"
    assert run(house, "sudo git push", ["allow line sudo git push"]).verdict == "allow"


def test_a_line_of_the_user_opens_nothing_that_the_project_may_forbid() -> None:
    """Also where other parts of the same command ask for other reasons."""
    rules: Said = [("user", "allow line make secrets"), ("project", "deny path secrets/**")]
    target = Target(kind="command", value="make secrets")
    assert decided(rules[:1], target).verdict == "allow"
    assert decided(rules, target).verdict == "ask"
    assert decided([*rules, ("granted", "allow line make secrets")], target).verdict == "allow"
