"""The run of `greenroom demo --team`: the script of five specialists, two of which write code at the same time.

Only the replies are scripted. Each specialist is known by its system prompt, a writer also by its write set. Both
writers change two files that neither announced, one breaks a test, the other uses what the first has changed.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from greenroom.core.base.errors import WorldFault
from greenroom.testing.demo_run import CELLS, LAST_TURN, Message, ScriptedProvider, ScriptedTurn, Story, git

REQUEST: Final = "add a JSON export and an XML export, with tests and docs"
JSON_CODE: Final = """import json

from cells import render


def to_json(rows):
    return json.dumps([[render(cell, 2) for cell in row] for row in rows])
"""
XML_CODE: Final = """from xml.sax.saxutils import escape

from cells import render


def to_xml(rows):
    lines = (f"<row>{escape(' '.join(render(cell) for cell in row))}</row>" for row in rows)
    return f"<rows>{''.join(lines)}</rows>"
"""
RENDER: Final = """def render(cell, digits):
    return f"{cell:.{digits}f}" if isinstance(cell, float) else str(cell)
"""
HEAD: Final = '''def export(rows, out):
    """Write the rows as CSV."""
'''
NEW_HEAD: Final = '''def export(rows, out, kind="csv"):
    """Write the rows as CSV, or as this kind."""
    if kind == "{kind}":
        return out.write(to_{kind}(rows))
'''
MERGED_HEAD: Final = f"""
{NEW_HEAD.format(kind="json")}    if kind == "xml":
        return out.write(to_xml(rows))
"""
TESTS: Final = """import io
import unittest

from export import export


class Formats(unittest.TestCase):
    def test_rows_become_json(self):
        out = io.StringIO()
        export([["tea", 3.5]], out, "json")
        self.assertEqual(out.getvalue(), '[["tea", "3.50"]]')

    def test_rows_become_xml(self):
        out = io.StringIO()
        export([["tea", 3.5]], out, "xml")
        self.assertEqual(out.getvalue(), "<rows><row>tea 3.50</row></rows>")
