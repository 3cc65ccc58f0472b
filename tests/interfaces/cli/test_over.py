"""What a person is asked and told before work becomes a commit of theirs; at a real terminal it is in tests/e2e."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import cast

import pytest

from greenroom.core.base.errors import Refused
from greenroom.interfaces.cli.runs import over
from greenroom.interfaces.cli.runs.session import Door

CHANGED = ("scripts/lint.sh",)


class Told:
    """What is noted for a person."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str, style: str = "") -> None:
        self.notes.append(text)


def door(told: Told) -> Door:
    return cast("Door", SimpleNamespace(progress=told, setup=SimpleNamespace(home=None)))


@contextmanager
def typed(monkeypatch: pytest.MonkeyPatch, line: str) -> Iterator[None]:
    """Somebody is there, types this and goes."""
    reads, writes = os.pipe()
    os.write(writes, line.encode())
    os.close(writes)
    monkeypatch.setattr(over, "somebody", lambda _: True)
    with os.fdopen(reads) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        yield


@pytest.mark.parametrize(
    ("line", "runs"), [("y\n", True), ("YES\n", True), ("n\n", False), ("\n", None), ("what?\n", None), ("", None)]
)
def test_hooks_that_the_work_changes_run_after_a_yes_only(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], line: str, runs: bool | None
) -> None:
    told = Told()
    with typed(monkeypatch, line):
        if runs is None:
            with pytest.raises(Refused, match="Nothing was changed"):
                over.with_hooks(door(told), "r1", CHANGED, None)
        else:
            assert over.with_hooks(door(told), "r1", CHANGED, None) is runs
    assert told.notes == ["The work changes what your hooks run: scripts/lint.sh. They run as you, behind no walls."]
    assert "[y] run the hooks  [n] commit without any hook  [Enter] change nothing" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("changed", "said", "runs"), [((), None, True), (CHANGED, True, True), (CHANGED, False, False)]
)
def test_nobody_is_asked_about_hooks_where_nothing_is_open(
    changed: tuple[str, ...], said: bool | None, runs: bool
) -> None:
    assert over.with_hooks(door(Told()), "r1", changed, said) is runs


def test_where_nobody_can_be_asked_hooks_that_the_work_changes_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(over, "somebody", lambda _: False)
    with pytest.raises(Refused, match=r"changes what your hooks run: scripts/lint\.sh") as caught:
        over.with_hooks(door(Told()), "r1", CHANGED, None)
    assert caught.value.rejected.code == "hooks_changed"
