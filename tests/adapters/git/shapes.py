"""Repositories of all common shapes, each with the same few files to work on."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from greenroom.adapters.git.workspace import GitWorkspace
from greenroom.core.ports.workspace import StepCommit, Worktree
from tests.adapters.git.person import Person, opened, worked

Shape = Callable[[Person], None]
BELOW: Final = "below/part"
TEXT: Final = "".join(f"line {number}\n" for number in range(1, 31))


def _files(person: Person, folder: str = "") -> None:
    person.write(f"{folder}a.txt", TEXT)
    person.write(f"{folder}keep/b.py", "print('b')\n")
    person.write(f"{folder}go/old.txt", "old\n")
    person.write(f"{folder}run.sh", "#!/bin/sh\n").chmod(0o755)


def plain(person: Person, *words: str) -> None:
    """A repository with one commit."""
    person.root.mkdir(parents=True)
    person.git("init", "--quiet", "--initial-branch=main", *words)
    _files(person)
    person.commit_all("first")


def dirty(person: Person) -> None:
    """Changed, staged, both, deleted, untracked, ignored, and staged away."""
    plain(person)
    person.write(".gitignore", "*.log\nbuild/\n")
    for name in ("changed", "staged", "both", "deleted", "unstaged"):
        person.write(name, f"{name}\n")
    person.commit_all("second")
    for name in ("changed", "staged", "both"):
        person.write(name, "one\n")
    person.git("add", "staged", "both")
    person.write("both", "two\n")
    (person.root / "deleted").unlink()
    person.git("rm", "--quiet", "--cached", "unstaged")
    person.write("untracked/new.txt", "new\n").chmod(0o600)
    person.write("secret.log", "ignored\n")
    person.write("build/out", "ignored\n")
    (person.root / "empty/inner").mkdir(parents=True)


def empty(person: Person) -> None:
    """No commit yet."""
    person.root.mkdir(parents=True)
    person.git("init", "--quiet")
    _files(person)
    person.git("add", "a.txt")


def submodule(person: Person) -> None:
    """Contains another repository as a submodule, and a third repository without one."""
    other = Person(person.root.parent / "other")
    plain(other)
    plain(person)
    person.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(other.root), "sub")
    person.commit_all("with a submodule")
    person.write("sub/a.txt", "changed in the submodule\n")
    nested = Person(person.root / "nested", person.home)
    plain(nested)


def detached(person: Person) -> None:
    """On no branch."""
    plain(person)
    person.write("a.txt", TEXT + "more\n")
    person.commit_all("second")
    person.git("checkout", "--quiet", "--detach", "HEAD~1")


def merging(person: Person) -> None:
    """In the middle of a merge that has a conflict."""
    plain(person)
    person.write("fight", "one\n")
    person.commit_all("second")
    person.git("checkout", "--quiet", "-b", "other")
    person.write("fight", "theirs\n")
    person.commit_all("theirs")
    person.git("checkout", "--quiet", "main")
    person.write("fight", "ours\n")
    person.commit_all("ours")
    with suppress(subprocess.CalledProcessError):
        person.git("merge", "--quiet", "other")


def binaries(person: Person) -> None:
    """Files that are not text."""
    plain(person)
    person.write("picture.png", bytes(range(256)) * 50)
    person.write("nul.txt", b"a\0b\r\n\xff\xfe")
    person.write("no-end", b"no newline")
    person.write("nothing", b"")


def crlf(person: Person) -> None:
    """Line endings that git converts in both directions, and a filter of the person."""
    plain(person)
    person.git("config", "core.autocrlf", "true")
    person.write(
        ".gitattributes", "*.unix text eol=lf\n*.dos text eol=crlf\n*.id ident\n*.rot filter=rot\n*.raw -text\n"
    )
    person.git("config", "--global", "filter.rot.clean", "tr a-z n-za-m")
    person.git("config", "--global", "filter.rot.smudge", "tr a-z n-za-m")
    person.write("a.txt", TEXT.replace("\n", "\r\n"))
    for kind in ("unix", "dos", "raw", "txt"):
        person.write(f"f.{kind}", "one\r\ntwo\r\n")
    person.write("f.id", "$Id$\r\n")
    person.write("f.rot", "hello\n")
    person.commit_all("converted")
    person.git("checkout", "--quiet", "HEAD", "--", ".")
    person.write("mixed.txt", "one\r\ntwo\n")


def names(person: Person) -> None:
    """Names that confuse programs."""
    plain(person)
    for name in (
        "with space.txt",
        "中文/文件.txt",
        '"quoted".txt',
        "-rf",
        ":(top)x",
        "new\nline",
        "*.c",
        "tab\t",
        "ünï",
    ):
        person.write(name, f"{name!r}\n")
    person.commit_all("second")
    person.write("中文/新 的.txt", "新\n")
    (person.root / os.fsdecode(b"latin-\xe9")).write_bytes(b"no UTF-8\n")


def links(person: Person) -> None:
    """Links to files, folders, nowhere, outside, and in a cycle."""
    plain(person)
    for name, target in (("to-file", "a.txt"), ("to-folder", "keep"), ("to-nowhere", "nothing"), ("round", "round")):
        (person.root / name).symlink_to(target)
    person.commit_all("second")
    (person.root / "to-outside").symlink_to("/etc/passwd")
    (person.root / "to-file").unlink()
    (person.root / "to-file").symlink_to("keep/b.py")


def no_git(person: Person) -> None:
    """A folder outside of any repository."""
    person.root.mkdir(parents=True)
    _files(person)
    person.write(".gitignore", "*.log\n")
    person.write("secret.log", "ignored\n")
    person.write("node_modules/x/index.js", "ignored\n")


def sparse(person: Person) -> None:
    """A partial checkout with a sparse index."""
    plain(person)
    person.write("apart/big.txt", "big\n")
    person.write("apart/deep/big.txt", "big\n")
    person.commit_all("second")
    person.git("sparse-checkout", "set", "--cone", "--sparse-index", "keep", "go")


def hidden(person: Person) -> None:
    """Git ignores changes to some files (`assume-unchanged` and the like)."""
    plain(person)
    person.write("hidden.txt", "hidden\n")
    person.write("assumed.txt", "assumed\n")
    person.commit_all("second")
    person.git("update-index", "--skip-worktree", "hidden.txt")
    person.git("update-index", "--assume-unchanged", "assumed.txt")
    person.write("hidden.txt", "changed in secret\n")
    person.write("assumed.txt", "changed in secret too\n")


def split(person: Person) -> None:
    """The same with a split index."""
    hidden(person)
    person.git("update-index", "--split-index")


def linked(person: Person) -> None:
    """A worktree of another repository."""
    main = Person(person.root.parent / "main")
    plain(main)
    main.git("worktree", "add", "--quiet", "-b", "side", str(person.root))
    person.write("untracked.txt", "here only\n")


def sha256(person: Person) -> None:
    """A repository with SHA-256 object names."""
    plain(person, "--object-format=sha256")
    person.write("other.txt", "mine\n")


def below(person: Person) -> None:
    """The files are in a subfolder; others with the same names are above it."""
    plain(person)
    _files(person, f"{BELOW}/")
    person.commit_all("second")
    person.write("a.txt", TEXT.replace("line 2\n", "mine\n"))


SHAPES: Final[Mapping[str, Shape]] = {
    "plain": plain,
    "dirty": dirty,
    "empty": empty,
    "submodule": submodule,
    "detached": detached,
    "merging": merging,
    "binaries": binaries,
    "crlf": crlf,
    "names": names,
    "links": links,
    "no git": no_git,
    "sparse": sparse,
    "hidden": hidden,
    "split": split,
    "linked": linked,
    "sha256": sha256,
    "sub-folder": below,
    "part": below,
}

LIES: Final[Mapping[str, str]] = {"sub-folder": BELOW, "part": BELOW}
"""Where the files to work on are, if not at the top."""

SITS: Final[Mapping[str, str]] = {"part": BELOW}
"""The folder of the workspace, if not the whole repository."""

NOT_COPIED: Final[Mapping[str, tuple[str, ...]]] = {
    "dirty": ("build", "build/out", "empty", "empty/inner"),
    "submodule": ("sub/", "nested"),
    "no git": ("node_modules",),
}
"""Paths in the tree that worktrees leave out. With a slash, only their content is left out."""


def is_copied(shape: str, name: str) -> bool:
    """Return whether a worktree contains the path."""
    left = NOT_COPIED.get(shape, ())
    return not any(name == one or name.startswith(f"{one.rstrip('/')}/") for one in left)


async def edited(person: Person) -> tuple[GitWorkspace, Worktree, StepCommit]:
    """Make one edit of each kind in a worktree of the person's tree, and commit it there."""
    workspace = await person.workspace()
    worktree = await opened(workspace)
    edit(Path(worktree.folder))
    return workspace, worktree, await worked(worktree)


def edit(folder: Path) -> None:
    """One of each kind of edit."""
    text = (folder / "a.txt").read_bytes()
    (folder / "a.txt").write_bytes(text.replace(b"line 20", b"line twenty"))
    (folder / "keep/b.py").rename(folder / "keep/c.py")
    (folder / "go/old.txt").unlink()
    (folder / "run.sh").chmod(0o644)
    (folder / "新 folder").mkdir()
    (folder / "新 folder/new").write_bytes(b"new\0\r\n")
    (folder / "new-link").symlink_to("a.txt")
