"""The checks of a run: what the project has, what a person chose, and what a sandbox allows without approval."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from greenroom.app.messages import translate
from greenroom.app.settings.home import RecordFile, config_folder, read_inside
from greenroom.app.settings.layers import LoadedSettings, is_shared_folder, load_settings
from greenroom.app.settings.schema import CheckSettings
from greenroom.app.trust import IsTrusted, TrustItem, TrustStore, open_trust_store
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.records import evolve, record
from greenroom.core.ports.checks import Check
from greenroom.runs.checkout import WorkspaceSetup
from greenroom.runs.discovery import MAX_FILE_BYTES, find_checks

MAX_MEANING_CHARS: Final = 160
FILE_VERSION: Final = 1
MAX_DECLINED: Final = 200


@record
class CheckChoice:
    """The checks chosen in one project; empty if the person chose *none*. `declined` holds digests."""

    checks: tuple[Check, ...] = ()
    declined: tuple[str, ...] = ()


@record
class ChecksFile:
    """The content of the checks file, by the real path of each project."""

    version: int = FILE_VERSION
    projects: Mapping[str, CheckChoice] = msgspec.field(default_factory=dict)


class CheckChoices:
    """The chosen checks by project."""

    def __init__(self, path: Path, ledger: TrustStore) -> None:
        self.path = path
        self.ledger = ledger
        self._file = RecordFile(path, ChecksFile, "checks.content", "checks.choice_unreadable")

    def get(self, root: Path) -> CheckChoice | None:
        """Return the choice for a project, or None if none was made. Raise `WorldFault` if the file is unreadable."""
        return self._file.read().projects.get(str(root.resolve()))

    def save(self, root: Path, chosen: Sequence[Check], shown: Iterable[Check] = ()) -> None:
        """Save the chosen checks, trust them, and remember the others that were `shown` as declined."""
        chosen_digests, key = {check.digest for check in chosen}, str(root.resolve())
        declined = [check.digest for check in shown if check.digest not in chosen_digests]

        def add(page: ChecksFile) -> ChecksFile:
            already_declined = page.projects.get(key, CheckChoice()).declined
            still_declined = tuple(
                digest for digest in dict.fromkeys((*already_declined, *declined)) if digest not in chosen_digests
            )[-MAX_DECLINED:]
            return evolve(
                page, projects={**page.projects, key: CheckChoice(checks=tuple(chosen), declined=still_declined)}
            )

        self.ledger.trust_items(root, [describe_check(check) for check in chosen if not check.own])
        self._file.change(add)

    def forget(self, root: Path) -> None:
        """Delete the choice, so that the next run asks again."""
        key = str(root.resolve())
        self._file.change(
            lambda page: evolve(page, projects={name: choice for name, choice in page.projects.items() if name != key})
        )


def open_choices() -> CheckChoices:
    return CheckChoices(config_folder() / "checks.json", open_trust_store())


def describe_check(check: Check) -> TrustItem:
    """Describe a check for a person. The digest includes what its command line expands to."""
    meaning = " ".join(check.means.split())
    shown_meaning = (
        f" · {meaning if len(meaning) <= MAX_MEANING_CHARS else f'{meaning[: MAX_MEANING_CHARS - 1]}…'}"
        if meaning
        else ""
    )
    line = f"{check.line} (in {check.folder})" if check.folder != "." else check.line
    return TrustItem(kind="check", name=check.name, shown=f"{line} · {check.why}{shown_meaning}", digest=check.digest)


class FolderReader:
    """Reads a folder to find its checks. Unreadable files count as missing; nothing is raised."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def read(self, path: str) -> bytes | None:
        """Return the content of a plain file inside the folder, or None."""
        try:
            return read_inside(self._root / path, self._root, MAX_FILE_BYTES)
        except (WorldFault, ValueError):
            return None

    def names(self, folder: str) -> frozenset[str]:
        """Return the names in a folder. The folder of a virtual environment can be a link to the outside."""
        try:
            return frozenset(entry.name for entry in (self._root / folder).iterdir())
        except (OSError, ValueError, RuntimeError):
            return frozenset()

    def has_program(self, name: str) -> bool:
        """Whether a program is on the PATH."""
        return shutil.which(name) is not None


@record
class CheckPlan:
    """The checks of a run.

    - `run`: The checks that run.
    - `confirmed`: The names of those that a person approved.
    - `unapproved`: Checks that no person has decided about in their current version.
    - `skip_reasons`: Why some checks do not run.
    - `declined`: The digests of the checks that a person declined.
    - `project_checks`: The checks that come from the project.
    """

    run: tuple[Check, ...] = ()
    confirmed: frozenset[str] = frozenset()
    unapproved: tuple[Check, ...] = ()
    skip_reasons: tuple[str, ...] = ()
    declined: frozenset[str] = frozenset()
    project_checks: tuple[Check, ...] = ()


