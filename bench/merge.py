"""Real conflicts: the code rungs of the merge ladder beside `git merge-file`, compared with what people did.

`./go bench merge FOLDER`: the folder has the files that `tools/quadruples.py` wrote. As in the ladder, what git merges
is not touched. Merges of kinds below the default threshold are counted apart, as proposals.
"""

import json
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from greenroom.teamwork.merging.merge import Merge, merge_file
from greenroom.teamwork.merging.syntax import is_valid

GOALS = {
    "right (%)": (">=", 14.3),
    "precision": (">=", 0.8),
    "harmful (%)": ("<=", 0.6),
    "worse than git": ("<=", 0.0),
}
SIDES = ("base", "left", "right")
THRESHOLD = 0.8


class Trial(NamedTuple):
    """One conflicted file and what became of it; `by_git` is None where git leaves conflicts."""

    quadruple: dict[str, str]
    by_git: str | None
    disputed: frozenset[str]
    merge: Merge

    @property
    def merged(self) -> str | None:
        """Return the result, None where conflicts are left."""
        return None if self.merge.conflicts else self.merge.text

    @property
    def is_proposed(self) -> bool:
        """Return whether a person would be asked."""
        return self.merged is not None and self.merge.confidence < THRESHOLD

    @property
    def is_resolved(self) -> bool:
        """Return whether the result would be taken."""
        return self.merged is not None and not self.is_proposed

    @property
    def is_exact(self) -> bool:
        """Return whether the result is the person's, byte by byte."""
        return self.merged == self.quadruple["human"]

    @property
    def is_right(self) -> bool:
        """Return whether the result is the person's but for white space."""
        return self.merged is not None and "".join(self.merged.split()) == "".join(self.quadruple["human"].split())

    @property
    def is_reordered(self) -> bool:
        """Return whether the result has the person's lines in another order."""
        return not self.is_right and _count(self.merged or "") == _count(self.quadruple["human"])

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
    for side in SIDES:
        (scratch / side).write_bytes(quadruple[side].encode())
    command = ["git", "merge-file", "-p", *(str(scratch / side) for side in ("left", "base", "right"))]
    done = subprocess.run(command, capture_output=True, check=False)
    merged = done.stdout.decode()
    conflicts = re.findall(r"^<<<<<<< .*?^>>>>>>> ", merged, re.DOTALL | re.MULTILINE) if done.returncode else []
    lines = frozenset(line.strip() for conflict in conflicts for line in conflict.splitlines())
    return (merged if done.returncode == 0 else None), lines


def try_all(folder: Path) -> list[Trial]:
    """Merge every quadruple as the ladder does: first git, then the code rungs."""
    trials = []
    with tempfile.TemporaryDirectory() as scratch:
        for quadruple in read_quadruples(folder):
            by_git, disputed = merge_with_git(quadruple, Path(scratch))
            merge = Merge(by_git or "")
            if by_git is None:
                merge = merge_file(quadruple["path"], *(quadruple[side].encode() for side in SIDES))
            trials.append(Trial(quadruple, by_git, disputed, merge))
    return trials


def measure(trials: Sequence[Trial]) -> dict[str, float]:
    """Return the figures of conflicted files."""
    conflicted = [trial for trial in trials if trial.by_git is None]
    resolved = [trial for trial in conflicted if trial.is_resolved]
    proposed = [trial for trial in conflicted if trial.is_proposed]
    right = [trial for trial in resolved if trial.is_right]
    harmful = [trial for trial in resolved if trial.lost]
    by_git = [trial for trial in trials if trial.by_git is not None]
    figures: dict[str, float] = {
        "files": len(trials),
        "git merge-file: resolved": len(by_git),
        "git merge-file: right": sum(trial.is_right for trial in by_git),
        "conflicted files": len(conflicted),
        "resolved": len(resolved),
        "equal to the person's": sum(trial.is_exact for trial in resolved),
        "right: equal but for white space": len(right),
        "right (%)": 100 * len(right) / max(len(conflicted), 1),
        "precision": len(right) / max(len(resolved), 1),
        "harmful": len(harmful),
        "harmful, inside git's conflicts": sum(bool(trial.disputed.intersection(trial.lost)) for trial in harmful),
        "harmful (%)": 100 * len(harmful) / max(len(conflicted), 1),
        "syntactically valid, of those with a parser": _count_valid(resolved, wanted=True),
        "not valid": _count_valid(resolved, wanted=False),
        "worse than git": sum(trial.by_git != trial.merged for trial in by_git),
        "proposed": len(proposed),
        "equal but for the order of lines": sum(trial.is_reordered for trial in resolved),
        "proposed: right": sum(trial.is_right for trial in proposed),
        "proposed: harmful": sum(bool(trial.lost) for trial in proposed),
    }
    merged = [*resolved, *proposed]
    for why in sorted({each.why for trial in merged for each in trial.merge.resolutions}):
        given = [trial for trial in merged if why in {each.why for each in trial.merge.resolutions}]
        figures[f"{why}: merged"] = len(given)
        figures[f"{why}: right"] = sum(trial.is_right for trial in given)
    return figures


def _count_valid(trials: Sequence[Trial], *, wanted: bool) -> int:
    return sum(is_valid(trial.quadruple["path"], trial.merged or "") is wanted for trial in trials)


def run() -> dict[str, float]:
    """Measure the folders that the command line names."""
    folders = [Path(argument) for argument in sys.argv[2:] if not argument.startswith("--")]
    trials = [trial for folder in folders for trial in try_all(folder)]
    if not trials:
        sys.exit("bench: there are no quadruples. Usage: ./go bench merge FOLDER (see tools/quadruples.py)")
    return measure(trials)
