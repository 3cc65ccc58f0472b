"""Refs below `refs/greenroom/`, and the lines that say below a commit's message of which run and step it is."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Final, TypeAlias

from greenroom.adapters.git.files import lock
from greenroom.adapters.git.repository import Repository
from greenroom.core.ports.workspace import Mark, WorkspaceFault

OURS: Final = "refs/greenroom"
PLAIN: Final = re.compile(r"[A-Za-z0-9_-]")
LONGEST: Final = 100
RECENT: Final = 50
"""Commits among which one is looked for by its message."""

UNNAMABLE: Final = re.compile(r"[<>\x00-\x1f]")
"""Letters that nobody's name has in a commit."""

PREFIX: Final = "Greenroom-"
LINE: Final = re.compile(r"^Greenroom-([A-Za-z]+): (.*)$")
NAMES: Final = ("run", "task", "agent", "step", "key")

Ref: TypeAlias = tuple[str, str, str]
"""Name, commit, and that commit's first line."""


def escape_name(name: str) -> str:
    """A name as a part of a ref, and of a folder's name: letters and digits stay, `@` in its middle too."""
    if not name:
        raise WorkspaceFault("name", "A run and a thread need a name.")
    made = "".join(
        letter if PLAIN.match(letter) or (letter == "@" and place) else _escape(letter)
        for place, letter in enumerate(name)
    )
    if len(made) > LONGEST:
        raise WorkspaceFault("name", f"The name {name[:60]!r}… is too long.")
    return made


def _escape(letter: str) -> str:
    return "".join(f"%{byte:02x}" for byte in letter.encode(errors="surrogateescape"))


def base_ref(run: str) -> str:
    """Of the snapshot that a run began with. No thread is called like it: theirs begin with no `@`."""
    return f"{OURS}/{escape_name(run)}/@base"


def thread_ref(run: str, thread: str) -> str:
    """Of a thread's newest commit."""
    return f"{OURS}/{escape_name(run)}/{escape_name(thread)}"


def applied_refs(run: str) -> str:
    """Above all that was applied of a run."""
    return f"{OURS}/{escape_name(run)}/@applied/"


def applied_ref(applied: str) -> str:
    """Of what was applied under this id."""
    run, found, number = applied.rpartition("/")
    if not found or not number.isdecimal():
        raise WorkspaceFault("name", f"Nothing was applied under the name {applied!r}.")
    return f"{applied_refs(run)}{number}"


async def value_of(repository: Repository, ref: str) -> str:
    """The commit that a ref leads to; empty if there is none."""
    return await repository.objects.find(f"{ref}^{{commit}}")


async def commit_of(repository: Repository, name: str) -> str:
    """The same, where there has to be one."""
    found = "" if name.startswith("-") else await value_of(repository, name)
    if not found:
        raise WorkspaceFault("name", f"There is no commit {name!r} in {str(repository.root)!r}.")
    return found


async def tree_of(repository: Repository, commit: str) -> str:
    """The tree of a commit."""
    found = await repository.objects.find(f"{commit}^{{tree}}")
    if not found:
        raise WorkspaceFault("name", f"There is no commit {commit!r} in {str(repository.root)!r}.")
    return found


async def move(repository: Repository, ref: str, new: str, old: str) -> None:
    """Lead a ref to `new`, if it leads to `old` (empty: nowhere)."""
    await update_refs(repository, {ref: f"update {ref} {new} {old or '0' * len(new)}"})


async def update_refs(repository: Repository, lines: Mapping[str, str]) -> None:
    """Do what the line of each ref says (`update REF NEW OLD`, `delete REF`), all of it or nothing. A lock that a
    killed git left on one of ours is removed."""
    async with lock(repository.folder / "refs.lock"):
        for ref in (ref for ref in lines if ref.startswith(f"{OURS}/")):
            with suppress(OSError):
                (repository.layout.common / f"{ref}.lock").unlink()
        wanted = os.fsencode("".join(f"{line}\n" for line in lines.values()))
        await repository.refs.ask("update-ref", "-m", "greenroom", "--stdin", stdin=wanted)


async def list_refs(repository: Repository, prefix: str) -> list[Ref]:
    """Those of ours below a prefix, by name."""
    form = "--format=%(refname)%00%(objectname)%00%(contents:subject)"
    said = await repository.refs.ask("for-each-ref", form, prefix)
    rows = (line.split("\0") for line in os.fsdecode(said).rstrip("\n").split("\n")) if said else ()
    return [(name, commit, subject) for name, commit, subject in rows]


async def is_ancestor(repository: Repository, commit: str, of: str) -> bool:
    """Whether one commit leads to another."""
    return (await repository.refs.tried("merge-base", "--is-ancestor", commit, of)).code == 0


async def branches_with(repository: Repository, commit: str) -> list[str]:
    """The person's branches that have this commit; none for one that is gone."""
    said = await repository.refs.tried("for-each-ref", "--format=%(refname)", "--contains", commit, "refs/heads")
    names = os.fsdecode(said.out).split("\n") if said.code == 0 else []
    return [name.removeprefix("refs/heads/") for name in names if name]


async def commit_saying(repository: Repository, word: str, value: str) -> str:
    """A recent commit of HEAD whose message has this line of ours; empty for none."""
    for commit in await repository.objects.history("HEAD", most=RECENT):
        if trailers_of(commit.message).get(word) == value:
            return commit.name
    return ""


async def commit_tree(repository: Repository, tree: str, parent: str, message: str, *, name: str = "") -> str:
    """Make a commit that nothing leads to yet."""
    who = UNNAMABLE.sub("", f"{name} (Greenroom)" if name else "Greenroom")
    when = f"<greenroom@localhost> {int(time.time())} {time.strftime('%z')}"
    head = [
        f"tree {tree}",
        *([f"parent {parent}"] if parent else []),
        f"author {who} {when}",
        f"committer {who} {when}",
    ]
    text = "\n".join((*head, "", message)).replace("\0", "")
    return await repository.write("commit", text.encode(errors="replace"))


def message_of(subject: str, told: Mapping[str, str]) -> str:
    """A message with our lines below it; whatever is in a value stays on its line."""
    lines = [f"{PREFIX}{name.capitalize()}: {_one_line(value)}" for name, value in told.items() if value]
    return f"{subject.strip() or 'Work'}\n\n" + "\n".join(lines) + "\n"


def step_message(mark: Mark) -> str:
    """The message of one step's commit."""
    told = {"run": mark.run, "task": mark.task, "agent": mark.agent, "step": mark.step, "key": mark.key}
    return message_of(_one_line(mark.summary)[:120] or f"Step {mark.step or mark.key}", told)


def trailers_of(message: str) -> dict[str, str]:
    """Our lines in a message, by name in small letters: those of the last paragraph that has some."""
    for part in reversed(message.split("\n\n")):
        if found := {match[1].lower(): match[2] for match in map(LINE.match, part.splitlines()) if match}:
            return found
    return {}


def mark_of(message: str) -> Mark | None:
    """Whose step a commit is, if it is one of ours."""
    told = trailers_of(message)
    if "run" not in told or "key" not in told:
        return None
    return Mark(summary=message.partition("\n")[0], **{name: told.get(name, "") for name in NAMES})


def _one_line(value: str) -> str:
    return " ".join(value.split())
