"""Transcripts: the messages of a thread. Each ended step is read once, however long the conversation becomes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, cast

from greenroom.abilities.skills.conversation.builtin_calls import (
    CHOOSE_RECEIVER_SKILL,
    HANDOFF_SUMMARY_SKILL,
    IMMEDIATE_CALLS,
)
from greenroom.abilities.skills.conversation.completion import LoopDetector
from greenroom.abilities.skills.prompts.builder import PACK, render_notice
from greenroom.core.base.ids import TeamId, ThreadId, sender_of
from greenroom.core.base.records import Data
from greenroom.core.base.text import add_fence
from greenroom.core.ports.executor import StepContext
from greenroom.core.ports.model import ChatMessage, Media, Opaque, ToolCall
from greenroom.core.state.origin import filter_untrusted
from greenroom.core.state.step import Step, Work
from greenroom.core.state.team_state import TeamState


def is_new_request(step: Step) -> bool:
    """Return whether the step is a new request from a person, Greenroom or another agent. Results of the agent's own
    requests do not count: it could continue forever by asking again."""
    if step.goes_on:
        return False
    said = bool((step.work.instruction_content or {}).get("begins"))
    return step.cause is None or step.message_id is not None or said


def is_from_people(state: TeamState, step: Step) -> bool:
    """Return whether the step comes from a person, or from Greenroom on behalf of a person."""
    if step.message_id is None:
        told = (step.work.instruction_content or {}).get("people", step.cause is None)
        return bool(told) and not step.goes_on
    known = state.agents.get(sender_of(step.message_id))
    return known is not None and known.spec.kind == "human"


def has_unread_message(state: TeamState, step: Step) -> bool:
    """Return whether this conversation has an unread message from a person."""
    others = (other for other in state.steps_of(step.agent_id) if other.thread_id == step.thread_id)
    return any(
        other.step_id != step.step_id and other.work.executor == "converse" and is_from_people(state, other)
        for other in others
    )


def describe_origin(state: TeamState, step: Step) -> Data:
    """Describe the origin of a deferred turn for the turn that replaces it."""
    return {"begins": is_new_request(step), "people": is_from_people(state, step)}


CLOSED_KEY: Final = "closed"
"""The key of a summary for the skills in `ONCE_PER_TASK` that ran before it."""

PLAN_SKILL: Final = "plan_task"
PLAN_CALL_PREFIX: Final = "plan-"
"""Prefix of the ids of calls that a plan makes. The conversation reads the plan's report instead of their results."""


def find_closed(step: Step) -> set[str]:
    """Return the skills that run once per task and ran in this step, or before the summary that it made."""
    if step.work.executor == "compact":
        return {str(name) for name in cast("Iterable[object]", (step.result or {}).get(CLOSED_KEY, ()))}
    return {step.work.executor} & ONCE_PER_TASK


INTERRUPTION_MARK: Final = " […]"
"""Marks the end of the agent's own text when a person interrupted it."""

ONCE_PER_TASK: Final = frozenset({"retrospect", "prompt_memory_save"})
"""Skills that run once before the end of a task, even if its proof fails and the work goes on."""

MAX_CACHED_TRANSCRIPTS: Final = 4096
"""Maximum number of threads in the cache. Other threads are read again."""

BYTES_PER_TOKEN: Final = 3
"""Estimate for text that no provider has counted yet. English has four or more, Chinese about three."""

MAX_BYTES_PER_TOKEN: Final = 8
"""Upper estimate. A provider that reports fewer tokens has not counted everything."""


SIDE_QUESTIONS: Final = ("filter_tools", "keep_skill", HANDOFF_SUMMARY_SKILL, CHOOSE_RECEIVER_SKILL)
"""Skills that ask a model beside the conversation: it does not hold their answers."""


