"""Honest work goes on behind walls, in the sandbox as it is by default."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from greenroom.core.ports.commands import CommandRunner
from greenroom.core.ports.sandbox import CommandLimits
from tests.conformance.running import Ran, ran, shell
from tests.sandbox.jobs import JOBS, PYTHON, Job
from tests.sandbox.props import PROPS
from tests.sandbox.stage import Stage, staged
from tests.sandbox.tiers import open_walled


@pytest.fixture
def stage() -> Iterator[Stage]:
    with staged(PROPS) as found:
        yield found


def _own(stage: Stage) -> dict[str, str]:
    return {**stage.own, "PATH": f"{PYTHON}:{stage.own['PATH']}"}


async def _done(commands: CommandRunner, script: str) -> Ran:
    try:
        return await ran(commands, shell(f"set -e\n{script}", seconds=100))
    finally:
        commands.close()


def _marked(job: Job) -> object:
    return pytest.param(job, id=job.name, marks=() if job.quick else (pytest.mark.prove,))


@pytest.mark.parametrize("job", [_marked(job) for job in JOBS])
async def test_honest_work_goes_on(job: Job, stage: Stage) -> None:
    missing = [name for name in job.uses if shutil.which(name) is None]
    if missing:
        pytest.skip(f"{', '.join(missing)} is not on this machine")
    job.ready(stage)
    made = await _done(open_walled(stage.work, _own(stage), CommandLimits()), job.script)
    assert job.expected in made.text
    assert (made.ended.how, made.ended.code) == ("exited", 0), made.text


def test_there_are_at_least_twelve_jobs() -> None:
    assert len(JOBS) >= 12
    assert sum(job.quick for job in JOBS) >= 3
