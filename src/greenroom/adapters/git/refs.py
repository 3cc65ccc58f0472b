"""Refs below `refs/greenroom/`, and the commit trailers that name a run and a step."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Final, TypeAlias

from greenroom.adapters.git.files import lock
from greenroom.adapters.git.repository import Repository
from greenroom.core.ports.workspace import CommitInfo, WorkspaceFault

REF_ROOT: Final = "refs/greenroom"
PLAIN_CHARACTER: Final = re.compile(r"[A-Za-z0-9_-]")
MAX_NAME_CHARS: Final = 100
MAX_COMMITS_SEARCHED: Final = 50
"""How many commits are searched by their message."""

MAX_STEPS_SEARCHED: Final = 200
"""How many commits are searched for the commit of a step."""

FORBIDDEN_IN_NAMES: Final = re.compile(r"[<>\x00-\x1f]")
"""Characters that git does not allow in the name of an author."""

TRAILER_PREFIX: Final = "Greenroom-"
TRAILER_LINE: Final = re.compile(r"^Greenroom-([A-Za-z]+): (.*)$")
DISCARDED: Final = "@discarded"
"""The part of refs to commits that a person wants no more."""

ATTEMPT: Final = re.compile(r"(.+?)(?:(?:\.|%2e)(\d+))?")
"""The ref of a thread: its subtask and, after the first one, the number of its attempt."""

TRAILER_NAMES: Final = ("run", "task", "agent", "step", "key")

Ref: TypeAlias = tuple[str, str, str]
"""A ref's name, its commit, and the subject of that commit."""


def escape_name(name: str) -> str:
    """Escape a name for a ref and a folder. Letters and digits stay, and `@` except at the start."""
    if not name:
        raise WorkspaceFault("name", "git.name_needed")
    escaped = "".join(
        letter if PLAIN_CHARACTER.match(letter) or (letter == "@" and place) else _escape(letter)
        for place, letter in enumerate(name)
    )
    if len(escaped) > MAX_NAME_CHARS:
        raise WorkspaceFault("name", "git.name_too_long", name=name[:60])
    return escaped


def _escape(letter: str) -> str:
    return "".join(f"%{byte:02x}" for byte in letter.encode(errors="surrogateescape"))


def list_last_attempts(tips: Mapping[str, str]) -> list[str]:
    """Return the tips of threads, without attempts that another one followed: `code` if there is `code.2`."""
    attempts = [(*match.groups(), tip) for name, tip in tips.items() if (match := ATTEMPT.fullmatch(name))]
    last = {thread: tip for thread, _, tip in sorted(attempts, key=lambda entry: int(entry[1] or 1))}
    return list(last.values())


def make_base_ref(run: str) -> str:
    """Return the ref of a run's base snapshot. No thread can have this name: `@` is escaped at the start."""
    return f"{REF_ROOT}/{escape_name(run)}/@base"


def make_thread_ref(run: str, thread: str) -> str:
    """Return the ref of a thread's newest commit."""
    return f"{REF_ROOT}/{escape_name(run)}/{escape_name(thread)}"


def make_applied_prefix(run: str) -> str:
    """Return the prefix of the refs to a run's journal entries."""
    return f"{REF_ROOT}/{escape_name(run)}/@applied/"


def make_applied_ref(applied: str) -> str:
    """Return the ref of the journal entry with this id."""
    run, found, number = applied.rpartition("/")
    if not found or not number.isdecimal():
        raise WorkspaceFault("name", "git.nothing_applied", applied=applied)
    return f"{make_applied_prefix(run)}{number}"


async def find_ref(repository: Repository, ref: str) -> str:
    """Return the commit that a ref points to; empty if there is none."""
    return await repository.objects.find(f"{ref}^{{commit}}")


async def resolve_commit(repository: Repository, name: str) -> str:
    """Return the commit that a name points to. Raise a *name* fault if there is none."""
    commit = "" if name.startswith("-") else await find_ref(repository, name)
    if not commit:
        raise WorkspaceFault("name", "git.no_commit", commit=name, root=str(repository.root))
    return commit


async def resolve_tree(repository: Repository, commit: str) -> str:
    """Return the tree of a commit. Raise a *name* fault if there is none."""
    tree = await repository.objects.find(f"{commit}^{{tree}}")
    if not tree:
        raise WorkspaceFault("name", "git.no_commit", commit=commit, root=str(repository.root))
    return tree


async def move_ref(repository: Repository, ref: str, new: str, old: str) -> None:
    """Point a ref to `new`, if it points to `old`. An empty `old` means that the ref must not exist."""
    await update_refs(repository, {ref: f"update {ref} {new} {old or '0' * len(new)}"})


