"""When work is over: who says so and how, and what an agent is told that has not said it."""

from __future__ import annotations

from typing import Final, Literal

from greenroom.abilities.skills.prompts.builder import MARK, PACK
from greenroom.abilities.skills.talk.circles import Circle
from greenroom.core.base.records import record
from greenroom.core.state.spec import AgentSpec, Ends

CAP: Final = 200
"""How often an agent acts before it has to answer, if its spec does not say."""

PATIENCE: Final[dict[Ends, int]] = {"finish": 1, "mark": 5, "text": 0}
"""How often an agent that only talks is told that its work is not over."""

Source = Literal["finish", "answer", "mark", "text", "unproven", "silent", "held", "limit", "circles"]

WHY: Final[dict[Source, str]] = {
    "silent": "It never said that it was done. Its last words:",
    "held": "It says that it is done, but may not end its task by itself (`auto_complete`), and nobody else is here.",
    "limit": "It has acted as often as it may, and did not end its work.",
    "circles": "It went in circles, and was stopped.",
}
"""What is said of an end that is not the agent's own word."""

AGAIN: Final[dict[Circle, str]] = {
    "same_call": "It made the same call again and again.",
    "same_failure": "Its calls failed again and again for the same reason.",
    "in_turn": "It made the same two calls in turn.",
    "no_change": "It made call after call that changed no file and found nothing new.",
}
"""Which circle it was."""


@record
class CompletionSignal:
    """The end of work, whatever form it had: who or what said so, and the result; `files` and `tests` as a `finish`
    call names them."""

    source: Source
    text: str
    files: tuple[str, ...] = ()
    tests: tuple[str, ...] = ()

    @property
    def failed(self) -> bool:
        """Whether the work has not come to its end."""
        return self.source in ("silent", "held", "limit", "circles")


def signal(source: Source, text: str, circle: Circle | None = None) -> CompletionSignal:
    """An end with what is to be said of it."""
    why = f"{WHY.get(source, '')} {AGAIN[circle] if circle is not None else ''}".strip()
    return CompletionSignal(source=source, text="\n".join(part for part in (why, text) if part.strip()))


def auto_completes(
    explicit: bool | None,
    *,
    non_interactive: bool,
    in_multi_agent: bool = False,
    managed: bool = False,
    honour: bool = False,
) -> bool:
    """Whether an agent may end its task by itself.

    `managed` is one that a MultiAgent runs and that is not its main one: it may not, whatever it says itself, unless
    that is to be honoured. Then its own word counts; then, in company it may not; alone and unattended it may.
    """
    if managed:
        return honour and explicit is True
    if explicit is not None:
        return explicit
    return non_interactive and not in_multi_agent


def ends_of(spec: AgentSpec, *, subtask: bool) -> Ends:
    """What says that the work is over, if the spec does not: what fits the form in which the agent acts.

    Who has a part in a plan says so with a call, so that others can build on it; a question is answered by an answer.
    """
    if spec.turn.ends is not None:
        return spec.turn.ends
    if "xml_tool" in spec.turn.protocols:
        return "text"
    if spec.turn.protocols:
        return "mark"
    return "finish" if subtask else "text"


def is_over(ends: Ends, text: str, *, auto_complete: bool, nudges: int) -> Source | None:
    """Whether a reply without a call ends the work, and how. Talk that goes on and on without saying so never will."""
    if ends == "text":
        return "text"
    if ends == "mark" and MARK in text:
        return "mark" if auto_complete else "held"
    if nudges < PATIENCE[ends]:
        return None
    return "unproven" if ends == "finish" else "silent"


def without_mark(text: str) -> str:
    """The text that a person reads."""
    return text.replace(f"`{MARK}`", "").replace(MARK, "").strip()


def nudge(spec: AgentSpec, ends: Ends | Literal["answer"], *, empty: bool, why: str = "") -> str:
    """What an agent is told whose reply does not move its work on."""
    return PACK.render(spec.language, "nudge", {"ends": ends, "empty": empty, "mark": MARK, "why": why})


def cut_off(spec: AgentSpec) -> str:
    """What an agent is told that had more to say than it is allowed to at once."""
    return PACK.render(spec.language, "cut_off", {})


def last_turn(spec: AgentSpec, rounds: int) -> str:
    """What an agent is told that has acted as often as it may."""
    return PACK.render(spec.language, "last_turn", {"rounds": rounds})


def in_circles(spec: AgentSpec, circle: Circle, *, ends: bool) -> str:
    """What an agent is told that does the same again and again."""
    return PACK.render(spec.language, "circles", {"circle": circle, "ends": ends})
