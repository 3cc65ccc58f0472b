"""Playing the tasks with a model, one after the other, under one cap."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Sequence
from typing import Any

from greenroom.app.evals.tasks import TASKS
from greenroom.app.evals.trial import EvalTask, Played, Scratch, Verdict
from greenroom.app.library.agent import Agent
from greenroom.app.library.house import Greenroom
from greenroom.core.base.amounts import Amounts, Limits
from greenroom.core.base.errors import GreenroomError, ProviderFault, WorldFault
from greenroom.core.ports.model import Models


def chosen(names: Sequence[str]) -> Sequence[EvalTask]:
    """The tasks of these names; all for none."""
    known = {task.name: task for task in TASKS}
    missing = [name for name in names if name not in known]
    if missing:
        raise WorldFault(f"There is no task {missing[0]!r}. There are: {', '.join(known)}.")
    return [known[name] for name in names] or TASKS


async def play(models: Models, model: str, limits: Limits, tasks: Sequence[EvalTask] = TASKS) -> AsyncIterator[Verdict]:
    """Each task in a house of its own, with what is left of the cap; a provider that does not answer ends it all."""
    left = limits
    for task in tasks:
        verdict = await _trial(models, model, task, left)
        left = _less(left, verdict)
        yield verdict


async def _trial(models: Models, model: str, task: EvalTask, limits: Limits) -> Verdict:
    scratch, begun = Scratch(files=dict(task.files)), time.monotonic()
    played, spent = await _played(models, task, task.make(scratch, model), scratch, limits)
    return Verdict(
        task=task.name,
        about=task.about,
        missed=[sentence for sentence, holds in task.judge(played).items() if not holds],
        error=played.error,
        seconds=time.monotonic() - begun,
        money=spent.money,
        tokens=spent.tokens,
    )


async def _played(
    models: Models, task: EvalTask, agent: Agent[Any], scratch: Scratch, limits: Limits
) -> tuple[Played, Amounts]:
    """What came of it, and what it cost. That it failed is for the judge, unless nobody answers at all."""
    output: object = None
    text = error = ""
    async with Greenroom(memory=True, models=models, limits=limits) as house, house.start(agent, task.question) as run:
        try:
            result = await run.result()
            output, text = result.output, result.text
        except ProviderFault:
            raise
        except GreenroomError as fault:
            error = str(fault)
        return Played(output=output, text=text, error=error, scratch=scratch), await run.spent()


def _less(limits: Limits, verdict: Verdict) -> Limits:
    """What is left for the tasks to come."""
    money = None if limits.money is None else max(0, limits.money - verdict.money)
    tokens = None if limits.tokens is None else max(0, limits.tokens - verdict.tokens)
    return Limits(money=money, tokens=tokens, millis=limits.millis)
