"""A skill of an agent that plans, as data: what it is called, what it is told, what its answer looks like and means."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Final, Literal

from greenroom.core.base.errors import Bug
from greenroom.core.base.ids import AgentId, sender_of
from greenroom.core.base.records import Data, evolve, record
from greenroom.core.ports.model import ToolSpec
from greenroom.core.ports.packs import Pack
from greenroom.core.ports.reading import AnswerReader
from greenroom.core.rules.intents import Consequence
from greenroom.core.rules.steps import skills_of
from greenroom.core.state.agent import Agent
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.stage import Member, Stage
from greenroom.core.state.step import Step, Work
from greenroom.core.state.task import Task
from greenroom.core.state.world import World

PACK: Final = Pack("greenroom.abilities.skills.planned.prompts")

TEXT: Final[Data] = {"type": "string"}
"""What an answer looks like that is nothing but text."""

NOT_PLANNED: Final = frozenset({"summary", "tool_decision"})
"""What no agent plans: the one comes from a reflection, the other from a tool."""

Order = Literal["plain", "history", "tool", "message", "tool_history"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the model answered. `repaired` is why its JSON had to be mended, `memory` what it wants to keep for good."""

    value: object
    memory: str = ""
    repaired: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Meant:
    """What an answer comes to: the result under the skill's own key, what else is kept, and what it asks for."""

    value: object
    more: Data = field(default_factory=dict)
    intents: tuple[Consequence, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """All that a skill knows when it is asked: `history` are the ended steps of its conversation."""

    world: World
    step: Step
    agent: Agent
    history: Sequence[Step]
    tools: Mapping[str, ToolSpec]
    skills: Mapping[str, Skill]
    reader: AnswerReader
    project: str = ""

    @property
    def spec(self) -> AgentSpec:
        """Who is asked: its language, its tools."""
        return self.agent.spec

    @property
    def task(self) -> Task | None:
        """The task of the step, if that is open."""
        return self.world.tasks.get(self.step.task_id)

    @property
    def stage(self) -> Stage | None:
        """The stage of the step, if it has one that runs."""
        found = self.world.stages.get(self.step.stage_id) if self.step.stage_id is not None else None
        return found if found is not None and found.state == "running" else None

    @property
    def member(self) -> Member | None:
        """How the agent stands in that stage."""
        return self.stage.member(self.agent.agent_id) if self.stage is not None else None

    @property
    def group(self) -> tuple[AgentId, ...]:
        """Who works on the task."""
        return self.task.group if self.task is not None else ()

    @property
    def notices(self) -> tuple[str, ...]:
        """What the agent has to be told: what it asked for and did not get. A running step has what was there then."""
        thread, step = self.world.threads.get(self.step.thread_id), self.step
        found = thread.notices if thread is not None else ()
        return found[: step.notices_seen] if step.state == "running" else found

    @property
    def may_plan(self) -> tuple[str, ...]:
        """The skills that the agent may give itself, of those that there are."""
        allowed = skills_of(self.spec) - NOT_PLANNED
        return tuple(name for name in self.skills if name in allowed)

    @property
    def to_fill(self) -> Step | None:
        """The tool step whose instruction is to be filled in: the next one of the conversation that has none."""
        mine = [one for one in self.world.steps_of(self.agent.agent_id) if one.thread_id == self.step.thread_id]
        return next((one for one in mine if one.work.type == "tool" and one.state == "pending"), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Skill:
    """A skill. `tag` is what its answer stands in, `key` what its result is kept under, `said` what the board calls it:
    its name, where nothing else is said.

    `order` names its row in the table of sections, `shape` is the JSON Schema of its answer. `meaning` says what
    follows from an answer that fits, or raises `ModelFault` to have it asked for again; before that, `tidied` brings
    what was written a little differently into that shape. Its prompt is in its `pack`.
    """

    name: str
    tag: str = ""
    key: str = ""
    said: str = ""
    order: Order = "history"
    shape: Callable[[Moment], Data] = lambda _: TEXT
    meaning: Callable[[Moment, Answer], Meant] = lambda _, answer: Meant(value=answer.value)
    tidied: Callable[[object], object] = lambda value: value
    pack: Pack = PACK

    def __post_init__(self) -> None:
        for field_name in ("tag", "key", "said"):
            if not getattr(self, field_name):
                object.__setattr__(self, field_name, self.name)


NAMES: Final = ("use_guide", "skill_prompt", "return_format")
_MARK: Final = re.compile(rf"^\[({'|'.join(NAMES)})\][ \t]*$", re.MULTILINE)


@record
class Parts:
    """What stands in a skill's file."""

    use_guide: str
    skill_prompt: str
    return_format: str


def parts(skill: Skill, language: str, *, tags: bool = True) -> Parts:
    """A skill's prompt in a language. With `tags` the answer stands between the skill's own, else it is JSON."""
    begin, end = (f"<{skill.tag}>\n", f"\n</{skill.tag}>") if tags else ("", "")
    return split(skill.name, skill.pack.render(language, skill.name, {"begin": begin, "end": end, "tags": tags}))


def use_guide(skill: Skill, language: str = "en") -> str:
    """When to use it. Nothing is filled in there, so that nobody has to render anything to read it."""
    return _guide(skill.pack, skill.pack.chosen(language), skill.name)


@cache
def _guide(pack: Pack, language: str, name: str) -> str:
    """Every prompt has the guides of all skills of its agent, so they are read once."""
    return split(name, pack.source(language, name)).use_guide


def split(name: str, text: str) -> Parts:
    """The parts of a file, each behind its mark."""
    pieces = _MARK.split(text)
    found: Mapping[str, str] = dict(zip(pieces[1::2], map(str.strip, pieces[2::2]), strict=True))
    missing = [one for one in NAMES if not found.get(one)]
    if missing:
        raise Bug(f"The prompt of the skill {name!r} has no [{missing[0]}].")
    return Parts(**found)


LETTERS: Final = ("process_message", "send_message")
"""The skills in which a message is read that somebody has sent."""

ANSWER_TO: Final = "<return_waiting_id>"
"""Behind what somebody wrote the house writes which wait an answer ends."""


def again(step: Step, why: str) -> Work:
    """The same work once more."""
    told = {"repairs": repairs_of(step) + 1, "error": why, "from": asked_by(step) or ""}
    return evolve(step.work, instruction_content=told)


def repairs_of(step: Step) -> int:
    """How often it was asked again."""
    found = _told(step).get("repairs", 0)
    return found if isinstance(found, int) else 0


def error_of(step: Step) -> str:
    """What was wrong with the reply before."""
    return str(_told(step).get("error", ""))


def asked_by(step: Step) -> AgentId | None:
    """Who wrote the message that the step is about."""
    if step.message_id is not None:
        return sender_of(step.message_id)
    told = str(_told(step).get("from", ""))
    return AgentId(told) if told else None


def begun_by(step: Step, history: Iterable[Step]) -> Step:
    """The step with which somebody wanted what this one is a part of: it reads their message. Where nobody wrote one,
    or so long ago that the history does not know it any more, the first that is known."""
    known = {one.step_id: one for one in history}
    while asked_by(step) is None and step.cause is not None and step.cause in known:
        step = known[step.cause]
    return step


def asked_for(step: Step) -> str:
    """What they wrote, without what the house wrote around it; nothing where that is fenced off."""
    head, _, text = step.work.text_content.partition("\n")
    if asked_by(step) is None or not head.startswith("from: ") or text.startswith("has_read: "):
        return ""
    return text.partition(ANSWER_TO)[0].strip()


def is_letter(step: Step) -> bool:
    """Whether its text is what somebody else wrote to the agent."""
    name = step.work.executor
    return name == LETTERS[0] or (name in LETTERS and asked_by(step) is not None)


def _told(step: Step) -> dict[str, object]:
    given = step.work.instruction_content if step.work.type == "skill" else None
    return dict(given or {})
