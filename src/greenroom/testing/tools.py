"""Three small, honest tools, one of each effect class: for demos, tests and as an example of how a tool is written."""

from __future__ import annotations

import asyncio
import hashlib
import os
from pathlib import Path

from greenroom.core.base.errors import WorldFault
from greenroom.core.base.records import Data
from greenroom.core.ports.executor import Bench, Outcome
from greenroom.core.state.step import Prepared, Step, StepType, Terms
from greenroom.core.state.world import World


def _argument(step: Step, name: str) -> str:
    value = (step.work.instruction_content or {}).get(name)
    if not isinstance(value, str):
        raise WorldFault(f"{step.work.executor} needs the argument {name!r} as text.")
    return value


class CountWords:
    """Pure: counting again gives the same."""

    type: StepType = "tool"
    name: str = "count_words"
    description: str = "Count the words of a text."

    def terms(self, _: World, __: Step) -> Terms:
        """Run again freely."""
        return Terms(effect="pure")

    async def run(self, bench: Bench) -> Outcome:
        """How many words the argument `text` has."""
        return Outcome(result={"output": len(_argument(bench.step, "text").split())})


class WriteFile:
    """Keyed: the file's hash before and after is said first, so that a restart can tell whether it was written."""

    type: StepType = "tool"
    name: str = "write_file"
    description: str = "Write a text file in the demo's own folder."

    def __init__(self, root: Path, *, pace: float = 0.0) -> None:
        self._root = root
        self._pace = pace

    def terms(self, _: World, __: Step) -> Terms:
        """Prepared, then done, and found again."""
        return Terms(effect="keyed")

    async def run(self, bench: Bench) -> Outcome:
        """Write the argument `content` to the file `name`."""
        name, content = _argument(bench.step, "name"), _argument(bench.step, "content").encode()
        path = self._root / Path(name).name
        before, after = _hash(path), hashlib.sha256(content).hexdigest()
        earlier = next((one for one in bench.step.prepared if one.kind == "file"), None)
        if earlier is None:
            await bench.prepare(Prepared(kind="file", key=path.name, before=before, after=after))
        elif before == earlier.after:
            return _written(path, content, "was already written")
        elif before != earlier.before:
            error = f"{path.name} was changed by somebody else while the work was interrupted."
            return Outcome(state="uncertain", error=error)
        await asyncio.sleep(self._pace)
        self._replace(path, content)
        return _written(path, content, "written")

    def _replace(self, path: Path, content: bytes) -> None:
        self._root.mkdir(parents=True, exist_ok=True)
        draft = path.with_name(f".{path.name}.tmp")
        with draft.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)


def _written(path: Path, content: bytes, how: str) -> Outcome:
    data: Data = {"output": f"{path.name} {how}, {len(content)} bytes"}
    return Outcome(result=data)


def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else ""


class Ledger:
    """Effectful: each call adds a line, so it must happen at most once. It asks a person first when `ask` is set."""

    type: StepType = "tool"
    name: str = "ledger"
    description: str = "Add a line to the ledger. It cannot be taken back."

    def __init__(self, path: Path, *, ask: bool = False, pace: float = 0.0) -> None:
        self._path = path
        self._ask = ask
        self._pace = pace

    def terms(self, _: World, step: Step) -> Terms:
        """At most once; permission before."""
        line = str((step.work.instruction_content or {}).get("line"))
        return Terms(
            effect="effectful",
            verdict="ask" if self._ask else "allow",
            question=f"Add this line to the ledger? {line}",
            digest=hashlib.sha256(line.encode()).hexdigest(),
        )

    async def run(self, bench: Bench) -> Outcome:
        """Append the argument `line`."""
        line = _argument(bench.step, "line")
        await asyncio.sleep(self._pace)
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("a", encoding="utf-8") as file:
            file.write(f"{bench.key} {line}\n")
            file.flush()
            os.fsync(file.fileno())
        return Outcome(result={"output": "added"})
