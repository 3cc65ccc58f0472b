"""The handlers of what a person types, in order: commands of the house, the shell, files. One may end the chain."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from difflib import get_close_matches
from typing import Final, TypeAlias

from greenroom.app.talks.typed.data import Attached
from greenroom.core.base.records import record


@record
class Command:
    """Something that the door is to do, and not the agent."""

    name: str
    argument: str = ""


@record
class Handled:
    """What a handler made of a text: the `content` for the next one. With `need_return` none comes after it.

    `said` is for the person; `command` is to be done; `attached` goes along with the content to the agent.
    """

    content: str
    need_return: bool = False
    said: str = ""
    command: Command | None = None
    attached: tuple[Attached, ...] = ()


Handler: TypeAlias = Callable[[str], Handled]

COMMANDS: Final = {
    "help": "what can be typed here",
    "clear": "begin anew; what was said stays in the log",
    "retry": "ask the last thing again",
    "continue": "let it go on",
    "model": "NAME  ask another model from now on",
    "cost": "what this chat has cost",
    "limit": "cost|tokens|time VALUE  what it may spend",
    "history": "what was said so far",
    "done": "SUMMARY  end this chat for good",
    "exit": "leave; it can be resumed",
}
"""The commands, and what each does. What it takes comes before two spaces."""

OTHER_NAMES: Final = {"quit": "exit", "q": "exit", "bye": "exit", "new": "clear", "?": "help", "go": "continue"}
SHELL: Final = "`!` is for commands, and Greenroom cannot run any yet. Put a space before it to say it to the agent."


def handle(text: str, handlers: Sequence[Handler]) -> Handled:
    """What comes of a text: each handler gets what the one before made of it, until one ends the chain."""
    done, attached = Handled(content=text), tuple[Attached, ...]()
    for handler in handlers:
        done = handler(done.content)
        attached += done.attached
        if done.need_return:
            return done
    return Handled(content=done.content, attached=attached)


def builtin(text: str) -> Handled:
    """`/word …` is a command. A path is none, and neither is what begins with a space."""
    word, _, rest = text[1:].partition(" ")
    first = word.strip()
    if not text.startswith("/") or "/" in first or "\n" in text:
        return Handled(content=text)
    name = OTHER_NAMES.get(first.lower(), first.lower()) or "help"
    if name in COMMANDS:
        return Handled(content="", need_return=True, command=Command(name=name, argument=rest.strip()))
    return Handled(content="", need_return=True, said=_unknown(first))


def shell(text: str) -> Handled:
    """`!command` is for the shell, which is not there yet."""
    if not text.startswith("!"):
        return Handled(content=text)
    return Handled(content="", need_return=True, said=SHELL)


def _unknown(word: str) -> str:
    near = get_close_matches(word.lower(), [*COMMANDS, *OTHER_NAMES], n=1)
    told = f"Did you mean /{near[0]}?" if near else "/help lists what there is."
    return f"There is no /{word}. {told}"
