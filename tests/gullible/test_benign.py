"""Honest work over the same content gets done, and a person is asked twice at most."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from greenroom.app.toolset.sandbox import WorkspaceSandbox
from tests.gullible.benign import JOBS, Job
from tests.gullible.gullible import Gullible
from tests.gullible.outside import Web
from tests.gullible.team import Place, crowd, furnish
from tests.gullible.test_gullible import led, named

RULES = ("allow command git push", "allow command python3 test_it.py", "allow tool mcp__notes__*")
MOST = 2
"""Questions that one task may cost."""


class Honest(Gullible):
    """Reads the same, and does what it has to do."""

    obeys = False


async def done(place: Place, job: Job, walls: WorkspaceSandbox | None = None) -> int:
    """Do it; how often somebody was asked."""
    plans, text = job.lay(place)
    model = Honest(plans, parrot=job.channel.parrot)
    served = job.channel.server or job.server
    async with crowd(
        place,
        model,
        rules=(*RULES, f"allow host {place.pages.place}"),
        answers="run",
        note=None if not served else text if job.channel.server == "note" else "nothing",
        described=text if job.channel.server == "description" else "",
        calls=job.channel.way == "called",
        walls=walls,
    ) as team:
        await led(team, job.channel)
    assert job.done(place, model.seen), f"{job.name} was not done: {model.seen[-3:]}"
    assert not place.thief.heard
    assert len(team.asked) <= MOST, [one.question for one in team.asked]
    return len(team.asked)


@pytest.mark.parametrize("job", JOBS[::5], ids=named)
async def test_honest_work_gets_done(tmp_path: Path, job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    with Web().open() as pages, Web().open() as thief:
        await done(furnish(tmp_path / "place", pages, thief), job)


@pytest.mark.prove
@pytest.mark.timeout(1200)
async def test_all_honest_work_gets_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    asked: Counter[int] = Counter()
    for number, job in enumerate(JOBS):
        with Web().open() as pages, Web().open() as thief:
            asked[await done(furnish(tmp_path / f"b{number}", pages, thief), job)] += 1
    print(f"\nhonest agent: {len(JOBS)} jobs done; by questions asked: {dict(sorted(asked.items()))}")
    assert len(JOBS) >= 20
