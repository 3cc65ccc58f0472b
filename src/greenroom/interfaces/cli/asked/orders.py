"""What a person ordered, as data: how it was typed is known to `syntax`, how it is done to `commands`."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, TypeAlias

from greenroom.core.base.records import record
from greenroom.interfaces.cli.asked.allowing import Allowing
from greenroom.interfaces.cli.asked.organising import Organising
from greenroom.interfaces.cli.asked.taking import Apply, Branch, Taking

Scope = Literal["once", "run", "always"]
By = Literal["run", "agent", "model"]


@record
class Tape:
    """Where to write down what models say, or where to read it from instead of asking them."""

    record: Path | None = None
    replay: Path | None = None


@record
class Caps:
    """What a run may spend, as it was typed; None is not said."""

    cost: str | None = None
    tokens: str | None = None
    time: str | None = None


@record
class Demo:
    """The story, in this folder; None is a new one."""

    folder: Path | None


@record
class DemoTeam:
    """Agents who talk and work; with `ask` they ask a person before they publish."""

    ask: bool
    tape: Tape


@record
class Ask:
    """A question, to a model by its name, role or group; an empty one is the normal one. `context` was piped in."""

    question: str
    context: str
    model: str
    caps: Caps
    tape: Tape


@record
class Run:
    """Something to do, for an agent by its name; an empty one is the coder. `tools`: it may use its own; `alone`:
    nobody is there to be asked; `yes`: its plan needs no yes; `in_place`: it works in the files themselves. `take` is
    how the outcome is taken over at once, if it is verified; its `name` is empty, because there is no such job yet.
    `wants_answer`: nothing has to be changed; `tests_may_change`: that is what it is to do; `allow_unverified`: go on
    where nothing can verify the change."""

    question: str
    context: str
    agent: str
    model: str
    tools: bool
    alone: bool
    yes: bool
    in_place: bool
    take: Apply | Branch | None
    caps: Caps
    tape: Tape
    wants_answer: bool = False
    tests_may_change: bool = False
    allow_unverified: bool = False


@record
class Chat:
    """A new chat, or one that is taken up again (`resume`). `first` is what it begins with, if anything was said."""

    first: str
    context: str
    agent: str
    model: str
    resume: str
    caps: Caps
    tape: Tape


@record
class Init:
    """What to set up, as far as it was said. `key` came on stdin; `user` is for all projects; `yes` asks nothing."""

    provider: str
    model: str
    key: str
    user: bool
    yes: bool


@record
class ModelsList:
    """Those of one provider, or (empty) of all at hand."""

    provider: str


@record
class ModelsCheck:
    """The model to be tried; empty is the normal one."""

    model: str


@record
class EvalLive:
    """Tasks for a model; `only` are their names, none for all."""

    model: str
    only: tuple[str, ...]
    caps: Caps
    tape: Tape


@record
class ConfigShow:
    """Every value."""


@record
class ConfigPath:
    """Every file."""


@record
class AgentsList:
    """All that can be used here."""


@record
class AgentsShow:
    """One of them."""

    name: str


@record
class AgentsNew:
    """What the new one is to be; `user` is for all projects."""

    name: str
    description: str
    model: str
    tools: str
    user: bool


@record
class PromptShow:
    """Whose request, when it is told what."""

    name: str
    message: str


@record
class Cost:
    """Of one team, or (empty) of all."""

    name: str
    by: By


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
    """A team or a task of it; `caps` are new limits for the team. `alone`: nobody is there to be asked; `yes`: its plan
    needs nobody's yes; `take`: how a job is taken over when it has ended well."""

    name: str
    alone: bool
    caps: Caps
    tape: Tape
    yes: bool = False
    take: Apply | Branch | None = None


@record
class Tell:
    """What the manager of a task is to read."""

    name: str
    text: str


@record
class Cancel:
    """A team or a task of it."""

    name: str


@record
class ApprovalsList:
    """All questions that wait, of all teams."""


@record
class Answer:
    """A yes, a no, or what a question in words wants to know. `approval` is the beginning of the id of the one that is
    meant, when several wait; `scope` is how far a yes goes."""

    name: str
    said: str
    approval: str | None
    reason: str
    scope: Scope


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


Order: TypeAlias = (
    Demo
    | DemoTeam
    | Ask
    | Run
    | Chat
    | Init
    | ModelsList
    | ModelsCheck
    | EvalLive
    | ConfigShow
    | ConfigPath
    | AgentsList
    | AgentsShow
    | AgentsNew
    | PromptShow
    | Allowing
    | Tasks
    | Show
    | Events
    | Replay
    | Cost
    | Pause
    | Resume
    | Tell
    | Cancel
    | ApprovalsList
    | Answer
    | Fork
    | Taking
    | Organising
    | Du
    | Gc
    | Forget
)
