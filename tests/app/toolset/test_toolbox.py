"""The toolbox: which tools an agent has, and reading on in what an ended one made."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from greenroom.abilities.tools.human import AskUserTool
from greenroom.abilities.tools.read_output import present_text
from greenroom.adapters.storage.memory import MemoryLog
from greenroom.adapters.storage.sqlite import SqliteLog
from greenroom.app.toolset.manual_call import find_ended_step
from greenroom.app.toolset.policy import RulesFile
from greenroom.app.toolset.toolset import build_toolbox
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.ids import StepId
from greenroom.core.ports.executor import Outcome, StepContext
from greenroom.core.ports.log import Store, StoredEvent
from greenroom.core.state.spec import AgentSpec
from greenroom.core.sync import replay
from tests.abilities.tools.calling import caller
from tests.app.team import FakeTool

READS = ("read_code", "list_files", "search_files", "command_output", "read_output")


@pytest.mark.parametrize(
    ("spec", "tools"),
    [
        (AgentSpec(name="a"), ()),
        (AgentSpec(name="a", tools=("patch",)), ("patch", "read_output")),
        (AgentSpec(name="a", groups=("read",)), READS),
        (
            AgentSpec(name="a", tools=("patch", "read_code"), groups=("human",)),
            ("patch", "read_code", "ask_user", "read_output"),
        ),
        (AgentSpec(name="a", tools=("fly",)), ("fly",)),
    ],
)
def test_an_agent_has_what_it_names_and_what_is_in_its_groups(
    tmp_path: Path, spec: AgentSpec, tools: tuple[str, ...]
) -> None:
    assert build_toolbox(tmp_path).equip(spec).tools == tools


def test_rules_are_kept_by_workspace_and_what_cannot_be_read_is_said_with_its_line(tmp_path: Path) -> None:
    file = RulesFile(tmp_path / "config" / "permissions")
    here, there = tmp_path / "here", tmp_path / "there"
    assert file.add("allow  command npm   test", here)
    assert not file.add("allow command npm test", here)
    assert file.add("deny path secret/**", None)
    assert file.rules_for(here) == ("deny path secret/**", "allow command npm test")
    assert file.rules_for(there) == ("deny path secret/**",)
    assert file.remove("deny path secret/**", None)
    assert not file.remove("deny path secret/**", None)
    assert file.path.stat().st_mode & 0o077 == 0
    file.path.write_text("# mine\n\nallow command ls\nallow nothing\n", encoding="utf-8")
    with pytest.raises(WorldFault, match="permissions, line 4: "):
        file.rules_for(here)


@pytest.mark.req("MA-57")
def test_agents_are_told_to_ask_a_person_as_little_as_they_can() -> None:
    told = AskUserTool().card.spec.description
    for said in ("what only they can know or decide", "as few questions as possible", "all at once"):
        assert said in told
    assert "not for what you can find out yourself" in told


KEPT = ("step_id", "agent_id", "thread_id", "work", "state", "result", "blobs")


def say(context: StepContext) -> Outcome:
    """Say a long text."""
    return Outcome(result=present_text("x\n" * 20_000, context.step.step_id))


class Looked:
    """How often a log was looked through, and whether it was read from its beginning."""

    def __init__(self, log: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        self.searched = self.read = 0
        newest, read = log.newest, log.read

        async def counted(stream: str, type_: str, field: str, value: str) -> StoredEvent | None:
            self.searched += 1
            return await newest(stream, type_, field, value)

        def reading(stream: str, after: int = 0, upto: int | None = None) -> AsyncIterator[Sequence[StoredEvent]]:
            self.read += 1
            return read(stream, after, upto)

        monkeypatch.setattr(log, "newest", counted)
        monkeypatch.setattr(log, "read", reading)


@pytest.mark.parametrize("kind", ["memory", "disk"])
async def test_an_ended_step_is_found_as_it_was(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log: Store = MemoryLog() if kind == "memory" else await SqliteLog.open(tmp_path)
    async with caller([FakeTool("says", say)], log) as team:
        for _ in range(3):
            await team.call("says")
        every = await team.steps()
        looked = Looked(log, monkeypatch)
        for one in every:
            found = await find_ended_step(team.runtime, team.team, one.step_id)
            assert found is not None
            assert [getattr(found, name) for name in KEPT] == [getattr(one, name) for name in KEPT]
        assert (looked.searched, looked.read) == (3, 0)
        for odd in ("ann#4", "ann#0", "ann#", "bob#1", "", "x", "ann#1x", "ann#" + "9" * 5_000, "ann#\u0661", "ann#01"):
            assert await find_ended_step(team.runtime, team.team, StepId(odd)) is None, odd
        assert (looked.searched, looked.read) == (3, 0), "for a name that somebody made up nothing is looked at"
        assert await replay.read_ended_step(log, team.team, StepId("ann#4")) is None
