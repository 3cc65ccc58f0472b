"""The run of `greenroom demo`: a small repository, the scripted coder and its provider, and the log of the run.

Only the replies are scripted. Everything that they ask for really happens.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

from greenroom.app.lookup import LAST, resolve_id
from greenroom.app.runtime import Runtime
from greenroom.core.base.errors import WorldFault
from greenroom.core.ports.checks import CheckResult
from greenroom.core.state.events import Event
from greenroom.core.state.stage import Stage, Subtask
from greenroom.core.state.step import Step, StepEnded
from greenroom.runs.verdict import read_report

CODE: Final = '''"""What the shop writes for others to read."""

import csv


def export(rows, out):
    """Write the rows as CSV."""
    csv.writer(out).writerows(rows)
'''
TESTS: Final = """import io
import unittest

from export import export


class Csv(unittest.TestCase):
    def test_rows_come_out_as_csv(self):
        out = io.StringIO()
        export([["tea", 3], ["cake", 5]], out)
        self.assertEqual(out.getvalue().split(), ["tea,3", "cake,5"])

    def test_nothing_comes_out_of_nothing(self):
        out = io.StringIO()
        export([], out)
        self.assertEqual(out.getvalue(), "")

    def test_prices_have_two_digits(self):
        out = io.StringIO()
        export([["tea", 3.5]], out)
        self.assertEqual(out.getvalue().split(), ["tea,3.50"])  # not done yet
"""
CELLS: Final = """def render(cell):
    return str(cell)
"""
README: Final = "# The shop\n\n`export.py` writes what was sold as CSV.\n\n## Formats\n\n- CSV\n"
NOTES: Final = "Ask Lin about the prices.\n"
GITIGNORE: Final = "__pycache__/\n"
UNCOMMITTED: Final = "notes.txt"
PASSING_TESTS: Final = 2
"""Number of tests in the repository that pass before the run. One more test fails."""

FILES: Final = {
    "export.py": CODE,
    "cells.py": CELLS,
    "tests/test_export.py": TESTS,
    "README.md": README,
    ".gitignore": GITIGNORE,
}
GIT_PREFIXES_KEPT: Final = ("GIT_CONFIG", "GIT_SSL", "GIT_TRACE")
"""Prefixes of git variables that do not redirect git to another repository."""


def command_environment() -> dict[str, str]:
    """Return the environment of this process without Greenroom's variables, keys, and variables that redirect git to
    another repository, so that the demo changes nothing of the person's."""
    dropped, secret = ("GREENROOM_", "GIT_"), ("_KEY", "_TOKEN", "PYTHONDONTWRITEBYTECODE")
    variables = {
        name: value
        for name, value in os.environ.items()
        if name.startswith(GIT_PREFIXES_KEPT) or not (name.startswith(dropped) or name.endswith(secret))
    }
    path = os.pathsep.join((str(Path(sys.executable).parent), variables.get("PATH", os.defpath)))
    no_proxy = dict.fromkeys(("NO_PROXY", "no_proxy"), "127.0.0.1,localhost")
    return {**variables, **no_proxy, "PATH": path, "PYTHONUTF8": "1"}


