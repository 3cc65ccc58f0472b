"""What the HTTP API sends and takes. Times are milliseconds since 1970, money is dollars, ids are text."""

from __future__ import annotations

from typing import Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict

T = TypeVar("T")

RunState = Literal[
    "working", "waiting", "paused", "limit", "provider", "idle", "stopped", "finished", "failed", "cancelled", "damaged"
]
VerdictState = Literal["verified", "failed", "unverified"]


class Fields(BaseModel):
    """The base of what is sent."""

    model_config = ConfigDict(frozen=True)


class Page(Fields, Generic[T]):
    """One page of a list. `next` is the cursor of the following page, None at the end."""

    items: list[T]
    next: str | None = None
    total: int | None = None


class Problem(Fields):
    """Why a request was refused: what, why, what to do."""

    code: str
    message: str
    hint: str = ""


class Run(Fields):
    """A run, as a list shows it."""

    id: str
    title: str
    kind: str
    folder: str
    state: RunState
    reason: str = ""
    verdict: VerdictState | None = None
    waits_for_me: int = 0
    subtasks: int = 0
    subtasks_done: int = 0
    agents: int = 0
    cost: float | None = None
    cost_limit: float | None = None
    tokens: int = 0
    created_at: int
    ended_at: int | None = None
    working_ms: int = 0
    owner: str | None = None
    is_hosted: bool = False
    version: int


class Session(Fields):
    """Who looks, and what this server works on."""

    folder: str
    home: str
    language: Literal["en", "zh"]
    person: str
    version: str
    model: str
    model_hint: str = ""
    sandbox: str
