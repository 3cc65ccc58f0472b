"""Which checks judge a run: what the project has, what a person chose of it, and in a sandbox what was found."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from greenroom.app.settings.home import RecordFile, config_folder, read_inside
from greenroom.app.settings.layers import Loaded, for_everybody, load
from greenroom.app.settings.schema import CheckSettings
from greenroom.app.trust import Brought, Ledger, Trusted, own_ledger
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.records import evolve, record
from greenroom.core.ports.checks import Check
from greenroom.runs.checkout import Setup
from greenroom.runs.discover import LONGEST, find_checks

LONG: Final = 160
"""Characters of what a command stands for."""

NAME: Final = "checks.json"
VERSION: Final = 1
UNREADABLE: Final = "Nobody knows which checks you want. Mend it, or move it away and choose anew."
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
    """What was chosen, by project."""

    def __init__(self, path: Path, ledger: Ledger) -> None:
        self.path = path
        self.ledger = ledger
        self._file = RecordFile(path, Page, "which checks you want", UNREADABLE)

    def of(self, root: Path) -> Choice | None:
        """What somebody has chosen here; None if nobody was asked yet. `WorldFault` when nobody can tell."""
        return self._file.read().projects.get(str(root.resolve()))

    def save(self, root: Path, chosen: Sequence[Check], shown: Iterable[Check] = ()) -> None:
        """Keep what somebody chose of what they were `shown`, with what they wrote themselves. It is agreed to."""
        names, key = {check.digest for check in chosen}, str(root.resolve())
        declined = [check.digest for check in shown if check.digest not in names]

        def add(page: Page) -> Page:
            old = page.projects.get(key, Choice()).declined
            kept = tuple(digest for digest in dict.fromkeys((*old, *declined)) if digest not in names)[-KEPT:]
            return evolve(page, projects={**page.projects, key: Choice(checks=tuple(chosen), declined=kept)})

        self.ledger.agree(root, [brought(check) for check in chosen if not check.own])
        self._file.change(add)

    def forget(self, root: Path) -> None:
        """Ask anew next time."""
        key = str(root.resolve())
        self._file.change(
            lambda page: evolve(page, projects={name: one for name, one in page.projects.items() if name != key})
        )


def own_choices() -> Choices:
    return Choices(config_folder() / NAME, own_ledger())


def brought(check: Check) -> Brought:
    """One check, as a person sees it before they agree to run it. What its line stands for is agreed to as well."""
    means = " ".join(check.means.split())
    shown = f" · {means if len(means) <= LONG else f'{means[: LONG - 1]}…'}" if means else ""
    line = f"{check.line} (in {check.folder})" if check.folder != "." else check.line
    return Brought(kind="check", name=check.name, shown=f"{line} · {check.why}{shown}", digest=check.digest)


TYPED: Final = "You said so."


class FolderLook:
    """A real folder that is looked at for its checks. What cannot be seen is not there: nothing is raised."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def read(self, path: str) -> bytes | None:
        """A plain file, wherever in the folder a link leads."""
        try:
            return read_inside(self._root / path, self._root, LONGEST)
        except (WorldFault, ValueError):
            return None

    def names(self, folder: str) -> frozenset[str]:
        """What lies in a folder. That of a virtual environment may be a link that leads elsewhere."""
        try:
            return frozenset(entry.name for entry in (self._root / folder).iterdir())
        except (OSError, ValueError, RuntimeError):
            return frozenset()

    def has_program(self, name: str) -> bool:
        """Whether it is on the PATH."""
        return shutil.which(name) is not None


@record
class Plan:
    """`run` are the checks of this run, `confirmed` the names of those that a person wanted; `open` are those that
    nobody was asked about, in the form that they have now. `left` says what is not run, and why; `declined` are the
    digests of those that a person did not want. `found` are the project's own, of which all this was chosen."""

    run: tuple[Check, ...] = ()
    confirmed: frozenset[str] = frozenset()
    open: tuple[Check, ...] = ()
    left: tuple[str, ...] = ()
    declined: frozenset[str] = frozenset()
    found: tuple[Check, ...] = ()


