"""The ledger: what a person has agreed to, by workspace. A file of theirs, which nobody else can write."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Final, Literal, TypeAlias

import msgspec

from greenroom.app.settings.changing import change, refuse_writable
from greenroom.app.settings.home import config_folder
from greenroom.app.trust.brought import Brought
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.records import evolve, record

NAME: Final = "trust.json"
VERSION: Final = 1
KEPT: Final = 20
"""Forms of one thing that stay agreed to: whoever goes from branch to branch is not asked each time."""

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
            kept = [one for one in yes if one not in wanted]
            return tuple(one for name in _names((*kept, *wanted)) for one in _newest((*kept, *wanted), name))

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
            return msgspec.json.format(msgspec.json.encode(page)).decode() + "\n"

        change(self.path, made)

    def _read(self) -> Page:
        try:
            content = self.path.read_bytes()
            mode = self.path.stat().st_mode
        except FileNotFoundError:
            return Page()
        except OSError as error:
            raise _unreadable(self.path, error.strerror or str(error)) from None
        refuse_writable(self.path, mode, "what you trust")
        try:
            page = msgspec.json.decode(content, type=Page)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise _unreadable(self.path, str(error)) from None
        if page.version != VERSION:
            raise _unreadable(self.path, f"it has version {page.version}, and this Greenroom knows {VERSION}")
        return page


def own_ledger() -> Ledger:
    """The person's."""
    return Ledger(config_folder() / NAME)


def _key(root: Path) -> str:
    return str(root.resolve())


def _agreed(one: Brought) -> Agreed:
    return Agreed(kind=one.kind, name=one.name, digest=one.digest)


def _names(some: Iterable[Agreed]) -> Iterable[tuple[str, str]]:
    return dict.fromkeys((one.kind, one.name) for one in some)


def _newest(some: Iterable[Agreed], name: tuple[str, str]) -> list[Agreed]:
    return [one for one in some if (one.kind, one.name) == name][-KEPT:]


def _unreadable(path: Path, why: str) -> WorldFault:
    return WorldFault(
        f"{path} cannot be read: {why}. Nobody knows what you have agreed to. Mend it, or move it away and agree anew "
        "with `greenroom trust`."
    )
