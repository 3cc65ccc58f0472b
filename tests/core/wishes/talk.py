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


def send_message(rng: Random, state: TeamState) -> i.SendMessage:
    """Return any message, mostly a valid one."""
    task = words.task(rng, state)
    group = state.tasks[task].group if task in state.tasks else ()
    delivery: Delivery = rng.choice(("post", "post", "post", "call", "handoff"))
    waiting = delivery == "call" or (delivery == "post" and rng.randrange(2) == 0)
    stages = state.tasks[task].stages if task in state.tasks else ()
    odd = rng.randrange(8) == 0
    called = waiting and rng.randrange(3) == 0
    return i.SendMessage(
        task_id=task,
        receiver=words.some(rng, state.agents if odd else group, 1 if delivery == "handoff" else 3),
        message=" " if rng.randrange(20) == 0 else "hello",
        stage_relative=words.stage(rng, state) if odd else rng.choice(("no_relative", "no_relative", *stages)),
        need_reply=waiting or (delivery == "post" and rng.randrange(3) == 0),
        waiting=waiting,
        return_waiting_id=words.waiting(rng, state) if rng.randrange(8) == 0 else None,
        delivery=delivery,
        timeout=rng.choice((None, None, 0, 500)),
        handoff_summary=rng.choice((None, "half done")),
        sender=words.agent(rng, state) if rng.randrange(3) == 0 else None,
        call_id="call" if called else None,
        group=words.one(rng, state.groups, GroupId("ghosts")) if rng.randrange(12) == 0 else None,
    )


def form_group(rng: Random, state: TeamState) -> i.FormGroup:
    """Form a group, mostly of people: the team has one or two."""
    people = [one.agent_id for one in state.agents.values() if one.spec.kind == "human"]
    return i.FormGroup(
        group_id=GroupId(rng.choice(("people", "others", "a b"))),
        task_id=words.task(rng, state),
        participants=tuple(sorted(people)) if rng.randrange(3) else words.some(rng, state.agents, 3),
    )


def answer(rng: Random, state: TeamState, step: Step) -> i.SendMessage:
    """Return the reply that a step owes."""
    wait = state.waits.get(step.answers) if step.answers else None
    return i.SendMessage(
        task_id=wait.task_id if wait else step.task_id,
        receiver=(wait.waiter if wait else AgentId(words.GHOST),),
        message="because",
        return_waiting_id=step.answers,
        need_reply=rng.randrange(6) == 0,
    )


def persons_answer(rng: Random, state: TeamState) -> i.SendMessage:
    """Return a person's reply to a waiting message."""
    mine = [one for _, one in sorted(state.waits.items()) if state.agents[one.on].spec.kind == "human"]
    if not mine:
        return send_message(rng, state)
    wait = rng.choice(mine)
    return i.SendMessage(
        task_id=wait.task_id,
        receiver=(wait.waiter,),
        message="yes",
        return_waiting_id=wait.waiting_id,
        sender=wait.on,
    )


def ask_info(rng: Random, state: TeamState) -> i.AskInfo:
    about = rng.choice(((), (words.task(rng, state),), (words.stage(rng, state),), (words.agent(rng, state),)))
    return i.AskInfo(query=rng.choice(get_args(i.Query)), task_id=words.task(rng, state), about=about)


def need_tool_decision(rng: Random, state: TeamState) -> i.NeedToolDecision:
    return i.NeedToolDecision(
        agent_id=words.agent(rng, state),
        task_id=words.task(rng, state),
        stage_id=rng.choice((None, words.stage(rng, state))),
        tool_name="crawl",
    )


def post_note(rng: Random, state: TeamState) -> i.PostNote:
    return i.PostNote(task_id=words.task(rng, state), content="note well")


def set_value(rng: Random, state: TeamState) -> i.SetValue:
    return i.SetValue(task_id=words.task(rng, state), key=rng.choice("ab"), content="so")


def answer_approval(rng: Random, state: TeamState) -> i.AnswerApproval:
    name = words.one(rng, state.approvals, ApprovalId("ghost#1?1"))
    scope: ApprovalScope = rng.choice(("once", "once", "run", "always"))
    answer: ApprovalAnswer = rng.choice(("approved", "approved", "denied"))
    return i.AnswerApproval(approval_id=name, answer=answer, scope=scope, grant=rng.choice(("", "allow tool x")))


def set_timer(rng: Random, state: TeamState, now: int) -> i.SetTimer:
    return i.SetTimer(
        agent_id=words.agent(rng, state),
        task_id=words.task(rng, state),
        name=rng.choice(("tea", "bread")),
        due=now + rng.choice((-10, 100, 5000)),
        text="time!",
    )


def cancel_timer(rng: Random, state: TeamState) -> i.CancelTimer:
    return i.CancelTimer(timer_id=words.one(rng, state.timers, TimerId("ghost!tea")))


def fire_timer(rng: Random, state: TeamState) -> i.FireTimer:
    return i.FireTimer(timer_id=words.one(rng, state.timers, TimerId("ghost!tea")))