def planned(found: Sequence[Check], choice: Choice | None, trusted: Trusted, *, walls: bool) -> Plan:
    """What is run when nobody can be asked any more. `found` are the project's own, `walls` say that they hold.

    Whoever can ask shows `open`, saves the answer and plans again.
    """
    sure = [one for one in _wanted(found, choice) if one.own or trusted(brought(one))]
    declined = frozenset(choice.declined if choice is not None else ())
    known = {one.digest for one in sure} | declined
    doubtful = tuple(one for one in found if one.digest not in known)
    left = tuple(_left(one, choice) for one in doubtful) if not walls else ()
    run = (*sure, *doubtful) if walls else tuple(sure)
    confirmed = frozenset(one.name for one in sure)
    own = tuple(one for one in found if not one.own)
    return Plan(run=run, confirmed=confirmed, open=doubtful, left=left, declined=declined, found=own)


def _wanted(found: Sequence[Check], choice: Choice | None) -> Iterator[Check]:
    """What was chosen, as it is in the project now; without a choice, all."""
    if choice is None:
        yield from found
        return
    now = {one.digest: one for one in found}
    yield from (now.get(one.digest, one) for one in choice.checks if one.own or one.digest in now)


def _left(check: Check, choice: Choice | None) -> str:
    names = {one.name for one in choice.checks} if choice is not None else set()
    why = "it has changed since you approved it" if check.name in names else "it is not approved"
    return f"{check.name} is not run: {why}, and this machine has no sandbox. Approve it with `greenroom trust`."


def own_check(line: str, found: Sequence[Check]) -> Check:
    """A line that somebody typed. Where the project has the same one, it is that: then its changes are asked about."""
    typed = " ".join(line.split())
    same = next((one for one in found if one.line == typed), None)
    return same or Check(name=typed[:60], line=line.strip(), kind="test", why=TYPED, own=True)


def proposed(settings: Mapping[str, CheckSettings], loaded: Loaded) -> tuple[Check, ...]:
    """What `[checks]` in a file of settings wants. In the person's own file it is theirs, elsewhere a proposal."""
    return tuple(_proposed(name, one, loaded) for name, one in settings.items())


def _proposed(name: str, one: CheckSettings, loaded: Loaded) -> Check:
    origin = loaded.origin(f"checks.{name}.run")
    layers = {loaded.origin(f"checks.{name}.{key}").layer for key in ("run", "kind", "folder", "seconds")}
    why = f"{origin.source or 'a file of settings'} says so in [checks.{name}]."
    return Check(
        name=name,
        line=one.run,
        kind=one.kind,
        why=why,
        folder=one.folder,
        seconds=round(one.seconds),
        own=layers <= {"user", "default"},
    )


def together(proposals: Sequence[Check], found: Sequence[Check]) -> tuple[Check, ...]:
    """Both, none twice: a line that the project proposes itself goes by the name that it gives it."""
    said = {(one.line, one.folder): one.means for one in found}
    first = [evolve(one, means=said.get((one.line, one.folder), one.means)) for one in proposals]
    taken = {(one.line, one.folder) for one in first}
    names = {one.name for one in first}
    rest = [one for one in found if (one.line, one.folder) not in taken and one.name not in names]
    return (*first, *rest)


def plan_of(root: Path, *, walls: bool, then: Sequence[Check] | None = None) -> Plan:
    """The plan of a run in this folder; `walls` say that commands run in a sandbox. `then` are the checks that the
    project had when the run began: they judge it to its end. A person's own are those that they want now."""
    loaded = load({}, os.environ, root)
    proposals = proposed(loaded.settings.checks, loaded)
    own = tuple(check for check in proposals if check.own)
    every = together(proposals, find_checks(FolderLook(root))) if then is None else together(own, then)
    return planned(every, own_choices().of(root), own_ledger().trusted(root), walls=walls)


def brought_checks(root: Path) -> tuple[Brought, ...]:
    """The checks that a workspace brings; a place like /tmp brings none."""
    return () if for_everybody(root) else tuple(map(brought, find_checks(FolderLook(root))))


def setup_of(root: Path, *, walls: bool) -> Setup:
    """What a worktree needs. A line that comes with the project is not run without a sandbox."""
    loaded = load({}, os.environ, root)
    wanted, origin = loaded.settings.workspace, loaded.origin("workspace.setup")
    own = origin.layer not in ("project", "local")
    left = ""
    if wanted.setup and not own and not walls:
        left = (
            f"`{wanted.setup}` was not run: {origin.source} names it, and this machine has no sandbox. To run it, put "
            "it below [workspace] into your own settings file (`greenroom config path`)."
        )
    return Setup(line=wanted.setup, seconds=wanted.seconds, left=left)
