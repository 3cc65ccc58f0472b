"""The story behind the golden log: a small team at work, in which every kind of event happens at least once.

A golden log is never edited and never made again: it is what an old Greenroom left on a user's disk. For a new schema
version, `python -m tests.core.golden.scenario` writes the files of that version beside the old ones.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from greenroom.core.base.amounts import Amounts, Limits
from greenroom.core.base.ids import (
    AgentId,
    ArtifactId,
    GroupId,
    MemoryId,
    StepId,
    SubtaskId,
    TeamId,
    ThreadId,
    TimerId,
    WaitingId,
    task_budget,
)
from greenroom.core.base.records import evolve
from greenroom.core.ports.codec import SCHEMA_VERSION, encode_event
from greenroom.core.rules import intents as i
from greenroom.core.state.agent import Capability
from greenroom.core.state.archive import build_archive_row
from greenroom.core.state.events import Event
from greenroom.core.state.mas_format import format_agent, format_stage, format_task
from greenroom.core.state.reducer import reduce
from greenroom.core.state.spec import AgentSpec, Handoff
from greenroom.core.state.step import PreparedEffect, StepTerms
from greenroom.core.state.task import Routing
from greenroom.core.state.team import ForkOrigin
from greenroom.core.state.team_state import EMPTY_STATE, sort_rows
from tests.core.house import ANN, BOB, BOSS, CY, HUE, PIA, S1, SYSTEM, T1, T2, House, plan, question, reply, skill, tool

HERE = Path(__file__).parent
IVY = AgentId("ivy")
ONE = SubtaskId("t1.s1.1")
ASK = StepTerms(effect="effectful", verdict="ask", question="delete it?", digest="rm x", rule="ask first")


def story() -> House:
    """Play everything that can happen, once."""
    house = House.furnished(
        stages=(plan(("draft", ANN), ("check", BOB, ("draft",)), goal="write"), plan(("sign", HUE), goal="publish"))
    )
    begin(house)
    talk(house)
    permits(house)
    limits(house)
    stops(house)
    ends(house)
    knows(house)
    reads(house)
    keeps(house)
    replans(house)
    routes(house)
    return house


def begin(house: House) -> None:
    guest = AgentSpec(name="Guest", role="helper", llm_config={"model": "x:y", "temperature": 0.5})
    house.do(i.Declare(blueprints=(guest,), abilities=(Capability(name="shell", type="tool", description="runs"),)))
    house.do(i.AddAgent(agent_id=AgentId("guest"), blueprint="Guest"), i.AddParticipants(task_id=T1, agents=(CY,)))
    house.do(i.AddParticipants(task_id=T1, agents=(AgentId("guest"),)), by=BOSS)
    house.do(i.UpdateWorkingMemory(agent_id=CY, task_id=T1, stage_id=S1), by=CY).assign()
    house.do(i.SetWorkspace(thread_id=ThreadId("ann@t1.s1.1"), workspace={"path": "/work"}), by=ANN)
    house.do(i.MoveWindow(thread_id=ThreadId("ann@t1.s1.1"), window_from=1), by=ANN)
    house.do(i.PostNote(task_id=T1, content="begun", stage_id=S1), i.SetValue(task_id=T1, key="port", content="80"))


def talk(house: House) -> None:
    house.later(5).run(ANN, question(BOB, HUE, stage=S1), i.QueueSteps(agent_id=ANN, works=(tool("patch"),)))
    house.run(BOB, reply(WaitingId("ann>1:bob"), ANN)).do(reply(WaitingId("ann>1:hue"), ANN), by=HUE)
    nobody = i.SendMessage(task_id=T1, receiver=(AgentId("ghost"),), message="anybody?")
    house.run(ANN, i.ModifyStep(step_id=StepId("ann#2"), work=tool("patch", {"path": "a.txt"})), nobody)
    house.queue(CY).run(CY, i.AskInfo(query="agent_states", task_id=T1)).run(CY, question(PIA, timeout=50))
    house.later(50).fire(WaitingId("cy>3:pia"))
    house.do(i.SetTimer(agent_id=PIA, task_id=T1, name="tea", due=house.now, text="tea"))
    house.do(i.SetTimer(agent_id=PIA, task_id=T1, name="cake", due=house.now + 9, text="cake"))
    house.do(i.FireTimer(timer_id=TimerId("pia!tea")), i.CancelTimer(timer_id=TimerId("pia!cake")), by=SYSTEM)


def permits(house: House) -> None:
    step = house.start(ANN, terms=ASK)
    house.answer(ANN).start(ANN, terms=StepTerms(effect="keyed", verdict="ask", digest="rm y", question="and this?"))
    house.answer(ANN).start(ANN, terms=StepTerms(effect="keyed", verdict="ask", digest="rm y"))
    file = PreparedEffect(kind="file", key="a.txt", before="00", after="ff")
    house.do(i.PrepareEffect(step_id=step.step_id, attempt=1, prepared=(file,)), by=ANN)
    house.do(i.Recover(epoch=3, owner="laptop:1"), by=SYSTEM)
    house.start(ANN, "keyed")
    house.later(7).finish(ANN, result={"output": "changed"}, spent=Amounts(tokens=12))


def limits(house: House) -> None:
    house.do(i.SetLimits(budget_id=task_budget(T1), limits=Limits(tokens=100, money=50)))
    house.queue(BOB, skill("merge")).queue(PIA)
    house.start(BOB, terms=StepTerms(effect="model", needs=Amounts(tokens=60, money=5), model="x:y", prompt="p1"))
    house.start(PIA, terms=StepTerms(effect="model", needs=Amounts(tokens=60)))
    house.finish(BOB, spent=Amounts(tokens=50, money=4))
    house.start(PIA, terms=StepTerms(effect="model", needs=Amounts(tokens=60)))
    house.do(i.SetLimits(budget_id=task_budget(T1), limits=Limits(tokens=900)), i.ResumeTask(task_id=T1))


def stops(house: House) -> None:
    house.start(PIA)
    house.do(i.PauseTeam(why="tea", now=True)).release(PIA).do(i.ResumeTeam())
    house.queue(BOB, tool("shell", {"command": "deploy"}))
    house.start(BOB, "effectful")
    house.release(BOB)


def ends(house: House) -> None:
    hand = i.SendMessage(task_id=T1, receiver=(CY,), message="yours", delivery="handoff", handoff_summary="half")
    house.run(ANN, hand)
    house.do(
        i.UpdateStageAgentCompletion(stage_id=S1, agent_id=CY, completion_summary="all of it"),
        i.FinishSubtask(subtask_id=ONE, stage_id=S1, summary="drafted", evidence=("a.txt exists",)),
        by=CY,
    )
    house.do(i.ReportStage(stage_id=S1), by=BOSS).do(i.FinishStage(stage_id=S1, summary="done"), by=BOSS)
    house.do(i.AddTask(name="side", intention="on the side", manager=BOSS, group=(ANN,), start=False))
    house.do(i.StartTask(task_id=T2)).queue(ANN, task=T2)
    house.start(ANN, "pure")
    house.do(i.CancelTask(task_id=T2, why="not needed")).release(ANN)
    house.do(i.RemoveAgent(agent_id=AgentId("guest")))
    house.queue(BOB, skill("merge"), place="next")
    house.start(BOB, terms=ASK)
    house.do(i.ForkTeam(team_id=TeamId("fork"), origin=ForkOrigin(team_id=TeamId("team"), version=len(house.log))))
    house.do(i.ChangeAgent(agent_id=ANN, spec=AgentSpec(name="Ann", role="writer", llm_config={"model": "x:z"})))


def knows(house: House) -> None:
    old = house.do(i.SaveMemory(content="the API is slow", tags=("api",)), by=CY).state.team.last_memory
    house.do(i.SaveMemory(content="the API is slow at night", merged_from=(MemoryId(old),)), by=CY)
    house.do(i.SaveMemory(content="a draft"), by=BOB)
    house.do(i.ClearMemory(memory_ids=(MemoryId(house.state.team.last_memory),)), by=BOB)
    draft = i.WriteArtifact(
        task_id=T1,
        artifact_id=ArtifactId("task_plan"),
        title="Plan",
        media_type="text/markdown",
        blob="a1",
        size=12,
        lines=2,
    )
    house.queue(CY).write(CY, draft).queue(CY).write(CY, evolve(draft, blob="b2", based_on=1))


def reads(house: House) -> None:
    """Let an agent read a page and a file, write about them to all, and try to send something out."""
    house.queue(CY)
    house.start(CY, terms=StepTerms(effect="pure", origins=("web:example.org",), outward=("host example.org",)))
    note = i.PostNote(task_id=T1, content="it says so")
    house.finish(CY, note, i.SaveMemory(content="it says so"), origins=("file:README.md",))
    house.queue(CY)
    exposed = house.state.threads[ThreadId("cy@t1")].exposed_at
    sends = evolve(ASK, outward=("host example.org",), exposed_at=exposed, release="host example.org")
    asked = house.start(CY, terms=sends).approval
    assert asked is not None
    house.do(i.AnswerApproval(approval_id=asked, answer="approved", scope="run"))


def keeps(house: House) -> None:
    """Let an agent save a memory, two people exchange messages, and record a person's action."""
    house.do(i.Remember(content="### Ports\nThe port is 80."), by=CY)
    house.do(i.AddAgent(agent_id=IVY, spec=AgentSpec(name="Ivy", role="person", kind="human")))
    house.do(i.AddParticipants(task_id=T1, agents=(IVY,)))
    house.do(i.FormGroup(group_id=GroupId("people"), task_id=T1, participants=(HUE, IVY)))
    house.do(i.SendMessage(task_id=T1, receiver=(CY,), message="Cy, look.", group=GroupId("people")), by=IVY)
    house.do(i.RecordStep(agent_id=IVY, work=skill("send_message"), task_id=T1, result={"send_message": "Cy, look."}))


