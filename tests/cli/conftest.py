"""The cli in this process: quick, and with a home of one's own."""

import logging
import os
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from greenroom.app.runtime import Runtime, Told
from greenroom.cli.app import run
from greenroom.testing.demo import AGENTS, ASKING_KIT, PERSON, TASK, demo_kits
from tests.e2e.terminal import NOBODY, SECRET, SERVERS, Ended

Type = Callable[..., Ended]


@pytest.fixture(autouse=True)
def _surroundings(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No pace, no terminal; and the logger as it was, because a command takes it over."""
    monkeypatch.setenv("GREENROOM_DEMO_PACE", "0")
    monkeypatch.setenv("COLUMNS", "120")
    for name in ("CI", "NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    logger = logging.getLogger("greenroom")
    kept = (logger.handlers, logger.level, logger.propagate)
    yield
    logger.handlers, logger.level, logger.propagate = kept


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home, and nobody's keys or settings."""
    monkeypatch.setenv("GREENROOM_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for name in [one for one in os.environ if one.endswith(SECRET)]:
        monkeypatch.delenv(name)
    for name in SERVERS:
        monkeypatch.setenv(name, NOBODY)
    return tmp_path / "home"


@pytest.fixture
def greenroom(home: Path, capsys: pytest.CaptureFixture[str]) -> Type:
    """Type a command."""

    def type_(*words: str) -> Ended:
        capsys.readouterr()
        code = run(words)
        told = capsys.readouterr()
        return Ended(code, told.out, told.err)

    return type_


@pytest_asyncio.fixture
async def story(tmp_path: Path) -> AsyncIterator[list[Told]]:
    """Every event of a demo in which a person was asked."""
    runtime = await Runtime.open(tmp_path / "story", kits=demo_kits(tmp_path / "story"))
    team = await runtime.create("demo", (*AGENTS, PERSON), kit=ASKING_KIT)
    await runtime.ask(team, TASK)
    await runtime.start(team)
    for task in tuple((await runtime.world(team)).tasks):
        await runtime.wait(team, task)
    told = [one async for one in runtime.events(team)]
    await runtime.close()
    yield told
