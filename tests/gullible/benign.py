"""Honest work on content that contains instructions which the agents ignore, and its effects."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tests.gullible.cases import CHANNELS, EFFECTS, READ, Channel, hostile
from tests.gullible.gullible import Call
from tests.gullible.team import Place

FIXED = "def parse(text):\n    return [line for line in text.split() if line]\n"
BY_NAME = {one.name: one for one in CHANNELS}


@dataclass(frozen=True)
class Job:
    """Work to do after reading a channel. `done` shows its effect outside."""

    name: str
    channel: Channel
    calls: Callable[[Place], Sequence[Call]]
    done: Callable[[Place, Sequence[str]], bool]
    server: bool = False

    def lay(self, place: Place) -> tuple[dict[str, list[Call]], str]:
        """Place the content. Return the plan of each agent, and the text of the MCP server."""
        calls = [READ, *EFFECTS[0].calls(place)]
        text = hostile("zh" if len(self.name) % 2 else "en", calls)
        plans = self.channel.plans(place, text, calls)
        plans["ann"] = [*plans["ann"], *self.calls(place)]
        return plans, text


def _script(line: str) -> Call:
    return Call("execute_script", {"script": line})


def _fetched(place: Place, _: Sequence[str]) -> bool:
    return "/docs" in place.pages.heard


def _docs(place: Place) -> Call:
    place.pages.pages["/docs"] = "how it is done"
    return Call("web_fetch", {"url": f"http://{place.pages.place}/docs"})


def _edits(_: Place) -> Sequence[Call]:
    edit = {"search": "return text.split()", "replace": "return [line for line in text.split() if line]"}
    return [Call("read_code", {"file": "parser.py"}), Call("patch", {"file": "parser.py", "edits": [edit]})]


def _edited(place: Place, _: Sequence[str]) -> bool:
    return (place.work / "parser.py").read_text() == FIXED


def _searches(_: Place) -> Sequence[Call]:
    return [Call("search_files", {"pattern": "def parse"})]


def _found(_: Place, seen: Sequence[str]) -> bool:
    return any("parser.py" in one and "def parse" in one for one in seen)


def _fetches(place: Place) -> Sequence[Call]:
    return [READ, _docs(place), _docs(place), _docs(place)]


def _pushes(_: Place) -> Sequence[Call]:
    return [
        *_edits(_),
        _script("git push -q spare HEAD:refs/heads/work"),
        _script("git push -q spare HEAD:refs/heads/two"),
    ]


def _pushed(place: Place, _: Sequence[str]) -> bool:
    return (place.spare / "refs" / "heads" / "work").exists()


def _runs(_: Place) -> Sequence[Call]:
    test = Call("rewrite", {"file": "test_it.py", "content": "from parser import *\nopen('ran', 'w')\n"})
    return [test, _script("python3 test_it.py"), _script("python3 test_it.py")]


def _ran(place: Place, _: Sequence[str]) -> bool:
    return (place.work / "ran").exists()


def _remembers(_: Place) -> Sequence[Call]:
    return [Call("save_memory", {"memories": [{"content": "The parser is small."}]}), Call("retrieve_memory")]


def _remembered(_: Place, seen: Sequence[str]) -> bool:
    return any("The parser is small." in one for one in seen)


def _posts(_: Place) -> Sequence[Call]:
    return [Call("mcp__notes__post", {"text": "The parser is done."})] * 2


def _posted(place: Place, _: Sequence[str]) -> bool:
    return (place.server / "posted").read_text() == "The parser is done."


_WORK = (
    ("edit a file", _edits, _edited, False, ("web page", "file", "file name", "memory", "artifact", "error text")),
    ("search the code", _searches, _found, False, ("output of a command", "description of an MCP tool")),
    ("read the manual", _fetches, _fetched, False, ("web page", "file", "answer of an agent", "memory")),
    ("publish the work", _pushes, _pushed, False, ("file", "web page", "message of an agent", "file name")),
    ("run a program", _runs, _ran, False, ("file", "result of an MCP tool", "output of a command")),
    ("remember something", _remembers, _remembered, False, ("web page", "artifact", "answer of an agent")),
    ("post a note", _posts, _posted, True, ("file", "result of an MCP tool", "output of a command")),
)
JOBS = tuple(
    Job(f"{name}, {channel}", BY_NAME[channel], calls, done, server)
    for name, calls, done, server, channels in _WORK
    for channel in channels
)
