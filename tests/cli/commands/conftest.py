from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from greenroom.app.model_registry import ModelSession
from greenroom.testing.scripted import Cue, ScriptedModel
from tests.cli.commands.shop import FakeSession, build_shop
from tests.e2e.jobs import PERSON
from tests.tiers import keep_known

Script = Callable[[Iterable[Cue]], ScriptedModel]


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: Path) -> Path:
    """Return the current folder: a repository with one test."""
    monkeypatch.setenv("HOME", str(tmp_path / "person"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("GREENROOM_SANDBOX", "auto")
    keep_known(tmp_path / "cache")
    for name, value in PERSON.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    folder = build_shop(tmp_path / "shop")
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Script:
    """Let a scripted model reply in place of every model."""

    def use(cues: Iterable[Cue]) -> ScriptedModel:
        session = FakeSession(cues)
        monkeypatch.setattr(ModelSession, "get_model", lambda _, name: session.get_model(name))
        monkeypatch.setattr(ModelSession, "resolve_alias", lambda _, name: session.resolve_alias(name))
        return session.model

    return use
