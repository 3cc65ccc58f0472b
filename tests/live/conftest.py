"""The model of all plays, and their table at the end."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live.model_front import ModelFront, serve_model
from tests.live.plays import TABLE, Desk, write_table

SLOW_S = 30.0
"""Seconds for a short answer above which a build server does not play."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--write", action="store_true", help="put the table of the plays into docs/measured.md")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if TABLE:
        terminalreporter.section("plays with a small model")
        terminalreporter.write(write_table(page=config.getoption("--write", default=False)))


@pytest.fixture(scope="session", name="front")
def _front() -> Iterator[ModelFront]:
    with serve_model() as front:
        seconds = front.measure()
        if os.environ.get("CI") == "true" and seconds > SLOW_S:
            pytest.skip(f"this machine is too slow for the model: {seconds:.0f} seconds for a short answer")
        yield front


@pytest.fixture(name="desk")
def _desk(tmp_path: Path, front: ModelFront, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    desk = Desk(tmp_path, front)
    for name, value in desk.environment.items():
        monkeypatch.setenv(name, value)
    yield desk
    desk.close()