def replans(house: House) -> None:
    """Let a subtask fail and be tried again, hand its result on, and change the plan of what waits."""
    code = i.SubtaskPlan(name="code", duty="write it", agent=BOB, title="Write", tries=2, writes=("a.py",), seconds=60)
    test = i.SubtaskPlan(name="test", duty="test it", agent=CY, needs=("code",), priority=1)
    plan_ = i.StagePlan(intention="build", subtasks=(code, test), concurrency=1, on_failure="continue")
    house.do(i.AddTask(name="build", intention="build it", manager=BOSS, stages=(plan_,)))
    task = max(house.state.tasks, key=lambda name: int(name[1:]))
    stage = house.state.tasks[task].stages[0]
    house.assign(stage)
    end = i.FinishSubtask(subtask_id=SubtaskId(f"{stage}.1"), stage_id=stage, state="failed", summary="no compiler")
    house.do(end, by=BOB).assign(stage)
    output = {"protocol": "code-handoff", "version": 1, "files": ["a.py"]}
    docs = i.SubtaskPlan(name="docs", duty="describe it", agent=AgentId("dora"), work=(tool("patch", {}),), anyway=True)
    helper = i.AddAgent(agent_id=AgentId("dora"), spec=AgentSpec(name="doc-writer"))
    house.do(i.Replan(stage_id=stage, subtasks=(code, docs), agents=(helper,)))
    house.do(evolve(end, state="finished", summary="written", output=output), by=BOB)


