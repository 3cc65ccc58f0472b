"""The CLI in this process, with its own home."""

import logging
import os
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from greenroom.app.runtime import LoggedEvent, Runtime
from greenroom.cli.app import run
from greenroom.testing.demo import AGENTS, ASKING_KIT, PERSON, TASK, make_demo_factories
from tests.e2e.terminal import NOBODY, SECRET, SERVERS, Ended

Type = Callable[..., Ended]


@pytest.fixture(autouse=True)
def _surroundings(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Remove pace and terminal, and restore the logger that a command configures."""
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
    """Return an empty home without keys or settings."""
    monkeypatch.setenv("GREENROOM_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for name in [one for one in os.environ if one.endswith(SECRET)]:
        monkeypatch.delenv(name)
    for name in SERVERS:
        monkeypatch.setenv(name, NOBODY)
    return tmp_path / "home"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: Path) -> Path:
    """Return the current folder: a project that brings nothing, of a person without agents."""
    folder = tmp_path / "mine" / "project"
    (folder / ".git").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(folder.parent))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def greenroom(home: Path, capsys: pytest.CaptureFixture[str]) -> Type:
    """Run a command."""

    def type_(*words: str) -> Ended:
        capsys.readouterr()
        code = run(words)
        told = capsys.readouterr()
        return Ended(code, told.out, told.err)

    return type_


@pytest_asyncio.fixture
async def story(tmp_path: Path) -> AsyncIterator[list[LoggedEvent]]:
    """Return every event of a demo in which a person was asked."""
    runtime = await Runtime.open(tmp_path / "story", capability_factories=make_demo_factories(tmp_path / "story"))
    team = await runtime.create("demo", (*AGENTS, PERSON), capabilities_name=ASKING_KIT)
    await runtime.ask(team, TASK)
    await runtime.start(team)
    for task in tuple((await runtime.state(team)).tasks):
        await runtime.wait(team, task)
    told = [one async for one in runtime.events(team)]
    await runtime.close()
    yield told
