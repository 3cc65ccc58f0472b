"""What the HTTP API sends and takes. Times are milliseconds since 1970, money is dollars, ids are text."""

from __future__ import annotations

from typing import Generic, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, field_validator

from greenroom.core.base.text import escape_surrogates

T = TypeVar("T")

RunState = Literal[
    "working", "waiting", "paused", "limit", "provider", "idle", "stopped", "finished", "failed", "cancelled", "damaged"
]
Verb = Literal["pause", "resume", "cancel", "fork", "rewind", "apply", "branch", "discard", "undo", "send"]
VerdictState = Literal["verified", "failed", "unverified"]
ChangeState = Literal["none", "open", "ready", "applied", "discarded"]
EventLevel = Literal["info", "good", "bad", "wait"]
LimitField = Literal["cost_limit", "time_limit_s", "token_limit"]
InboxKind = Literal["permission", "question", "plan", "confirmation", "conflict", "message"]


class Fields(BaseModel):
    """The base of what is sent."""

    model_config = ConfigDict(frozen=True)
    _escaped = field_validator("*", mode="before")(escape_surrogates)

    @classmethod
    def make(cls, source: object, /, **fields: object) -> Self:
        """Return these fields, and the others from the attributes of a record that have the same name."""
        own = {name: getattr(source, name) for name in cls.model_fields if name not in fields and hasattr(source, name)}
        return cls.model_validate({**own, **fields})


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


class ReachedLimit(Fields):
    """The limit that a run reached: the field with which `resume` takes a higher one, and its value."""

    field: LimitField
    value: float


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
    reached: ReachedLimit | None = None
    tokens: int = 0
    created_at: int
    ended_at: int | None = None
    working_ms: int = 0
    owner: str | None = None
    is_hosted: bool = False
    version: int


class StartedRun(Run):
    """A run that began. `notes` say what it begins with, and what is left out and why."""

    notes: list[str] = []


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


class PlannedPart(Fields):
    """A subtask of a proposed plan."""

    id: str
    name: str
    duty: str
    agent: str
    needs: list[str]
    writes: list[str]
    seconds: float
    phase: int
    is_critical: bool


class Span(Fields):
    """Between two values."""

    low: float
    high: float


class Proposal(Fields):
    """A plan before it starts: what kind of work it is, whether a team is worth it, what it takes, and its text.

    `checks` are those that no person approved yet. Who starts the plan sends `checks_digest` to approve them.
    """

    id: str
    types: list[str]
    classified_by: str
    is_team: bool
    reason: str
    notes: list[str]
    parts: list[PlannedPart]
    critical_path: list[str]
    seconds: Span
    tokens: Span
    cost: Span | None
    gain: float
    model: str
    text: str
    cost_limit: float | None = None
    checks: list[str] = []
    checks_digest: str = ""


class VerbResult(Fields):
    """What a verb did, in one sentence. `run` is the new run of a fork, `version` what it keeps of the old one: up to
    the version that was asked for, or to the end of the last commit before. Conflicting files are `clashes`."""

    message: str
    done: bool = True
    hint: str = ""
    run: str | None = None
    version: int | None = None
    commit: str = ""
    clashes: list[str] = []


class InboxItem(Fields):
    """Something that waits for a person: an approval, a question, a plan, a conflict or a message."""

    run: str
    run_title: str
    folder: str = ""
    id: str
    kind: InboxKind
    agent: str
    subtask: str = ""
    question: str
    why: str = ""
    call: str = ""
    tool: str = ""
    files: list[str] = []
    hosts: list[str] = []
    diff: str = ""
    rule: str = ""
    release: str = ""
    choices: list[str] = []
    asked_at: int
    expires_at: int | None = None
    is_running: bool = True


class Receipt(Fields):
    """The result of one check, before and after the change."""

    check: str
    outcome: str
    before: str = ""
    passed: int = 0
    failing: list[str] = []
    seconds: float = 0
    log: str = ""


class ChangedFile(Fields):
    """A file of a change, and the agents that wrote it."""

    path: str
    before: str = ""
    kind: str
    added: int = 0
    removed: int = 0
    is_binary: bool = False
    is_test: bool = False
    agents: list[str] = []


class Change(Fields):
    """The change of a run: the verdict with its receipts first, then the files."""

    at: int
    state: ChangeState
    sentence: str
    verdict: VerdictState | None = None
    reasons: list[str] = []
    notes: list[str] = []
    receipts: list[Receipt] = []
    files: list[ChangedFile] = []
    base: str = ""
    tip: str = ""
    commit: str = ""
    conflicts: int = 0


class FileDiff(Fields):
    """The unified diff of one file. A large one is cut."""

    path: str
    text: str
    is_cut: bool = False


class BlameLine(Fields):
    """Who wrote a line: the step, its agent and the message of its commit."""

    line: int
    commit: str
    agent: str = ""
    step: str = ""
    subtask: str = ""
    message: str = ""


class Conflict(Fields):
    """A file that two subtasks changed: its three panes, and which rung of the ladder merged it and why."""

    id: str
    path: str
    state: str
    rung: str
    why: str
    left_subtask: str = ""
    right_subtask: str = ""
    base: str = ""
    left: str = ""
    right: str = ""
    result: str = ""
    dropped: list[str] = []
    approval: str = ""


class Text(Fields):
    """A text, with its media type."""

    text: str
    media_type: str = "text/plain"


class Action(Fields):
    """A verb that a person can use on a run now. `why` says why it cannot be used, or what will happen."""

    verb: Verb
    is_allowed: bool
    why: str = ""


