"""Merges as text: `##### KIND NAME: WHAT` begins one, `=== VERSION PATH` a file; `=== left-gone PATH` deletes it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

from greenroom.core.base.records import record
from greenroom.teamwork.symbols.conflicts import SemanticConflict, find_semantic_conflicts

HERE = Path(__file__).parent


@record
class Case:
    """One merge, and what is to be found in it (`clean` for nothing)."""

    kind: str
    name: str
    what: str
    base: dict[str, str]
    left: dict[str, str]
    right: dict[str, str]

    def find(self, folder: Path) -> tuple[SemanticConflict, ...]:
        """Merge as git does and look for conflicts."""
        paths = self.base.keys() | self.left.keys() | self.right.keys()
        changed = {path for path in paths if not self.base.get(path) == self.left.get(path) == self.right.get(path)}
        merged = {path: text for path in sorted(changed) if (text := self.merge(folder, path)) is not None}
        base, left, right = (
            {path: side[path] for path in side if path in changed} for side in (self.base, self.left, self.right)
        )
        return find_semantic_conflicts(base, left, right, merged, paths=paths - changed, read=self.base.get)

    def merge(self, folder: Path, path: str) -> str | None:
        base, left, right = (side.get(path) for side in (self.base, self.left, self.right))
        if base == left:
            return right
        if base == right or left == right:
            return left
        files = [folder / name for name in ("left", "base", "right")]
        for file, text in zip(files, (left, base, right), strict=True):
            file.write_text(text or "")
        done = subprocess.run(["git", "merge-file", "-p", *files], capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{self.what}: {path} does not merge cleanly"
        return done.stdout


def list_cases(name: str) -> Iterator[Case]:
    """Read the cases of the files whose names begin so."""
    for file in sorted(HERE.glob(f"{name}*.txt")):
        yield from map(read_case, file.read_text().split("##### ")[1:])


def read_case(block: str) -> Case:
    """Read one case. A side has the files of the base unless it says otherwise."""
    title, _, body = block.partition("\n")
    head, _, what = title.partition(": ")
    kind, _, name = head.partition(" ")
    versions: dict[str, dict[str, str]] = {"base": {}, "left": {}, "right": {}, "left-gone": {}, "right-gone": {}}
    for part in ("\n" + body).split("\n=== ")[1:]:
        line, _, text = part.partition("\n")
        version, _, path = line.partition(" ")
        versions[version][path] = text.removesuffix("\n") + "\n"
    base = versions["base"]
    left, right = (
        {path: text for path, text in (base | versions[side]).items() if path not in versions[f"{side}-gone"]}
        for side in ("left", "right")
    )
    return Case(kind=kind, name=name, what=what, base=base, left=left, right=right)