def routes(house: House) -> None:
    """Hand a task over to an agent that joins for it, and back."""
    zoe, max_ = AgentId("zoe"), AgentId("max")
    specs = tuple(AgentSpec(name=name, handoff=Handoff()) for name in (zoe, max_))
    house.do(i.AddAgent(agent_id=zoe, spec=specs[0]))
    routing = Routing(main=zoe, members=specs, max_hops=3)
    house.do(i.AddTask(name="route", intention="paint it red", manager=zoe, routing=routing))
    task = max(house.state.tasks, key=lambda name: int(name[1:]))
    for sender, receiver in ((zoe, max_), (max_, zoe)):
        message = i.SendMessage(
            task_id=task, receiver=(receiver,), message="paint", delivery="handoff", kind="handoff", clear=True
        )
        if sender == zoe:
            house.queue(zoe, task=task)
        house.run(sender, message)


def projection(events: Iterator[Event]) -> dict[str, object]:
    """Return the content of a log in a form that stays the same when records get new fields."""
    state, over = EMPTY_STATE, []
    for event in events:
        row = build_archive_row(state, event)
        if row is not None:
            over.append(f"{row.kind} {row.key} {getattr(row.record, 'state', '')}".strip())
        state = reduce(state, event)
    return {
        "team": [state.team.team_id, state.team.name, state.team.epoch, state.team.paused],
        "tasks": [format_task(task, (), ()) for task in sort_rows(state.tasks)],
        "stages": [format_stage(stage) for stage in sort_rows(state.stages)],
        "agents": [format_agent(state, agent.agent_id) for agent in sort_rows(state.agents)],
        "values": {key: value.content for key, value in sorted(state.values.items())},
        "waits": sorted(state.waits),
        "mail": sorted(state.mail),
        "timers": {name: timer.due for name, timer in sorted(state.timers.items())},
        "spent": {
            name: [one.spent.money, one.spent.tokens, one.spent.steps] for name, one in sorted(state.budgets.items())
        },
        "retired": sorted(state.retired),
        "memories": {name: memory.content for name, memory in sorted(state.memories.items())},
        "artifacts": {name: [one.version, *one.earlier, one.blob] for name, one in sorted(state.artifacts.items())},
        "read": {name: list(one.origins) for name, one in sorted(state.threads.items()) if one.origins},
        "shared": {name: list(one.origins) for name, one in sorted(state.tasks.items()) if one.origins},
        "releases": sorted(state.releases),
        "remembered": {one.agent_id: one.memory for one in sort_rows(state.agents) if one.memory},
        "groups": {name: list(one.participants) for name, one in sorted(state.groups.items())},
        "over": over,
    }


def write() -> None:
    """Write the story of this schema version to disk."""
    house = story()
    lines = [json.dumps({"greenroom": "log", "schema": SCHEMA_VERSION})]
    for version, event in enumerate(house.log, start=1):
        new = encode_event(event)
        lines.append(json.dumps({"version": version, "at": new.at, "type": new.type, "data": json.loads(new.data)}))
    (HERE / f"log-v{SCHEMA_VERSION}.jsonl").write_text("\n".join(lines) + "\n", "utf-8")
    text = json.dumps(projection(iter(house.log)), indent=1, ensure_ascii=False)
    (HERE / f"projection-v{SCHEMA_VERSION}.json").write_text(text + "\n", "utf-8")


if __name__ == "__main__":
    write()
