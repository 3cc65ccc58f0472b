"""Starting a question, a run or a chat: who takes part, what was said beforehand, and the team that they are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from greenroom.app.conversation.names import CHAT
from greenroom.app.host import Host
from greenroom.app.kit import Kit
from greenroom.app.runtime import Runtime
from greenroom.core.base.amounts import Limits
from greenroom.core.base.ids import AgentId, TaskId, TeamId, task_id
from greenroom.core.base.records import evolve, record
from greenroom.core.rules.intents import AddTask, QueueSteps
from greenroom.core.state.origin import label
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.step import Work
from greenroom.runs.workspace import NOTHING_SAID, Wanted

PROFILE: Final = "Answer what you are asked: to the point, and honest about what you do not know."
ASSISTANT: Final = AgentSpec(name="assistant", role="an assistant", profile=PROFILE, manager=True)
"""Who answers when nobody else is named."""

FIRST: Final[TaskId] = task_id(1)
"""A talk has one task."""

NAME: Final = 60
"""Characters of a question that its task is called by."""


@record
class Cast:
    """Who takes part: first the one that is talked to, then those it may call. `missing` are names that nobody has.

    `workspace` is the folder in which they have tools; empty when none of them has any.
    """

    members: tuple[tuple[AgentId, AgentSpec], ...]
    missing: tuple[str, ...] = ()
    workspace: str = ""

    @property
    def first(self) -> AgentId:
        """The one that is talked to."""
        return self.members[0][0]

    @property
    def models(self) -> tuple[str, ...]:
        """The models that they ask; that of the first one comes first."""
        return tuple(dict.fromkeys(model_of(spec) for _, spec in self.members))


def cast_of(
    spec: AgentSpec,
    others: Mapping[str, AgentSpec],
    settled: Callable[[str], str],
    *,
    model: str = "",
    tools: bool = True,
    language: str = "",
) -> Cast:
    """The cast of an agent. `settled` says which model a name means from now on; `model` wins over its own."""
    main = settled(model or model_of(spec))
    found, missing, todo = {spec.name: voiced(spec, main)}, list[str](), list(spec.calls)
    for name in todo:
        if name in found or name in missing:
            continue
        if name not in others:
            missing.append(name)
            continue
        other = others[name]
        found[name] = voiced(other, settled(model_of(other)) if model_of(other) else main)
        todo += other.calls
    members = [(AgentId(name), _fitted(one, tools=tools, language=language)) for name, one in found.items()]
    return Cast(members=tuple(members), missing=tuple(missing))


def model_of(spec: AgentSpec) -> str:
    """The name of the model that an agent asks; empty is the normal one."""
    return str((spec.llm_config or {}).get("model", ""))


def voiced(spec: AgentSpec, model: str) -> AgentSpec:
    """The same agent, who asks this model."""
    return evolve(spec, llm_config={**(spec.llm_config or {}), "model": model})


def _fitted(spec: AgentSpec, *, tools: bool, language: str) -> AgentSpec:
    """As it takes part in a talk, where also those converse who plan in an organisation."""
    bare = spec if tools else evolve(spec, tools=(), groups=())
    return evolve(bare, style="converse", skills=(), language=bare.language or language)


async def found_alone(
    runtime: Runtime,
    kit: str,
    cast: Cast,
    question: str,
    *,
    typed: str = "",
    limits: Limits,
    wanted: Wanted = NOTHING_SAID,
    work_with: Kit | None = None,
    opened: Callable[[Host], None] | None = None,
) -> TeamId:
    """A team whose answer ends its only task. `typed` is what a person wrote of the question. See `Runtime.create`."""
    shown = typed or question
    task = task_of(shown, cast)
    works, origins = (turn(question, typed, wanted),), brought(question, typed)
    first = QueueSteps(agent_id=cast.first, works=works, task_id=FIRST, origins=origins)
    return await runtime.create(
        kit,
        cast.members,
        kit=kit,
        workspace=cast.workspace,
        limits=limits,
        begin=(task, first),
        work_with=work_with,
        opened=opened,
    )


async def found_chat(
    runtime: Runtime, cast: Cast, text: str, *, typed: str = "", limits: Limits, kit: str = CHAT
) -> TeamId:
    """A chat that begins with this; its task stays open."""
    works, origins = (turn(text, typed),), brought(text, typed)
    queued = QueueSteps(agent_id=cast.first, works=works, task_id=FIRST, origins=origins)
    task = _task(f"Chat: {_short(typed or text)}", "Talk with a person.", cast)
    return await runtime.create(
        kit, cast.members, kit=kit, workspace=cast.workspace, limits=limits, begin=(task, queued)
    )


def turn(text: str, typed: str = "", wanted: Wanted = NOTHING_SAID) -> Work:
    """A turn. What was typed is kept beside what is said when that is more, for whoever reads it again."""
    return Work(
        type="skill",
        executor="converse",
        intention=typed if typed != text else "",
        text_content=text,
        instruction_content=wanted.data,
    )


def brought(text: str, typed: str) -> tuple[str, ...]:
    """Where it comes from what a person sends along with what they have typed: files, or what a pipe has brought."""
    return (label("file", "attached"),) if typed and typed != text else ()


def task_of(typed: str, cast: Cast) -> AddTask:
    """The task of a question, or of something to do."""
    return _task(_short(typed) or "question", typed, cast)


def _short(text: str) -> str:
    return " ".join(text.split())[:NAME]


def _task(name: str, intention: str, cast: Cast) -> AddTask:
    return AddTask(name=name, intention=intention, manager=cast.first, group=tuple(one for one, _ in cast.members))