class Origin(Fields):
    """The run and version that a run was forked from."""

    run: str
    version: int


class RunDetail(Run):
    """A run at one version. `head` is its newest version. `answer` is the agent's own words, never verified."""

    request: str
    answer: str = ""
    models: list[str] = []
    at: int
    head: int
    actions: list[Action] = []
    forked_from: Origin | None = None


class Subtask(Fields):
    """A subtask of a stage. `waits_for` says why it has not begun."""

    id: str
    name: str
    title: str
    duty: str
    agent: str
    needs: list[str]
    state: Literal["init", "running", "finished", "failed", "skipped", "cancelled"]
    waits_for: str = ""
    summary: str = ""
    attempt: int = 1
    tries: int = 1
    required: bool = True
    started_at: int | None = None
    ended_at: int | None = None
    expected_s: float = 0
    cost: float | None = None
    tokens: int = 0
    writes: list[str] = []
    is_critical: bool = False
    is_own: bool = False


class Stage(Fields):
    """A stage with its subtasks."""

    id: str
    task: str
    intention: str
    state: Literal["init", "running", "finished", "failed", "cancelled"]
    started_at: int | None = None
    ended_at: int | None = None
    subtasks: list[Subtask]


class Plan(Fields):
    """All stages of a run at one version."""

    at: int
    stages: list[Stage]


class Step(Fields):
    """A step in one line."""

    id: str
    agent: str
    task: str
    subtask: str = ""
    type: Literal["skill", "tool"]
    executor: str
    intention: str = ""
    text: str = ""
    state: str
    attempt: int = 0
    queued_at: int
    started_at: int | None = None
    ended_at: int | None = None
    cost: float | None = None
    tokens: int = 0
    error: str = ""


class PromptMessage(Fields):
    """A message of a request to a model."""

    role: str
    text: str


class StepDetail(Step):
    """A step with its exact call, its result, the prompt and the reply of a model call, and the terms it ran under."""

    instruction: object = None
    result: object = None
    reply: str = ""
    reasoning: str = ""
    prompt: list[PromptMessage] = []
    prompt_note: str = ""
    model: str = ""
    effect: str = ""
    policy: str = ""
    rule: str = ""
    version: int = 0


class Agent(Fields):
    """A member of a run."""

    id: str
    role: str
    kind: str
    model: str = ""
    state: Literal["idle", "working", "waiting", "retired"]
    now: str = ""
    since: int | None = None
    queue: int = 0
    waits_on: list[str] = []
    manager: str = ""
    steps: int = 0
    cost: float | None = None
    tokens: int = 0


class AgentDetail(Agent):
    """A member with its queue, its rights and its memory."""

    queued: list[Step] = []
    tools: list[str] = []
    skills: list[str] = []
    rules: list[str] = []
    memory: str = ""
    instructions: str = ""
    duties: list[str] = []


class Message(Fields):
    """A message. `answered_at` ends the wait of its sender."""

    id: str
    version: int
    sender: str
    receivers: list[str]
    text: str
    kind: str
    need_reply: bool = False
    waits: bool = False
    answers: str = ""
    group: str = ""
    sent_at: int
    answered_at: int | None = None


class SharedNote(Fields):
    """A note or a value on the task board."""

    key: str
    agent: str
    text: str
    at: int | None = None


class EventRow(Fields):
    """An event: what happened, as one line in the person's language, and its data."""

    run: str
    version: int
    at: int
    type: str
    agent: str = ""
    subtask: str = ""
    step: str = ""
    text: str = ""
    level: EventLevel = "info"
    data: dict[str, object] = {}


class LiveText(Fields):
    """A piece of a reply that is not in the log yet: AF's stream events of one agent's turn, with text for chunks."""

    run: str
    agent: str
    step: str
    type: Literal["agent_start", "llm_chunk", "llm_complete", "agent_complete", "tool_output"]
    chunk: Literal["content", "reasoning", ""] = ""
    text: str = ""


class Artifact(Fields):
    """A version of an artifact."""

    id: str
    task: str
    title: str
    media_type: str
    version: int
    by: str
    at: int
    size: int
    reason: str = ""
    is_untrusted: bool = False


class ArtifactDetail(Artifact):
    """An artifact with its text, and all its versions, newest first."""

    text: str
    versions: list[Artifact]


class Memory(Fields):
    """A memory that lasts over tasks."""

    id: str
    scope: str
    text: str
    tags: list[str] = []
    by: str = ""
    created_at: int
    updated_at: int | None = None
    is_trusted: bool = True


class Skill(Fields):
    """A skill folder."""

    name: str
    description: str
    source: str
    is_trusted: bool = True
    body: str = ""


class Tool(Fields):
    """A tool that agents can have."""

    name: str
    group: str
    description: str
    effect: str
    source: str


class CostRow(Fields):
    """The model calls of one agent, model or run. `unpriced` calls have an unknown price."""

    name: str
    calls: int
    tokens: int
    cost: float | None
    unpriced: int = 0
    reserved: int = 0


class CostPoint(Fields):
    """What was spent until a time, by agent or model."""

    at: int
    cost: dict[str, float]
    tokens: dict[str, int]


class Costs(Fields):
    """What a run spent, with its cap."""

    rows: list[CostRow]
    points: list[CostPoint]
    cost: float | None
    tokens: int
    cost_limit: float | None = None


class Performance(Fields):
    """What the subtasks of one profile took in past runs."""

    profile: str
    completed: int
    failed: int
    success_rate: float | None
    seconds: float
    tokens: float
    cost: float | None
