"""A random team: its agents call tools with absurd arguments and let others call them, and a person answers at random.

The tools only record that they ran. The log is checked against these records.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from posixpath import normpath
from random import Random
from typing import Any, TypeVar, cast

from greenroom.adapters.storage.memory import MemoryLog
from greenroom.app.runtime import Runtime
from greenroom.app.team_host import TeamHost
from greenroom.app.toolset.pipeline import ToolPipeline
from greenroom.app.toolset.toolbox import Toolbox
from greenroom.app.toolset.toolset import build_toolbox
from greenroom.core.base.ids import AgentId, TaskId
from greenroom.core.base.records import Data
from greenroom.core.ports.executor import Capabilities, Outcome, StepContext
from greenroom.core.ports.log import StoredEvent
from greenroom.core.ports.model import ToolSpec
from greenroom.core.ports.tool import Target, ToolCard, ToolExecutor
from greenroom.core.rules.intents import AddTask, AnswerApproval, Intent, ModifyStep, QueueSteps, SendMessage
from greenroom.core.state.approval import Approval, ApprovalScope
from greenroom.core.state.spec import AgentSpec, ToolGroup
from greenroom.core.state.step import Effect, Step, StepTerms, StepType, Work
from greenroom.core.state.team_state import TeamState
from greenroom.policy.policy import build_rules_policy
from greenroom.policy.rulebook import LAYERS, Layer
from greenroom.policy.rules import BadRule, parse

T = TypeVar("T")
_FILE = json.loads(Path(__file__).with_name("wild.json").read_text(encoding="utf-8"))
RULES: Mapping[str, Sequence[str]] = _FILE.pop("rules")
SAID: Mapping[str, Sequence[str]] = _FILE
"""Paths, command lines, hosts, words and rules for tools and policies."""


class Wild:
    """A generator of all of these, deterministic for a seed."""

    def __init__(self, seed: str) -> None:
        self.random = Random(seed)

    def one_of(self, some: Sequence[T]) -> T:
        """Choose any of them."""
        return self.random.choice(some)

    def chance(self, of: float) -> bool:
        """Return True with this probability."""
        return self.random.random() < of

    def path(self) -> str:
        """Return a path, sometimes joined from two, sometimes in another case."""
        made = self.one_of(SAID["paths"])
        if self.chance(0.2):
            made = self.one_of(("{0}/{1}", "{0}/../{1}", "./{0}", "{0}/", "{0}//{1}")).format(
                made, self.one_of(SAID["paths"])
            )
        return made.swapcase() if self.chance(0.1) else made

    def command(self, depth: int = 0) -> str:
        """Return a command line, wrapped into others."""
        if depth > 3 or self.chance(0.4):
            return self.one_of(SAID["programs"])
        return self.one_of(SAID["around"]).format(self.command(depth + 1), self.command(depth + 1))

    def host(self) -> str:
        """Return something similar to a host."""
        return self.one_of(SAID["hosts"])

    def rule(self) -> str:
        """Return a valid rule."""
        while True:
            kind = self.one_of(tuple(RULES))
            said = f"{self.one_of(SAID['levels'])} {kind} {self.one_of(RULES[kind])}"
            try:
                return str(parse(said))
            except BadRule:
                continue

    def rules(self) -> dict[Layer, list[str]]:
        """Return rules of all layers."""
        return {layer: [self.rule() for _ in range(self.random.randrange(8))] for layer in LAYERS}

    def arguments(self, schema: Data) -> dict[str, object]:
        """Return arguments for a tool: mostly valid, never sensible."""
        made = self._object(schema)
        if self.chance(0.02):
            made[self.one_of(("extra", "file", "script", "../x"))] = self.one_of((1, None, "x", [], {}))
        if made and self.chance(0.02):
            made[self.one_of(tuple(made))] = self.one_of((None, 5, -1, "", [], {"a": 1}, [[]], 1.5))
        return made

    def _object(self, schema: Data) -> dict[str, object]:
        properties = cast("Mapping[str, Data]", schema.get("properties", {}))
        required = cast("Sequence[str]", schema.get("required", ()))
        return {
            name: self._value(name, kind) for name, kind in properties.items() if name in required or self.chance(0.3)
        }

    def _value(self, name: str, schema: Data) -> object:
        if "enum" in schema:
            return self.one_of(cast("Sequence[object]", schema["enum"]))
        makers: Mapping[object, Callable[[], object]] = {
            "object": lambda: self._object(schema),
            "array": lambda: [
                self._value(name, cast("Data", schema["items"])) for _ in range(self.random.choice((1, 1, 2, 5)))
            ],
            "integer": lambda: self.random.choice((1, 2, 50)),
            "boolean": lambda: self.chance(0.5),
            "string": lambda: self._text(name),
        }
        return makers.get(schema.get("type"), lambda: self._text(name))()

    def _text(self, name: str) -> str:
        if name in ("file", "files", "path", "folder", "cwd", "under"):
            return self.path()
        if name in ("script", "command"):
            return self.command()
        return self.host() if name in ("host", "url") else self.one_of(SAID["words"])


Touches = Callable[[Data], tuple[Target, ...]]


@dataclass(frozen=True)
class Entered:
    """A tool that really ran, regardless of the log."""

    step: str
    attempt: int
    agent: AgentId
    tool: str
    arguments: str
    targets: tuple[Target, ...]


class Probe:
    """A tool up to the moment before its effect."""

    type: StepType = "tool"

    def __init__(self, tool: ToolExecutor, entered: list[Entered]) -> None:
        self._tool = tool
        self._entered = entered
        self.name, self.description, self.card = tool.name, tool.description, tool.card

    def targets(self, arguments: Data) -> tuple[Target, ...]:
        """Return the tool's targets."""
        return self._tool.targets(arguments)

    def terms(self, state: TeamState, step: Step) -> StepTerms:
        """Return the tool's terms."""
        return self._tool.terms(state, step)

    async def run(self, context: StepContext) -> Outcome:
        """Record the call."""
        step = context.step
        given = step.work.instruction_content or {}
        told = Entered(
            step=step.step_id,
            attempt=step.attempt,
            agent=step.agent_id,
            tool=self.name,
            arguments=json.dumps(given, sort_keys=True),
            targets=self._tool.targets(given),
        )
        self._entered.append(told)
        return Outcome(result={"output": "done"})


