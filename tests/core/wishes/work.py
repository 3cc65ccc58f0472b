"""Random intents about steps, their threads and their budgets."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from greenroom.core.base.amounts import NOTHING, Amounts, Limits
from greenroom.core.base.ids import TEAM_BUDGET, BudgetId, StepId, agent_budget, task_budget
from greenroom.core.rules import intents as i
from greenroom.core.state.step import PreparedEffect, Step, StepTerms, Work
from greenroom.core.state.team_state import TeamState
from tests.core.wishes import words

SKILLS = (
    "converse",
    "planning",
    "reflection",
    "summary",
    "send_message",
    "tool_decision",
    "merge",
    "unheard_of",
    "instruction_generation",
)


def work(rng: Random) -> Work:
    if rng.randrange(3) == 0:
        instruction = {"command": "ls"} if rng.randrange(4) else None
        call = "call" if rng.randrange(3) == 0 else None
        return Work(type="tool", executor=rng.choice(("shell", "crawl")), instruction_content=instruction, call_id=call)
    return Work(type="skill", executor=rng.choice(SKILLS), text_content="go on")


def queue_steps(rng: Random, state: TeamState) -> i.QueueSteps:
    return i.QueueSteps(
        agent_id=words.agent(rng, state),
        works=tuple(work(rng) for _ in range(rng.randrange(4))),
        place=rng.choice(("last", "next")),
        task_id=rng.choice((None, words.task(rng, state), words.task(rng, state))),
        stage_id=rng.choice((None, None, words.stage(rng, state))),
        thread_id=rng.choice((None, None, None, words.thread(rng, state))),
    )


def record_step(rng: Random, state: TeamState) -> i.RecordStep:
    return i.RecordStep(
        agent_id=words.agent(rng, state),
        work=work(rng),
        task_id=words.task(rng, state),
        stage_id=rng.choice((None, None, words.stage(rng, state))),
        state=rng.choice(("finished", "failed")),
        result={"send_message": "hello"},
        says=rng.choice((None, _says(rng, state))),
    )


def _says(rng: Random, state: TeamState) -> i.SendMessage:
    return i.SendMessage(
        task_id=words.task(rng, state),
        receiver=(words.agent(rng, state),),
        message="hello",
        sender=words.agent(rng, state),
    )


def modify_step(rng: Random, state: TeamState) -> i.ModifyStep:
    return i.ModifyStep(step_id=words.step(rng, state), work=work(rng))


def remove_step(rng: Random, state: TeamState) -> i.RemoveStep:
    return i.RemoveStep(step_id=words.step(rng, state))


def interrupt(rng: Random, state: TeamState) -> i.Interrupt:
    return i.Interrupt(thread_id=words.thread(rng, state))


def terms(rng: Random) -> StepTerms:
    return StepTerms(
        effect=rng.choice(("pure", "model", "keyed", "effectful")),
        needs=rng.choice((NOTHING, Amounts(money=rng.randint(0, 5), tokens=rng.randint(0, 10)), Amounts(millis=5_000))),
        priced=rng.randrange(8) > 0,
        verdict=rng.choice(("allow", "allow", "allow", "notify", "ask", "deny")),
        grant=rng.choice(("", "allow tool shell")),
        digest=rng.choice(("this", "that")),
        question="may I?",
    )


def start_step(rng: Random, state: TeamState) -> i.StartStep:
    ready = words.startable(state)
    name = rng.choice(ready).step_id if ready and rng.randrange(10) else words.step(rng, state)
    known = state.steps.get(name)
    judged = known.work if known is not None and rng.randrange(20) else work(rng)
    return i.StartStep(step_id=name, terms=terms(rng), work=judged)


def attempt(rng: Random, state: TeamState) -> tuple[StepId, int, Step | None]:
    """Return a running attempt, sometimes one that does not run."""
    busy = words.busy(state)
    if busy and rng.randrange(10):
        step = rng.choice(busy)
        return step.step_id, step.attempt + (rng.randrange(10) == 0), step
    return words.step(rng, state), rng.randrange(3), None


def prepare_effect(rng: Random, state: TeamState) -> i.PrepareEffect:
    name, number, _ = attempt(rng, state)
    return i.PrepareEffect(
        step_id=name, attempt=number, prepared=(PreparedEffect(kind="file", key="a.py", after="1f"),)
    )


def release_step(rng: Random, state: TeamState) -> i.ReleaseStep:
    name, number, _ = attempt(rng, state)
    return i.ReleaseStep(step_id=name, attempt=number)


ORIGINS = ((), ("web:a",), (), ("file:b", "web:c"), (), (), ("mcp:d",))
"""Origins that a step has read, by its number."""


def finish_step(
    rng: Random, state: TeamState, consequences: Callable[[Step], tuple[i.Consequence, ...]]
) -> i.FinishStep:
    name, number, step = attempt(rng, state)
    reserved = step.reserved if step else NOTHING
    spent = Amounts(money=rng.randint(0, reserved.money), tokens=rng.randint(0, reserved.tokens))
    intents = consequences(step) if step else ()
    kept = tuple(one.blob for one in intents if isinstance(one, i.WriteArtifact) and one.blob != "lost")
    return i.FinishStep(
        step_id=name,
        attempt=number,
        outcome=rng.choice(("finished", "finished", "finished", "failed", "uncertain")),
        spent=spent,
        result={"text": "done"},
        intents=intents,
        blobs=kept,
        origins=ORIGINS[step.ordinal % len(ORIGINS)] if step else (),
    )


def set_limits(rng: Random, state: TeamState) -> i.SetLimits:
    known = (
        TEAM_BUDGET,
        task_budget(words.task(rng, state)),
        agent_budget(words.agent(rng, state)),
        BudgetId("team:other"),
    )
    limits = Limits(
        money=rng.choice((None, rng.randint(0, 20))),
        tokens=rng.choice((None, rng.randint(0, 40))),
        steps=rng.choice((None, None, rng.randint(0, 20))),
        millis=rng.choice((None, None, rng.randint(0, 200_000))),
        hops=rng.choice((None, None, rng.randint(0, 8))),
        depth=rng.choice((None, 1)),
    )
    return i.SetLimits(budget_id=rng.choice(known), limits=limits)


def move_window(rng: Random, state: TeamState) -> i.MoveWindow:
    return i.MoveWindow(
        thread_id=words.thread(rng, state), window_from=rng.randrange(state.version + 1), size=rng.choice((0, 0, 5))
    )


def set_workspace(rng: Random, state: TeamState) -> i.SetWorkspace:
    return i.SetWorkspace(thread_id=words.thread(rng, state), workspace={"path": "/tmp/x"})