def plan_checks(
    checks: Sequence[Check], choice: CheckChoice | None, trusted: IsTrusted, *, sandboxed: bool
) -> CheckPlan:
    """Plan the checks of a run. Unapproved checks run only if `sandboxed`. An interactive caller shows `unapproved`,
    saves the answer and plans again."""
    approved = [check for check in _choose_checks(checks, choice) if check.own or trusted(describe_check(check))]
    declined = frozenset(choice.declined if choice is not None else ())
    decided = {check.digest for check in approved} | declined
    unapproved = tuple(check for check in checks if check.digest not in decided)
    skip_reasons = tuple(_explain_skipped(check, choice) for check in unapproved) if not sandboxed else ()
    run = (*approved, *unapproved) if sandboxed else tuple(approved)
    confirmed = frozenset(check.name for check in approved)
    project_checks = tuple(check for check in checks if not check.own)
    return CheckPlan(
        run=run,
        confirmed=confirmed,
        unapproved=unapproved,
        skip_reasons=skip_reasons,
        declined=declined,
        project_checks=project_checks,
    )


def _choose_checks(checks: Sequence[Check], choice: CheckChoice | None) -> Iterator[Check]:
    """Yield the chosen checks in their current version, or all checks without a choice."""
    if choice is None:
        yield from checks
        return
    by_digest = {check.digest: check for check in checks}
    yield from (by_digest.get(check.digest, check) for check in choice.checks if check.own or check.digest in by_digest)


def _explain_skipped(check: Check, choice: CheckChoice | None) -> str:
    names = {chosen.name for chosen in choice.checks} if choice is not None else set()
    why = translate("checks.changed") if check.name in names else translate("checks.not_approved")
    return translate("checks.not_run", name=check.name, why=why)


def make_own_check(line: str, checks: Sequence[Check]) -> Check:
    """Make a check from a typed command line. If the project has the same line, use the project's check."""
    command_line = " ".join(line.split())
    known_check = next((check for check in checks if check.line == command_line), None)
    return known_check or Check(name=command_line[:60], line=line.strip(), kind="test", why="You said so.", own=True)


def _make_proposed_check(name: str, settings: CheckSettings, loaded: LoadedSettings) -> Check:
    origin = loaded.origin(f"checks.{name}.run")
    layers = {loaded.origin(f"checks.{name}.{key}").layer for key in ("run", "kind", "folder", "seconds")}
    why = f"{origin.source or 'a file of settings'} says so in [checks.{name}]."
    return Check(
        name=name,
        line=settings.run,
        kind=settings.kind,
        why=why,
        folder=settings.folder,
        seconds=round(settings.seconds),
        own=layers <= {"user", "default"},
    )


def merge_checks(proposals: Sequence[Check], found_checks: Sequence[Check]) -> tuple[Check, ...]:
    """Merge proposed and found checks without duplicates. A proposal's name wins for the same command line."""
    meanings = {(check.line, check.folder): check.means for check in found_checks}
    proposed_checks = [
        evolve(check, means=meanings.get((check.line, check.folder), check.means)) for check in proposals
    ]
    known_lines = {(check.line, check.folder) for check in proposed_checks}
    names = {check.name for check in proposed_checks}
    other_checks = [
        check for check in found_checks if (check.line, check.folder) not in known_lines and check.name not in names
    ]
    return (*proposed_checks, *other_checks)


def plan_project_checks(
    root: Path, *, sandboxed: bool, earlier_checks: Sequence[Check] | None = None, has_types: bool = True
) -> CheckPlan:
    """Plan the checks of a run in this folder. `sandboxed` says that commands run in a sandbox. `earlier_checks` are
    the project's checks when the run started; they apply until it ends. The person's own checks are read again.
    Without `has_types`, checks of types do not run."""
    loaded = load_settings({}, os.environ, root)
    proposals = tuple(_make_proposed_check(name, check, loaded) for name, check in loaded.settings.checks.items())
    own_checks = tuple(check for check in proposals if check.own)
    checks = (
        merge_checks(proposals, find_checks(FolderReader(root)))
        if earlier_checks is None
        else merge_checks(own_checks, earlier_checks)
    )
    trusted = open_trust_store().make_trust_check(root)
    plan = plan_checks(checks, open_choices().get(root), trusted, sandboxed=sandboxed)
    types = [check.name for check in plan.run if check.kind == "types"] if not has_types else []
    if not types:
        return plan
    run, unapproved = (
        tuple(check for check in listed if check.kind != "types") for listed in (plan.run, plan.unapproved)
    )
    reason = translate("checks.types_off", names=", ".join(types))
    return evolve(plan, run=run, unapproved=unapproved, skip_reasons=(*plan.skip_reasons, reason))


def list_check_items(root: Path) -> tuple[TrustItem, ...]:
    """Return the checks of a workspace that need trust. A shared folder like /tmp has none."""
    return () if is_shared_folder(root) else tuple(map(describe_check, find_checks(FolderReader(root))))


def read_worktree_setup(root: Path, *, sandboxed: bool) -> WorkspaceSetup:
    """Return how to prepare a worktree. A project's setup line does not run without a sandbox."""
    loaded = load_settings({}, os.environ, root)
    settings, origin = loaded.settings.workspace, loaded.origin("workspace.setup")
    is_own = origin.layer not in ("project", "local")
    skip_reason = ""
    if settings.setup and not is_own and not sandboxed:
        skip_reason = translate("checks.setup_not_run", setup=settings.setup, source=origin.source)
    return WorkspaceSetup(line=settings.setup, seconds=settings.seconds, left=skip_reason)
