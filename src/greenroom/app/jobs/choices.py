"""Choices: which checks a person wants in a project, as they said once. A file of theirs, which nobody else can write.

What a project brings is chosen in exactly the form that it had: that form is agreed to in the ledger of trust.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from greenroom.app.settings.changing import change, refuse_writable
from greenroom.app.settings.home import config_folder
from greenroom.app.trust.brought import Brought
from greenroom.app.trust.ledger import Ledger, own_ledger
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.records import evolve, record
from greenroom.core.ports.checks import Check

LONG: Final = 160
"""Characters of what a command stands for."""

NAME: Final = "checks.json"
VERSION: Final = 1
KEPT: Final = 200
"""Checks that were declined and are remembered."""


@record
class Choice:
    """What is wanted in one project; nothing of it (a person said *none*) is a choice too. `declined` are digests."""

    checks: tuple[Check, ...] = ()
    declined: tuple[str, ...] = ()


@record
class Page:
    """The whole file. The keys are the real paths of projects."""

    version: int = VERSION
    projects: Mapping[str, Choice] = msgspec.field(default_factory=dict)


class Choices:
    """Reads the file anew each time: it is short, and a person may have chosen elsewhere meanwhile."""

    def __init__(self, path: Path, ledger: Ledger) -> None:
        self.path = path
        self.ledger = ledger

    def of(self, root: Path) -> Choice | None:
        """What somebody has chosen here; None if nobody was asked yet. `WorldFault` when nobody can tell."""
        return self._read().projects.get(str(root.resolve()))

    def save(self, root: Path, chosen: Sequence[Check], shown: Iterable[Check] = ()) -> None:
        """Keep what somebody chose of what they were `shown`, with what they wrote themselves. It is agreed to."""
        names = {one.digest for one in chosen}
        declined = tuple(one.digest for one in shown if one.digest not in names)

        def made() -> str:
            page = self._read()
            key = str(root.resolve())
            old = page.projects.get(key, Choice()).declined
            kept = tuple(one for one in dict.fromkeys((*old, *declined)) if one not in names)[-KEPT:]
            page = evolve(page, projects={**page.projects, key: Choice(checks=tuple(chosen), declined=kept)})
            return msgspec.json.format(msgspec.json.encode(page)).decode() + "\n"

        self.ledger.agree(root, [brought(one) for one in chosen if not one.own])
        change(self.path, made)

    def forget(self, root: Path) -> None:
        """Ask anew next time."""

        def made() -> str:
            page = self._read()
            left = {key: one for key, one in page.projects.items() if key != str(root.resolve())}
            return msgspec.json.format(msgspec.json.encode(evolve(page, projects=left))).decode() + "\n"

        change(self.path, made)

    def _read(self) -> Page:
        try:
            content = self.path.read_bytes()
            mode = self.path.stat().st_mode
        except FileNotFoundError:
            return Page()
        except OSError as error:
            raise self._unreadable(error.strerror or str(error)) from None
        refuse_writable(self.path, mode, "which checks you want")
        try:
            page = msgspec.json.decode(content, type=Page)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise self._unreadable(str(error)) from None
        if page.version != VERSION:
            raise self._unreadable(f"it has version {page.version}, and this Greenroom knows {VERSION}")
        return page

    def _unreadable(self, why: str) -> WorldFault:
        return WorldFault(
            f"{self.path} cannot be read: {why}. Nobody knows which checks you want. Mend it, or move it away and "
            "choose anew."
        )


def own_choices() -> Choices:
    """The person's."""
    return Choices(config_folder() / NAME, own_ledger())


def brought(check: Check) -> Brought:
    """One check, as a person sees it before they agree to run it. What its line stands for is agreed to as well."""
    means = " ".join(check.means.split())
    shown = f" · {means if len(means) <= LONG else f'{means[: LONG - 1]}…'}" if means else ""
    line = f"{check.line} (in {check.folder})" if check.folder != "." else check.line
    return Brought(kind="check", name=check.name, shown=f"{line} · {check.why}{shown}", digest=check.digest)