class Transcript:
    """The messages of one thread. They only grow at the end, so that every prefix stays byte-identical.

    `native`: calls and results are sent as such, otherwise as text. `turns` counts all turns. Since the last request,
    `rounds` counts turns with calls and `nudges` turns with text only. `returned` is a tool result that replaces the
    agent's next reply. `closed` are the skills that ran before the end of the task. `size` is the size of its text in
    bytes.
    """

    def __init__(
        self, *, native: bool = True, language: str = "", media: Mapping[str, bytes] = MappingProxyType({})
    ) -> None:
        self.messages: list[ChatMessage] = []
        self._media = media
        self.native = native
        self.language = language
        self.turns = self.empty_turns = self.rounds = self.nudges = self.misread_turns = self.turns_since_compaction = (
            self.failed_compactions
        ) = 0
        self.returned: str | None = None
        self.closed = set[str]()
        self.loop_detector = LoopDetector()
        self.size = self._media_size = 0
        self._counted = self._uncounted = self._steps_read = self._first_ended_in = 0

    @property
    def last_text(self) -> str:
        """The agent's last text."""
        return next(
            (message.content for message in reversed(self.messages) if message.role == "assistant" and message.content),
            "",
        )

    def estimate_tokens(self, size: int) -> int:
        """Estimate the tokens of a request: the provider's last count, or `size` bytes, plus newer messages."""
        counted = (self._counted or size // BYTES_PER_TOKEN) + self._uncounted // BYTES_PER_TOKEN
        return max(counted, (size + self.size) // MAX_BYTES_PER_TOKEN)

    def start_turn(self, step: Step) -> None:
        """Reset the counters if this step is a new request."""
        if is_new_request(step):
            self.rounds = self.nudges = self.misread_turns = 0
            self.loop_detector.start_over()

    def is_prefix_of(self, history: Sequence[Step]) -> bool:
        """Return whether the history starts with what was already read. Its window may have moved, or its thread
        differ."""
        return self._steps_read == 0 or (
            len(history) >= self._steps_read and history[0].ended_in == self._first_ended_in
        )

    def read_new_steps(self, history: Sequence[Step]) -> None:
        """Read newly ended steps. A summary comes before the steps that it left."""
        if self._steps_read == 0:
            for step in history:
                if step.work.executor == "compact":
                    self._append_messages(render_messages(step, native=self.native, language=self.language))
        for place in range(self._steps_read, len(history)):
            self._read_step(history[place])
        self._steps_read = len(history)
        self._first_ended_in = history[0].ended_in if history else 0

    def _append_messages(self, messages: Sequence[ChatMessage], media_tokens: int = 0) -> None:
        self.messages += messages
        size = sum(len(message.content.encode()) for message in messages)
        self.size += size
        media_size = BYTES_PER_TOKEN * media_tokens if media_tokens and any(item.media for item in messages) else 0
        self._media_size += media_size
        self._uncounted += size + media_size

    def _read_step(self, step: Step) -> None:
        self.closed |= find_closed(step)
        if step.work.executor == "compact":
            self.failed_compactions = 0 if step.state == "finished" else self.failed_compactions + 1
            if not self.failed_compactions:  # the provider counted another conversation before
                self.turns_since_compaction, self._counted, self._uncounted = 0, 0, self.size + self._media_size
            return
        messages = render_messages(step, native=self.native, language=self.language, media=self._media)
        self._append_messages(messages, step.work.media_tokens)
        if step.work.type == "tool" and step.state == "finished" and (step.result or {}).get("need_return"):
            self.returned = str((step.result or {}).get("output", ""))
        if step.work.type == "tool":
            self.loop_detector.add_step(step)
        if step.work.executor == "converse":
            self._count_turn(step, step.result or {})

    def _count_turn(self, step: Step, result: Data) -> None:
        if "deferred" in result:
            return
        self.turns += step.answers is None
        self.returned = None
        self.turns_since_compaction += 1
        self.start_turn(step)
        if "circles" in result:
            self.loop_detector.add_warning()
        calls = _read_items(result, "calls")
        if all("told" in call for call in calls):  # all answered immediately: there are no steps for them
            for call in calls:
                self.loop_detector.add_call(str(call["name"]), call.get("arguments"), "", str(call["told"]))
        acted, said = bool(result.get("calls")), bool(result.get("text"))
        self.misread_turns = self.misread_turns + 1 if "misread" in result else 0
        self.rounds += acted
        self.nudges = self.nudges + 1 if said and not acted and "misread" not in result else 0
        self.empty_turns = 0 if said or acted else self.empty_turns + 1
        usage = result.get("usage")
        if isinstance(usage, dict):
            self._counted, self._uncounted = int(usage.get("input", 0)) + int(usage.get("output", 0)), 0


class Transcripts:
    """A cache of the transcripts of all threads, by team."""

    def __init__(self) -> None:
        self._by_team: dict[TeamId, OrderedDict[ThreadId, Transcript]] = {}
        self._media: dict[TeamId, dict[str, bytes]] = {}

    async def load_media(self, team: TeamId, steps: Iterable[Step], context: StepContext) -> Mapping[str, bytes]:
        """Load the media of these steps, each once, and return all media of the team by blob."""
        known = self._media.setdefault(team, {})
        for item in [item for step in steps for item in step.work.media if item.blob not in known]:
            known[item.blob] = await context.blob(item.blob)
        return known

    def get(
        self, team: TeamId, thread: ThreadId, history: Sequence[Step], *, native: bool = True, language: str = ""
    ) -> Transcript:
        """Return the current transcript of a thread. A skill may serve several teams with equal thread ids."""
        kept = self._by_team.setdefault(team, OrderedDict())
        found = kept.get(thread)
        alike = found is not None and (found.native, found.language) == (native, language)
        if found is None or not alike or not found.is_prefix_of(history):
            media = self._media.setdefault(team, {})
            found = kept[thread] = Transcript(native=native, language=language, media=media)
            if len(kept) > MAX_CACHED_TRANSCRIPTS:
                kept.popitem(last=False)
        else:
            kept.move_to_end(thread)
        found.read_new_steps(history)
        return found

    def forget(self, team: TeamId) -> None:
        """Drop a team that is closed."""
        self._by_team.pop(team, None)
        self._media.pop(team, None)


def render_media(work: Work, media: Mapping[str, bytes]) -> tuple[Media, ...]:
    """Return the media of a message. Those that were not loaded are left out."""
    return tuple(
        Media(media_type=item.media_type, data=media[item.blob], name=item.name)
        for item in work.media
        if item.blob in media
    )


def render_messages(
    step: Step, *, native: bool = True, language: str = "", media: Mapping[str, bytes] = MappingProxyType({})
) -> list[ChatMessage]:
    """Render an ended step as messages of the conversation."""
    result = step.result or {}
    if step.work.executor == "compact":
        spoken = str(result.get("language", ""))
        return [ChatMessage(role="user", content=render_summary(result, spoken))] if step.state == "finished" else []
    if step.work.executor in SIDE_QUESTIONS or (step.work.call_id or "").startswith(PLAN_CALL_PREFIX):
        return []
    if step.work.executor == PLAN_SKILL:
        said = str(result.get("told", ""))
        return [ChatMessage(role="user", content=said)] if said else []
    if "deferred" in result:
        # The next step repeats its question, unless a person's new turn replaced it.
        said = step.work.text_content if result["deferred"] == "told" else ""
        return [ChatMessage(role="user", content=said, media=render_media(step.work, media))] if said else []
    if step.work.type == "tool":
        return [_render_tool_result(step, result, native=native, language=language)]
    question = str(result.get("asked", step.work.text_content))
    found = [ChatMessage(role="user", content=question, media=render_media(step.work, media))] if question else []
    if step.result is None and step.state != "finished":
        return found  # there is no reply: our own error is not the model's text
    calls = read_calls(result) if native else ()
    cut = INTERRUPTION_MARK if step.state == "cancelled" else ""
    found.append(
        ChatMessage(
            role="assistant",
            content=str(result.get("text", "")) + cut,
            calls=calls,
            reasoning=str(result.get("reasoning", "")),
            opaque=tuple(_read_opaque(part) for part in _read_items(result, "opaque")),
        )
    )
    # Tool steps answer their own calls; immediate calls are answered here.
    answers = collect_call_answers(result, language) if native else {}
    return [*found, *(ChatMessage(role="tool", content=text, call_id=name) for name, text in answers.items())]


def _render_tool_result(step: Step, result: Data, *, native: bool, language: str) -> ChatMessage:
    """Render a tool result. Untrusted content is fenced and follows its origin."""
    # Keep the partial output of an interrupted call too.
    said = str(result.get("output", "" if step.error else result))
    content = "\n".join(part for part in (step.error, said) if part)
    strange = ", ".join(filter_untrusted(step.origins))
    if native and step.work.call_id is not None:
        shown = render_notice(language, "data", name=strange, text=add_fence(content)) if strange else content
        return ChatMessage(role="tool", content=shown, call_id=step.work.call_id)
    shown = render_notice(language, "result", name=step.work.executor, names=strange, text=add_fence(content))
    return ChatMessage(role="user", content=shown)


def render_summary(result: Data, language: str) -> str:
    """Render the first message of a compacted conversation."""
    return PACK.render(language, "summed_up", result)


def collect_call_answers(result: Data, language: str = "") -> dict[str, str]:
    """Return the immediate answers to the calls of a stored reply, by call id."""
    found: dict[str, str] = {}
    for call in _read_items(result, "calls"):
        if "told" in call:
            found[str(call["id"])] = str(call["told"])
        elif call.get("unread"):
            found[str(call["id"])] = render_notice(language, "unread")
        elif call["name"] in IMMEDIATE_CALLS:
            found[str(call["id"])] = render_notice(language, "taken_up")
    return found


def _read_opaque(kept: dict[str, Any]) -> Opaque:
    return Opaque(provider=str(kept["provider"]), data=kept["data"])


def read_calls(result: Data) -> tuple[ToolCall, ...]:
    """Read the calls of a stored reply."""
    return tuple(
        ToolCall(
            call_id=str(call["id"]),
            name=str(call["name"]),
            arguments=call["arguments"],
            unread=str(call.get("unread", "")),
            extra=_read_opaque(call["extra"]) if "extra" in call else None,
        )
        for call in _read_items(result, "calls")
    )


def _read_items(result: Data, name: str) -> list[dict[str, Any]]:
    found = result.get(name, ())
    items = found if isinstance(found, list | tuple) else ()
    return [cast("dict[str, Any]", item) for item in items if isinstance(item, dict)]
