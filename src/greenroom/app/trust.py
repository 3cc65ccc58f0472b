"""Trust: what a workspace brings that would act in a person's name, and what of it they have agreed to, by hash."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Final, Literal, TypeAlias

import msgspec

from greenroom.app.agents.finding import Agents, Found, Trouble, find_agents
from greenroom.app.settings.home import RecordFile, config_folder, read_inside
from greenroom.app.settings.layers import FOLDER, for_everybody
from greenroom.app.workspace import Note, notes_of, workspace_notes
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.records import evolve, record
from greenroom.core.base.text import Labelled


@record
class Brought:
    """One thing. `shown` is what a person reads before they agree, `digest` what they agree to: all of it."""

    kind: Literal["agent", "tool", "server", "callback", "check", "notes"]
    name: str
    shown: str
    digest: str


class Broken(WorldFault):
    """A file that cannot be used, and why."""

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(f"{path}: {why}. It is left out; mend it or move it away.")
        self.path = path


NAME: Final = "trust.json"
VERSION: Final = 1
KEPT: Final = 20
"""Forms of one thing that stay agreed to: whoever goes from branch to branch is not asked each time."""

UNREADABLE: Final = (
    "Nobody knows what you have agreed to. Mend it, or move it away and agree anew with `greenroom trust`."
)

Standing: TypeAlias = Literal["agreed", "changed", "new"]
Trusted: TypeAlias = Callable[[Brought], bool]


@record
class Agreed:
    """A yes: to this thing in exactly this form."""

    kind: str
    name: str
    digest: str


@record
class Page:
    """The whole file. The keys are the real paths of workspaces."""

    version: int = VERSION
    agreed: Mapping[str, tuple[Agreed, ...]] = msgspec.field(default_factory=dict)


class Ledger:
    """What a person has agreed to."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = RecordFile(path, Page, "what you trust", UNREADABLE)

    def trusted(self, root: Path) -> Trusted:
        """Whether somebody has agreed to a thing, in the form that it has now; `WorldFault` when nobody can tell."""
        known = cache(lambda: self.standing(root))  # who has nothing to ask does not need the file
        return lambda one: known()(one) == "agreed"

    def standing(self, root: Path) -> Callable[[Brought], Standing]:
        """The same in three words: agreed to, agreed to in another form, or never seen."""
        yes = self._file.read().agreed.get(_key(root), ())
        forms, names = set(yes), {(one.kind, one.name) for one in yes}

        def stands(one: Brought) -> Standing:
            if _agreed(one) in forms:
                return "agreed"
            return "changed" if (one.kind, one.name) in names else "new"

        return stands

    def agree(self, root: Path, some: Iterable[Brought]) -> None:
        """A yes to these, from now on."""
        wanted = tuple(map(_agreed, some))

        def add(page: Page) -> Page:
            every: dict[tuple[str, str], list[Agreed]] = {}
            yes = page.agreed.get(_key(root), ())
            for one in (*(one for one in yes if one not in wanted), *wanted):
                every.setdefault((one.kind, one.name), []).append(one)
            kept = tuple(one for forms in every.values() for one in forms[-KEPT:])
            return evolve(page, agreed={**page.agreed, **({_key(root): kept} if kept else {})})

        self._file.change(add)

    def revoke(self, root: Path) -> int:
        """Take back all that was agreed to in a workspace; returns how many things that was."""
        gone: set[tuple[str, str]] = set()

        def drop(page: Page) -> Page:
            gone.update((one.kind, one.name) for one in page.agreed.get(_key(root), ()))
            return evolve(page, agreed={key: yes for key, yes in page.agreed.items() if key != _key(root)})

        self._file.change(drop)
        return len(gone)


def own_ledger() -> Ledger:
    return Ledger(config_folder() / NAME)


def _key(root: Path) -> str:
    return str(root.resolve())


def _agreed(one: Brought) -> Agreed:
    return Agreed(kind=one.kind, name=one.name, digest=one.digest)


Kind = Literal["tool", "callback"]

FOLDERS: Final[Mapping[Kind, str]] = {"tool": "tools", "callback": "callbacks"}
MOST: Final = 500
"""Files of one folder."""

LONGEST: Final = 1_000 * 1024
"""Bytes of one file."""

LONG: Final = 120
"""Characters of a description, or of the first line of a note."""

NAMED: Final = 12
"""Names of a file that are told."""

DEFINED: Final = re.compile(r"^(?:async )?(?:def|class) (\w+)|^(\w+)(?:: [^=\n]+)? = ", re.MULTILINE)


@record
class Script:
    """A file, and what stood in it and in all that it can import from `beside` it, by name.

    `digest` is empty for a person's own.
    """

    path: Path
    beside: Mapping[str, bytes]
    digest: str = ""

    @property
    def source(self) -> bytes:
        return self.beside[self.path.name]


@record
class Scripts:
    """The files of a folder by name. `troubles` says what of it cannot be used."""

    found: tuple[Script, ...] = ()
    troubles: tuple[str, ...] = ()


def own_scripts(folder: Path) -> Scripts:
    """Those of a folder of the person's own: its `.py` files, but for names that begin with `_`."""
    return _scripts(folder, None, "tool")


def project_scripts(root: Path, kind: Kind) -> Scripts:
    """Those that a workspace brings. All lie in it, wherever links lead; a place like /tmp brings none.

    A digest is of the file and of all others beside it that it can import.
    """
    folder = root / FOLDER / FOLDERS[kind]
    if for_everybody(root) or not folder.is_dir():
        return Scripts()
    if not folder.resolve().is_relative_to(root.resolve()):
        return Scripts(troubles=(str(Broken(folder, "leads out of the workspace")),))
    return _scripts(folder, root, kind)


