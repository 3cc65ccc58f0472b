"""Repositories of every shape: a job is done in each, taken over and taken back, and each byte and bit is as before."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.e2e.jobs import Desk, call, committed, done, exactly, git
from tests.fake_openai import Answer
from tests.sampling import sampled
from tests.tiers import has_bubblewrap

pytestmark = pytest.mark.skipif(not has_bubblewrap(), reason="bubblewrap is not installed")

CHECK = "test:\n\tgrep -q one a.txt\n\ttest -e run.sh\n"
SCRIPT = "rm gone.txt; chmod +x run.sh; mkdir -p 'new folder'; printf 'x\\r\\n' > 'new folder/名字.txt'"
MANY = 50_000
BELOW = "packages/one"


def content(folder: Path) -> Path:
    """What a job works on: a file that is changed, one that goes, one that can be run afterwards."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "Makefile").write_text(CHECK)
    (folder / "a.txt").write_text("one\n")
    (folder / "gone.txt").write_text("gone\n")
    (folder / "run.sh").write_text("#!/bin/sh\n")
    return folder


def plain(root: Path) -> Path:
    content(root)
    committed(root)
    return root


def dirty(root: Path) -> Path:
    """Something staged, something not, something that is both, a file that is deleted, one that nobody knows."""
    plain(root)
    for name in ("staged", "both", "deleted", "b.txt"):
        (root / name).write_text("was\n")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message=second")
    (root / "staged").write_text("staged\n")
    (root / "both").write_text("staged\n")
    git(root, "add", "staged", "both")
    (root / "both").write_text("and changed\n")
    (root / "deleted").unlink()
    (root / "b.txt").write_text("changed\n")
    (root / "unknown.txt").write_text("mine\n")
    return root


def empty(root: Path) -> Path:
    """Not one commit."""
    content(root)
    git(root, "init", "--quiet", "--initial-branch=main")
    return root


def sub_folder(root: Path) -> Path:
    """Somebody sits below the root: it is the whole repository that is worked on."""
    content(root / BELOW)
    (root / "Makefile").write_text(f"test:\n\t$(MAKE) -C {BELOW} test\n")
    (root / "above.txt").write_text("above\n")
    committed(root)
    return root / BELOW


def own_folder(root: Path) -> Path:
    """Somebody sits below the root in a workspace of its own: nothing else is worked on."""
    content(root / BELOW)
    (root / BELOW / ".greenroom").mkdir()
    (root / BELOW / ".greenroom" / "notes.md").write_text("ours\n")
    (root / "above.txt").write_text("above\n")
    committed(root)
    (root / "above.txt").write_text("mine\n")
    return root / BELOW


def submodule(root: Path) -> Path:
    library = content(root.parent / "library")
    committed(library)
    plain(root)
    git(root, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(library), "library")
    git(root, "commit", "--quiet", "--message=second")
    (root / "library" / "a.txt").write_text("theirs, changed\n")
    return root


def detached(root: Path) -> Path:
    plain(root)
    git(root, "checkout", "--quiet", "--detach")
    return root


def merging(root: Path) -> Path:
    """In the middle of a merge, with a conflict in another file."""
    plain(root)
    for branch, words in (("other", "theirs\n"), ("main", "ours\n")):
        git(root, "checkout", "--quiet", *(("-b",) if branch != "main" else ()), branch)
        (root / "torn.txt").write_text(words)
        git(root, "add", "torn.txt")
        git(root, "commit", "--quiet", f"--message={branch}")
    git(root, "merge", "--quiet", "other", code=1)
    return root


def binaries(root: Path) -> Path:
    plain(root)
    (root / "photo.bin").write_bytes(bytes(range(256)) * 300)
    (root / "build").mkdir()
    (root / "build" / "out.o").write_bytes(os.urandom(5_000))
    return root


def crlf(root: Path) -> Path:
    """Checked out with the line ends of Windows."""
    content(root)
    committed(root)
    git(root, "config", "core.autocrlf", "true")
    for name in ("gone.txt", "b.txt"):
        (root / name).write_bytes(b"one\r\ntwo\r\n")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message=crlf")
    return root


