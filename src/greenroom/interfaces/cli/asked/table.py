"""All commands in one table: what each does in a few words, and where it is. Nothing is imported for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Access = Literal["make", "change", "look"]
"""What a command may do to the home: make one, change what is there, or only look. See `Runtime.open`."""

SECTIONS: Final = ("begin", "look", "steer", "keep")


@dataclass(frozen=True, slots=True)
class Entry:
    """One command. How it is typed is the function of its name in `syntax.<section>`, what it does in its `module`."""

    section: str
    name: str
    module: str
    access: Access
    help: str


ENTRIES: Final = (
    Entry("begin", "demo", "demo", "make", "Watch three scripted agents work; with --crash, die and carry on."),
    Entry("begin", "doctor", "doctor", "look", "Check this machine and the log, and say what to do."),
    Entry("look", "tasks", "tasks", "look", "List what was and is being worked on."),
    Entry("look", "show", "show", "look", "Show a team: tasks, agents, messages, costs."),
    Entry("look", "events", "events", "look", "Print what happened; --follow to watch it happen."),
    Entry("look", "replay", "replay", "look", "Tell the story again, or what was true at any version."),
    Entry("steer", "pause", "control", "change", "Start nothing new."),
    Entry("steer", "resume", "resume", "change", "Go on; a team that nobody runs is run here."),
    Entry("steer", "cancel", "control", "change", "End the work; what runs is stopped."),
    Entry("steer", "answer", "control", "change", "Say yes or no to a step that waits for you."),
    Entry("steer", "fork", "fork", "change", "Begin a new team from any moment of an old one."),
    Entry("keep", "du", "storage", "look", "How much room the teams take."),
    Entry("keep", "gc", "storage", "change", "Give back the room that nothing needs."),
    Entry("keep", "forget", "storage", "change", "Delete a team and all that was logged of it."),
)
VERSION: Final = Entry("begin", "version", "version", "look", "Say which version this is.")


def entry_of(name: str) -> Entry:
    """The command of this name."""
    return next(entry for entry in ENTRIES if entry.name == name)