def _scripts(folder: Path, root: Path | None, kind: Kind) -> Scripts:
    """The `.py` files of a folder, not of those below it. Only what is read here is ever run."""
    try:
        paths = sorted(folder.glob("*.py"))
    except OSError:
        paths = []
    if len(paths) > MOST:
        return Scripts(troubles=(str(Broken(folder, f"holds more than {MOST} files")),))
    beside: dict[str, bytes] = {}
    troubles: list[str] = []
    for path in paths:
        try:
            beside[path.name] = read_inside(path, root, LONGEST)
        except WorldFault as fault:
            troubles.append(str(Broken(path, str(fault))))
    whole = hashlib.sha256()
    for name, text in beside.items():
        whole.update(f"{name}\0{len(text)}\0".encode("utf-8", "surrogateescape") + text)
    found = (
        Script(
            path=folder / name,
            beside=beside,
            digest=_digest(f"{kind}\0{name}\0{whole.hexdigest()}") if root is not None else "",
        )
        for name in beside
        if not name.startswith(("_", "."))
    )
    return Scripts(found=tuple(found), troubles=tuple(troubles))


def brought(script: Script, kind: Kind, root: Path) -> Brought:
    """A file as a person sees it. It is read and not run."""
    shown = f"{script.path.relative_to(root)} · {_defined(script.source)}"
    return Brought(kind=kind, name=script.path.name, shown=shown, digest=script.digest)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def _defined(source: bytes) -> str:
    """The functions, classes and values that a Python file begins at its left edge."""
    names = list(dict.fromkeys(first or second for first, second in DEFINED.findall(source.decode(errors="replace"))))
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return f"defines {', '.join(names[:NAMED])}{more}" if names else "defines nothing"


def brought_notes(folder: Path) -> tuple[Brought, ...]:
    """The notes that count in a folder; a place like /tmp, where anybody may leave things, brings none."""
    return () if for_everybody(folder) else tuple(of_note(one) for one in reversed(notes_of(folder)) if one.text)


def of_note(note: Note) -> Brought:
    """A note as a person sees it: they agree to all of its words."""
    words = next(filter(None, (line.strip("# ") for line in note.text.splitlines())), "")
    shown = words if len(words) <= LONG else f"{words[: LONG - 1]}…"
    count = len(note.text.splitlines())
    lines = f"{count} line{'s' if count != 1 else ''}"
    digest = _digest(f"{note.name}\0{note.text}")
    return Brought(kind="notes", name=note.name, shown=f"{shown} · {lines}", digest=digest)


def agreed_notes(folder: Path, trusted: Trusted) -> Labelled:
    """What models are told of them there."""
    return workspace_notes(folder, lambda note: trusted(of_note(note)))


def brought_by(root: Path, more: Iterable[Brought] = (), *, folder: Path | None = None) -> tuple[Brought, ...]:
    """Its agents, tools and callbacks, and the notes that count in a `folder` of it; `more` comes from others, who know
    what else could act."""
    agents = [of_agent(one, root) for one in find_agents(root).found.values() if one.place.whose == "project"]
    scripts = [brought(one, kind, root) for kind in FOLDERS for one in project_scripts(root, kind).found]
    return (*agents, *scripts, *more, *brought_notes(folder or root))


def troubles_in(root: Path) -> tuple[str, ...]:
    """What of it could not be looked at, and why: agents, tools and callbacks."""
    agents = (one.text for one in find_agents(root).troubles if one.whose == "project")
    return (*agents, *(trouble for kind in FOLDERS for trouble in project_scripts(root, kind).troubles))


def of_agent(one: Found, root: Path) -> Brought:
    """An agent of the project. Where its file stands decides how it is understood, so that is agreed to as well."""
    where = one.path.relative_to(root).as_posix() if one.path.is_relative_to(root) else str(one.path)
    digest = _digest(f"{where}\0{one.digest}")
    return Brought(kind="agent", name=one.spec.name, shown=" · ".join((where, *_wants(one))), digest=digest)


def _wants(one: Found) -> Iterator[str]:
    """What it is for, and what it would have."""
    spec = one.spec
    what = " ".join((spec.description or spec.role).split())
    if what:
        yield what if len(what) <= LONG else f"{what[: LONG - 1]}…"
    model = str((spec.llm_config or {}).get("model", ""))
    for word, names in (
        ("tools", spec.tools),
        ("groups", spec.groups),
        ("calls", spec.calls),
        ("model", (model,) if model else ()),
    ):
        if names:
            yield f"{word}: {', '.join(names)}"
    if not spec.tools and not spec.groups:
        yield "says nothing about tools"


NOT_AGREED: Final = "nobody has agreed to it yet: `greenroom trust` shows what this workspace brings, and asks."


def agreed(agents: Agents, root: Path, trusted: Trusted) -> Agents:
    """The same agents; one that may not be used is a trouble that says why. None of its name takes its place."""
    left = {name: one for name, one in agents.found.items() if not may_be_used(one, root, trusted)}
    if not left:
        return agents
    return evolve(
        agents,
        found={name: one for name, one in agents.found.items() if name not in left},
        troubles=(*agents.troubles, *(Trouble(name=name, text=refusal(one)) for name, one in left.items())),
    )


def may_be_used(one: Found, root: Path, trusted: Trusted) -> bool:
    """A person's own always, a project's when somebody has agreed to it."""
    return one.place.whose == "user" or trusted(of_agent(one, root))


def refusal(one: Found) -> str:
    """Why it is not used."""
    return f"The agent {one.spec.name!r} is from {one.path}, and {NOT_AGREED}"
