"""`greenroom org` in this process: what another terminal does between two steps of a command."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import cast

import pytest

from greenroom.app.organisation import people
from greenroom.app.runtime import Runtime
from greenroom.app.team_host import TeamHost
from greenroom.cli.commands import org as commands
from greenroom.cli.context import Invocation
from greenroom.core.base.ids import TeamId
from greenroom.core.base.records import evolve
from greenroom.core.state.team_state import TeamState
from tests.cli.conftest import Type
from tests.e2e.organised import TEA, Company, Line, step, writes
from tests.e2e.provider import provider, reached


def _thought(receiver: str) -> Line:
    return lambda asked: writes(receiver, f"One more thought, number {len(asked)}.")


CHATTER: Mapping[tuple[str, str], Sequence[Line]] = {
    ("manager", "planning"): [[step("agent_manager")], [step("send_message"), step("reflection")]],
    ("manager", "agent_manager"): [
        {"action": "init_new_agent", "agent_id": "wu", "blueprint": "writer", "task_id": "t1"}
    ],
    ("manager", "reflection"): [[], [step("send_message"), step("reflection")]],
    ("manager", "send_message"): [_thought("wu")],
    ("manager", "process_message"): ["I see."],
    ("wu", "planning"): [[step("send_message"), step("reflection")]],
    ("wu", "reflection"): [[step("send_message"), step("reflection")]],
    ("wu", "send_message"): [_thought("manager")],
    ("wu", "process_message"): ["I see."],
}
"""The manager makes a writer; asked for something, the two tell each other what they think."""


@pytest.fixture(name="tea")
def _tea(tmp_path: Path, home: Path, greenroom: Type, monkeypatch: pytest.MonkeyPatch) -> Iterator[Type]:
    """An organisation that can be started, but does not work for long: whoever would let it work is stopped."""
    assert home.parent == tmp_path
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)

    async def refuse(_: Runtime, team: TeamId, *, take_over: bool = False) -> TeamHost:
        raise AssertionError(f"{team} works, {take_over}")

    monkeypatch.setattr(Runtime, "start", refuse)
    with provider(Company(TEA)) as server:
        for name, value in reached(server).items():
            monkeypatch.setenv(name, value)
        assert greenroom("org", "new", "tea", "--person", "ann").code == 0
        yield greenroom


def test_every_line_that_is_said_is_handled_until_one_fails(tea: Type) -> None:
    assert tea("inbox", "--say", "Tea, please.", "--say", "And milk.").code == 0
    assert tea("inbox", "--to", "manager", "--say", "/No command.", "--say", "Sugar.").code == 0
    shown = tea("events", "last", "--output-format", "json").out
    assert all(said in shown for said in ("Tea, please.", "And milk.", "/No command.", "Sugar."))
    assert tea("inbox", "--say", "/nonsense", "--say", "Never said.").code != 0
    assert "Never said." not in tea("events", "last", "--output-format", "json").out
    assert tea("inbox", "--say", "Tea", "--say", " ").code == 2


def test_what_was_stopped_before_a_start_goes_on_with_it(tea: Type) -> None:
    assert tea("inbox", "--say", "Tea, please.").code == 0
    assert tea("org", "stop").code == 0
    with pytest.raises(AssertionError, match="works"):
        tea("org", "start")


def test_a_limit_that_is_reached_while_a_step_still_works_ends_with_the_code_of_a_limit(
    tea: Type, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def not_at_all(runtime: Runtime, team: TeamId, *, take_over: bool = False) -> TeamHost:
        del take_over
        return cast("TeamHost", await runtime.state(team))

    async def reached_meanwhile(_: Invocation, host: TeamHost) -> TeamState:
        state = cast("TeamState", host)
        (step,) = (one for one in state.steps.values() if one.agent_id == "manager")
        busy = state.steps.set(step.step_id, evolve(step, state="running"))
        return evolve(state, steps=busy, team=evolve(state.team, paused="limit: team money"))

    assert tea("inbox", "--say", "Tea, please.").code == 0
    monkeypatch.setattr(Runtime, "start", not_at_all)
    monkeypatch.setattr(commands, "_wait_until_over", reached_meanwhile)
    started = tea("org", "start", "--max-cost", "0.5")
    assert started.code == 5, started.err
    assert "its money is not enough for the next step ($0.5000 left). Raise the limit: " in started.err


def test_a_model_of_a_provider_that_nobody_knows_is_noticed_before_anything_begins(tea: Type, tmp_path: Path) -> None:
    refused = tea("org", "new", "other", "--person", "ann", "-m", "opnai:gpt-5.5")
    told = "`model` names 'opnai:gpt-5.5'. There is no provider 'opnai'. Did you mean `openai`"
    assert (refused.code, told in refused.err) == (2, True), refused.err
    charter = tmp_path / "project" / ".greenroom" / "teams" / "tea.toml"
    assert not charter.with_name("other.toml").exists()
    assert "tea.toml" not in tea("org", "list").err
    charter.write_text(charter.read_text().replace('# model = "strong"', 'model = "opnai:gpt-5.5"'))
    assert f"{charter}: {told}" in " ".join(tea("org", "list").err.split())


def test_agents_who_only_write_to_each_other_are_stopped_and_a_person_lets_them_go_on(
    tmp_path: Path, greenroom: Type, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(people, "MAX_MESSAGES", 6)
    company = Company(CHATTER)
    with provider(company) as server:
        for name, value in reached(server).items():
            monkeypatch.setenv(name, value)
        assert greenroom("org", "new", "tea", "--person", "ann").code == 0
        assert greenroom("inbox", "--say", "Make a writer.", "--wait").code == 1, "nobody answers ann"
        ended = greenroom("inbox", "--say", "/ask manager,wu: Agree on a tea.", "--wait")
        told = "Paused: its agents sent too many messages to each other since a person last did something. "
        assert (ended.code, told + "Type `/resume` to continue." in " ".join(ended.err.split())) == (5, True), ended.err
        said = company.asked.count(("manager", "send_message"))
        assert greenroom("inbox", "--say", "/resume", "--wait").code == 5
        assert company.asked.count(("manager", "send_message")) > said + 1, "as often again, not once"
