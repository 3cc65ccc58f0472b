"""What the coder of the story says, turn by turn. Only the replies are made up: what they ask for really happens."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final

from greenroom.testing.fake_openai import Answer, Call

REQUEST: Final = "add JSON to export, with tests"
CODE: Final = '''"""What the shop writes for others to read."""

import csv
import json


def export(rows, out, as_json=False):
    """Write the rows as CSV, or as JSON."""
    if as_json:
        json.dump(row, out)
    else:
        csv.writer(out).writerows(rows)
'''
TESTS: Final = """import io
import unittest

from export import export


class Json(unittest.TestCase):
    def test_rows_come_out_as_json(self):
        out = io.StringIO()
        export([["tea", 3]], out, as_json=True)
        self.assertEqual(out.getvalue(), '[["tea", 3]]')
"""
NEW: Final = "test_rows_come_out_as_json"
MENDED: Final = "json.dump(rows, out)"
TOO_SOON: Final = "It is done."
LAST: Final = "`export.py` writes JSON too, CSV stays the default; `tests/test_json.py` shows it."
FILES: Final = ("README.md", "export.py", "tests/test_json.py")
"""What the work changes."""

UNREAD: Final = "README.md"
"""What of it no check reads."""

TURNS: Final[Sequence[Answer]] = (
    Answer(calls=(Call(name="read_code", arguments={"file": "export.py"}, id="c1"),)),
    Answer(
        calls=(
            Call(
                name="propose_plan",
                arguments={"steps": ["Let export() write JSON", "Test it", "Say so in README.md"], "files": [*FILES]},
                id="c2",
            ),
        )
    ),
    Answer(
        text="JSON is asked for by name, so CSV stays the default.",
        calls=(Call(name="rewrite", arguments={"file": "export.py", "content": CODE}, id="c3"),),
    ),
    Answer(
        text="A test for it.",
        calls=(Call(name="rewrite", arguments={"file": "tests/test_json.py", "content": TESTS}, id="c4"),),
    ),
    Answer(
        text="People read about it here.",
        calls=(
            Call(
                name="patch",
                arguments={"file": "README.md", "edits": [{"search": "as CSV.", "replace": "as CSV or as JSON."}]},
                id="c5",
            ),
        ),
    ),
    Answer(text=TOO_SOON),
    Answer(
        text="The name was wrong: it is `rows`.",
        calls=(
            Call(
                name="patch",
                arguments={"file": "export.py", "edits": [{"search": "json.dump(row, out)", "replace": MENDED}]},
                id="c6",
            ),
        ),
    ),
    Answer(text=LAST),
)
FATAL: Final = 3
"""The turn, from 0, in which the process that asks is killed: the code is written, its test is not."""

MENDS: Final = 6
"""The turn in which it can only know from the checks what is wrong."""

UNTOLD: Final = Answer(text="Nobody told me what fails, so I leave it.")
OVER: Final = Answer(text="The script is at its end.")
LONG: Final = 3600.0
"""Seconds between two words of a reply that nobody gets to hear."""


class Coder:
    """A script for a fake server. Which turn it is, it sees in the conversation: a new process goes on in it.

    When the fatal turn comes for the first time, `reached` is set and the reply does not come.
    """

    def __init__(self) -> None:
        self.reached = asyncio.Event()

    def __call__(self, request: dict[str, object], _: int) -> Answer:
        """The reply to this request."""
        messages = _messages(request)
        turn = sum(one.get("role") == "assistant" for one in messages)
        if turn == FATAL and not self.reached.is_set():
            self.reached.set()
            return Answer(text="A test for it", pace=LONG)
        if turn == MENDS and NEW not in str(messages[-1].get("content")):
            return UNTOLD
        return TURNS[turn] if turn < len(TURNS) else OVER


def _messages(request: Mapping[str, object]) -> Sequence[Mapping[str, object]]:
    found = request.get("messages")
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []
