"""compact: a long conversation is summed up, and its window begins anew. The log keeps all of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from greenroom.abilities.skills.prompts.builder import PACK
from greenroom.abilities.skills.talk import voice
from greenroom.abilities.skills.talk.reply import answer
from greenroom.abilities.skills.talk.transcript import BYTES_PER_TOKEN, from_people, summed_up, told
from greenroom.core.base.records import Data
from greenroom.core.base.text import fenced
from greenroom.core.ports.executor import Bench, Outcome
from greenroom.core.ports.model import ChatMessage, Model, ModelRequest, Models
from greenroom.core.rules.intents import MoveWindow
from greenroom.core.state.spec import Style
from greenroom.core.state.step import Step, StepType, Terms, length
from greenroom.core.state.world import World

TAIL: Final = 0.2
"""How much of the window the newest steps may take that stay as they are."""

KEPT: Final = 0.25
"""How much of it the words of those may take for whom the agent works: they survive as they were said."""

LONGEST: Final = 16_000
"""Characters of a summary."""

READ: Final = 0.7
"""How much of it the model is shown to sum up."""

LONG: Final = 4000
"""Characters of one message above which only its beginning and its end are shown."""

SHORT: Final = 300
"""Characters below which somebody's words are never cut: rather the oldest are left to the log."""

NO_SUMMARY: Final = "(Nothing could be said about it.)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Manner:
    """How the conversations of one style of agents are summed up.

    `room` is how many bytes one may have for a model that reads so many tokens; `cut` where it can be cut, of the
    place where that would be best; `shown` how its model reads a step; `more` what else the sum has to remember.
    """

    room: Callable[[int], int]
    cut: Callable[[Sequence[Step], int], int]
    shown: Callable[[Step, str], Iterable[str]]
    more: Callable[[Sequence[Step], int], Data]