def git(root: Path, *words: str) -> str:
    """Run git in a folder and return its output. Raise `WorldFault` if it fails."""
    try:
        process = subprocess.run(
            ("git", *words), cwd=root, env=command_environment(), capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        raise WorldFault("git or its folder was not found. Install git and try again.") from None
    if process.returncode:
        raise WorldFault(f"git {words[0]} failed in {str(root)!r}: {process.stderr.strip()}")
    return process.stdout


def make_repository(root: Path) -> None:
    """Create the repository, or keep an existing repository."""
    if (root / ".git").exists():
        return
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    git(root, "init", "--quiet", "--template=", "--initial-branch=main")
    for key, default in (("user.name", "You"), ("user.email", "you@localhost")):
        git(root, "config", key, git(root, "config", "--default", default, "--get", key).strip() or default)
    for key, value in (("commit.gpgsign", "false"), ("core.hooksPath", ".git/hooks"), ("core.autocrlf", "false")):
        git(root, "config", key, value)
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message=The shop")
    (root / UNCOMMITTED).write_text(NOTES, encoding="utf-8")


def fingerprint(root: Path) -> str:
    """Return a digest of the bytes and modes of every file, git's index and its branch."""
    digest = hashlib.sha256()
    for path in sorted(path for path in root.rglob("*") if ".git" not in path.relative_to(root).parts):
        if path.is_file():
            digest.update(f"{path.relative_to(root)} {path.lstat().st_mode:o}\n".encode() + path.read_bytes())
    for words in (("rev-parse", "HEAD"), ("ls-files", "--stage"), ("status", "--porcelain=v2", "--branch")):
        digest.update(git(root, *words).encode())
    return digest.hexdigest()[:12]


REQUEST: Final = "add JSON to export, with tests"
NEW_CODE: Final = '''"""What the shop writes for others to read."""

import csv
import json


def export(rows, out, as_json=False):
    """Write the rows as CSV, or as JSON."""
    if as_json:
        json.dump(row, out)
    else:
        csv.writer(out).writerows(rows)
'''
NEW_TESTS: Final = """import io
import unittest

from export import export


class Json(unittest.TestCase):
    def test_rows_come_out_as_json(self):
        out = io.StringIO()
        export([["tea", 3]], out, as_json=True)
        self.assertEqual(out.getvalue(), '[["tea", 3]]')
"""
NEW_TEST: Final = "test_rows_come_out_as_json"
MENDED_LINE: Final = "json.dump(rows, out)"
EARLY_SUMMARY: Final = "It is done."
SUMMARY: Final = "`export.py` writes JSON too, CSV stays the default; `tests/test_json.py` shows it."
CHANGED_FILES: Final = ("README.md", "export.py", "tests/test_json.py")
"""The files that the run changes."""

CLAIMED_EVIDENCE: Final = {"files": [*CHANGED_FILES], "tests": ["tests/test_json.py"]}


Message: TypeAlias = Mapping[str, object]


class ScriptedTurn(NamedTuple):
    """One reply: a text, and optionally a tool call."""

    text: str
    tool: str = ""
    arguments: Mapping[str, object] = {}


class Story(NamedTuple):
    """What the demo shows: the command, the files that it changes, the commits of `apply`, and a line to blame."""

    words: tuple[str, ...]
    files: tuple[str, ...]
    commits: int
    line: tuple[str, str]


STORY: Final = Story(words=("run", REQUEST, "--yes"), files=CHANGED_FILES, commits=1, line=("export.py", MENDED_LINE))
PLAN: Final = ["Let export() write JSON", "Test it", "Say so in README.md"]
TURNS: Final[Sequence[ScriptedTurn]] = (
    ScriptedTurn("", "read_code", {"file": "export.py"}),
    ScriptedTurn("", "propose_plan", {"steps": PLAN, "files": [*CHANGED_FILES]}),
    ScriptedTurn(
        "JSON is asked for by name, so CSV stays the default.", "rewrite", {"file": "export.py", "content": NEW_CODE}
    ),
    ScriptedTurn("A test for it.", "rewrite", {"file": "tests/test_json.py", "content": NEW_TESTS}),
    ScriptedTurn(
        "People read about it here.",
        "patch",
        {"file": "README.md", "edits": [{"search": "as CSV.", "replace": "as CSV or as JSON."}]},
    ),
    ScriptedTurn("", "finish", {"status": "done", "summary": EARLY_SUMMARY, **CLAIMED_EVIDENCE}),
    ScriptedTurn(
        "The name was wrong: it is `rows`.",
        "patch",
        {"file": "export.py", "edits": [{"search": "json.dump(row, out)", "replace": MENDED_LINE}]},
    ),
    ScriptedTurn("", "finish", {"status": "done", "summary": SUMMARY, **CLAIMED_EVIDENCE}),
)
KILLED_AT_TURN: Final = 3
"""The turn, from 0, in which the process is killed: the code is written, its test is not."""

MENDED_AT_TURN: Final = 6
"""The turn that fixes what only the failed check reveals."""

NOT_TOLD_TURN: Final = ScriptedTurn("The checks did not say what fails, so I leave it.")
LAST_TURN: Final = ScriptedTurn("The script is at its end.")


BYTES_PER_TOKEN: Final = 4


class ScriptedProvider:
    """Serves the turns like an OpenAI-compatible provider.

    At the first request of the kill turn it sets `half_done` and does not reply. It reads the turn number from the
    conversation, so that a new process continues there.
    """

    def __init__(self, pace: float) -> None:
        self.half_done = asyncio.Event()
        self._pace = pace

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one request."""
        # Python 3.11 prints a traceback for a connection that is cancelled.
        with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
            size = next((int(line[15:]) for line in head.split("\r\n") if line.startswith("content-length:")), 0)
            messages = json.loads(await reader.readexactly(size) if size else b"{}").get("messages", [])
            number = sum(message["role"] == "assistant" for message in messages)
            turn = await self.choose_turn(messages, number)
            if turn is None:
                await reader.read()
            else:
                await asyncio.sleep(self._pace)
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")
                writer.writelines(f"data: {data}\n\n".encode() for data in stream_turn(turn, number, size))
                await writer.drain()
        writer.close()

    async def choose_turn(self, messages: Sequence[Message], number: int) -> ScriptedTurn | None:
        """Return the turn with this number, or None to leave the request open."""
        if number == KILLED_AT_TURN and not self.half_done.is_set():
            self.half_done.set()
            return None
        if number == MENDED_AT_TURN and NEW_TEST not in str(messages[-1].get("content")):
            return NOT_TOLD_TURN
        return TURNS[number] if number < len(TURNS) else LAST_TURN


def stream_turn(turn: ScriptedTurn, number: int, size: int) -> Iterator[str]:
    """Yield the events of a streamed reply to a request of `size` bytes."""
    function = {"name": turn.tool, "arguments": json.dumps(turn.arguments)}
    calls = [{"index": 0, "id": f"c{number}", "type": "function", "function": function}] if turn.tool else []
    delta = {"role": "assistant", "content": turn.text, **({"tool_calls": calls} if calls else {})}
    base = {"id": f"demo-{number}", "object": "chat.completion.chunk", "created": 0, "model": "coder"}
    ends = {"index": 0, "delta": {}, "finish_reason": "tool_calls" if calls else "stop"}
    yield json.dumps({**base, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
    yield json.dumps({**base, "choices": [ends]})
    read, written = size // BYTES_PER_TOKEN, len(json.dumps(delta)) // BYTES_PER_TOKEN
    usage = {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}
    yield json.dumps({**base, "choices": [], "usage": usage})
    yield "[DONE]"


class DemoLog(NamedTuple):
    """The newest run in the demo's home: its events, its ended and its running steps, and the subtasks of a team."""

    team: str
    events: Sequence[Event]
    steps: Sequence[Step]
    running: Sequence[str]
    subtasks: Sequence[Subtask] = ()

    def steps_of(self, *executors: str) -> Sequence[Step]:
        """Return the ended steps of these executors."""
        return [step for step in self.steps if step.work.executor in executors]

    @property
    def endings(self) -> Counter[str]:
        """Count how often each step ended."""
        return Counter(event.step_id for event in self.events if isinstance(event, StepEnded))

    @property
    def checks(self) -> Sequence[CheckResult]:
        """Return every check that ran, the baseline first."""
        reports = (read_report(step) for step in self.steps if step.state == "finished")
        return [checked for report in reports if report is not None for checked in report.checks]


async def read_log(home: Path) -> DemoLog:
    """Read the log. Raise `RefusedError` if there is no run."""
    runtime = await Runtime.open(home, access="look")
    try:
        team = (await resolve_id(runtime, LAST)).team
        state = await runtime.state(team)
        ended = [stage async for stage in runtime.archive(team, "stage") if isinstance(stage, Stage)]
        return DemoLog(
            team=team,
            events=[entry.event async for entry in runtime.events(team)],
            steps=[step async for step in runtime.archive(team, "step") if isinstance(step, Step)],
            running=[step.step_id for step in state.steps.values() if step.state == "running"],
            subtasks=[subtask for stage in (*ended, *state.stages.values()) for subtask in stage.subtasks],
        )
    finally:
        await runtime.close()