def names(root: Path) -> Path:
    root = root.parent / "my 项目 (copy)"
    content(root)
    for name in ("with space.txt", "中文 文件.txt", "quote'\".txt", "-dash", "tab\there"):
        (root / name).write_text("x\n")
    committed(root)
    (root / "新 的.txt").write_text("mine\n")
    return root


def symlinks(root: Path) -> Path:
    content(root)
    (root / "folder").mkdir()
    (root / "folder" / "in.txt").write_text("in\n")
    (root / "to_file").symlink_to("a.txt")
    (root / "to_folder").symlink_to("folder")
    (root / "to_nothing").symlink_to("nowhere")
    (root / "out_of_it").symlink_to("/etc/hostname")
    committed(root)
    (root / "new_link").symlink_to("folder/in.txt")
    return root


def no_git(root: Path) -> Path:
    content(root)
    (root / "photo.bin").write_bytes(bytes(range(256)))
    (root / "link").symlink_to("a.txt")
    return root


def many(root: Path) -> Path:
    """Fifty thousand files."""
    content(root)
    for number in range(MANY // 500):
        folder = root / f"part{number:03}"
        folder.mkdir()
        for name in range(500):
            (folder / f"{name}.txt").write_text(f"{number} {name}\n")
    committed(root)
    return root


QUICK = (dirty, no_git)
LONG = (empty, sub_folder, merging, own_folder, submodule, detached, binaries, crlf, names, symlinks, many)
SHAPES = sampled((*QUICK, *LONG), QUICK)


def work(folder: str) -> tuple[Answer, ...]:
    a = "a.txt" if folder == "." else f"{folder}/a.txt"
    return (
        call("propose_plan", 1, steps=["Do it"], files=[a]),
        call("patch", 2, file=a, edits=[{"search": "one\n", "replace": "one\ntwo\n"}]),
        call("execute_script", 3, script=f"cd {folder}; {SCRIPT}"),
        done("Done."),
    )


@pytest.mark.timeout(240)
@pytest.mark.parametrize("shape", SHAPES, ids=lambda one: one.__name__)
def test_after_a_job_was_applied_and_undone_all_is_as_before(tmp_path: Path, shape: object) -> None:
    assert callable(shape)
    folder: Path = shape(tmp_path / "repo")
    root = folder.parents[1] if shape in (sub_folder, own_folder) else folder
    desk, before = Desk(tmp_path / "home", folder), exactly(root)
    ended = desk.asks(*work(BELOW if shape is sub_folder else "."))
    assert ended.code == 0, ended.err
    assert exactly(root) == before, "the job itself touched something"

    applied = desk.types("apply", "last")
    if shape is merging:
        assert "Note: in a merge when it began, and taken as they lay there: torn.txt" in ended.err
        assert "A merge is going on, in which git makes no commit of single files. Nothing was changed" in applied.err
        assert exactly(root) == before, "it was refused, and something was changed"
        applied = desk.types("apply", "last", "--no-commit")
    assert applied.code == 0, applied.err
    assert (folder / "a.txt").read_text().split() == ["one", "two"]
    assert not (folder / "gone.txt").exists()
    assert os.access(folder / "run.sh", os.X_OK)
    assert (folder / "new folder" / "名字.txt").read_bytes() == b"x\r\n"
    _kept_what_was_not_the_jobs(root, before)

    undone = desk.types("undo", "last")
    assert undone.code == 0, undone.err
    assert exactly(root) == before
    _git_still_works(root)


def _kept_what_was_not_the_jobs(root: Path, before: dict[str, str]) -> None:
    """While it is applied, every other file is what it was."""
    now = exactly(root)
    mine = ("a.txt", "gone.txt", "run.sh", "new folder", "git ", "HEAD")
    others = {name: told for name, told in before.items() if not any(one in name for one in mine)}
    assert {name: now.get(name) for name in others} == others


def _git_still_works(root: Path) -> None:
    if not (root / ".git").exists():
        return
    assert not list((root / ".git").rglob("*.lock")), "a lock was left"
    done = subprocess.run(["git", "fsck", "--no-progress"], cwd=root, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
