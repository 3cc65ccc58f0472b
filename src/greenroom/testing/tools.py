"""Three small tools, one of each effect class: for demos and tests, and as examples of how to write a tool."""

from __future__ import annotations

import asyncio
import hashlib
import os
from pathlib import Path

from greenroom.core.base.errors import WorldFault
from greenroom.core.base.records import Data
from greenroom.core.ports.executor import Outcome, StepContext
from greenroom.core.state.step import PreparedEffect, Step, StepTerms, StepType
from greenroom.core.state.team_state import TeamState


def _read_argument(step: Step, name: str) -> str:
    value = (step.work.instruction_content or {}).get(name)
    if not isinstance(value, str):
        raise WorldFault(f"{step.work.executor} needs the argument {name!r} as text.")
    return value


class CountWords:
    """Pure: counting again returns the same result."""

    type: StepType = "tool"
    name: str = "count_words"
    description: str = "Count the words of a text."

    def terms(self, _: TeamState, __: Step) -> StepTerms:
        """Return pure terms: the step may run again."""
        return StepTerms(effect="pure")

    async def run(self, context: StepContext) -> Outcome:
        """Count the words of the argument `text`."""
        return Outcome(result={"output": len(_read_argument(context.step, "text").split())})


class WriteFile:
    """Keyed: it records the file's hash before and after, so that a restart can tell whether the file was written."""

    type: StepType = "tool"
    name: str = "write_file"
    description: str = "Write a text file in the demo's own folder."

    def __init__(self, root: Path, *, pace: float = 0.0) -> None:
        self._root = root
        self._pace = pace

    def terms(self, _: TeamState, __: Step) -> StepTerms:
        """Return keyed terms: prepare, write, and recover after a restart."""
        return StepTerms(effect="keyed")

    async def run(self, context: StepContext) -> Outcome:
        """Write the argument `content` to the file `name`."""
        name, content = _read_argument(context.step, "name"), _read_argument(context.step, "content").encode()
        path = self._root / Path(name).name
        before, after = _hash_file(path), hashlib.sha256(content).hexdigest()
        earlier = next((prepared for prepared in context.step.prepared if prepared.kind == "file"), None)
        if earlier is None:
            await context.prepare(PreparedEffect(kind="file", key=path.name, before=before, after=after))
        elif before == earlier.after:
            return _make_written_outcome(path, content, "was already written")
        elif before != earlier.before:
            error = f"{path.name} was changed by another process while the work was interrupted."
            return Outcome(state="uncertain", error=error)
        await asyncio.sleep(self._pace)
        self._replace(path, content)
        return _make_written_outcome(path, content, "written")

    def _replace(self, path: Path, content: bytes) -> None:
        self._root.mkdir(parents=True, exist_ok=True)
        draft = path.with_name(f".{path.name}.tmp")
        with draft.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)


def _make_written_outcome(path: Path, content: bytes, how: str) -> Outcome:
    data: Data = {"output": f"{path.name} {how}, {len(content)} bytes"}
    return Outcome(result=data)


def _hash_file(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else ""


class LedgerTool:
    """Effectful: each call appends a line, so it must run at most once. With `ask` it asks a person first."""

    type: StepType = "tool"
    name: str = "ledger"
    description: str = "Add a line to the ledger. It cannot be taken back."

    def __init__(self, path: Path, *, ask: bool = False, pace: float = 0.0) -> None:
        self._path = path
        self._ask = ask
        self._pace = pace

    def terms(self, _: TeamState, step: Step) -> StepTerms:
        """Return effectful terms, with an approval if `ask` is set."""
        line = str((step.work.instruction_content or {}).get("line"))
        return StepTerms(
            effect="effectful",
            verdict="ask" if self._ask else "allow",
            question=f"Add this line to the ledger? {line}",
            digest=hashlib.sha256(line.encode()).hexdigest(),
        )

    async def run(self, context: StepContext) -> Outcome:
        """Append the argument `line`."""
        line = _read_argument(context.step, "line")
        await asyncio.sleep(self._pace)
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("a", encoding="utf-8") as file:
            file.write(f"{context.key} {line}\n")
            file.flush()
            os.fsync(file.fileno())
        return Outcome(result={"output": "added"})
