"""Trust: what a workspace brings that would act in a person's name, and what of it they have agreed to, by hash."""

from __future__ import annotations

import ast
import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from importlib.machinery import all_suffixes
from itertools import islice
from pathlib import Path
from typing import Final, Literal, TypeAlias

import msgspec

from greenroom.app.agents.finding import Agents, Found, Trouble, find_agents
from greenroom.app.settings.home import as_json, change, config_folder, read_record
from greenroom.app.settings.layers import FOLDER, for_everybody
from greenroom.app.toolset.modules import Broken
from greenroom.app.workspace import Note, notes_of, workspace_notes
from greenroom.core.base.records import evolve, record
from greenroom.core.base.text import Labelled


@record
class Brought:
    """One thing. `shown` is what a person reads before they agree, `digest` what they agree to: all of it."""

    kind: Literal["agent", "tool", "server", "callback", "check", "notes"]
    name: str
    shown: str
    digest: str


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
    """Reads it anew each time: it is short, and a person may have agreed elsewhere meanwhile."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def trusted(self, root: Path) -> Trusted:
        """Whether somebody has agreed to a thing, in the form that it has now; `WorldFault` when nobody can tell."""
        known = cache(lambda: self.standing(root))  # who has nothing to ask does not need the file
        return lambda one: known()(one) == "agreed"

    def standing(self, root: Path) -> Callable[[Brought], Standing]:
        """The same in three words: agreed to, agreed to in another form, or never seen."""
        yes = self._read().agreed.get(_key(root), ())
        forms, names = set(yes), {(one.kind, one.name) for one in yes}

        def stands(one: Brought) -> Standing:
            if _agreed(one) in forms:
                return "agreed"
            return "changed" if (one.kind, one.name) in names else "new"

        return stands

    def agree(self, root: Path, some: Iterable[Brought]) -> None:
        """A yes to these, from now on."""
        wanted = tuple(map(_agreed, some))

        def add(yes: tuple[Agreed, ...]) -> tuple[Agreed, ...]:
            every: dict[tuple[str, str], list[Agreed]] = {}
            for one in (*(one for one in yes if one not in wanted), *wanted):
                every.setdefault((one.kind, one.name), []).append(one)
            return tuple(one for forms in every.values() for one in forms[-KEPT:])

        self._change(root, add)

    def revoke(self, root: Path) -> int:
        """Take back all that was agreed to in a workspace; returns how many things that was."""
        gone: list[Agreed] = []

        def drop(yes: tuple[Agreed, ...]) -> tuple[Agreed, ...]:
            gone.extend(yes)
            return ()

        self._change(root, drop)
        return len({(one.kind, one.name) for one in gone})

    def _change(self, root: Path, changes: Callable[[tuple[Agreed, ...]], tuple[Agreed, ...]]) -> None:
        def made() -> str:
            page = self._read()
            pages = {**page.agreed, _key(root): changes(page.agreed.get(_key(root), ()))}
            page = evolve(page, agreed={name: yes for name, yes in pages.items() if yes})
            return as_json(page)

        change(self.path, made)

    def _read(self) -> Page:
        return read_record(self.path, Page, "what you trust", UNREADABLE)


def own_ledger() -> Ledger:
    return Ledger(config_folder() / NAME)


def _key(root: Path) -> str:
    return str(root.resolve())


def _agreed(one: Brought) -> Agreed:
    return Agreed(kind=one.kind, name=one.name, digest=one.digest)


Kind = Literal["tool", "callback"]

FOLDERS: Final[Mapping[Kind, str]] = {"tool": "tools", "callback": "callbacks"}
MOST: Final = 500
"""Files of one folder, with all below it."""

LONGEST: Final = 1_000_000
"""Bytes of one file."""

COMPILED: Final = "is compiled code, which nobody can read and nothing here runs"
LONG: Final = 120
"""Characters of a description, or of the first line of a note."""

NAMED: Final = 12
"""Names of a file that are told."""


@record
class Script:
    """A file, and what stood in it and in all that it can import from `beside` it, by where that lies in the folder.

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
    beside: dict[str, bytes] = {}
    troubles: list[str] = []
    tops = _tops(folder)
    try:
        for path in (*tops, *_packages(folder)):
            try:
                beside[path.relative_to(folder).as_posix()] = _bytes(path)
            except Broken as broken:
                troubles.append(str(broken))
    except Broken as broken:
        return Scripts(troubles=(str(broken),))
    found = tuple(Script(path=one, beside=beside) for one in tops if one.name in beside)
    return Scripts(found=found, troubles=tuple(troubles))


