"""`greenroom team` in this process: what another terminal does between two steps of a command."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from greenroom.app.host import Host
from greenroom.app.runtime import Runtime
from greenroom.core.base.ids import TeamId
from greenroom.interfaces.cli.asked.orders import Tape
from greenroom.interfaces.cli.asked.organising import TeamStop
from greenroom.interfaces.cli.commands import team as commands
from greenroom.interfaces.cli.runs.organising import Meant, brought_up
from greenroom.interfaces.cli.runs.session import Door
from tests.e2e.organised import TEA, Company
from tests.e2e.provider import provider, reached
from tests.interfaces.cli.conftest import Type


@pytest.fixture(name="tea")
def _tea(tmp_path: Path, home: Path, greenroom: Type, monkeypatch: pytest.MonkeyPatch) -> Iterator[Type]:
    """An organisation that can be started, but does not work for long: whoever would let it work is stopped."""
    assert home.parent == tmp_path
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)

    async def refuse(_: Runtime, team: TeamId, *, take_over: bool = False) -> Host:
        raise AssertionError(f"{team} works, {take_over}")

    monkeypatch.setattr(Runtime, "start", refuse)
    with provider(Company(TEA)) as server:
        for name, value in reached(server).items():
            monkeypatch.setenv(name, value)
        assert greenroom("team", "new", "tea", "--person", "ann").code == 0
        yield greenroom


@pytest.mark.parametrize("stopped_before", [True, False])
def test_a_stop_while_a_start_is_under_way_holds(
    tea: Type, monkeypatch: pytest.MonkeyPatch, stopped_before: bool
) -> None:
    async def stopped_meanwhile(door: Door, one: Meant, tape: Tape) -> TeamId:
        team = await brought_up(door, one, tape)
        await commands.team_stop(door, TeamStop(name="tea"))
        return team

    assert tea("talk", "--say", "Tea, please.").code == 0
    if stopped_before:
        assert tea("team", "stop").code == 0
    monkeypatch.setattr(commands, "brought_up", stopped_meanwhile)
    started = tea("team", "start")
    assert started.code == 0, started.err
    assert "Stopped: stopped by a person." in started.err
    assert "Ctrl-C stops it" not in started.err
    assert "stopped" in tea("team", "list").out


def test_what_was_stopped_before_a_start_goes_on_with_it(tea: Type) -> None:
    assert tea("talk", "--say", "Tea, please.").code == 0
    assert tea("team", "stop").code == 0
    with pytest.raises(AssertionError, match="works"):
        tea("team", "start")
