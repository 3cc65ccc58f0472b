"""`python tools/quadruples.py CLONE FOLDER [MOST]`: collect real conflicts from the merge commits of a local clone.

Writes FOLDER/NAME.jsonl, one conflicted file per line: path, commit, base, left, right and the person's result. Left
out: files that one side lacks or that are not UTF-8, results with conflict markers, merges with several bases. At most
MOST files (60) of 20,000 merges, the same ones each time. For `./go bench merge FOLDER`.
"""

import json
import random
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

MOST_BYTES = 300_000
MOST_MERGES = 20_000
MOST_PER_MERGE = 3
"""One merge of a hundred generated files would outweigh all others."""
SEED = 27


def run_git(clone: Path, *arguments: str) -> bytes | None:
    """Return the output of git, None if it failed."""
    done = subprocess.run(["git", "-C", str(clone), *arguments], capture_output=True, check=False)
    return done.stdout if done.returncode in {0, 1} else None


def list_merges(clone: Path) -> list[list[str]]:
    """Return commit, first and second parent of every merge of two, shuffled in the same way each time."""
    listed = run_git(clone, "rev-list", "--all", "--min-parents=2", "--max-parents=2", "--parents") or b""
    merges = sorted(line.split() for line in listed.decode().splitlines())
    random.Random(SEED).shuffle(merges)
    return merges[:MOST_MERGES]


def find_conflicts(clone: Path, left: str, right: str) -> list[str]:
    """Return the paths that git cannot merge."""
    merged = run_git(clone, "merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", left, right)
    return [path for path in (merged or b"").decode(errors="replace").split("\0")[1:] if path]


def read_text(clone: Path, commit: str, path: str) -> str | None:
    """Return a file of a commit, None if it is absent, too large or not text."""
    content = run_git(clone, "cat-file", "blob", f"{commit}:{path}")
    if not content or len(content) > MOST_BYTES or b"\0" in content:
        return None
    try:
        return content.decode()
    except UnicodeDecodeError:
        return None


def collect(clone: Path) -> Iterator[dict[str, str]]:
    """Yield the conflicted files of the merges of a clone."""
    for commit, left, right in list_merges(clone):
        bases = (run_git(clone, "merge-base", "--all", left, right) or b"").decode().split()
        if len(bases) != 1 or bases[0] in {left, right}:
            continue
        for path in find_conflicts(clone, left, right)[:MOST_PER_MERGE]:
            sides = {"base": bases[0], "left": left, "right": right, "human": commit}
            texts = {name: read_text(clone, side, path) for name, side in sides.items()}
            is_settled = not re.search("^<{7} ", texts["human"] or "", re.MULTILINE)
            if is_settled and all(text is not None for text in texts.values()):
                yield {"path": path, "commit": commit} | {name: text or "" for name, text in texts.items()}


def main(arguments: Sequence[str]) -> int:
    """Write the quadruples of one clone; at most MOST of them (60)."""
    if len(arguments) not in {2, 3}:
        print(__doc__)
        return 2
    clone, folder = Path(arguments[0]), Path(arguments[1])
    most = int(arguments[2]) if len(arguments) == 3 else 60
    folder.mkdir(parents=True, exist_ok=True)
    name = clone.resolve().parent.name if clone.name in {"repo", ".git"} else clone.resolve().name
    lines = [json.dumps(quadruple) + "\n" for quadruple in islice(collect(clone), most)]
    (folder / f"{name}.jsonl").write_text("".join(lines), encoding="utf-8")
    print(f"{name}: {len(lines)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
