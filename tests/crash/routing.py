"""A process in which a routing team passes a task on, and the log may end its life."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from greenroom.abilities.skills.conversation_skills import build_conversation_skills
from greenroom.app.conversation.start import FIRST_TASK_ID
from greenroom.app.runtime import Runtime
from greenroom.app.text_reader import TextReader
from greenroom.core.base.ids import AgentId, TeamId
from greenroom.core.ports.executor import Capabilities
from greenroom.core.rules.intents import AddTask, QueueSteps
from greenroom.core.state.spec import AgentSpec, Handoff, TurnPolicy
from greenroom.core.state.step import Work
from greenroom.core.state.task import Routing
from greenroom.testing.scripted import Cue, ScriptedModel
from tests.crash.lives import DyingLog, Moment, fork_server

LEAD = AgentId("lead")
TURN = TurnPolicy(protocols=("send_message",), ends="text")
MEMBERS = tuple(AgentSpec(name=name, turn=TURN, handoff=Handoff(clear=name != LEAD)) for name in (LEAD, "coder"))


def _send(to: str, content: str) -> str:
    return f"<SEND_MESSAGE>\nto: {to}\ncontent: {content}\n</SEND_MESSAGE>"


CUES = (
    Cue(agent="lead", skill="converse", turn=1, reply=_send("coder", "Paint it")),
    Cue(agent="coder", skill="converse", turn=1, reply=_send("lead", "It is red")),
    Cue(agent="lead", skill="converse", turn=2, reply="It is red and dry."),
    Cue(skill="handoff_summary", reply="A summary."),
)


async def _work(home: Path) -> str:
    log = await DyingLog.open(home)
    skills = build_conversation_skills(ScriptedModel(CUES), solo=True, reader=TextReader())
    runtime = Runtime(log, capability_factories={"route": lambda _: Capabilities(skills)})
    team = next((TeamId(info.stream) for info in await log.streams()), None)
    if team is not None and not (await runtime.state(team)).team.tasks_made:
        await log.forget(team)
        team = None
    if team is None:
        routing = Routing(main=LEAD, members=MEMBERS)
        task = AddTask(name="paint", intention="Make it red.", manager=LEAD, group=(LEAD,), routing=routing)
        work = Work(type="skill", executor="converse", text_content="Make it red.")
        first = QueueSteps(agent_id=LEAD, works=(work,), task_id=FIRST_TASK_ID)
        people = ((LEAD, MEMBERS[0]),)
        team = await runtime.create("route", people, capabilities_name="route", first_intents=(task, first))
    await runtime.start(team)
    status = await asyncio.wait_for(runtime.wait(team, FIRST_TASK_ID), 30)
    await runtime.close()
    return status.state


def _main(home: str, at: int, moment: Moment) -> None:
    DyingLog.at, DyingLog.moment = at, moment
    os._exit(0 if asyncio.run(_work(Path(home))) == "finished" else 1)


def live(home: Path, at: int = 0, moment: Moment = "before") -> int:
    """Run one process on this home that dies at an append. Return its exit code, negative for a signal."""
    process = fork_server().Process(target=_main, args=(str(home), at, moment))
    process.start()
    process.join(60)
    return process.exitcode if process.exitcode is not None else 1