def project_scripts(root: Path, kind: Kind) -> Scripts:
    """Those that a workspace brings. All lie in it, wherever links lead; a place like /tmp brings none.

    A digest is of the file and of everything in the folder that an import could find. Of that, only what a person can
    read is ever run.
    """
    folder = root / FOLDER / FOLDERS[kind]
    if for_everybody(root) or not folder.is_dir():
        return Scripts()
    try:
        every = {path.relative_to(folder).as_posix(): _bytes(path) for path in _importable(folder, root)}
    except Broken as broken:
        return Scripts(troubles=(str(broken),))
    whole = hashlib.sha256()
    for place, text in every.items():
        whole.update(f"{place}\0{len(text)}\0".encode("utf-8", "surrogateescape") + text)
    beside = {place: text for place, text in every.items() if place.endswith(".py")}
    found = (
        Script(path=path, beside=beside, digest=_digest(f"{kind}\0{path.name}\0{whole.hexdigest()}"))
        for path in _tops(folder)
        if path.name in beside
    )
    compiled = (str(Broken(folder / place, COMPILED)) for place in every if place not in beside)
    return Scripts(found=tuple(found), troubles=tuple(compiled))


def brought(script: Script, kind: Kind, root: Path) -> Brought:
    """A file as a person sees it. It is read and not run."""
    shown = f"{script.path.relative_to(root)} · {_defined(script.source)}"
    return Brought(kind=kind, name=script.path.name, shown=shown, digest=script.digest)


# ---------------------------------------------------------------------------------------------------------- folders


def _tops(folder: Path) -> list[Path]:
    try:
        return sorted(one for one in folder.glob("*.py") if not one.name.startswith(("_", ".")))
    except OSError:
        return []


def _importable(folder: Path, root: Path) -> list[Path]:
    """All that an import can find below the folder, compiled files too, in a fixed order."""
    top = root.resolve()
    if not folder.resolve().is_relative_to(top):
        raise Broken(folder, "leads out of the workspace")
    found = list(islice(_walked(folder), MOST + 1))
    if len(found) > MOST:
        raise Broken(folder, f"holds more than {MOST} files")
    for path in found:
        if not path.resolve().is_relative_to(top):
            raise Broken(path, "is a link that leads out of the workspace")
    return sorted(found)


def _packages(folder: Path) -> Iterator[Path]:
    """What lies beside the files of a person's own folder: its other files, and packages with all below them."""
    seen: set[Path] = set()
    count = 0
    for place, folders, files in os.walk(folder, followlinks=True):
        folders[:] = sorted(one for one in folders if _is_package(Path(place, one), seen))
        for one in files:
            if one.endswith(".py") and (place != str(folder) or one.startswith("_")):
                count += 1
                yield Path(place, one)
        if count > MOST:
            raise Broken(folder, f"holds more than {MOST} files")


def _is_package(folder: Path, seen: set[Path]) -> bool:
    """Whether anything in it can be imported; a link that leads to where we have been is none."""
    real = folder.resolve()
    if not folder.name.isidentifier() or real in seen:
        return False
    seen.add(real)
    return any(folder.glob("*.py")) or any(folder.glob("*/__init__.py"))


def _walked(folder: Path) -> Iterator[Path]:
    suffixes = tuple(all_suffixes())
    for place, folders, files in os.walk(folder, onerror=_refuse):
        for one in folders:
            if Path(place, one).is_symlink():  # an import would follow it, and nobody would have looked there
                raise Broken(Path(place, one), "is a link to a folder. Make it one")
        yield from (Path(place, one) for one in files if one.endswith(suffixes))


def _refuse(error: OSError) -> None:
    raise Broken(Path(str(error.filename)), f"cannot be read: {error.strerror}")


def _bytes(path: Path) -> bytes:
    try:
        if not path.is_file():
            raise Broken(path, "is no plain file")
        with path.open("rb") as file:
            source = file.read(LONGEST + 1)
    except OSError as error:
        raise Broken(path, f"cannot be read: {error.strerror}") from None
    if len(source) > LONGEST:
        raise Broken(path, f"is longer than {LONGEST // 1_000_000} MB")
    return source


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


# ------------------------------------------------------------------------------------------------------------ names


def _defined(source: bytes) -> str:
    """The names that stand at the top of a file."""
    try:
        names = list(dict.fromkeys(name for node in ast.parse(source).body for name in _names(node)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return "is no Python that can be read"
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return f"defines {', '.join(names[:NAMED])}{more}" if names else "defines nothing"


def _names(node: ast.stmt) -> Iterator[str]:
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            yield node.name
        case ast.Assign():
            yield from (one.id for one in node.targets if isinstance(one, ast.Name))
        case ast.AnnAssign(target=ast.Name(id=name)):
            yield name
        case _:
            return


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
