"""`tools/clean_merges.py` measures false reports on the merge commits of a clone."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tools.clean_merges import main

BASE = {"cart.py": "def total(items):\n    return sum(items)\n"}
CALLER = "from cart import total\n\nprint(total([1]))\n"


def git(repo: Path, *words: str) -> None:
    name = ["-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", "-C", str(repo), *name, *words], check=True, capture_output=True)


def commit(repo: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (repo / name).write_text(text)
    git(repo, "add", ".")
    git(repo, "commit", "-qm", "change")


def merge(repo: Path, left: dict[str, str], right: dict[str, str]) -> None:
    """Commit two sides of a new branch and merge them."""
    git(repo, "checkout", "-q", "-B", "side", "start")
    commit(repo, right)
    git(repo, "checkout", "-q", "-B", "other", "start")
    commit(repo, left)
    git(repo, "merge", "-q", "--no-ff", "side", "-m", "merge")
    git(repo, "tag", f"kept-{len(left)}-{len(right)}")


def test_reports_of_real_merges_are_printed_and_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    git(tmp_path, "init", "-q", ".")
    commit(tmp_path, BASE)
    git(tmp_path, "tag", "start")
    merge(tmp_path, {"cart.py": "def total(items, currency):\n    return currency\n"}, {"bill.py": CALLER})
    merge(tmp_path, {"cart.py": BASE["cart.py"] + "\n\nA = 1\n", "b.py": "B = 1\n"}, {"bill.py": CALLER})
    merge(tmp_path, {"readme.md": "text\n", "c.md": "text\n", "d.md": "text\n"}, {"bill.py": CALLER})
    assert main([str(tmp_path), "--count", "9"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert lines[0].endswith(
        "`total` now needs `currency` (changed by left in cart.py:1), but bill.py:3 does not pass it."
    )
    assert lines[1:] == [f"{tmp_path}: 2 clean merges", "2 clean merges, 1 with reports"]


def test_count_limits_the_merges(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    git(tmp_path, "init", "-q", ".")
    commit(tmp_path, BASE)
    git(tmp_path, "tag", "start")
    merge(tmp_path, {"a.py": "A = 1\n"}, {"bill.py": CALLER})
    merge(tmp_path, {"a.py": "A = 1\n", "b.py": "B = 1\n"}, {"bill.py": CALLER})
    main([str(tmp_path), "--count", "1"])
    assert capsys.readouterr().out.splitlines()[-1] == "1 clean merges, 0 with reports"
