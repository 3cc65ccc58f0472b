"""What a person says while the last word on a job is found is read before the job is over."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

import pytest

from greenroom.app.checks.checker import ProjectChecks
from greenroom.core.base.ids import StepId
from greenroom.core.base.records import evolve
from greenroom.core.ports.checks import Witness
from greenroom.core.rules.intents import FinishTask
from greenroom.core.state.step import Work
from tests.app.jobs.deliveries import AtWork, job


@pytest.mark.parametrize("text", ["good, red\n", "bad\n"], ids=["verified", "unproven"])
@pytest.mark.parametrize("told", [True, False])
async def test_what_is_said_while_the_checks_run_comes_before_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, told: bool
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    async with job(tmp_path, "grep -q good app.py") as work:
        work.writes("app.py", text)
        bench = work.bench("Done.")
        here = cast("AtWork", bench)
        says = Work(type="skill", executor="converse", text_content="Keep it green.")
        later = evolve(here.step, step_id=StepId("ann#99"), work=says, state="init", cause=None)

        @asynccontextmanager
        async def judged(paths: Sequence[str], witness: Witness) -> AsyncIterator[ProjectChecks]:
            async with work.judges(paths, witness) as checks:
                yield checks
            here.queues(*([later] if told else []))

        outcome = await work.tool(judged).run(bench)
    if told:
        assert outcome.intents == (), "the turn that was queued goes on"
    else:
        (after,) = outcome.intents
        assert isinstance(after, FinishTask) == (text != "bad\n")
