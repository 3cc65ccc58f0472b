"""What a person ordered about an organisation, as data."""

from __future__ import annotations

from pathlib import Path
from typing import TypeAlias

from greenroom.core.base.records import record


@record
class TeamNew:
    """Write a charter. Nobody named means whoever is logged in; an empty language is that of the settings."""

    name: str
    people: tuple[str, ...]
    language: str
    model: str


@record
class TeamStart:
    """Let an organisation work; an empty name is the only one that there is here."""

    name: str
    cost: str | None
    tokens: str | None
    time: str | None
    record: Path | None
    replay: Path | None


@record
class TeamStatus:
    """How it stands, or all its states of one `kind`."""

    name: str
    kind: str


@record
class TeamList:
    """All of them."""


@record
class TeamStop:
    """Let nothing new begin in it, wherever it runs."""

    name: str


@record
class TeamDismiss:
    """Let an agent or a person go."""

    agent: str
    name: str


@record
class Talk:
    """Talk to it, as one of its people. What is to be `said` is sent, and then that is all; with `wait` also what
    comes of it is told. `inbox`: only look at what waits."""

    name: str
    person: str
    say: str
    to: str
    wait: bool
    inbox: bool
    record: Path | None
    replay: Path | None


Organising: TypeAlias = TeamNew | TeamStart | TeamStatus | TeamList | TeamStop | TeamDismiss | Talk