"""
DOCS: Final = "# Formats\n\n`export(rows, out, kind)` writes `csv`, `json` or `xml`.\n"
NEW_TESTS: Final = 2
WRITERS: Final = ("to_json.py", "to_xml.py")
"""The write sets of the two code-writers."""

BROKEN_TEST: Final = "test_rows_come_out_as_csv"
FINDING: Final = "to_xml() does not say what it returns"
DOCSTRING: Final = '    """Return the rows as one XML element."""'
SPECIALISTS: Final = ("architect", "code-writer", "test-writer", "documentation", "review")
STORY: Final = Story(
    words=("run", "--team", "--yes", REQUEST),
    files=("README.md", "cells.py", "docs/formats.md", "export.py", "tests/test_formats.py", *WRITERS),
    commits=5,
    line=("to_json.py", "json.dumps("),
)


def _rewrite(path: str, content: str) -> ScriptedTurn:
    return ScriptedTurn("", "rewrite", {"file": path, "content": content})


def _patch(path: str, *edits: tuple[str, str]) -> ScriptedTurn:
    changes = [{"search": old, "replace": new} for old, new in edits]
    return ScriptedTurn("", "patch", {"file": path, "edits": changes})


def _report(*paths: str, files: str = "modified_files", **more: object) -> ScriptedTurn:
    handoff = {files: [{"path": path, "change_type": "modified"} for path in paths], **more}
    report = {"status": "done", "summary": f"`{paths[0]}` is written.", "files": [*paths], "handoff": handoff}
    return ScriptedTurn("", "answer", report)


def _export(kind: str, *more: tuple[str, str]) -> ScriptedTurn:
    module = f"import csv\n\nfrom to_{kind} import to_{kind}\n"
    return _patch("export.py", ("import csv\n", module), (HEAD, NEW_HEAD.format(kind=kind)), *more)


def _review(score: int, *issues: Mapping[str, object]) -> ScriptedTurn:
    feedback = {"overall_score": score, "requires_changes": bool(issues), "issues": [*issues]}
    summary = "One finding." if issues else "Both formats are right."
    return ScriptedTurn("", "answer", {"status": "done", "summary": summary, "handoff": feedback})


DESIGN: Final = {
    "architecture_overview": "One module for each format, next to export.py.",
    "components": [{"name": path[3:-3], "purpose": f"rows as {path[3:-3]}", "writes": [path]} for path in WRITERS],
}
ISSUE: Final = {
    "severity": "major",
    "category": "maintainability",
    "location": {"path": "to_xml.py", "line": 6},
    "description": FINDING,
    "suggestion": "Add a docstring.",
}
MERGED: Final = {
    "files": [{"path": "export.py", "stretches": [MERGED_HEAD], "reason": "Each kind keeps its own branch."}]
}
JSON_FILES: Final = ("to_json.py", "cells.py", "export.py", "README.md")
XML_FILES: Final = ("to_xml.py", "export.py", "README.md")
TURNS: Final[Mapping[str, Sequence[ScriptedTurn]]] = {
    "architect": (
        ScriptedTurn("", "read_code", {"file": "export.py"}),
        ScriptedTurn("", "answer", {"status": "done", "summary": "One module for each format.", "handoff": DESIGN}),
    ),
    "to_json.py": (
        _rewrite("to_json.py", JSON_CODE),
        _patch("cells.py", (CELLS, RENDER)),
        _export("json", ("writerows(rows)", "writerows(rows[1:])")),
        _patch("README.md", ("- CSV\n", "- CSV\n- JSON\n")),
        _report(*JSON_FILES),
        _patch("export.py", ("rows[1:]", "rows")),
        _report(*JSON_FILES),
    ),
    "to_xml.py": (
        _rewrite("to_xml.py", XML_CODE),
        _export("xml"),
        _patch("README.md", ("- CSV\n", "- CSV\n- XML\n")),
        _report(*XML_FILES),
        _patch("to_xml.py", ("render(cell)", "render(cell, 2)")),
        _report(*XML_FILES),
    ),
    "merger": (ScriptedTurn("", "answer", MERGED),),
    "test-writer": (
        _rewrite("tests/test_formats.py", TESTS),
        _report("tests/test_formats.py", files="test_files", tests_added=NEW_TESTS),
    ),
    "documentation": (_rewrite("docs/formats.md", DOCS), _report("docs/formats.md", files="documents")),
    "review": (*(ScriptedTurn("", "read_code", {"file": path}) for path in WRITERS), _review(80, ISSUE)),
    "fix": (
        _patch("to_xml.py", ("def to_xml(rows):", f"def to_xml(rows):\n{DOCSTRING}")),
        _report("to_xml.py"),
    ),
    "second review": (ScriptedTurn("", "read_code", {"file": "to_xml.py"}), _review(95)),
}
CAREFUL_TURNS: Final = (*TURNS[WRITERS[0]][:2], _export("json"), *TURNS[WRITERS[0]][3:5])
FIRST_REPORT: Final = 3
"""The turn, from 0, in which the second writer reports for the first time."""


class TeamProvider(ScriptedProvider):
    """Serves the turns of each specialist. The process is killed when both code-writers have written their file.

    The second writer reports when the work of the first is merged in the repository `root`: the merges have an order.
    Where merges are not `checked`, the first writer breaks no test.
    """

    def __init__(self, pace: float, root: Path, *, checked: bool = True) -> None:
        super().__init__(pace)
        self._root = root
        self._turns = TURNS if checked else {**TURNS, WRITERS[0]: CAREFUL_TURNS}
        self._written = set[str]()

    async def choose_turn(self, messages: Sequence[Message], number: int) -> ScriptedTurn | None:
        """Return the next turn of the specialist that asks; None while the other writer is not so far."""
        role = find_role("\n".join(str(message.get("content")) for message in messages))
        if role in WRITERS and number == 1 and not self.half_done.is_set():
            self._written.add(role)
            if self._written == set(WRITERS):
                self.half_done.set()
            return None
        if (role, number) == (WRITERS[1], FIRST_REPORT) and not await asyncio.to_thread(self._is_first_merged):
            await asyncio.sleep(0.3)
            return await self.choose_turn(messages, number)
        turns = self._turns.get(role, ())
        return turns[number] if number < len(turns) else LAST_TURN

    def _is_first_merged(self) -> bool:
        refs = git(self._root, "for-each-ref", "--format=%(refname)", "refs/greenroom/*/main").split()
        try:
            return any(git(self._root, "ls-tree", "--name-only", ref, WRITERS[0]) for ref in refs)
        except WorldFault:
            return False  # a ref was moved meanwhile


def find_role(text: str) -> str:
    """Return the specialist of a conversation; that of a code-writer is the file that it writes."""
    found = re.search(r"(?:You are|你是) ([\w-]+)", text)
    role = found[1] if found is not None else ""
    if role == "review" and "fix-1" in text:
        return "second review"
    if role == "code-writer" and FINDING in text:
        return "fix"
    written = re.search(r"(?:Write only: |只修改：)(\S+)", text) if role == "code-writer" else None
    return written[1] if written is not None else role
