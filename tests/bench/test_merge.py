"""Quadruples of a small repository: how they are collected, and what is measured."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bench.merge import measure, read_quadruples, try_all

ROOT = Path(__file__).parents[2]
WHO = {f"GIT_{role}_{part}": "a@b.c" for role in ("AUTHOR", "COMMITTER") for part in ("NAME", "EMAIL")}
BASE = "import a\n\nx = 1\n"
LEFT = "import a\nimport b\n\nx = 1\n"
RIGHT = "import a\nimport c\n\nx = 1\n"
BOTH = "import a\nimport b\nimport c\n\nx = 1\n"


def git(folder: Path, *arguments: str, code: int = 0) -> None:
    env = {**os.environ, **WHO, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    done = subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, check=False, env=env)
    assert done.returncode == code, done.stderr.decode()


def commit(folder: Path, path: str, text: str) -> None:
    (folder / path).write_text(text)
    git(folder, "add", path)
    git(folder, "commit", "-m", path)


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """Return a repository of two conflicts: one that a person resolved, one with its markers committed."""
    folder = tmp_path / "clone"
    folder.mkdir()
    git(folder, "init", "-b", "main")
    for path in ("a.py", "b.py"):
        commit(folder, path, BASE)
        git(folder, "checkout", "-b", f"side-{path}")
        commit(folder, path, RIGHT)
        git(folder, "checkout", "main")
        commit(folder, path, LEFT)
        git(folder, "merge", f"side-{path}", code=1)
        if path == "a.py":
            (folder / path).write_text(BOTH)
        git(folder, "commit", "-a", "-m", f"merge {path}")
    return folder


def collect(clone: Path, folder: Path, *more: str) -> str:
    command = [sys.executable, str(ROOT / "tools" / "quadruples.py"), str(clone), str(folder), *more]
    return subprocess.run(command, capture_output=True, check=True, text=True).stdout


def test_conflicts_that_people_resolved_are_collected_each_time_alike(clone: Path, tmp_path: Path) -> None:
    assert collect(clone, tmp_path / "one") == "clone: 1\n"
    collect(clone, tmp_path / "two", "5")
    (quadruple,) = read_quadruples(tmp_path / "one")
    assert list(read_quadruples(tmp_path / "two")) == [quadruple]
    sides = {side: quadruple[side] for side in ("path", "base", "left", "right", "human")}
    assert sides == {"path": "a.py", "base": BASE, "left": LEFT, "right": RIGHT, "human": BOTH}


def test_no_more_are_collected_than_asked_for(clone: Path, tmp_path: Path) -> None:
    assert collect(clone, tmp_path, "0") == "clone: 0\n"


def write(folder: Path, *rows: tuple[str, str, str, str, str]) -> Path:
    names = ("path", "base", "left", "right", "human")
    lines = [json.dumps(dict(zip(names, row, strict=True)) | {"commit": "0"}) for row in rows]
    (folder / "clone.jsonl").write_text("\n".join(lines))
    return folder


def test_a_result_is_right_wrong_or_harmful(tmp_path: Path) -> None:
    lines = "".join(f"line_{at} = {at}\n" for at in range(9))
    folder = write(
        tmp_path,
        ("a.py", BASE, LEFT, RIGHT, BOTH),  # right
        ("b.py", BASE, LEFT, RIGHT, BOTH.replace("import c", "import  c")),  # right but for white space
        ("c.py", "a = 1\nb = 2\n", "a = 9\nb = 2\n", "a = 1\nb = 9\n", "a = 9\nb = 2\n"),  # proposed, and harmful
        ("d.py", "x = 1\n", "x = 2\n", "x = 3\n", "x = 2\n"),  # left to a person
        ("e.py", lines, "new\n" + lines, lines + "last\n", "new\n" + lines + "last\n"),  # git's own
        ("f.txt", "a\n", "a\nb\n", "a\nc\n", "a\nc\nb\n"),  # right but for the order
        ("g.py", BASE + lines, LEFT + lines[:-11], RIGHT + lines, BOTH + lines),  # harmful, by git's own part
    )
    figures = measure(try_all(folder))
    wanted = {
        "files": 7,
        "git merge-file: resolved": 1,
        "git merge-file: right": 1,
        "conflicted files": 6,
        "resolved": 4,
        "equal to the person's": 1,
        "right: equal but for white space": 2,
        "harmful": 1,
        "harmful, inside git's conflicts": 0,
        "equal but for the order of lines": 1,
        "worse than git": 0,
        "proposed": 1,
        "proposed: right": 0,
        "proposed: harmful": 1,
        "both sides added imports: merged": 3,
        "not valid": 0,
    }
    assert {name: figures[name] for name in wanted} == wanted
    assert figures["precision"] == pytest.approx(2 / 4)