class Compact:
    """What must survive survives word for word: what people said, what is owed. The rest is told by a summary."""

    type: StepType = "skill"
    name: str = "compact"
    description: str = "Sum up a conversation that has become too long."

    def __init__(self, models: Models, manners: Mapping[Style, Manner] | None = None) -> None:
        self._models = models
        self._manners = {"converse": TALKS, **(manners or {})}

    def terms(self, world: World, step: Step) -> Terms:
        """A model call that reads the conversation once more."""
        spec, thread = world.agents[step.agent_id].spec, world.threads.get(step.thread_id)
        model = voice.voice(self._models, spec)
        most = int(READ * model.card.window) * BYTES_PER_TOKEN
        return voice.terms(model, spec, min(2 * thread.size if thread else 0, most) + len(spec.history.summary_prompt))

    async def run(self, bench: Bench) -> Outcome:
        """Sum up what is old; keep what is new, what people said and what is open."""
        spec, history = bench.agent.spec, await bench.history()
        model = voice.voice(self._models, spec)
        window, manner = model.card.window, self._manners.get(spec.style, TALKS)
        room = manner.room(window)
        cut = manner.cut(history, cut_of(history, min(int(TAIL * room), sum(map(size, history)) // 3)))
        if cut == 0:
            return Outcome(state="failed", error="There is nothing to sum up.")
        most = int(READ * window) * BYTES_PER_TOKEN
        talk = "\n\n".join(one for step in history[:cut] for one in manner.shown(step, spec.language))
        reply = await answer(bench, model, _request(bench, model, shortened(talk, most)))
        kept, missing = words_of_people(bench.world, history[:cut], int(KEPT * room))
        summary = _fitted(shortened(reply.text.strip(), LONGEST), room // 4) or NO_SUMMARY
        result = {"summary": summary, "kept": kept, "missing": missing, "open": open_in(bench.world, bench.step)}
        left = len(summed_up(result, spec.language).encode()) + sum(map(size, history[cut:]))
        begins = history[cut].ended_in if cut < len(history) else None
        return Outcome(
            result={**result, **manner.more(history, cut), "steps": cut, "language": spec.language},
            spent=bench.step.reserved if reply.spent is None else reply.spent,
            intents=(MoveWindow(thread_id=bench.step.thread_id, window_from=begins, size=left),),
        )


def _request(bench: Bench, model: Model, talk: str) -> ModelRequest:
    spec = bench.agent.spec
    prompt = PACK.render(spec.language, "compact", {"talk": fenced(talk), "wish": spec.history.summary_prompt})
    return ModelRequest(
        purpose=voice.purpose(bench.step, bench.world.team.team_id, bench.step.ordinal),
        messages=(ChatMessage(role="user", content=prompt),),
        max_output=voice.longest(model, spec),
    )


def cut_of(history: Sequence[Step], tail: int) -> int:
    """How many steps are summed up: all but the newest that have room. Calls and their results stay together."""
    cut, left = len(history), tail - size(history[-1]) if history else 0
    while cut > 0 and left > 0:
        cut -= 1
        left -= size(history[cut - 1]) if cut else 0
    while cut < len(history) and history[cut].work.call_id is not None:
        cut += 1
    return cut


def size(step: Step) -> int:
    """The bytes of a step."""
    return length(step.work, step.result, step.error)


def words_of_people(world: World, old: Sequence[Step], most: int) -> tuple[list[str], int]:
    """What those said for whom the agent works, word for word; and how much of it there is no room for."""
    said: list[str] = []
    for step in sorted(old, key=lambda one: one.work.executor != "compact"):  # what it sums up was before its tail
        result = step.result or {}
        before = result.get("kept")
        if step.work.executor == "compact" and isinstance(before, list):
            said += [str(one) for one in before]
        elif "deferred" not in result and from_people(world, step):
            # An agent that plans gets what somebody has said as a message only.
            is_said = step.work.executor == "converse" or step.message_id is not None
            said += [step.work.text_content] if is_said else []
    return _fitting(list(dict.fromkeys(one for one in said if one)), most)


def _fitting(said: list[str], most: int) -> tuple[list[str], int]:
    """What there is room for. The longest are cut first, all to the same length, so that wishes and corrections stay
    whole beside what somebody has pasted. Where even that is too much, the task stays, then what is short, then what is
    new."""
    allowed = _allowed([len(one.encode()) for one in said], most)
    told = [_fitted(one, allowed) for one in said]
    left, chosen = most, set[int]()
    for place in sorted(range(len(said)), key=lambda place: (place > 0, len(said[place]) > SHORT, -place)):
        left -= len(told[place].encode())
        if left >= 0 or place == 0:
            chosen.add(place)
    return [told[place] for place in sorted(chosen)], len(said) - len(chosen)


def _fitted(text: str, most: int) -> str:
    """The text in so many bytes."""
    size = len(text.encode())
    return text if size <= most else shortened(text, most * len(text) // size)


def _allowed(sizes: Sequence[int], most: int) -> int:
    """How long each may be so that all together have room."""
    left = most
    for place, size in enumerate(ordered := sorted(sizes)):
        share = left // (len(ordered) - place)
        if size > share:
            return max(share, SHORT)
        left -= size
    return max(sizes, default=0)


def open_in(world: World, step: Step) -> list[str]:
    """What the agent owes in this conversation, and what it has not been told yet."""
    owed = [one for one in world.steps_of(step.agent_id) if one.thread_id == step.thread_id and one.answers]
    waiting = dict.fromkeys(str(one.answers).partition(">")[0] for one in owed if one.answers in world.waits)
    thread = world.threads.get(step.thread_id)
    return [*(f"{one} waits for your answer." for one in waiting), *(thread.notices if thread is not None else ())]


def shortened(text: str, most: int) -> str:
    """The beginning and the end of a text that is too long."""
    if len(text) <= most:
        return text
    half = max(most // 2 - 32, 1)
    return f"{text[:half]}\n… ({len(text) - 2 * half:,} characters are left out here) …\n{text[-half:]}"


TALKS: Final = Manner(
    room=lambda window: window * BYTES_PER_TOKEN,
    cut=lambda _, cut: cut,
    shown=lambda step, language: (
        f"[{message.role}]\n{shortened(message.content, LONG)}"
        for message in told(step, native=False, language=language)
    ),
    more=lambda _, __: {},
)
"""How those are summed up who talk."""
