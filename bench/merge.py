"""Real conflicts: the code rungs of the merge ladder beside `git merge-file`, compared with what people did.

`./go bench merge FOLDER`: the folder has the files that `tools/quadruples.py` wrote.
"""

import json
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from greenroom.teamwork.merging.merge import merge_file
from greenroom.teamwork.merging.syntax import is_valid

GOALS = {
    "right (%)": (">=", 14.3),
    "precision": (">=", 0.8),
    "harmful (%)": ("<=", 0.6),
    "worse than git": ("<=", 0.0),
}
SIDES = ("left", "base", "right")


class Trial(NamedTuple):
    """One conflicted file and what became of it; `merged` is None where conflicts are left."""

    quadruple: dict[str, str]
    merged: str | None
    by_git: str | None
    reasons: tuple[str, ...]
    disputed: frozenset[str] = frozenset()

    @property
    def is_exact(self) -> bool:
        """Return whether the result is the person's, byte by byte."""
        return self.merged == self.quadruple["human"]

    @property
    def is_right(self) -> bool:
        """Return whether the result is the person's but for white space."""
        return self.merged is not None and "".join(self.merged.split()) == "".join(self.quadruple["human"].split())

    @property
    def lost(self) -> list[str]:
        """Return the lines of a side that the person kept and the result lacks, in the whole file."""
        if self.merged is None or self.is_right:
            return []
        kept = _count(self.quadruple["human"]) - _count(self.merged)
        sides = _count(self.quadruple["left"]) | _count(self.quadruple["right"])
        return [line for line in kept if line in sides]


def _count(text: str) -> Counter[str]:
    return Counter(line.strip() for line in text.splitlines() if line.strip())


def read_quadruples(folder: Path) -> Iterator[dict[str, str]]:
    """Yield every conflicted file of a folder."""
    for file in sorted(folder.glob("*.jsonl")):
        for line in file.read_text(encoding="utf-8").splitlines():
            yield {"repository": file.stem, **json.loads(line)}


def merge_with_git(quadruple: dict[str, str], scratch: Path) -> tuple[str | None, frozenset[str]]:
    """Return what `git merge-file` makes, None where it leaves conflicts, and the lines of these."""
    paths = [scratch / side for side in SIDES]
    for path, side in zip(paths, SIDES, strict=True):
        path.write_bytes(quadruple[side].encode())
    done = subprocess.run(["git", "merge-file", "-p", *map(str, paths)], capture_output=True, check=False)
    merged = done.stdout.decode()
    conflicts = re.findall(r"^<<<<<<< .*?^>>>>>>> ", merged, re.DOTALL | re.MULTILINE) if done.returncode else []
    lines = frozenset(line.strip() for conflict in conflicts for line in conflict.splitlines())
    return (merged if done.returncode == 0 else None), lines


def try_all(folder: Path) -> list[Trial]:
    """Merge every quadruple in both ways."""
    trials = []
    with tempfile.TemporaryDirectory() as scratch:
        for quadruple in read_quadruples(folder):
            by_git, disputed = merge_with_git(quadruple, Path(scratch))
            merge = merge_file(quadruple["path"], *(quadruple[side].encode() for side in ("base", "left", "right")))
            merged = None if merge.conflicts else merge.text
            trials.append(Trial(quadruple, merged, by_git, tuple(each.why for each in merge.resolutions), disputed))
    return trials


def run() -> dict[str, float]:
    """Measure the folder that the command line names."""
    folders = [Path(argument) for argument in sys.argv[2:] if not argument.startswith("--")]
    trials = [trial for folder in folders for trial in try_all(folder)]
    if not trials:
        sys.exit("bench: there are no quadruples. Usage: ./go bench merge FOLDER (see tools/quadruples.py)")
    resolved = [trial for trial in trials if trial.merged is not None]
    right = [trial for trial in trials if trial.is_right]
    harmful = [trial for trial in trials if trial.lost]
    in_conflicts = [trial for trial in harmful if trial.disputed.intersection(trial.lost)]
    return {
        "conflicted files": len(trials),
        "git merge-file: resolved": sum(trial.by_git is not None for trial in trials),
        "git merge-file: right": sum(trial.by_git == trial.quadruple["human"] for trial in trials),
        "resolved": len(resolved),
        "equal to the person's": sum(trial.is_exact for trial in trials),
        "right: equal but for white space": len(right),
        "right (%)": 100 * len(right) / len(trials),
        "precision": len(right) / max(len(resolved), 1),
        "harmful": len(harmful),
        "harmful, inside git's conflicts": len(in_conflicts),
        "harmful (%)": 100 * len(harmful) / len(trials),
        "parses": sum(is_valid(trial.quadruple["path"], trial.merged or "") for trial in resolved),
        "worse than git": sum(trial.by_git not in {None, trial.merged} for trial in trials),
    }
