"""What the HTTP API takes. An unknown field is refused."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator
from pydantic_core import PydanticCustomError

REQUEST: Final = "add a JSON export, with tests"
PLAN: Final = f"""request = "{REQUEST}"

[[subtasks]]
id = "export"
agent = "code-writer"
writes = ["export.py"]
"""


def _refuse_nul(value: object) -> object:
    """Return a value that git and other programs can be given."""
    if isinstance(value, str) and "\0" in value:
        raise PydanticCustomError("nul", "it has a NUL character")
    return value


Words = Annotated[str, Field(pattern=r"\S")]
Dollars = Annotated[float | None, Field(ge=0.0001, le=10_000)]
Seconds = Annotated[float | None, Field(ge=1, le=1_000_000)]
Tokens = Annotated[int | None, Field(ge=1, le=1_000_000_000_000)]


class Input(BaseModel):
    """The base of what is taken. An unknown field is refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)
    _without_nul = field_validator("*")(_refuse_nul)


class RunInput(
    Input, json_schema_extra={"examples": [{"request": REQUEST}, {"request": REQUEST, "plan": PLAN, "cost_limit": 2.0}]}
):
    """A new run. With `plan`, the text of a confirmed plan, a team does it; else one agent.

    With `confirm_checks`, the `checks_digest` of a proposal, the person approves the checks that it showed. `proposal`
    is its id: what planning took counts under the limits of the run.
    """

    request: Words = Field(max_length=20_000)
    plan: str = Field("", max_length=200_000)
    agent: str = Field("", max_length=200)
    model: str = Field("", max_length=200)
    question: bool = False
    tests_may_change: bool = False
    allow_unverified: bool = False
    confirm_checks: str = Field("", max_length=64)
    proposal: str = Field("", max_length=64)
    cost_limit: Dollars = None
    time_limit_s: Seconds = None


class PlanInput(Input, json_schema_extra={"examples": [{"request": REQUEST}, {"text": PLAN}]}):
    """A request to plan, or the edited text of a plan to check. `proposal` is the id of the one that it replaces."""

    request: str = Field("", max_length=20_000)
    text: str = Field("", max_length=200_000)
    model: str = Field("", max_length=200)
    proposal: str = Field("", max_length=64)
    cost_limit: Dollars = None


class VerbInput(
    Input,
    json_schema_extra={
        "examples": [{}, {"message": "Add a JSON export"}, {"version": 12}, {"branch": "export"}, {"cost_limit": 3.0}]
    },
):
    """What some verbs need: the version of a fork, the branch, the message of the commit, or a text.

    With `now`, a pause interrupts steps. With `force`, work that is not applied is discarded, or an undo makes a new
    commit. The limits are those of a run that resumes.
    """

    version: int | None = Field(None, ge=1)
    branch: str = Field("", max_length=200)
    message: str = Field("", max_length=4_000)
    now: bool = False
    confirm_governing: bool = False
    force: bool = False
    cost_limit: Dollars = None
    time_limit_s: Seconds = None
    token_limit: Tokens = None


class MessageInput(Input, json_schema_extra={"examples": [{"text": "Keep the old format too.", "to": "coder"}]}):
    """A message of the person to an agent, or to all that work on the run. `answers` names the message it replies to.

    `sender` is one of an organisation's people, if there are several.
    """

    text: Words = Field(max_length=100_000)
    to: str = Field("", max_length=200)
    answers: str = Field("", max_length=200)
    sender: str = Field("", max_length=200)


class AnswerInput(
    Input,
    json_schema_extra={
        "examples": [
            {"decision": "approved", "scope": "once"},
            {"decision": "denied", "text": "Leave it."},
            {"text": "left"},
        ]
    },
):
    """An answer. A question, a plan and a conflict take `text`; a permission takes `decision` and its `scope`."""

    decision: Literal["approved", "denied"] = "approved"
    scope: Literal["once", "run", "always"] = "once"
    rule: str = Field("", max_length=2_000)
    text: str = Field("", max_length=100_000)
