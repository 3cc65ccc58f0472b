"""A skill of a planning agent as data: its name, its prompt, and the form and meaning of its answer."""

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
from greenroom.core.ports.prompt_pack import PromptPack
from greenroom.core.ports.reply_reader import AnswerReader
from greenroom.core.rules.intents import Consequence
from greenroom.core.rules.steps import list_skills
from greenroom.core.state.agent import AgentState
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.stage import Member, Stage
from greenroom.core.state.step import Step, Work
from greenroom.core.state.task import Task
from greenroom.core.state.team_state import TeamState

PACK: Final = PromptPack("greenroom.abilities.skills.planned.prompts")

TEXT_SCHEMA: Final[Data] = {"type": "string"}
"""The schema of an answer that is plain text."""

UNPLANNABLE_SKILLS: Final = frozenset({"summary", "tool_decision"})
"""Skills that an agent cannot plan: one follows from a reflection, the other from a tool."""

PromptOrder = Literal["plain", "history", "tool", "message", "tool_history"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillAnswer:
    """The answer of the model. `repaired` says why its JSON was repaired; `memory` is what the agent will remember."""

    value: object
    memory: str = ""
    repaired: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillResult:
    """The interpretation of an answer: the result under the skill's key, additional data, and intents."""

    value: object
    more: Data = field(default_factory=dict)
    intents: tuple[Consequence, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillContext:
    """Everything that a skill knows when it runs. `history` are the ended steps of its conversation."""

    state: TeamState
    step: Step
    agent: AgentState
    history: Sequence[Step]
    tools: Mapping[str, ToolSpec]
    skills: Mapping[str, Skill]
    reader: AnswerReader
    project: str = ""

    @property
    def spec(self) -> AgentSpec:
        return self.agent.spec

    @property
    def task(self) -> Task | None:
        """The task of the step, if it is open."""
        return self.state.tasks.get(self.step.task_id)

    @property
    def stage(self) -> Stage | None:
        """The running stage of the step, if any."""
        found = self.state.stages.get(self.step.stage_id) if self.step.stage_id is not None else None
        return found if found is not None and found.state == "running" else None

    @property
    def member(self) -> Member | None:
        """The agent's membership in that stage."""
        return self.stage.find_member(self.agent.agent_id) if self.stage is not None else None

    @property
    def group(self) -> tuple[AgentId, ...]:
        return self.task.group if self.task is not None else ()

    @property
    def notices(self) -> tuple[str, ...]:
        """Notices for the agent about rejected requests. A running step sees those from its start."""
        thread, step = self.state.threads.get(self.step.thread_id), self.step
        found = thread.notices if thread is not None else ()
        return found[: step.notices_seen] if step.state == "running" else found

    @property
    def plannable_skills(self) -> tuple[str, ...]:
        """The available skills that the agent may plan."""
        allowed = list_skills(self.spec) - UNPLANNABLE_SKILLS
        return tuple(name for name in self.skills if name in allowed)

    @property
    def step_to_fill(self) -> Step | None:
        """The tool step to fill in: the next step of the conversation without an instruction."""
        own_steps = [step for step in self.state.steps_of(self.agent.agent_id) if step.thread_id == self.step.thread_id]
        return next((step for step in own_steps if step.work.type == "tool" and step.state == "pending"), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Skill:
    """A skill. `tag` encloses its answer, `key` is the key of its result, `said` its name on the task board. All three
    default to its name.

    `order` names its row in the table of sections. `build_schema` returns the JSON Schema of its answer. `interpret`
    returns the consequences of a valid answer, or raises `ModelFault` to ask again. Before that, `normalize` brings the
    answer into its standard form. Its prompt is in a file of its name, unless `use_guide` and `skill_prompt` are given.
    """

    name: str
    tag: str = ""
    key: str = ""
    said: str = ""
    order: PromptOrder = "history"
    build_schema: Callable[[SkillContext], Data] = lambda _: TEXT_SCHEMA
    interpret: Callable[[SkillContext, SkillAnswer], SkillResult] = lambda _, answer: SkillResult(value=answer.value)
    normalize: Callable[[object], object] = lambda value: value
    use_guide: str = ""
    skill_prompt: str = ""

    def __post_init__(self) -> None:
        for field_name in ("tag", "key", "said"):
            if not getattr(self, field_name):
                object.__setattr__(self, field_name, self.name)


PART_NAMES: Final = ("use_guide", "skill_prompt", "return_format")
_PART_MARK: Final = re.compile(rf"^\[({'|'.join(PART_NAMES)})\][ \t]*$", re.MULTILINE)


@record
class PromptParts:
    """The parts of a skill's prompt file."""

    use_guide: str
    skill_prompt: str
    return_format: str


def render_parts(skill: Skill, language: str, *, tags: bool = True) -> PromptParts:
    """Render a skill's prompt. With `tags` the answer stands between the skill's tags, otherwise it is JSON."""
    begin, end = (f"<{skill.tag}>\n", f"\n</{skill.tag}>") if tags else ("", "")
    prompt_name = "think" if skill.skill_prompt else skill.name  # `think` shows how to return a text
    text = PACK.render(language, prompt_name, {"begin": begin, "end": end, "tags": tags})
    parts = split_parts(skill.name, text)
    return evolve(parts, use_guide=skill.use_guide, skill_prompt=skill.skill_prompt) if skill.skill_prompt else parts


def read_use_guide(skill: Skill, language: str = "en") -> str:
    """Return when to use a skill. The guide has no variables, so it needs no rendering."""
    return skill.use_guide or _read_guide(PACK.choose_language(language), skill.name)


@cache
def _read_guide(language: str, name: str) -> str:
    """Read a guide once. Every prompt contains the guides of all skills of its agent."""
    return split_parts(name, PACK.read_source(language, name)).use_guide


def split_parts(name: str, text: str) -> PromptParts:
    """Split a file into its parts, each after its mark."""
    pieces = _PART_MARK.split(text)
    found: Mapping[str, str] = dict(zip(pieces[1::2], map(str.strip, pieces[2::2]), strict=True))
    missing = [part_name for part_name in PART_NAMES if not found.get(part_name)]
    if missing:
        raise Bug(f"The prompt of the skill {name!r} has no [{missing[0]}].")
    return PromptParts(**found)


MESSAGE_SKILLS: Final = ("process_message", "send_message")
"""The skills that read a received message."""

WAITING_ID_TAG: Final = "<return_waiting_id>"
"""Greenroom writes the waiting id in this tag, after the text of a message."""


def build_retry(step: Step, why: str) -> Work:
    """Build the same work once more, with an explanation."""
    instruction = {"repairs": count_repairs(step) + 1, "error": why, "from": find_sender(step) or ""}
    return evolve(step.work, instruction_content=instruction)


def count_repairs(step: Step) -> int:
    """Return how often the work was repeated."""
    found = _read_instruction(step).get("repairs", 0)
    return found if isinstance(found, int) else 0


def read_error(step: Step) -> str:
    """Return what was wrong with the previous reply."""
    return str(_read_instruction(step).get("error", ""))


def find_sender(step: Step) -> AgentId | None:
    """Return the sender of the message that the step handles."""
    if step.message_id is not None:
        return sender_of(step.message_id)
    sender = str(_read_instruction(step).get("from", ""))
    return AgentId(sender) if sender else None


def find_requesting_step(step: Step, history: Iterable[Step]) -> Step:
    """Return the step that reads the message from which this step followed. Without a message in the history, return
    the first known step."""
    known = {past_step.step_id: past_step for past_step in history}
    while find_sender(step) is None and step.cause is not None and step.cause in known:
        step = known[step.cause]
    return step


def extract_request(step: Step) -> str:
    """Return the sender's text without Greenroom's additions, or "" if it is fenced."""
    head, _, text = step.work.text_content.partition("\n")
    if find_sender(step) is None or not head.startswith("from: ") or text.startswith("has_read: "):
        return ""
    return text.partition(WAITING_ID_TAG)[0].strip()


def is_message(step: Step) -> bool:
    """Return whether the step's text is a message from another member."""
    name = step.work.executor
    return name == MESSAGE_SKILLS[0] or (name in MESSAGE_SKILLS and find_sender(step) is not None)


def _read_instruction(step: Step) -> dict[str, object]:
    given = step.work.instruction_content if step.work.type == "skill" else None
    return dict(given or {})