STRING: Data = {"type": "string"}


class Stranger:
    """A third-party tool with arbitrary claims about itself."""

    type: StepType = "tool"
    description: str = "Somebody's."

    def __init__(
        self,
        name: str,
        group: ToolGroup,
        source: str,
        touches: Touches,
        *,
        effect: Effect = "effectful",
        own: StepTerms | None = None,
    ) -> None:
        self.name = name
        names = ("path", "host", "command", "text")
        schema: Data = {"type": "object", "properties": dict.fromkeys(names, STRING), "required": list(names)}
        spec = ToolSpec(name=name, description=self.description, parameters=schema)
        self.card = ToolCard(spec=spec, group=group, effect=effect, source=source)
        self._touches = touches
        self._own = own or StepTerms(effect=effect)

    def targets(self, arguments: Data) -> tuple[Target, ...]:
        """Return the targets that its author claims."""
        return self._touches(arguments)

    def terms(self, _: TeamState, __: Step) -> StepTerms:
        """Return the terms that its author claims."""
        return self._own

    async def run(self, context: StepContext) -> Outcome:
        """Fail: this is never reached."""
        raise NotImplementedError


def _nothing(_: Data) -> tuple[Target, ...]:
    return ()


def _host(given: Data) -> tuple[Target, ...]:
    return (Target(kind="host", value=str(given["host"])),)


def _all(given: Data) -> tuple[Target, ...]:
    return (
        Target(kind="path", value=str(given["path"]), writes=True),
        Target(kind="command", value=str(given["command"])),
        *_host(given),
    )


def _breaks(_: Data) -> tuple[Target, ...]:
    raise RuntimeError("nobody knows what it touches")


