"""A small run with messages, locks, timers, budgets, approvals and tools of all three effect classes."""

from __future__ import annotations

import asyncio
from pathlib import Path

from greenroom.abilities.skills.converse import Converse
from greenroom.app.kit import Kit, KitMaker
from greenroom.app.runtime import Runtime
from greenroom.core.base.amounts import Limits
from greenroom.core.base.ids import AgentId, TaskId, TeamId
from greenroom.core.ports.executor import Abilities
from greenroom.core.rules.intents import AddTask, AnswerApproval, SetTimer, StagePlan, SubtaskPlan
from greenroom.core.state.spec import AgentSpec
from greenroom.testing.scripted import Call, Cue, Reply, ScriptedModel
from greenroom.testing.tools import CountWords, Ledger, WriteFile

TASK = TaskId("t1")
DRAFT, CHECK, PUBLISH = "t1.s1.1", "t1.s1.2", "t1.s2.1"
TOOLS = ("count_words", "write_file", "ledger", "publish")
LIMITS = Limits(tokens=200_000, steps=120, millis=3_600_000, hops=40)


def _call(tool: str, **arguments: object) -> Call:
    return Call(name=tool, arguments=arguments)


CUES = (
    Cue(
        agent="writer",
        thread=f"writer@{DRAFT}",
        turn=1,
        reply=Reply(text="I ask.", calls=(_call("send_message", receiver=["tester"], message="Style?", waiting=True),)),
    ),
    Cue(
        agent="writer",
        thread=f"writer@{DRAFT}",
        turn=2,
        reply=Reply(
            text="I work.",
            calls=(
                _call("write_file", name="draft.txt", content="green room\n"),
                _call("count_words", text="green room"),
                _call("ledger", line="drafted"),
            ),
        ),
    ),
    Cue(
        agent="writer",
        thread=f"writer@{DRAFT}",
        turn=3,
        reply=Reply(
            calls=(
                _call("post_note", content="the draft is there"),
                _call("finish", summary="drafted", evidence=["draft.txt"]),
            )
        ),
    ),
    Cue(
        agent="tester",
        thread=f"tester@{CHECK}",
        turn=1,
        reply=Reply(
            calls=(_call("send_message", receiver=["person"], message="Are you there?", waiting=True, timeout_ms=20),)
        ),
    ),
    Cue(
        agent="tester",
        thread=f"tester@{CHECK}",
        turn=2,
        reply=Reply(calls=(_call("write_file", name="checked.txt", content="checked\n"),)),
    ),
    Cue(
        agent="tester",
        thread=f"tester@{CHECK}",
        turn=3,
        reply=Reply(calls=(_call("finish", summary="checked", evidence=["checked.txt"]),)),
    ),
    Cue(agent="tester", answering=True, reply=Reply(text="plain")),
    Cue(agent="lead", reply=Reply(text="noted")),
    Cue(
        agent="writer",
        thread=f"writer@{PUBLISH}",
        turn=1,
        reply=Reply(calls=(_call("publish", line="published"),)),
    ),
    Cue(
        agent="writer",
        thread=f"writer@{PUBLISH}",
        turn=2,
        reply=Reply(calls=(_call("finish", summary="published", evidence=["ledger"]),)),
    ),
)


def kit(folder: Path, pace: float, file: type[WriteFile], ledger: type[Ledger]) -> Kit:
    """The wiring of the scenario; files and ledger are real and lie in `folder`."""
    publish = ledger(folder / "ledger", ask=True, pace=pace)
    publish.name = "publish"
    return Kit(
        abilities=Abilities(
            [
                Converse(ScriptedModel(CUES, pace=pace)),
                CountWords(),
                file(folder, pace=pace),
                ledger(folder / "ledger", pace=pace),
                publish,
            ]
        )
    )


async def begin(runtime: Runtime) -> TeamId:
    """Make the team and its task."""
    agents = [
        (AgentId("lead"), AgentSpec(name="Lead", role="manager", manager=True)),
        (AgentId("writer"), AgentSpec(name="Writer", role="writer", tools=TOOLS)),
        (AgentId("tester"), AgentSpec(name="Tester", role="tester", tools=TOOLS)),
        (AgentId("person"), AgentSpec(name="Person", role="owner", kind="human")),
    ]
    team = await runtime.create("crash", agents, kit="crash", limits=LIMITS)
    first = StagePlan(
        intention="make it",
        subtasks=(
            SubtaskPlan(name="draft", duty="write the draft", agent=AgentId("writer")),
            SubtaskPlan(name="check", duty="check it", agent=AgentId("tester")),
        ),
    )
    second = StagePlan(
        intention="publish it",
        subtasks=(SubtaskPlan(name="publish", duty="publish the draft", agent=AgentId("writer")),),
    )
    task = AddTask(
        name="job",
        intention="write, check and publish",
        manager=AgentId("lead"),
        group=(AgentId("person"),),
        stages=(first, second),
        limits=LIMITS,
    )
    wake = SetTimer(agent_id=AgentId("lead"), task_id=TASK, name="look", due=0, text="look around")
    await runtime.ask(team, task, wake)
    return team


async def play(runtime: Runtime, team: TeamId) -> str:
    """Let the team work until its task is over, answering what a person is asked; returns how it ended."""
    await runtime.start(team)
    while True:
        found = await runtime.wait(team, TASK)
        if found.word != "waiting":
            return found.word
        world = await runtime.world(team)
        for approval in list(world.approvals.values()):
            if approval.state == "pending":
                await runtime.ask(team, AnswerApproval(approval_id=approval.approval_id, answer="approved"))
        await asyncio.sleep(0)


def kits(
    folder: Path, pace: float = 0.0, file: type[WriteFile] = WriteFile, ledger: type[Ledger] = Ledger
) -> dict[str, KitMaker]:
    """The table of kits for a runtime."""
    return {"crash": lambda _: kit(folder, pace, file, ledger)}
