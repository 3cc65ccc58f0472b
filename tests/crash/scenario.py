"""A small run with messages, locks, timers, budgets, approvals and tools of all three effect classes."""

from __future__ import annotations

import asyncio
from pathlib import Path

from greenroom.abilities.skills.converse import Converse
from greenroom.app.runtime import Runtime
from greenroom.core.base.amounts import Limits
from greenroom.core.base.ids import AgentId, TaskId, TeamId
from greenroom.core.ports.executor import Capabilities, CapabilitiesFactory
from greenroom.core.rules.intents import AddTask, AnswerApproval, SetTimer, StagePlan, SubtaskPlan
from greenroom.core.state.spec import AgentSpec
from greenroom.testing.scripted import Cue, ScriptedCall, ScriptedModel, ScriptedReply
from greenroom.testing.tools import CountWords, LedgerTool, WriteFile

TASK = TaskId("t1")
DRAFT, CHECK, PUBLISH = "t1.s1.1", "t1.s1.2", "t1.s2.1"
TOOLS = ("count_words", "write_file", "ledger", "publish")
LIMITS = Limits(tokens=200_000, steps=120, millis=3_600_000, hops=40)


def _call(tool: str, **arguments: object) -> ScriptedCall:
    return ScriptedCall(name=tool, arguments=arguments)


CUES = (
    Cue(
        agent="writer",
        thread=f"writer@{DRAFT}",
        turn=1,
        reply=ScriptedReply(
            text="I ask.", calls=(_call("send_message", receiver=["tester"], message="Style?", waiting=True),)
        ),
    ),
    Cue(
        agent="writer",
        thread=f"writer@{DRAFT}",
        turn=2,
        reply=ScriptedReply(
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
        reply=ScriptedReply(
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
        reply=ScriptedReply(
            calls=(_call("send_message", receiver=["person"], message="Are you there?", waiting=True, timeout_ms=20),)
        ),
    ),
    Cue(
        agent="tester",
        thread=f"tester@{CHECK}",
        turn=2,
        reply=ScriptedReply(calls=(_call("write_file", name="checked.txt", content="checked\n"),)),
    ),
    Cue(
        agent="tester",
        thread=f"tester@{CHECK}",
        turn=3,
        reply=ScriptedReply(calls=(_call("finish", summary="checked", evidence=["checked.txt"]),)),
    ),
    Cue(agent="tester", answering=True, reply=ScriptedReply(text="plain")),
    Cue(agent="lead", reply=ScriptedReply(text="noted")),
    Cue(
        agent="writer",
        thread=f"writer@{PUBLISH}",
        turn=1,
        reply=ScriptedReply(calls=(_call("publish", line="published"),)),
    ),
    Cue(
        agent="writer",
        thread=f"writer@{PUBLISH}",
        turn=2,
        reply=ScriptedReply(calls=(_call("finish", summary="published", evidence=["ledger"]),)),
    ),
)


def kit(folder: Path, pace: float, file: type[WriteFile], ledger: type[LedgerTool]) -> Capabilities:
    """Return the capabilities of the scenario. Files and ledger are real and in `folder`."""
    publish = ledger(folder / "ledger", ask=True, pace=pace)
    publish.name = "publish"
    return Capabilities(
        [
            Converse(ScriptedModel(CUES, pace=pace)),
            CountWords(),
            file(folder, pace=pace),
            ledger(folder / "ledger", pace=pace),
            publish,
        ]
    )


async def begin(runtime: Runtime) -> TeamId:
    """Create the team and its task."""
    agents = [
        (AgentId("lead"), AgentSpec(name="Lead", role="manager", manager=True)),
        (AgentId("writer"), AgentSpec(name="Writer", role="writer", tools=TOOLS)),
        (AgentId("tester"), AgentSpec(name="Tester", role="tester", tools=TOOLS)),
        (AgentId("person"), AgentSpec(name="Person", role="owner", kind="human")),
    ]
    team = await runtime.create("crash", agents, capabilities_name="crash", limits=LIMITS)
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
    """Run the team until its task is over, answer approval requests, and return the task status."""
    await runtime.start(team)
    while True:
        found = await runtime.wait(team, TASK)
        if found.state != "waiting":
            return found.state
        state = await runtime.state(team)
        for approval in list(state.approvals.values()):
            if approval.state == "pending":
                await runtime.ask(team, AnswerApproval(approval_id=approval.approval_id, answer="approved"))
        await asyncio.sleep(0)


def kits(
    folder: Path, pace: float = 0.0, file: type[WriteFile] = WriteFile, ledger: type[LedgerTool] = LedgerTool
) -> dict[str, CapabilitiesFactory]:
    """Return the capabilities table for a runtime."""
    return {"crash": lambda _: kit(folder, pace, file, ledger)}
