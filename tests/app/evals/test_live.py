"""The evals: a model that works well passes them all, one that only talks passes none, and the cap holds for all."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from greenroom.adapters.models.openai.model import Endpoint, OpenAICompatible
from greenroom.adapters.models.retry import RateLimiter, RetryingModel, RetryPolicy
from greenroom.app.evals import TASKS, EvalResult, run_tasks, select_tasks
from greenroom.app.model_registry import SingleModel
from greenroom.core.base.amounts import Limits
from greenroom.core.base.errors import ProviderFault, WorldFault
from greenroom.core.ports.model import ModelCard, Usage
from tests.app.evals.models import bad, good
from tests.fake_openai.faults import fault
from tests.fake_openai.scripts import Script
from tests.fake_openai.server import FakeOpenAI


@asynccontextmanager
async def served(script: Script) -> AsyncIterator[SingleModel]:
    """A model behind a strict provider."""
    async with FakeOpenAI(script, strict=True) as server:
        endpoint = Endpoint("fake", server.base_url)
        card = ModelCard(window=128_000)
        plain = OpenAICompatible(endpoint, "fake", card=card, price=lambda a, b: a + b, cost=_cost)
        try:
            yield SingleModel(model=RetryingModel(plain, RateLimiter(parallel=4), RetryPolicy(retries=0)))
        finally:
            await endpoint.close()


def _cost(usage: Usage) -> int:
    return usage.input + usage.output


async def judged(script: Script, limits: Limits | None = None) -> list[EvalResult]:
    async with served(script) as models:
        return [one async for one in run_tasks(models, "", limits or Limits(money=10**9))]


def test_there_are_fifteen_tasks_each_with_a_name_of_its_own() -> None:
    assert len({task.name for task in TASKS}) == len(TASKS) == 15


async def test_a_model_that_works_well_passes_all() -> None:
    verdicts = await judged(good)
    assert [(one.task, one.missed, one.error) for one in verdicts if not one.has_passed] == []
    assert all(one.money > 0 and one.tokens > 0 and one.seconds > 0 for one in verdicts)


async def test_a_model_that_only_talks_passes_none() -> None:
    assert [one.task for one in await judged(bad) if one.has_passed] == []


async def test_all_together_never_cost_more_than_the_cap() -> None:
    verdicts = await judged(good, Limits(money=9000))
    assert sum(one.money for one in verdicts) <= 9000
    assert any("limit" in one.error for one in verdicts), "for the later ones nothing is left"


async def test_a_provider_that_does_not_answer_ends_it_all() -> None:
    with pytest.raises(ProviderFault):
        await judged(fault("wrong_key"))


def test_a_task_that_is_not_there_is_named() -> None:
    assert [one.name for one in select_tasks(["edit"])] == ["edit"]
    assert select_tasks([]) == TASKS
    with pytest.raises(WorldFault, match="There is no task 'eddit'"):
        select_tasks(["eddit"])
