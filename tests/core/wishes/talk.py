"""Random intents about messages, the task board, questions, approvals and timers."""

from __future__ import annotations

from random import Random
from typing import get_args

from greenroom.core.base.ids import AgentId, ApprovalId, GroupId, TimerId
from greenroom.core.rules import intents as i
from greenroom.core.state.approval import ApprovalAnswer, ApprovalScope
from greenroom.core.state.message import Delivery
from greenroom.core.state.step import Step
from greenroom.core.state.team_state import TeamState
from tests.core.wishes import words


def send_message(rng: Random, world: TeamState) -> i.SendMessage:
    """Return any message, mostly a valid one."""
    task = words.task(rng, world)
    group = world.tasks[task].group if task in world.tasks else ()
    delivery: Delivery = rng.choice(("post", "post", "post", "call", "handoff"))
    waiting = delivery == "call" or (delivery == "post" and rng.randrange(2) == 0)
    stages = world.tasks[task].stages if task in world.tasks else ()
    odd = rng.randrange(8) == 0
    called = waiting and rng.randrange(3) == 0
    return i.SendMessage(
        task_id=task,
        receiver=words.some(rng, world.agents if odd else group, 1 if delivery == "handoff" else 3),
        message=" " if rng.randrange(20) == 0 else "hello",
        stage_relative=words.stage(rng, world) if odd else rng.choice(("no_relative", "no_relative", *stages)),
        need_reply=waiting or (delivery == "post" and rng.randrange(3) == 0),
        waiting=waiting,
        return_waiting_id=words.waiting(rng, world) if rng.randrange(8) == 0 else None,
        delivery=delivery,
        timeout=rng.choice((None, None, 0, 500)),
        handoff_summary=rng.choice((None, "half done")),
        sender=words.agent(rng, world) if rng.randrange(3) == 0 else None,
        call_id="call" if called else None,
        group=words.one(rng, world.groups, GroupId("ghosts")) if rng.randrange(12) == 0 else None,
    )


def form_group(rng: Random, world: TeamState) -> i.FormGroup:
    """Form a group, mostly of people: the team has one or two."""
    people = [one.agent_id for one in world.agents.values() if one.spec.kind == "human"]
    return i.FormGroup(
        group_id=GroupId(rng.choice(("people", "others", "a b"))),
        task_id=words.task(rng, world),
        participants=tuple(sorted(people)) if rng.randrange(3) else words.some(rng, world.agents, 3),
    )


def answer(rng: Random, world: TeamState, step: Step) -> i.SendMessage:
    """Return the reply that a step owes."""
    wait = world.waits.get(step.answers) if step.answers else None
    return i.SendMessage(
        task_id=wait.task_id if wait else step.task_id,
        receiver=(wait.waiter if wait else AgentId(words.GHOST),),
        message="because",
        return_waiting_id=step.answers,
        need_reply=rng.randrange(6) == 0,
    )


def persons_answer(rng: Random, world: TeamState) -> i.SendMessage:
    """Return a person's reply to a waiting message."""
    mine = [one for _, one in sorted(world.waits.items()) if world.agents[one.on].spec.kind == "human"]
    if not mine:
        return send_message(rng, world)
    wait = rng.choice(mine)
    return i.SendMessage(
        task_id=wait.task_id,
        receiver=(wait.waiter,),
        message="yes",
        return_waiting_id=wait.waiting_id,
        sender=wait.on,
    )


def ask_info(rng: Random, world: TeamState) -> i.AskInfo:
    about = rng.choice(((), (words.task(rng, world),), (words.stage(rng, world),), (words.agent(rng, world),)))
    return i.AskInfo(query=rng.choice(get_args(i.Query)), task_id=words.task(rng, world), about=about)


def need_tool_decision(rng: Random, world: TeamState) -> i.NeedToolDecision:
    return i.NeedToolDecision(
        agent_id=words.agent(rng, world),
        task_id=words.task(rng, world),
        stage_id=rng.choice((None, words.stage(rng, world))),
        tool_name="crawl",
    )


def post_note(rng: Random, world: TeamState) -> i.PostNote:
    return i.PostNote(task_id=words.task(rng, world), content="note well")


def set_value(rng: Random, world: TeamState) -> i.SetValue:
    return i.SetValue(task_id=words.task(rng, world), key=rng.choice("ab"), content="so")


def answer_approval(rng: Random, world: TeamState) -> i.AnswerApproval:
    name = words.one(rng, world.approvals, ApprovalId("ghost#1?1"))
    scope: ApprovalScope = rng.choice(("once", "once", "run", "always"))
    answer: ApprovalAnswer = rng.choice(("approved", "approved", "denied"))
    return i.AnswerApproval(approval_id=name, answer=answer, scope=scope, grant=rng.choice(("", "allow tool x")))


def set_timer(rng: Random, world: TeamState, now: int) -> i.SetTimer:
    return i.SetTimer(
        agent_id=words.agent(rng, world),
        task_id=words.task(rng, world),
        name=rng.choice(("tea", "bread")),
        due=now + rng.choice((-10, 100, 5000)),
        text="time!",
    )


def cancel_timer(rng: Random, world: TeamState) -> i.CancelTimer:
    return i.CancelTimer(timer_id=words.one(rng, world.timers, TimerId("ghost!tea")))


def fire_timer(rng: Random, world: TeamState) -> i.FireTimer:
    return i.FireTimer(timer_id=words.one(rng, world.timers, TimerId("ghost!tea")))
