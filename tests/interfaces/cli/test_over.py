"""What a person is asked and told before work becomes a commit of theirs; at a real terminal it is in tests/e2e."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

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


@pytest.mark.parametrize(
    ("changed", "said", "runs"), [((), None, True), (CHANGED, True, True), (CHANGED, False, False)]
)
def test_nobody_is_asked_about_hooks_where_nothing_is_open(
    changed: tuple[str, ...], said: bool | None, runs: bool
) -> None:
    assert over.with_hooks(door(Told()), changed, said) is runs


def test_a_change_that_sets_up_hooks_is_committed_without_any_and_that_is_said() -> None:
    told = Told()
    assert over.with_hooks(door(told), CHANGED, None) is False
    assert told.notes == [
        "The change sets up hooks (scripts/lint.sh), so it is committed without running any. --hooks runs them."
    ]
