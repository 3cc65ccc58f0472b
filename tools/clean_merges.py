"""Count what the search for semantic conflicts reports on the clean merge commits of local clones.

`python tools/clean_merges.py CLONE… [--count 200]` prints each report, to be judged by hand, and how many merges were
looked at. A merge counts if git merges its parents cleanly and both sides changed Python, TypeScript or JavaScript.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path

from greenroom.app.messages import set_language
from greenroom.teamwork.symbols.conflicts import SemanticConflict, find_semantic_conflicts

ENDINGS = (".py", ".ts", ".tsx", ".js", ".jsx", ".mjs", ".cjs", ".mts", ".cts")
MAX_FILES = 60
"""Larger merges are not those of subtasks."""
Git = Callable[..., str]


def open_clone(clone: Path) -> Git:
    """Return a function that runs git in a clone. It returns "" if git fails."""

    def git(*args: str, given: str = "") -> str:
        done = subprocess.run(["git", "-C", str(clone), *args], capture_output=True, input=given.encode(), check=False)
        return done.stdout.decode(errors="replace") if done.returncode == 0 else ""

    return git


def list_sources(git: Git, first: str, second: str) -> set[str]:
    """Return the source files that differ between two trees."""
    names = git("diff", "--no-renames", "--name-only", first, second).splitlines()
    return {name for name in names if name.endswith(ENDINGS)}


def look_at(git: Git, left: str, right: str) -> tuple[SemanticConflict, ...] | None:
    """Return what is reported for a merge of two commits, None if it is not a clean merge of two sources."""
    base = git("merge-base", left, right).strip()
    if not base or base in (left, right):
        return None
    ours, theirs = list_sources(git, base, left), list_sources(git, base, right)
    merged = git("merge-tree", "--write-tree", left, right).strip() if ours and theirs else ""
    if not merged or len(ours | theirs) > MAX_FILES:
        return None
    changed = ours | theirs | list_sources(git, base, merged)
    trees = [set(git("ls-tree", "-r", "--name-only", tree).splitlines()) for tree in (base, left, right, merged)]
    versions = [
        read_files(git, tree, sorted(changed & names))
        for tree, names in zip((base, left, right, merged), trees, strict=True)
    ]
    read = cache(lambda path: git("show", f"{base}:{path}"))
    return find_semantic_conflicts(*versions, paths=trees[0] - changed, read=read)


def read_files(git: Git, tree: str, paths: list[str]) -> dict[str, str]:
    """Return the contents of files of a tree, with one call of git."""
    end = "====== end of a file ======"
    lines = "".join(f"{tree}:{path}\n" for path in paths)
    blocks = git("cat-file", f"--batch={end}", given=lines).split(f"{end}\n")[1:]
    return {path: block.removesuffix("\n") for path, block in zip(paths, blocks, strict=True)}


def list_merges(git: Git) -> Iterator[tuple[str, str, str]]:
    """Return the merges of two commits on any branch with their parents, in an order that is random and repeatable."""
    lines = sorted(git("rev-list", "--merges", "--parents", "--all").splitlines())
    for line in random.Random(27).sample(lines, len(lines)):
        commit, *parents = line.split()
        if len(parents) == 2:
            yield commit, parents[0], parents[1]


def main(arguments: Sequence[str] | None = None) -> int:
    """Look at merges of each clone and print what is reported."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("clones", nargs="+", type=Path)
    parser.add_argument("--count", type=int, default=200, help="merges to look at in each clone")
    parser.add_argument("--skip", type=int, default=0, help="leave out so many merges of each clone first")
    wanted = parser.parse_args(arguments)
    set_language("en")
    total = reports = 0
    for clone in wanted.clones:
        git, seen = open_clone(clone), 0
        for commit, left, right in list(list_merges(git))[wanted.skip :]:
            if seen == wanted.count:
                break
            found = look_at(git, left, right)
            if found is None:
                continue
            seen += 1
            reports += bool(found)
            for conflict in found:
                sys.stdout.write(f"{clone} {commit[:12]} {conflict.kind} {conflict.name}: {conflict.sentence}\n")
        sys.stdout.write(f"{clone}: {seen} clean merges\n")
        sys.stdout.flush()
        total += seen
    sys.stdout.write(f"{total} clean merges, {reports} with reports\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