def strangers() -> list[Stranger]:
    """Return one tool of each kind."""
    return [
        Stranger("fetch", "web", "built-in", _host),
        Stranger("custom", "read", "file: custom.py", _nothing, effect="pure"),
        Stranger("everything", "command", "file: everything.py", _all),
        Stranger("mcp__notes__read", "mcp", "mcp:notes", _nothing, effect="pure"),
        Stranger("mcp__notes__write", "mcp", "mcp:notes", _nothing),
        Stranger("mcp__web__get", "mcp", "mcp:web", _host),
        Stranger("breaks", "edit", "file: breaks.py", _breaks),
        Stranger(
            "asks", "edit", "file: own.py", _all, own=StepTerms(effect="effectful", verdict="ask", question="May I?")
        ),
        Stranger("notifies", "edit", "file: own.py", _all, own=StepTerms(effect="effectful", verdict="notify")),
        Stranger("denies", "edit", "file: own.py", _all, own=StepTerms(effect="effectful", verdict="deny")),
    ]


def probes(root: Path, entered: list[Entered]) -> Toolbox:
    """Return the toolset of a team."""
    return Toolbox(Probe(tool, entered) for tool in (*build_toolbox(root), *strangers()))


def workspace(root: Path) -> None:
    """Make a workspace with links that lead in, out, nowhere and in a cycle."""
    for name in ("src/deep/y.py", "src/x.py", "a.txt", ".env", ".git/config", "keys/id_rsa"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("x\n", encoding="utf-8")
    (root / "link").symlink_to("/etc")
    (root / "inner").symlink_to("src")
    (root / "dangling").symlink_to("gone/away")
    (root / "loop").symlink_to("loop")


GOVERNS = {".git", ".greenroom"}
"""Folders that no tool ever writes to."""


@dataclass
class Trail:
    """The content of the log, by step."""

    work: dict[str, dict[str, Any]] = field(default_factory=dict)
    starts: dict[tuple[str, int], dict[str, Any]] = field(default_factory=dict)
    approvals: dict[str, dict[str, Any]] = field(default_factory=dict)
    agreed: dict[str, str] = field(default_factory=dict)
    """Decisions by approval: `approved` or `denied`. Voided approvals are left out."""

    asked: dict[str, str] = field(default_factory=dict)
    """The newest question by step."""

    ended: dict[str, dict[str, Any]] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)


def read(events: Iterable[StoredEvent]) -> Trail:
    """Read a log once."""
    trail = Trail()
    for stored in events:
        event = json.loads(stored.data)
        match stored.type:
            case "StepQueued" | "StepChanged":
                trail.work[event["step_id"]] = event["work"]
                trail.counts["put in another's place"] += stored.type == "StepChanged"
            case "ThreadOpened":
                trail.counts["on another's behalf"] += bool(event.get("call"))
            case "ApprovalRequested":
                trail.approvals[event["approval_id"]] = event
                trail.asked[event["step_id"]] = event["approval_id"]
            case "ApprovalAnswered":
                trail.agreed[event["approval_id"]] = event["answer"]
            case "ApprovalVoided":
                trail.agreed.pop(event["approval_id"], None)
            case "StepStarted":
                _started(trail, event)
            case "StepEnded":
                trail.ended[event["step_id"]] = event
            case _:
                pass
    return trail


def _started(trail: Trail, event: dict[str, Any]) -> None:
    """Record the decision at the start of a step. Later answers do not count."""
    approval = trail.asked.get(event["step_id"], "")
    event["answer"] = trail.agreed.get(approval)
    event["question"] = trail.approvals.get(approval)
    trail.starts[event["step_id"], event["attempt"]] = event


