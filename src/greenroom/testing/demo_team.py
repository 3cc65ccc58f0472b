"""The run of `greenroom demo --team`: the script of five specialists, two of which write code at the same time.

Only the replies are scripted. Each specialist is known by its system prompt, a writer also by its write set.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from greenroom.testing.demo_run import LAST_TURN, Message, ScriptedProvider, ScriptedTurn, Story

REQUEST: Final = "add a JSON export and an XML export, with tests and docs"
JSON_CODE: Final = """import json


def to_json(rows):
    return json.dumps(rows)
"""
XML_CODE: Final = """from xml.sax.saxutils import escape


def to_xml(rows):
    lines = (f"<row>{escape(' '.join(map(str, row)))}</row>" for row in rows)
    return f"<rows>{''.join(lines)}</rows>"
"""
TESTS: Final = """import unittest

from to_json import to_json
from to_xml import to_xml


class Formats(unittest.TestCase):
    def test_rows_become_json(self):
        self.assertEqual(to_json([["tea", 3]]), '[["tea", 3]]')

    def test_rows_become_xml(self):
        self.assertEqual(to_xml([["tea"]]), "<rows><row>tea</row></rows>")
"""
DOCS: Final = "# Formats\n\n`to_json(rows)` returns JSON, `to_xml(rows)` returns XML.\n"
NEW_TESTS: Final = 2
WRITERS: Final = ("to_json.py", "to_xml.py")
"""The write sets of the two code-writers."""

SPECIALISTS: Final = ("architect", "code-writer", "test-writer", "documentation", "review")
STORY: Final = Story(
    words=("run", "--team", "--yes", REQUEST),
    files=("docs/formats.md", "tests/test_formats.py", *WRITERS),
    commits=4,
    line=("to_json.py", "json.dumps(rows)"),
)


def _write(path: str, content: str, files: str, **more: object) -> tuple[ScriptedTurn, ...]:
    handoff = {files: [{"path": path, "change_type": "created"}], **more}
    report = {"status": "done", "summary": f"`{path}` is written.", "files": [path], "handoff": handoff}
    return ScriptedTurn("", "rewrite", {"file": path, "content": content}), ScriptedTurn("", "answer", report)


DESIGN: Final = {
    "architecture_overview": "One module for each format, next to export.py.",
    "components": [{"name": path[3:-3], "purpose": f"rows as {path[3:-3]}", "writes": [path]} for path in WRITERS],
}
FEEDBACK: Final = {"overall_score": 92, "requires_changes": False}
TURNS: Final[Mapping[str, Sequence[ScriptedTurn]]] = {
    "architect": (
        ScriptedTurn("", "read_code", {"file": "export.py"}),
        ScriptedTurn("", "answer", {"status": "done", "summary": "One module for each format.", "handoff": DESIGN}),
    ),
    "to_json.py": _write("to_json.py", JSON_CODE, "modified_files"),
    "to_xml.py": _write("to_xml.py", XML_CODE, "modified_files"),
    "test-writer": _write("tests/test_formats.py", TESTS, "test_files", tests_added=NEW_TESTS),
    "documentation": _write("docs/formats.md", DOCS, "documents"),
    "review": (
        *(ScriptedTurn("", "read_code", {"file": path}) for path in WRITERS),
        ScriptedTurn("", "answer", {"status": "done", "summary": "Both formats are right.", "handoff": FEEDBACK}),
    ),
}


class TeamProvider(ScriptedProvider):
    """Serves the turns of each specialist. The process is killed when both code-writers have written their file."""

    def __init__(self, pace: float) -> None:
        super().__init__(pace)
        self._written = set[str]()

    def choose_turn(self, messages: Sequence[Message], number: int) -> ScriptedTurn | None:
        """Return the next turn of the specialist that asks; None while the other writer is not so far."""
        role = find_role("\n".join(str(message.get("content")) for message in messages))
        if role in WRITERS and number == 1 and not self.half_done.is_set():
            self._written.add(role)
            if self._written == set(WRITERS):
                self.half_done.set()
            return None
        turns = TURNS.get(role, ())
        return turns[number] if number < len(turns) else LAST_TURN


def find_role(text: str) -> str:
    """Return the specialist of a conversation; that of a code-writer is the file that it writes."""
    found = re.search(r"(?:You are|你是) ([\w-]+)", text)
    role = found[1] if found is not None else ""
    written = re.search(r"(?:Write only: |只修改：)(\S+)", text) if role == "code-writer" else None
    return written[1] if written is not None else role