async def update_refs(repository: Repository, lines: Mapping[str, str]) -> None:
    """Carry out one line per ref (`update REF NEW OLD`, `delete REF`), all or none.

    A lock that a killed git left on one of Greenroom's refs is removed.
    """
    async with lock(repository.folder / "refs.lock"):
        for ref in (ref for ref in lines if ref.startswith(f"{REF_ROOT}/")):
            with suppress(OSError):
                (repository.layout.common / f"{ref}.lock").unlink()
        instructions = os.fsencode("".join(f"{line}\n" for line in lines.values()))
        await repository.refs_git.run("update-ref", "-m", "greenroom", "--stdin", stdin=instructions)


async def list_refs(repository: Repository, prefix: str) -> list[Ref]:
    """Return the refs below a prefix, sorted by name."""
    form = "--format=%(refname)%00%(objectname)%00%(contents:subject)"
    output = await repository.refs_git.run("for-each-ref", form, prefix)
    rows = (line.split("\0") for line in os.fsdecode(output).rstrip("\n").split("\n")) if output else ()
    return [(name, commit, subject) for name, commit, subject in rows]


async def is_ancestor(repository: Repository, commit: str, of: str) -> bool:
    return (await repository.refs_git.run_unchecked("merge-base", "--is-ancestor", commit, of)).code == 0


async def list_branches_with(repository: Repository, commit: str) -> list[str]:
    """Return the local branches that contain a commit; none if the commit is gone."""
    result = await repository.refs_git.run_unchecked(
        "for-each-ref", "--format=%(refname)", "--contains", commit, "refs/heads"
    )
    names = os.fsdecode(result.out).split("\n") if result.code == 0 else []
    return [name.removeprefix("refs/heads/") for name in names if name]


async def find_commit_with_trailer(repository: Repository, word: str, value: str) -> str:
    """Return a recent commit of HEAD with this trailer; empty if there is none."""
    for commit in await repository.objects.list_history("HEAD", limit=MAX_COMMITS_SEARCHED):
        if parse_trailers(commit.message).get(word) == value:
            return commit.name
    return ""


async def find_step(repository: Repository, run: str, key: str, tip: str, base: str) -> str:
    """Return the commit of a run with this key, searching the newest commits from `tip` to `base`; else empty."""
    for commit in await repository.objects.list_history(tip, limit=MAX_STEPS_SEARCHED, until=base):
        info = parse_commit_info(commit.message)
        if info is not None and info.key == _join_lines(key) and info.run == run:
            return commit.name
    return ""


async def write_commit(
    repository: Repository, tree: str, parent: str, message: str, *, name: str = "", merged: str = ""
) -> str:
    """Write a commit without a ref to it, and return its hash. `merged` is the second parent of a merge."""
    identity = FORBIDDEN_IN_NAMES.sub("", f"{name} (Greenroom)" if name else "Greenroom")
    when = f"<greenroom@localhost> {int(time.time())} {time.strftime('%z')}"
    head = [
        f"tree {tree}",
        *(f"parent {name}" for name in (parent, merged) if name),
        f"author {identity} {when}",
        f"committer {identity} {when}",
    ]
    text = "\n".join((*head, "", message)).replace("\0", "")
    return await repository.write_object("commit", text.encode(errors="replace"))


def make_message(subject: str, trailers: Mapping[str, str]) -> str:
    """Return a commit message with trailers. Line breaks in a value become blanks."""
    lines = [f"{TRAILER_PREFIX}{name.capitalize()}: {_join_lines(value)}" for name, value in trailers.items() if value]
    return f"{subject.strip() or 'Work'}\n\n" + "\n".join(lines) + "\n"


def make_step_message(info: CommitInfo, *, thread: str = "") -> str:
    """Return the message for the commit of a step, or of a step that integrates a thread."""
    trailers = {name: getattr(info, name) for name in TRAILER_NAMES} | {"thread": thread}
    return make_message(_join_lines(info.summary)[:120] or f"Step {info.step or info.key}", trailers)


def parse_trailers(message: str) -> dict[str, str]:
    """Return Greenroom's trailers of a message by lower-case name. The last paragraph with trailers counts."""
    for part in reversed(message.split("\n\n")):
        if trailers := {match[1].lower(): match[2] for match in map(TRAILER_LINE.match, part.splitlines()) if match}:
            return trailers
    return {}


def parse_commit_info(message: str) -> CommitInfo | None:
    """Return the step that a commit belongs to; None if the commit has no trailers."""
    trailers = parse_trailers(message)
    if "run" not in trailers or "key" not in trailers:
        return None
    return CommitInfo(summary=message.partition("\n")[0], **{name: trailers.get(name, "") for name in TRAILER_NAMES})


def _join_lines(value: str) -> str:
    return " ".join(value.split())
