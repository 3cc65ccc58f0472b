"""The skill `compact`: summarise a long conversation and start a new window. The log keeps everything."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from greenroom.abilities.skills.conversation import model_call
from greenroom.abilities.skills.conversation.reply import request_reply
from greenroom.abilities.skills.conversation.transcript import (
    BYTES_PER_TOKEN,
    CLOSED_KEY,
    find_closed,
    is_from_people,
    render_messages,
    render_summary,
)
from greenroom.abilities.skills.prompts.builder import PACK
from greenroom.core.base.records import Data
from greenroom.core.base.text import add_fence
from greenroom.core.ports.executor import Outcome, StepContext
from greenroom.core.ports.model import ChatMessage, Model, ModelRequest, Models
from greenroom.core.rules.intents import MoveWindow
from greenroom.core.state.spec import AgentStyle
from greenroom.core.state.step import Step, StepTerms, StepType, count_bytes_added
from greenroom.core.state.team_state import TeamState

TAIL_SHARE: Final = 0.2
"""Share of the window that the newest, unchanged steps may take."""

KEPT_MESSAGES_SHARE: Final = 0.25
"""Share of the window that verbatim messages of people may take."""

MAX_SUMMARY_CHARS: Final = 16_000
"""Maximum characters of a summary."""

SUMMARY_INPUT_SHARE: Final = 0.7
"""Share of the window that the conversation to summarise may take."""

MAX_MESSAGE_CHARS: Final = 4000
"""Characters of one message above which its middle is cut."""

NEVER_CUT_CHARS: Final = 300
"""Characters below which a message is never cut. The oldest messages are dropped instead."""

NO_SUMMARY: Final = "(Nothing could be said about it.)"


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionPolicy:
    """How conversations of one agent style are compacted.

    `compute_room` returns the maximum bytes for a context window in tokens. `limit_cut` moves the preferred cut to a
    possible place. `render_step` renders a step for the model. `collect_extra` returns additional data to keep.
    """

    compute_room: Callable[[int], int]
    limit_cut: Callable[[Sequence[Step], int], int]
    render_step: Callable[[Step, str], Iterable[str]]
    collect_extra: Callable[[Sequence[Step], int], Data]


class CompactSkill:
    """Replaces old steps with a summary. Messages of people and open obligations are kept verbatim."""

    type: StepType = "skill"
    name: str = "compact"
    description: str = "Sum up a conversation that has become too long."

    def __init__(self, models: Models, policies: Mapping[AgentStyle, CompactionPolicy] | None = None) -> None:
        self._models = models
        self._policies = {"converse": CONVERSE_COMPACTION, **(policies or {})}

    def terms(self, state: TeamState, step: Step) -> StepTerms:
        """Return the terms of a model call that reads the conversation once more."""
        spec, thread = state.agents[step.agent_id].spec, state.threads.get(step.thread_id)
        model = model_call.pick_model(self._models, spec)
        max_bytes = int(SUMMARY_INPUT_SHARE * model.card.window) * BYTES_PER_TOKEN
        return model_call.build_terms(
            model, spec, min(2 * thread.size if thread else 0, max_bytes) + len(spec.history.summary_prompt)
        )

    async def run(self, context: StepContext) -> Outcome:
        """Summarise old steps. Keep new steps, messages of people, and open items."""
        spec, history = context.agent.spec, await context.history()
        model = model_call.pick_model(self._models, spec)
        window, policy = model.card.window, self._policies.get(spec.style, CONVERSE_COMPACTION)
        room = policy.compute_room(window)
        cut = policy.limit_cut(
            history, find_cut(history, min(int(TAIL_SHARE * room), sum(map(measure_step, history)) // 3))
        )
        if cut == 0:
            return Outcome(state="failed", error="There is nothing to sum up.")
        max_bytes = int(SUMMARY_INPUT_SHARE * window) * BYTES_PER_TOKEN
        conversation = "\n\n".join(text for step in history[:cut] for text in policy.render_step(step, spec.language))
        reply = await request_reply(context, model, _build_request(context, model, cut_middle(conversation, max_bytes)))
        kept, missing = collect_human_messages(context.state, history[:cut], int(KEPT_MESSAGES_SHARE * room))
        summary = _fit_text(cut_middle(reply.text.strip(), MAX_SUMMARY_CHARS), room // 4) or NO_SUMMARY
        result = {
            "summary": summary,
            "kept": kept,
            "missing": missing,
            "open": list_open_items(context.state, context.step),
        }
        left = len(render_summary(result, spec.language).encode()) + sum(map(measure_step, history[cut:]))
        begins = history[cut].ended_in if cut < len(history) else None
        return Outcome(
            result={**result, **policy.collect_extra(history, cut), "steps": cut, "language": spec.language},
            spent=context.step.reserved if reply.cost is None else reply.cost,
            intents=(MoveWindow(thread_id=context.step.thread_id, window_from=begins, size=left),),
        )


def _build_request(context: StepContext, model: Model, conversation: str) -> ModelRequest:
    spec = context.agent.spec
    prompt = PACK.render(
        spec.language, "compact", {"talk": add_fence(conversation), "wish": spec.history.summary_prompt}
    )
    return ModelRequest(
        purpose=model_call.build_purpose(context.step, context.state.team.team_id, context.step.ordinal),
        messages=(ChatMessage(role="user", content=prompt),),
        max_output=model_call.find_max_output(model, spec),
    )


def find_cut(history: Sequence[Step], tail: int) -> int:
    """Return how many steps to summarise: all but the newest that fit. Calls and their results stay together."""
    cut, left = len(history), tail - measure_step(history[-1]) if history else 0
    while cut > 0 and left > 0:
        cut -= 1
        left -= measure_step(history[cut - 1]) if cut else 0
    while cut < len(history) and history[cut].work.call_id is not None:
        cut += 1
    return cut


def measure_step(step: Step) -> int:
    """Return the size of a step in bytes."""
    return count_bytes_added(step.work, step.result, step.error)


def collect_human_messages(state: TeamState, old: Sequence[Step], max_bytes: int) -> tuple[list[str], int]:
    """Return the messages of people verbatim, and how many did not fit."""
    said: list[str] = []
    for step in sorted(old, key=lambda item: item.work.executor != "compact"):  # a summary covers earlier steps
        result = step.result or {}
        before = result.get("kept")
        if step.work.executor == "compact" and isinstance(before, list):
            said += [str(item) for item in before]
        elif "deferred" not in result and is_from_people(state, step):
            # A planning agent receives what people write only as messages.
            is_said = step.work.executor == "converse" or step.message_id is not None
            said += [step.work.text_content] if is_said else []
    return _fit_messages(list(dict.fromkeys(item for item in said if item)), max_bytes)


def _fit_messages(said: list[str], max_bytes: int) -> tuple[list[str], int]:
    """Return the messages that fit. All long messages are cut to the same length, so that short requests stay whole. If
    that is not enough, the task has priority, then short messages, then new messages."""
    allowed = _compute_allowance([len(text.encode()) for text in said], max_bytes)
    told = [_fit_text(text, allowed) for text in said]
    left, chosen = max_bytes, set[int]()
    for place in sorted(range(len(said)), key=lambda place: (place > 0, len(said[place]) > NEVER_CUT_CHARS, -place)):
        left -= len(told[place].encode())
        if left >= 0 or place == 0:
            chosen.add(place)
    return [told[place] for place in sorted(chosen)], len(said) - len(chosen)


def _fit_text(text: str, max_bytes: int) -> str:
    size = len(text.encode())
    return text if size <= max_bytes else cut_middle(text, max_bytes * len(text) // size)


def _compute_allowance(sizes: Sequence[int], max_bytes: int) -> int:
    """Return the maximum size per message at which all of them fit."""
    left = max_bytes
    for place, size in enumerate(ordered := sorted(sizes)):
        share = left // (len(ordered) - place)
        if size > share:
            return max(share, NEVER_CUT_CHARS)
        left -= size
    return max(sizes, default=0)


def list_closed(history: Sequence[Step]) -> set[str]:
    """Return the skills that have run once for this task and do not run again after the summary."""
    return {name for step in history for name in find_closed(step)}


def list_open_items(state: TeamState, step: Step) -> list[str]:
    """List the answers that the agent owes in this conversation, and its unread notices."""
    owed = [item for item in state.steps_of(step.agent_id) if item.thread_id == step.thread_id and item.answers]
    waiting = dict.fromkeys(str(item.answers).partition(">")[0] for item in owed if item.answers in state.waits)
    thread = state.threads.get(step.thread_id)
    return [*(f"{item} waits for your answer." for item in waiting), *(thread.notices if thread is not None else ())]


def cut_middle(text: str, max_chars: int) -> str:
    """Cut the middle of a text that is too long."""
    if len(text) <= max_chars:
        return text
    half = max(max_chars // 2 - 32, 1)
    return f"{text[:half]}\n… ({len(text) - 2 * half:,} characters are left out here) …\n{text[-half:]}"


CONVERSE_COMPACTION: Final = CompactionPolicy(
    compute_room=lambda window: window * BYTES_PER_TOKEN,
    limit_cut=lambda _, cut: cut,
    render_step=lambda step, language: (
        f"[{message.role}]\n{cut_middle(message.content, MAX_MESSAGE_CHARS)}"
        for message in render_messages(step, native=False, language=language)
    ),
    collect_extra=lambda history, _: {CLOSED_KEY: sorted(closed)} if (closed := list_closed(history)) else {},
)
"""How conversations of conversing agents are compacted."""
