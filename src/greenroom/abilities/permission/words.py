"""How the words of a rule are held against the words of a command: to the letter, or generously."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final

from greenroom.abilities.permission.programs import INTERPRETERS, escapes, program, runs_others
from greenroom.abilities.permission.shell.script import Command

_UNKNOWN: Final = re.compile(r"[$`*?\[{]")


def gap(rule: tuple[str, ...], command: Command, trouble: Callable[[str], str]) -> str | None:
    """Why a rule that loosens does not cover a command that begins as it says; empty when it does.

    None when the command is another one. Words behind the rule's own are free as long as they say what they are, do not
    turn the program into another, and name no file that is `trouble`.
    """
    named, at = len(rule), command.assigned
    if (rule and command.plain[:named] != rule) or (rule and named <= at):
        return None
    words = command.texts
    if not rule and (at or not command.words[at].plain or runs_others(words[at])):
        return f"`{words[0]}` can run any other program"
    for word in command.words[named:]:
        if not word.plain and not (word.glob and word.text[0] not in "-*?["):
            return f"the shell puts something in the place of `{word.text}`"
    if command.fed and program(words[at]) in INTERPRETERS:
        return f"`{words[at]}` would run what it is fed"
    beyond = next((words[at + one] for one in escapes(words[at:]) if at + one >= named), None)
    if beyond is not None and not _is_script(rule, at):
        return f"`{beyond}` makes it something else"
    return next((f"`{word}` {why}" for word in words[named:] if (why := trouble(word))), "")


def _is_script(rule: Sequence[str], at: int) -> bool:
    """Whether the rule names the script that an interpreter is to run: what follows are words of the script."""
    return len(rule) > at + 1 and program(rule[at]) in INTERPRETERS and not rule[at + 1].startswith("-")


def hidden(words: Sequence[str]) -> str:
    """The words behind a program, if it may run more than itself because of them."""
    hides = bool(words) and (runs_others(words[0]) or "=" in words[0] or any(True for _ in escapes(words)))
    return " ".join(words[1:]) if hides else ""


def may_mean(rule: Sequence[str], words: Sequence[str], behind: str) -> bool:
    """Whether a rule that tightens may be about a command with these words: others may stand between its own, or it is
    `behind` a program that runs others."""
    if not rule or not words:
        return not rule
    if behind and rule[0] in behind and _mentions(rule, behind):
        return True
    return program(words[0]) == program(rule[0]) and _in_order(rule[1:], words[1:])


def _in_order(wanted: Sequence[str], words: Sequence[str]) -> bool:
    """Whether these words come one after the other, counting those that the shell may make any other word of. (They may
    be quoted: then this is only careful.)"""
    at = 0
    for one in wanted:
        while at < len(words) and words[at] != one and _UNKNOWN.search(words[at]) is None:
            at += 1
        at += 1
    return at <= len(words)


def _mentions(rule: Sequence[str], text: str) -> bool:
    """Whether the rule's words are all there, one after the other, be it inside of another word."""
    at = 0
    for word in rule:
        found = text.find(word, at)
        if found < 0:
            return False
        at = found + len(word)
    return True
