"""No question takes long, however large and hostile it is."""

from __future__ import annotations

import time

import pytest

from bench.policy import GOALS, HOSTILE, rules, run, targets
from greenroom.core.ports.tool import Target
from tests.policy.house import ME, ROOT, card, user
from tests.speed import is_soon

LIMIT = 5.0
"""Seconds of work, a hundred times what the slowest takes; what grows with the square takes minutes."""

LINES = {
    **HOSTILE,
    "a megabyte of brackets": "(" * 1_000_000,
    "a megabyte of blanks": "ls" + " " * 1_000_000,
    "many expansions": "ls " + "${x}" * 8_000,
    "many globs": "ls " + "*?[" * 10_000,
    "many tildes": "ls " + "~" * 30_000,
    "many redirections": "ls " + ">a " * 10_000,
    "many comments": "#\n" * 16_000,
    "many assignments": "a=b " * 8_000,
    "many lines": "\n" * 32_000,
    "many dots": "cat " + "../" * 10_000,
    "a deep path": "cat " + "a/" * 10_000,
    "nested quotations": "ls " + '"$(ls ' * 5_000,
}


# Reaches no line that other tests do not, and to be measured takes it twice as long.
@pytest.mark.no_cover
@pytest.mark.parametrize("name", LINES)
def test_a_hostile_line_is_asked_about_at_once(name: str) -> None:
    house = user(*rules(1000))
    begin = time.process_time()
    ruling = house.decide(ME, card(), (Target(kind="command", value=LINES[name]),))
    assert is_soon(time.process_time() - begin, LIMIT)
    assert ruling.verdict in {"ask", "allow"}
    assert len(ruling.why) < 10_000


@pytest.mark.parametrize("path", ["a/" * 2_000, "../" * 1_300, "x" * 4_000, "*" * 4_000, "[" * 4_000, "x" * 1_000_000])
def test_a_hostile_path_is_decided_at_once(path: str) -> None:
    house = user(*rules(1000), "deny path **/*a*a*a*a*b", "deny path **/a/**/a/**/a/**/a/**/b")
    begin = time.process_time()
    house.decide(ME, card("patch", "edit"), (Target(kind="path", value=path, writes=True),))
    assert is_soon(time.process_time() - begin, LIMIT)


SLOW = 3
"""So much slower than the machine that the goals were set on may be the one that runs this. It is CPU time."""


@pytest.mark.no_cover
def test_a_decision_at_two_hundred_rules_takes_no_time_and_that_is_measured() -> None:
    tries = [run(rounds=10) for _ in range(3)]  # a neighbour on the machine only ever makes it slower
    assert set(GOALS) <= set(tries[0])
    for name in ("decision_ms_200_rules_p99", "decision_ms_200_rules_worst_kind"):
        assert min(figures[name] for figures in tries) <= SLOW * GOALS[name][1], tries
    assert len(targets()) > 20
    assert ROOT == "/home/me/project"


@pytest.mark.parametrize(
    "script",
    [
        f"for f in * {'a' * 200}; do rm $f; done",
        "echo one\necho two\n\tpython x.py",
        f"python a.py {'x' * 300} --force",
    ],
)
def test_nobody_says_yes_to_a_command_that_they_have_not_seen(script: str) -> None:
    why = user().decide(ME, card(), (Target(kind="command", value=script),)).why
    assert [line[4:] for line in why.split("\n")[1:]] == script.replace("\t", "    ").split("\n")


def test_what_is_short_is_shown_once() -> None:
    why = user().decide(ME, card(), (Target(kind="command", value="npm test"),)).why
    assert why == "It would run `npm test`, which no rule allows."


def test_what_a_terminal_obeys_is_spelt_out_in_a_question() -> None:
    why = user().decide(ME, card(), (Target(kind="command", value="rm -rf /\rls \x1b[8m;x \u202e"),)).why
    assert "rm -rf /\\rls \\x1b[8m;x \\u202e" in why
    assert all(sign.isprintable() or sign == "\n" for sign in why)
