"""Single values in an agent's file: how each is read, and what it should be if it cannot be.

A reader gives the value, or `Unfit` with what it should be; those of the settings serve here too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Final

from greenroom.abilities.permission.rules import BadRule, parse
from greenroom.abilities.protocols.schemas import BadSchema, faults
from greenroom.app.settings.values import Reader, Unfit, delay, number, text
from greenroom.core.base.text import UNSEEN

NAME: Final = re.compile(r"\w[\w.-]{0,63}")
RESERVED: Final = ("system", "door")
NAMED: Final = "a name of up to 64 letters, digits, - _ and ., like code-reviewer"
LISTED: Final = 'a list of names, like ["one", "two"]'
HOTTEST: Final = 2.0
SKILLS: Final = ("think", "quick_think", "ask_info", "task_manager", "agent_manager")
"""Skills that not every agent that plans has."""


def name(value: object) -> str:
    """What an agent is called, and called by."""
    if not isinstance(value, str) or not NAME.fullmatch(value) or value in RESERVED:
        raise Unfit(NAMED if value not in RESERVED else "another name: the house is called so itself")
    return value


def prose(value: object) -> str:
    """A text of any number of lines."""
    if not isinstance(value, str) or not value.strip():
        raise Unfit("a text that is not empty")
    if UNSEEN.search(value):
        raise Unfit("a text without characters that cannot be seen")
    return value.strip()


def names(value: object) -> tuple[str, ...]:
    """A list of names; `a, b` is one too. Each counts once."""
    listed = value.split(",") if isinstance(value, str) else value
    if not isinstance(listed, list | tuple):
        raise Unfit(LISTED)
    try:
        return tuple(dict.fromkeys(text(one) for one in listed))
    except Unfit:
        raise Unfit(LISTED) from None


def agents(value: object) -> tuple[str, ...]:
    """A list of agents."""
    return tuple(name(one) for one in names(value))


def limits(value: object) -> tuple[str, ...]:
    """Rules that tighten what an agent may do."""
    listed = [value] if isinstance(value, str) else value
    if not isinstance(listed, list | tuple):
        raise Unfit("a list of rules, like [deny command git push]")
    return tuple(dict.fromkeys(_limit(text(one)) for one in listed))


def _limit(said: str) -> str:
    try:
        rule = parse(said)
    except BadRule as bad:
        raise Unfit(f"a list of rules. {bad}") from None
    if rule.level not in ("ask", "deny"):
        raise Unfit("a list of rules that ask or deny: what an agent may do is not for its file to say")
    return str(rule)


def truth(value: object) -> bool:
    """Yes or no."""
    if not isinstance(value, bool):
        raise Unfit("true or false")
    return value


def whole(least: int, most: int) -> Reader:
    """A whole number."""

    def read(value: object) -> int:
        if type(value) is not int or not least <= value <= most:
            raise Unfit(f"a whole number from {least} to {most}")
        return value

    return read


def temperature(value: object) -> float:
    """How freely a model speaks."""
    what = "a number from 0 to 2"
    if number(value, what) > HOTTEST:
        raise Unfit(what)
    return number(value, what)


def rate(value: object) -> int:
    """A part of one, as percent."""
    what = "a number from 0 to 1, like 0.92"
    if number(value, what) > 1:
        raise Unfit(what)
    return round(number(value, what) * 100)


def seconds(value: object) -> int:
    """A time in whole seconds."""
    return round(delay(value))


def model(value: object) -> str:
    """A role, a group or `provider:model`. What it means is found out when it is asked."""
    named = text(value)
    if "://" in named or " " in named:
        raise Unfit("a role, a group of yours or provider:model, like openai:gpt-5.5; an address is none")
    return named


def several_of(*words: str) -> Reader:
    """A list of some of a few words."""

    def read(value: object) -> tuple[str, ...]:
        found = names(value)
        for one in found:
            if one not in words:
                near = get_close_matches(one, words, n=1)
                hint = f" (did you mean `{near[0]}`?)" if near else ""
                raise Unfit(f"a list of some of {', '.join(words)}{hint}")
        return found

    return read


def skills(value: object) -> tuple[str, ...]:
    """Skills of an agent that plans."""
    try:
        return names(several_of(*SKILLS)(value))
    except Unfit as unfit:
        raise Unfit(f"{unfit}; what an agent is good at is said with `capabilities`") from None


def translated(words: Mapping[str, str]) -> Reader:
    """The same in the words of another design."""
    known = several_of(*words)

    def read(value: object) -> tuple[str, ...]:
        return tuple(words[one] for one in names(known(value)))

    return read


def schema(value: object) -> Mapping[str, object]:
    """A JSON Schema."""
    if not isinstance(value, Mapping):
        raise Unfit("a JSON Schema, like {type: object, properties: {…}}")
    try:
        faults(value, {})
    except BadSchema as bad:
        raise Unfit(f"a JSON Schema ({bad})") from None
    return value
