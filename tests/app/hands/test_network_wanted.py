"""A command that wants the network: the policy decides about its hosts, and a person reads what they say yes to."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from greenroom.abilities.tools.commands.toolkit import command_tools
from greenroom.app.toolset.pipeline import Guarded, Unattended
from greenroom.app.toolset.policy import Confirming, policy_for
from greenroom.core.base.records import Data
from greenroom.core.ports.commands import Ended
from greenroom.core.state.step import Step, Terms
from greenroom.core.state.world import World
from tests.abilities.tools.commands.scripts import Said
from tests.core.house import ANN, House, tool
from tests.core.rules.test_origins import reading

PIP: Data = {
    "script": "pip download jsonschema",
    "hosts": ["pypi.org", "Files.PythonHosted.org"],
    "why": "To read its schema.",
}


def asking(given: Data, house: House | None = None) -> tuple[World, Step]:
    made = house or House.furnished()
    made.queue(ANN, tool("execute_script", given))
    return made.world, list(made.world.steps_of(ANN))[-1]


def guarded(*rules: str, reach: Sequence[str] | None = (), own: Sequence[str] = ()) -> Guarded:
    """Behind walls, unless nothing is around it."""
    policy = policy_for(Path("/work"), rules, own=own, walled=lambda: reach is not None)
    return Guarded(command_tools(Said(Ended(how="exited", code=0)))[0], policy, reach=lambda: reach)


def decided(given: Data, *rules: str, own: Sequence[str] = ()) -> Terms:
    return guarded(*rules, own=own).terms(*asking(given))


def test_a_person_reads_the_command_the_hosts_and_what_the_agent_says_why() -> None:
    terms = decided(PIP)
    assert terms.verdict == "ask"
    assert terms.question == (
        "ann wants the network for a command. It would reach `pypi.org` and `files.pythonhosted.org`, which no rule "
        "allows.\n  | pip download jsonschema\nIt says why:\n  | To read its schema."
    )
    assert terms.grant.splitlines() == [
        "allow host pypi.org",
        "allow host files.pythonhosted.org",
    ]


def test_a_long_script_is_shown_whole_and_who_says_nothing_is_said_to() -> None:
    question = decided({"script": "python3 fetch.py\nmake", "hosts": ["pypi.org"]}).question
    assert question == (
        "ann wants the network for a command. It would run `python3 fetch.py\\nmake` and reach `pypi.org`, which no "
        "rule allows.\n  | python3 fetch.py\n  | make\nIt does not say why."
    )


def test_no_agent_can_make_its_reason_look_like_words_of_the_house() -> None:
    false = "Fine.\n[y] once  [n] no: \x1b[2Jann wants to run a command.\u202e" + "x" * 900
    *_, fenced = decided({**PIP, "why": false}).question.splitlines()
    assert fenced.startswith("  | Fine. [y] once [n] no: \\x1b[2Jann wants to run a command.\\u202exxx")
    assert (fenced.endswith("x […]"), len(fenced)) == (True, 308)


def test_a_reason_is_told_of_a_command_without_the_network_too() -> None:
    assert decided({"script": "cat .env", "why": "It has the port."}).question.endswith(
        "\nIt says why:\n  | It has the port."
    )
    assert "say why" not in decided({"script": "cat .env"}).question


def test_whoever_confirms_every_call_sees_the_hosts_as_well() -> None:
    execute = command_tools(Said(Ended(how="exited", code=0)))[0]
    allowed = ("allow host a.example", "allow host b.example", "allow line " + "make " * 40)
    policy = Confirming(policy_for(Path("/work"), allowed, walled=lambda: True))
    given = {"script": "make " * 40, "hosts": ["a.example", "b.example"]}
    question = Guarded(execute, policy, reach=lambda: ()).terms(*asking(given)).question
    assert f"\n  | {'make ' * 40}" in question
    assert "It would reach `a.example`, `b.example`." in question


# ---------------------------------------------------------------------------------------------------- what is decided

FETCH: Data = {"script": "python3 fetch.py", "hosts": ["pypi.org"]}


@pytest.mark.parametrize(
    ("rules", "verdict"),
    [
        ((), "ask"),
        (("allow host pypi.org",), "allow"),
        (("allow host *.pypi.org",), "ask"),
        (("allow host example.org",), "ask"),
        (("allow line python3 fetch.py",), "ask"),
        (("deny host pypi.org",), "deny"),
        (("allow host pypi.org", "deny host *.pypi.org:443", "deny host pypi.org:443"), "deny"),
    ],
)
def test_each_host_is_decided_about_and_no_rule_for_the_command_opens_one(rules: tuple[str, ...], verdict: str) -> None:
    assert decided(FETCH, *rules).verdict == verdict


def test_always_is_for_that_host_and_for_no_other() -> None:
    terms = decided(FETCH)
    assert terms.grant == "allow host pypi.org"
    assert decided(FETCH, terms.grant).verdict == "allow"
    for other in ("example.org", "files.pypi.org", "pypi.org:8443"):
        assert decided({**FETCH, "hosts": ["pypi.org", other]}, terms.grant).verdict == "ask"


def test_a_rule_to_ask_counts_also_where_something_wider_is_allowed() -> None:
    own = ("allow host *.example.org", "ask host cdn.example.org")
    assert decided({**FETCH, "hosts": ["cdn.example.org"]}, own=own).verdict == "ask"
    assert decided({**FETCH, "hosts": ["www.example.org"]}, own=own).verdict == "allow"


@pytest.mark.parametrize(
    "name", ["*.example.org", "*", "https://pypi.org/simple", "pypi.org/..", "pypi.org:http", "a\0b"]
)
def test_what_is_no_host_is_forbidden_and_says_why(name: str) -> None:
    terms = decided({**FETCH, "hosts": [name]}, "allow host *")
    assert terms.verdict == "deny"
    assert "The host `" in terms.rule


def test_more_hosts_than_anybody_reads_are_not_called_with() -> None:
    world, step = asking({**FETCH, "hosts": [f"{one}.example" for one in range(9)]})
    assert guarded().terms(world, step).effect == "pure", "it is not called"
    eight = decided({**FETCH, "hosts": [f"{one}.example" for one in range(8)]})
    assert all(f"`{one}.example`" in eight.question for one in range(8))
    assert len(eight.grant.splitlines()) == 8


def test_another_host_or_command_is_another_call() -> None:
    calls = [FETCH, {**FETCH, "hosts": ["pypi.org:443"]}, {**FETCH, "script": "python3 fetch.py x"}, {"script": "x"}]
    assert len({decided(one).digest for one in calls}) == 4


def test_unattended_it_is_not_done_and_the_agent_reads_why() -> None:
    terms = Unattended(guarded()).terms(*asking(PIP))
    assert terms.verdict == "deny"
    assert "reach `pypi.org` and `files.pythonhosted.org`, which no rule allows, and nobody is there" in terms.rule


# ------------------------------------------------------------------------------------------------- what it would carry


@pytest.mark.parametrize(
    ("reach", "places"),
    [
        ((), ("host pypi.org", "host files.pythonhosted.org")),
        (("ours.example",), ("host ours.example", "host pypi.org", "host files.pythonhosted.org")),
        (None, ("command pip download jsonschema", "host pypi.org", "host files.pythonhosted.org")),
    ],
)
def test_its_hosts_are_places_where_something_could_go(reach: tuple[str, ...] | None, places: tuple[str, ...]) -> None:
    terms = guarded(reach=reach).terms(*asking(PIP))
    assert terms.outward == places
    assert {"web:pypi.org", "web:files.pythonhosted.org", "command:pip"} <= set(terms.origins)


def test_a_conversation_that_has_read_strangers_asks_although_a_rule_allows_the_host() -> None:
    house = reading(House.furnished(), ANN, origins=("web:evil.example", "command:baseline"))
    terms = guarded("allow host pypi.org").terms(*asking(FETCH, house))
    assert (terms.verdict, terms.release, terms.grant) == ("ask", "host pypi.org", "")
    assert terms.question == (
        "ann wants the network for a command. This conversation has read what others may have written (the web at "
        "evil.example, what `baseline` printed), and holds what is private (what `baseline` printed); this would go to "
        "`pypi.org`.\n  | python3 fetch.py\nIt does not say why."
    )
