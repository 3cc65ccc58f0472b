"""All commands in one table: name, where its function is, what it does in a few words. Nothing is imported for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

ROOM: Final = "greenroom.interfaces.cli.commands"


@dataclass(frozen=True, slots=True)
class Entry:
    """One command: the function `name` in the module `ROOM.module`."""

    name: str
    module: str
    help: str


SECTIONS: Final[tuple[tuple[str, tuple[Entry, ...]], ...]] = (
    (
        "Begin",
        (
            Entry("demo", "demo", "Watch three scripted agents work; with --crash, die and carry on."),
            Entry("doctor", "doctor", "Check this machine and the log, and say what to do."),
        ),
    ),
    (
        "Look",
        (
            Entry("tasks", "tasks", "List what was and is being worked on."),
            Entry("show", "show", "Show a team: tasks, agents, messages, costs."),
            Entry("events", "events", "Print what happened; --follow to watch it happen."),
            Entry("replay", "replay", "Tell the story again, or what was true at any version."),
        ),
    ),
    (
        "Steer",
        (
            Entry("pause", "control", "Start nothing new."),
            Entry("resume", "resume", "Go on; a team that nobody runs is run here."),
            Entry("cancel", "control", "End the work; what runs is stopped."),
            Entry("answer", "control", "Say yes or no to a step that waits for you."),
            Entry("fork", "fork", "Begin a new team from any moment of an old one."),
        ),
    ),
    (
        "Keep",
        (
            Entry("du", "storage", "How much room the teams take."),
            Entry("gc", "storage", "Give back the room that nothing needs."),
            Entry("forget", "storage", "Delete a team and all that was logged of it."),
        ),
    ),
)

ENTRIES: Final = tuple(entry for _, entries in SECTIONS for entry in entries)
VERSION: Final = Entry("version", "version", "Say which version this is.")
