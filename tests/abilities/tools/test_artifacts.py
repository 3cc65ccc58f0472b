"""Artifacts are made, changed, rewritten and read by id; every version stays, and no work is overwritten."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from unittest.mock import patch

import pytest

from greenroom.abilities.tools.artifacts import CreateArtifactTool, UpdateArtifactTool, build_artifact_tools
from greenroom.abilities.tools.files.tools import build_file_tools
from greenroom.adapters.files.local_files import LocalFiles
from greenroom.app.toolset.pipeline import ToolPipeline
from greenroom.core.base.ids import AgentId
from greenroom.core.ports.executor import Outcome, StepContext
from greenroom.core.rules.intents import AddAgent, AddParticipants, QueueSteps
from greenroom.core.state.knowledge import Artifact, ArtifactWritten
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.step import Work
from greenroom.policy.policy import build_rules_policy
from tests.abilities.tools.calling import T1, Caller, caller

BOB = AgentId("bob")
PLAN = "- [ ] look\n- [ ] write\n- [ ] report\n"
TICK = [{"search": "- [ ] look", "replace": "- [x] look"}]


@pytest.fixture(name="ann")
async def _ann() -> AsyncIterator[Caller]:
    async with caller(build_artifact_tools()) as found:
        yield found


@pytest.fixture(name="plan")
async def _plan(ann: Caller) -> Caller:
    await ann.output("create_artifact", id="task_plan", title="Plan", content=PLAN)
    return ann


async def newest(ann: Caller) -> Artifact:
    """The only artifact of the task."""
    (one,) = (await ann.runtime.state(ann.team)).list_artifacts(T1)
    return one


async def joined(ann: Caller) -> None:
    """Let another agent take part, if it does not yet."""
    if BOB not in (await ann.runtime.state(ann.team)).agents:
        joins = AddAgent(agent_id=BOB, spec=AgentSpec(name="bob"))
        await ann.runtime.ask(ann.team, joins, AddParticipants(task_id=T1, agents=(BOB,)))


async def by_bob(ann: Caller, tool: str, **arguments: object) -> None:
    """Let another agent of the task do it."""
    await joined(ann)
    work = Work(type="tool", executor=tool, instruction_content=arguments)
    await ann.runtime.ask(ann.team, QueueSteps(agent_id=BOB, works=(work,), task_id=T1))
    await asyncio.wait_for(ann.runtime.wait(ann.team, T1), 60)
    assert (await ann.steps())[-1].state == "finished"


@pytest.mark.req("AF-66", "AF-62")
async def test_a_plan_is_made_read_and_ticked_off(plan: Caller) -> None:
    said = await plan.output("update_artifact", id="task_plan", edits=TICK)
    assert said.startswith("Version 2 of task_plan: 1 change, +1 −1 lines, 36 bytes written.")
    assert "-- [ ] look\n+- [x] look" in said
    read = await plan.output("read_artifact", id="task_plan")
    assert read.startswith("task_plan (version 2 of 2): lines 1-3 of 3.\n     1\t- [x] look\n")


@pytest.mark.req("AF-66", "AF-63")
async def test_results_have_the_ids_that_one_likes_and_are_listed(plan: Caller) -> None:
    assert "none yet" not in await plan.output("read_artifact")
    await plan.output("create_artifact", id="main.py", content="print(1)\n", media_type="text/x-python")
    assert (await plan.output("read_artifact")).splitlines() == [
        "There are:",
        "main.py · main.py · text/x-python · version 1 by ann · 1 line, 9 bytes",
        "task_plan · Plan · text/markdown · version 1 by ann · 3 lines, 36 bytes",
    ]


async def test_at_first_there_are_none(ann: Caller) -> None:
    assert await ann.output("read_artifact") == "There are none yet: create_artifact makes one."
    assert "no artifact 'x' in this task. There are none yet" in await ann.error("read_artifact", id="x")


@pytest.mark.req("AF-66")
async def test_an_artifact_is_rewritten_and_its_old_versions_are_still_read(plan: Caller) -> None:
    said = await plan.output("rewrite_artifact", id="task_plan", content="all done\n", title="Done")
    assert said.startswith("Version 2 of task_plan: rewritten, +1 −3 lines")
    assert (await newest(plan)).title == "Done"
    old = await plan.output("read_artifact", id="task_plan", version=1, start_line=2, end_line=2)
    assert old == "task_plan (version 1 of 2): lines 2-2 of 3.\n     2\t- [ ] write"
    assert "There is no version 3 of 'task_plan': the newest is 2." in await plan.error(
        "read_artifact", id="task_plan", version=3
    )


async def test_what_would_change_nothing_makes_no_version(plan: Caller) -> None:
    assert "has this content already" in await plan.output("rewrite_artifact", id="task_plan", content=PLAN)
    assert (await newest(plan)).version == 1


async def test_nobody_rewrites_what_another_one_wrote_meanwhile(plan: Caller) -> None:
    await by_bob(plan, "update_artifact", id="task_plan", edits=TICK)
    said = await plan.error("rewrite_artifact", id="task_plan", content="mine\n")
    assert "'task_plan' is at version 2 by bob, and you have not read that one." in said
    await plan.output("read_artifact", id="task_plan", end_line=1)
    assert "only a part of it" in await plan.error("rewrite_artifact", id="task_plan", content="mine\n")
    await plan.output("read_artifact", id="task_plan", start_line=2)
    await plan.output("rewrite_artifact", id="task_plan", content="ours\n")
    assert (await newest(plan)).version == 3


async def test_what_was_never_read_is_rewritten_only_by_naming_its_version(ann: Caller) -> None:
    await by_bob(ann, "create_artifact", id="report", content="one\n")
    assert "you have not read it" in await ann.error("rewrite_artifact", id="report", content="two\n")
    assert "is at version 1 by bob, not 7" in await ann.error(
        "rewrite_artifact", id="report", content="two\n", version=7
    )
    await ann.output("rewrite_artifact", id="report", content="two\n", version=1)
    assert ((await newest(ann)).version, (await newest(ann)).by) == (2, "ann")


async def test_changes_of_two_agents_in_different_places_are_both_kept(plan: Caller) -> None:
    await by_bob(plan, "update_artifact", id="task_plan", edits=TICK)
    await plan.output("update_artifact", id="task_plan", edits=[{"search": "[ ] write", "replace": "[x] write"}])
    read = await plan.output("read_artifact", id="task_plan")
    assert "[x] look" in read
    assert "[x] write" in read
    refused = await plan.error("update_artifact", id="task_plan", version=2, edits=[{"search": "x", "replace": "y"}])
    assert "is at version 3 by ann, not 2. Read it again first. Nothing was written." in refused


class Overtaken(UpdateArtifactTool):
    """Ready to write, while another agent is quicker."""

    async def run(self, context: StepContext) -> Outcome:
        """Lose the race, once."""
        outcome = await super().run(context)
        if context.agent.agent_id != BOB:
            await self.meanwhile()
        return outcome

    async def meanwhile(self) -> None:
        """Set by the test."""


async def test_who_is_overtaken_at_the_last_moment_reads_it_and_nothing_is_lost() -> None:
    slow = Overtaken()
    async with caller([CreateArtifactTool(), slow]) as ann:
        await ann.output("create_artifact", id="task_plan", content=PLAN)
        mine = [{"search": "[ ] write", "replace": "[x] write"}]

        async def quicker() -> None:
            await joined(ann)
            work = Work(type="tool", executor="update_artifact", instruction_content={"id": "task_plan", "edits": TICK})
            await ann.runtime.ask(ann.team, QueueSteps(agent_id=BOB, works=(work,), task_id=T1))
            async with asyncio.timeout(60):
                async for told in ann.runtime.events(ann.team, follow=True):
                    if isinstance(told.event, ArtifactWritten) and told.event.artifact.by == BOB:
                        break

        with patch.object(slow, "meanwhile", quicker):
            await ann.output("update_artifact", id="task_plan", edits=mine)
        assert ((await newest(ann)).version, (await newest(ann)).by) == (2, "bob")
        threads = (await ann.runtime.state(ann.team)).threads
        (notice,) = [one for thread in threads.values() if thread.agent_id == "ann" for one in thread.notices]
        assert "WriteArtifact was refused. The artifact 'task_plan' is at version 2 by bob" in notice


@pytest.mark.parametrize(
    ("edits", "why"),
    [
        ([{"search": "- [ ]", "replace": "x"}], "multiple matches: SEARCH occurs 3 times, at lines 1, 2, 3"),
        ([{"search": "- [ ] lok", "replace": "x"}], "line 1 differs"),
        ([{"search": "look", "replace": "look"}], "it changes nothing"),
        ([{"search_start": "report", "search_end": "look", "replace": ""}], "end before start"),
        ([], "length >= 1"),
    ],
)
async def test_a_change_that_does_not_fit_is_refused_as_in_a_file(
    plan: Caller, edits: list[dict[str, str]], why: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    refused = await plan.error("update_artifact", id="task_plan", edits=edits)
    assert why in refused
    assert (await newest(plan)).version == 1
    root = tmp_path_factory.mktemp("files")
    (root / "task_plan").write_text(PLAN)
    async with caller(build_file_tools(LocalFiles(root))) as ann:
        of_a_file = await ann.error("patch", file="task_plan", edits=edits)
    assert refused.partition(": ")[2] == of_a_file.partition(": ")[2].removesuffix(" Nothing was written.")


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({"id": "task_plan", "content": "x"}, "There is an artifact 'task_plan' already (version 1 by ann)."),
        ({"id": "big", "content": "é" * 600_000}, "1,200,000 bytes; 1,048,576 are allowed"),
        ({"id": "a\nb", "content": "x"}, "one line of 120 characters at most"),
        ({"id": " ", "content": "x"}, "one line of 120 characters at most"),
        ({"id": "x"}, "missing required field `content`"),
        ({"id": "x", "content": "a\x00b"}, "NUL"),
        ({"id": "x", "content": "x", "kind": "text"}, "unknown field `kind`"),
    ],
)
async def test_what_cannot_be_made_says_why(plan: Caller, arguments: dict[str, object], why: str) -> None:
    assert why in await plan.error("create_artifact", **arguments)
    assert len((await plan.runtime.state(plan.team)).artifacts) == 1


async def test_a_long_artifact_is_read_in_parts_and_an_empty_one_says_so(ann: Caller) -> None:
    content = "".join(f"line {number}\n" for number in range(1, 9001))
    await ann.output("create_artifact", id="long", content=content)
    assert "Read on with start_line" in await ann.output("read_artifact", id="long")
    await ann.output("create_artifact", id="none", content="")
    assert "is empty" in await ann.output("read_artifact", id="none")


async def test_every_version_is_kept_beside_the_log(plan: Caller) -> None:
    await plan.output("update_artifact", id="task_plan", edits=TICK)
    rows = [one async for one in plan.runtime.archive(plan.team, "artifact") if isinstance(one, Artifact)]
    contents = [await plan.runtime.log.get_blob(one.blob) for one in rows]
    assert contents == [PLAN.encode(), PLAN.replace("[ ] look", "[x] look").encode()]


async def test_nobody_is_asked_and_nothing_outside_is_touched() -> None:
    policy = build_rules_policy({}, "/work")
    for tool in build_artifact_tools():
        assert policy.decide(AgentId("ann"), tool.card, tool.targets({})).verdict == "allow"
        assert (tool.card.group, tool.card.effect) == ("memory", "pure")
        assert "Not for" in tool.description
        assert "Example: {" in tool.description
    async with caller([ToolPipeline(tool, policy) for tool in build_artifact_tools()]) as ann:
        assert "Version 1" in await ann.output("create_artifact", id="x", content="y\n")