def digest(tool: str, arguments: Mapping[str, Any]) -> str:
    """Return the name of a call as the design defines it: the hash of exactly these arguments."""
    written = json.dumps([tool, arguments], ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(written.encode()).hexdigest()


def violations(trail: Trail, entered: Iterable[Entered], rights: Mapping[AgentId, frozenset[str] | None]) -> list[str]:
    """Return what ran without a decision that allows it."""
    return [
        f"{one.step} ({one.tool} {one.arguments:.200}) {why}"
        for one in entered
        for why in _judge(trail, one, rights.get(one.agent))
    ]


def _judge(trail: Trail, one: Entered, rights: frozenset[str] | None) -> Iterable[str]:
    trail.counts["run"] += 1
    start = trail.starts.get((one.step, one.attempt))
    if start is None:
        yield "was run without having been started"
        return
    terms, work = start["terms"], trail.work[one.step]
    given = work.get("instruction_content") or {}
    verdict = terms.get("verdict", "allow")
    trail.counts[f"run after {verdict}"] += 1
    if (work["executor"], json.dumps(given, sort_keys=True)) != (one.tool, one.arguments):
        yield "was run with other arguments than the log says"
    if terms.get("digest") != digest(one.tool, given):
        yield f"was decided about for other arguments: {terms.get('digest')!r}"
    if verdict == "ask":
        yield from _asked(start, digest(one.tool, given))
    elif verdict not in ("allow", "notify"):
        yield f"was run after {verdict}"
    yield from _forbidden(one, rights)


def _asked(start: dict[str, Any], exactly: str) -> Iterable[str]:
    question = start["question"]
    if question is None or start["answer"] != "approved":
        yield f"was run although the answer was {start['answer']}"
    elif question["digest"] != exactly:
        yield "was run after a yes to something else"


def _forbidden(one: Entered, rights: frozenset[str] | None) -> Iterable[str]:
    """Yield what no rule can allow."""
    if rights is not None and one.tool not in rights:
        yield "was run by somebody who has no such tool"
    for target in one.targets:
        if target.kind == "path" and "\0" in target.value:
            yield "was run on a path that is none"
        if target.kind == "path" and target.writes and GOVERNS.intersection(normpath(target.value.lower()).split("/")):
            yield "would have written what governs us"


def counted(trail: Trail) -> Counter[str]:
    """Count how the calls in the log ended."""
    found = trail.counts
    for step, work in trail.work.items():
        if work["type"] == "tool":
            found["calls"] += 1
            found[_fate(trail.ended.get(step))] += 1
    found["questions"] = len(trail.approvals)
    found["answered yes"] = sum(answer == "approved" for answer in trail.agreed.values())
    return found


def _fate(ended: dict[str, Any] | None) -> str:
    if ended is None:
        return "still open"
    error = ended.get("error", "")
    if error.startswith(("Not permitted", "Denied")):
        return "denied by a rule" if error.startswith("Not p") else "denied by a person"
    return "not callable" if ended["state"] == "failed" else ended["state"]


AGENTS = tuple(AgentId(f"agent{number}") for number in range(20))
T1 = TaskId("t1")
DOOR = "door"
PATIENCE = 120.0
CALLED = 6
"""Calls that an agent makes when another agent has called it."""

SCOPES: tuple[ApprovalScope, ...] = ("once", "once", "run", "always")
MakeWorks = Callable[[int], tuple[Work, ...]]


class Converse:
    """The behaviour of a called agent: it calls tools on behalf of the caller."""

    type: StepType = "skill"
    name: str = "converse"
    description: str = "Answers."

    def __init__(self, works: MakeWorks) -> None:
        self._works = works

    def terms(self, _: TeamState, __: Step) -> StepTerms:
        """Return free terms."""
        return StepTerms(effect="pure")

    async def run(self, context: StepContext) -> Outcome:
        """Call some tools. If asked to, let another agent do so."""
        me = context.step.agent_id
        queue = QueueSteps(agent_id=me, works=self._works(CALLED), place="next")
        other = context.step.work.intention
        if other not in AGENTS:
            return Outcome(intents=(queue,))
        asked = SendMessage(
            task_id=T1, receiver=(AgentId(other),), message="do", need_reply=True, waiting=True, delivery="call"
        )
        return Outcome(intents=(asked,))


class WildTeam:
    """One team under one set of rules."""

    def __init__(self, root: Path, seed: str) -> None:
        self.wild = Wild(seed)
        self.entered: list[Entered] = []
        root.mkdir()
        workspace(root)
        self._toolbox: Toolbox = probes(root, self.entered)
        self.rights = {name: self._some_tools() for name in AGENTS}
        policy = build_rules_policy(self.wild.rules(), str(root))
        guarded = [ToolPipeline(tool, policy) for tool in self._toolbox]
        self._kit = Capabilities([*guarded, Converse(self._works)])
        self._log = MemoryLog()

    async def run(self, calls: int) -> tuple[list[str], Counter[str]]:
        """Let the agents make `calls` calls and return the checker's findings."""
        runtime = Runtime(self._log, capability_factories={"wild": lambda _: self._kit})
        try:
            tools = tuple(tool.name for tool in self._toolbox)
            specs = [(name, AgentSpec(name=name, tools=tools, rules=self._limits_of(name))) for name in AGENTS]
            team = await runtime.create("wild", specs, capabilities_name="wild")
            host = await runtime.start(team)
            await runtime.ask(team, AddTask(name="t", intention="t", manager=AGENTS[0], group=AGENTS, driver="manager"))
            await runtime.ask(team, *(self._queue(name, calls // len(AGENTS)) for name in AGENTS))
            async with asyncio.timeout(PATIENCE):
                await self._attend(host)
            trail = await self._trail(team)
        finally:
            await runtime.close()
        return violations(trail, self.entered, self.rights), counted(trail)

    async def _trail(self, team: str) -> Trail:
        return read([event async for page in self._log.read(team) for event in page])

    def _queue(self, agent: AgentId, calls: int) -> QueueSteps:
        """Queue calls, some of them by a later agent, so that agents never wait for each other in a cycle."""
        behind = AGENTS[AGENTS.index(agent) + 1 :]
        works = list(self._works(calls))
        for place in range(0, calls if behind else 0, 20):
            works.insert(place, Work(type="skill", executor="converse", intention=self.wild.one_of(behind)))
        return QueueSteps(agent_id=agent, works=tuple(works), task_id=T1)

    def _works(self, count: int) -> tuple[Work, ...]:
        return tuple(self._work() for _ in range(count))

    def _work(self) -> Work:
        tool = self.wild.one_of(tuple(self._toolbox))
        given = self.wild.arguments(tool.card.spec.parameters)
        return Work(type="tool", executor=tool.name, instruction_content=given)

    def _some_tools(self) -> frozenset[str] | None:
        if self.wild.chance(0.6):
            return None
        return frozenset(tool.name for tool in self._toolbox if self.wild.chance(0.7))

    def _limits_of(self, agent: AgentId) -> tuple[str, ...]:
        """Return the rules that leave it these tools."""
        left = self.rights[agent]
        return tuple(f"deny tool {tool.name}" for tool in self._toolbox if left is not None and tool.name not in left)

    async def _attend(self, host: TeamHost) -> None:
        """Answer questions until all agents are idle."""
        while host.state.steps:
            waiting = [one for one in host.state.approvals.values() if one.state == "pending"]
            if waiting:
                await host.submit(*(intent for one in waiting for intent in self._said(host.state, one)), by=DOOR)
            await asyncio.sleep(0)

    def _said(self, state: TeamState, approval: Approval) -> Iterator[Intent]:
        """Answer. Sometimes the question is replaced after the answer."""
        yield self._answer(approval)
        if self.wild.chance(0.1):
            tool = self._toolbox.get(state.steps[approval.step_id].work.executor)
            given = self.wild.arguments(tool.card.spec.parameters)
            work = Work(type="tool", executor=tool.name, instruction_content=given)
            yield ModifyStep(step_id=approval.step_id, work=work)

    def _answer(self, approval: Approval) -> AnswerApproval:
        yes = self.wild.chance(0.6)
        scope: ApprovalScope = self.wild.one_of(SCOPES) if yes and approval.grant else "once"
        return AnswerApproval(
            approval_id=approval.approval_id, answer="approved" if yes else "denied", scope=scope, reason="so"
        )
