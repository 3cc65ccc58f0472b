"""What came of a turn, in words and for programs."""

from __future__ import annotations

from typing import Final

from greenroom.app.conversation.chat import Turn
from greenroom.interfaces.cli.display.rows import dollars, seconds
from greenroom.interfaces.cli.runs.ending import MILLION, because

HINTS: Final = {
    "provider": "Enter tries again; /model NAME asks another model.",
    "limit": "Allow more with /limit, for instance /limit cost 10; then Enter goes on.",
    "paused": "Enter goes on.",
    "failed": "/retry asks again.",
}


def trouble(turn: Turn, *, attended: bool, answer: str) -> str:
    """Why there is no answer, and what to do now; `answer` is the command for what a person is asked."""
    why = f"{turn.word}: {because(turn.word, turn.why)}"
    if turn.last:
        return why
    hint = HINTS.get(turn.word, "") if attended else answer if turn.word == "waiting" else ""
    return f"{why} {hint}".strip()


def cost(turn: Turn) -> str:
    """What it cost; of a call that was cut off nobody knows more than what was reserved for it."""
    most = "at most " if turn.word == "interrupted" else ""
    money = f" · {dollars(turn.spent.money)}" if turn.spent.money else ""
    return f"{most}{turn.spent.tokens:,} tokens{money} · {seconds(turn.spent.millis)}"


def fields(turn: Turn, answer: str) -> dict[str, object]:
    """The same for a program."""
    why = {"why": turn.why} if turn.why and turn.why != answer else {}
    spent = {"tokens": turn.spent.tokens, "cost": turn.spent.money / MILLION}
    return {"status": turn.word, "answer": answer, **why, **spent}
