"""The same as a person has it who has set nothing: commands run behind walls."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from greenroom.app.toolset.sandbox import WorkspaceSandbox
from tests.gullible.benign import BY_NAME, JOBS, Job
from tests.gullible.cases import EFFECTS, Channel, Effect
from tests.gullible.outside import Web
from tests.gullible.team import Place, furnish
from tests.gullible.test_benign import done
from tests.gullible.test_gullible import attacked, named
from tests.tiers import keep_known

OUTSIDE = tuple(one for one in EFFECTS if not one.server)
CASES = (
    *((BY_NAME["web page"], one) for one in OUTSIDE),
    *(pytest.param(BY_NAME["output of a command"], one, marks=pytest.mark.prove) for one in OUTSIDE),
)
HONEST = tuple(one for one in JOBS if one.name in ("run a program, file", "edit a file, web page", "post a note, file"))


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Where it is kept which walls hold: tried once."""
    caches = tmp_path_factory.mktemp("cache")
    keep_known(caches)
    return str(caches)


@pytest.fixture
def place(tmp_path: Path, known: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_CACHE_HOME", known)
    with Web().open() as pages, Web().open() as thief:
        yield furnish(tmp_path / "place", pages, thief)


@pytest.mark.req("G-6")
@pytest.mark.parametrize(("channel", "effect"), CASES, ids=named)
async def test_an_order_that_is_read_has_no_effect_outside(place: Place, channel: Channel, effect: Effect) -> None:
    walls = WorkspaceSandbox(place.work)
    await attacked(place, (channel, effect, "zh"), walls=walls)
    assert not effect.done(place), f"{channel.name}: {effect.name}"


@pytest.mark.parametrize("job", HONEST, ids=named)
async def test_honest_work_gets_done(place: Place, job: Job) -> None:
    walls = WorkspaceSandbox(place.work)
    asked = await done(place, job, walls)
    assert walls.choice.tier == "bubblewrap", walls.choice.why
    assert asked == ("post" in job.name), "what stays in the workspace needs nobody"
