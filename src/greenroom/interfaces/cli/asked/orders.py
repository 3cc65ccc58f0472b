"""What a person ordered, as data: how it was typed is known to `syntax`, how it is done to `commands`."""

from __future__ import annotations

from typing import Literal, TypeAlias

from greenroom.core.base.records import record

YesNo = Literal["yes", "no"]


@record
class Demo:
    """`team` is for the processes that the demo starts itself."""

    crash: bool
    ask: bool
    team: str | None


@record
class Tasks:
    """`every`: not only the newest teams."""

    every: bool


@record
class Show:
    """A team or a task of it."""

    name: str


@record
class Events:
    """What came after a version."""

    name: str
    follow: bool
    after: int


@record
class Replay:
    """The story, or one version of it."""

    name: str
    at: int | None


@record
class Pause:
    """`now`: interrupt what runs."""

    name: str
    now: bool


@record
class Resume:
    """A team or a task of it."""

    name: str


@record
class Cancel:
    """A team or a task of it."""

    name: str


@record
class Answer:
    """`approval` is the beginning of a question's id, when several wait."""

    name: str
    word: YesNo
    approval: str | None
    reason: str


@record
class Fork:
    """Begin as it was at version `at`; None is now."""

    name: str
    at: int | None


@record
class Du:
    """How much room."""


@record
class Gc:
    """Give room back."""


@record
class Forget:
    """`yes`: do not ask."""

    name: str
    yes: bool


Order: TypeAlias = Demo | Tasks | Show | Events | Replay | Pause | Resume | Cancel | Answer | Fork | Du | Gc | Forget
