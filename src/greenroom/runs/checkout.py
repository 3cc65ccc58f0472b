"""Throw-away worktrees in which checks run, prepared by `[workspace] setup`, and whether tests import their code."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final, Protocol, TypeAlias

from greenroom.abilities.skills.talk.own import ended
from greenroom.abilities.tools.command_output import Kept, LiveLines, heard
from greenroom.abilities.tools.tool import CardedTool
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.records import Data, record
from greenroom.core.ports.checks import Check, Witness
from greenroom.core.ports.commands import Command, Commands, Ended
from greenroom.core.ports.executor import Bench, Outcome
from greenroom.core.ports.model import ToolSpec
from greenroom.core.ports.tool import Target, ToolCard
from greenroom.core.ports.workspace import SCRATCH
from greenroom.runs.discover import is_test
from greenroom.runs.verdict import Finding
from greenroom.runs.workspace import Copied, Place

NAME: Final = "prepare"
SPEC: Final = ToolSpec(
    name=NAME,
    description="Run what the project needs before anything else in a new copy. The house does that once.",
    parameters={"type": "object", "properties": {}},
)
BEGINNING: Final = 4_000
END: Final = 16_000
"""Characters of what it prints that are kept; why it failed stands at the end."""

TOLD: Final = 1_500
"""Characters of that end in the sentence that a person reads."""


@record
class Setup:
    """The command `line` of `[workspace] setup`, which has so many `seconds`; empty where there is none. `left` says
    why it is not run."""

    line: str = ""
    seconds: float = 600.0
    left: str = ""

    @property
    def runs(self) -> bool:
        """Whether a copy is prepared at all."""
        return bool(self.line) and not self.left


@record
class Preparation:
    """What came of it: `why` it failed, empty where it did not, and what it `printed`."""

    why: str = ""
    printed: str = ""


async def prepared(setup: Setup, commands: Commands, witness: Witness) -> Preparation:
    """Run the line where these commands run."""
    kept = Kept(BEGINNING, END)
    command = Command(words=("sh", "-c", setup.line), seconds=setup.seconds, env={"CI": "1"})
    try:
        end = await heard(commands.run(command), witness.prepare, kept, LiveLines(witness.show))
    except WorldFault as fault:
        return Preparation(why=f"it cannot begin: {fault}")
    well = end.how == "exited" and end.code == 0
    return Preparation(why="" if well else _how(end, setup.seconds), printed=kept.text)


class Prepare(CardedTool):
    """Keyed: one that was cut off is run again. What it makes stays in the copy, for every later command."""

    def __init__(self, setup: Setup, commands: Commands) -> None:
        self.card = ToolCard(spec=SPEC, group="command", effect="keyed")
        self._setup = setup
        self._commands = commands

    def targets(self, _: Data) -> tuple[Target, ...]:
        """Nothing that anybody has to be asked about: it is the person's own line, or it is run behind walls."""
        return ()

    async def run(self, bench: Bench) -> Outcome:
        """Run it. Without it no check can be believed, so a failure ends the job before anything is spent."""
        if self._setup.left:
            return Outcome(result={"output": self._setup.left})
        done = await prepared(self._setup, self._commands, bench)
        if done.why:
            return self._failed(bench, done.why, done.printed)
        told = f"Prepared with `{self._setup.line}`."
        return Outcome(result={"output": told, "exit": 0, "printed": done.printed})

    def _failed(self, bench: Bench, why: str, printed: str) -> Outcome:
        end = f"\n{printed[-TOLD:].strip()}" if printed.strip() else ""
        said = f"`{self._setup.line}` ([workspace] setup) failed: {why}. Nothing was begun.{end}"
        return Outcome(result={"output": said, "printed": printed}, intents=(ended(bench.step, said, failed=True),))


def _how(end: Ended, seconds: float) -> str:
    match end.how:
        case "exited":
            return f"exit code {end.code}"
        case "timed_out":
            return f"it took longer than {seconds:g} s"
        case "signalled":
            return f"it was ended by signal {end.signal}"
        case _:
            return "it was stopped"


PROBE: Final = """
import importlib.metadata, importlib.util, json, os, sys, urllib.parse
here, names, folders = os.path.realpath(os.getcwd()), sys.argv[1].split(), sys.argv[2].split()
root = sys.argv[3]
outside = not (here + os.sep).startswith(root + os.sep)
sys.path[:1] = [os.path.join(here, one) for one in folders]

def is_yours(installed):
    told = json.loads(installed.read_text("direct_url.json") or "{}")
    place = urllib.parse.unquote(urllib.parse.urlparse(told.get("url", "")).path)
    return told.get("dir_info", {}).get("editable") and (place + os.sep).startswith(root + os.sep)

for name in names:
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError, AttributeError):
        continue
    if spec is None and outside and any(map(is_yours, importlib.metadata.distributions())):
        print("elsewhere:" + name + ":" + root)
    places = [spec.origin] if spec and spec.origin else list(spec.submodule_search_locations or ()) if spec else []
    for place in map(os.path.realpath, places[:1]):
        if not place.startswith(here + os.sep) or (os.sep + "site-packages" + os.sep) in place[len(here):]:
            print("elsewhere:" + name + ":" + place)
"""
"""Prints which of these modules Python imports from elsewhere than the folder that it runs in, or from a copy that was
installed into an environment there. One that it does not
find although the person's folder is installed to be edited is theirs too: Landlock does not let that folder be read."""

ELSEWHERE: Final = "elsewhere:"
SECONDS: Final = 60.0
PYTHON: Final = re.compile(r"(?:\S*/)?python[\d.]*")
RUNS_PYTHON: Final = re.compile(r"\bpy(?:thon[\d.]*|\.?test)\b|\bunittest\b")
SESSIONS: Final = frozenset({"tox", "nox"})
"""These make environments of their own, from the files that they run on."""


@dataclass(frozen=True, slots=True)
class Checkout:
    """A worktree with commands that run in it, of the person's folder `at`. `unable` says why nothing can run there;
    empty where it can."""

    folder: Path
    at: Path
    tree: str
    commands: Commands
    unable: str = ""


Opened: TypeAlias = Callable[[Sequence[str], Witness], AbstractAsyncContextManager[Checkout]]
"""A fresh worktree of the newest commit, with these files put back as the base has them."""


class Toolset(Protocol):
    """What a checkout needs of the tools that are made for it."""

    @property
    def commands(self) -> Commands:
        """The commands that run in it."""
        ...

    async def close(self) -> None:
        """End what still runs."""
        ...


def checkouts(place: Place, setup: Setup, toolset: Callable[[Copied], Toolset]) -> Opened:
    """How worktrees for checks are opened: with commands like those of the run, and prepared by its `setup`."""

    @asynccontextmanager
    async def opened(paths: Sequence[str], witness: Witness) -> AsyncIterator[Checkout]:
        workspace, tip = place.workspace, await place.worktree.tip()
        commit = await workspace.put_back(tip, place.snapshot.commit, paths) if paths else tip
        await workspace.close(place.run, SCRATCH)
        made: Toolset | None = None
        try:
            worktree = await workspace.open(place.run, SCRATCH, commit)
            tree, beside = await workspace.tree(commit), await place.beside(worktree)
            made = toolset(Copied(folder=beside.folder, at=beside.at, lent=beside.shown))
            unable = await _prepare(setup, made.commands, witness) if setup.runs else ""
            yield Checkout(beside.folder, place.at, tree, made.commands, unable)
        finally:
            if made is not None:
                await made.close()
            await workspace.close(place.run, SCRATCH)

    return opened


async def _prepare(setup: Setup, commands: Commands, witness: Witness) -> str:
    done = await prepared(setup, commands, witness)
    if not done.why:
        return ""
    printed = f" It printed: {done.printed[-TOLD:].strip()}" if done.printed.strip() else ""
    return f"`{setup.line}` ([workspace] setup) failed: {done.why}.{printed}"


async def imports_elsewhere(
    checks: Sequence[Check], changes: Sequence[str], checkout: Checkout, place: Place, witness: Witness
) -> tuple[Finding, ...]:
    """Which checks import a changed module from elsewhere than the worktree: an editable install of the person's
    folder where the worktree is not mounted there, or a copy in site-packages."""
    found: list[Finding] = []
    for check in (check for check in checks if check.kind == "test"):
        modules = changed_modules(changes, str(PurePosixPath(place.snapshot.within, check.folder)))
        if modules and python_of(check):
            where = await _imported_from(check, modules, checkout, witness)
            found += [Finding(code="imports_elsewhere", check=check.name, why=where)] if where else []
        elif linked := await _linked_packages(changes, checkout, place, witness):
            found.append(Finding(code="imports_elsewhere", check=check.name, why=linked))
    return tuple(found)


async def imports_yours(check: Check, checkout: Checkout, witness: Witness) -> str:
    """The person's folder, if a check imports the project from there and not from the worktree; else empty."""
    folder = checkout.folder / check.folder
    found = [
        path for pattern in ("*.py", "*/__init__.py", "src/*.py", "src/*/__init__.py") for path in folder.glob(pattern)
    ]
    modules = changed_modules([path.relative_to(folder).as_posix() for path in found], ".")
    return await _imported_from(check, modules, checkout, witness) if modules and python_of(check) else ""


async def _imported_from(check: Check, modules: Sequence[str], checkout: Checkout, witness: Witness) -> str:
    """Where the first of these modules lies that a check's Python imports from elsewhere than the worktree."""
    folders = " ".join(import_folders(check, checkout.folder))
    words = (python_of(check), "-c", PROBE, " ".join(modules), folders, str(checkout.at))
    printed = await _output(checkout.commands, words, check.folder, witness)
    lines = (line for line in printed.splitlines() if line.startswith(ELSEWHERE))
    return next((line.removeprefix(ELSEWHERE).partition(":")[2] for line in lines), "")


def python_of(check: Check) -> str:
    """The Python that a check runs; empty for one that runs none, as far as its line tells."""
    if check.name in SESSIONS or not RUNS_PYTHON.search(f"{check.line}\n{check.means}"):
        return ""
    return next((word for word in check.line.split() if PYTHON.fullmatch(word)), "python3")


def changed_modules(changes: Sequence[str], folder: str) -> list[str]:
    """The top-level modules that changed files of a folder belong to; tests are imported by their path."""
    names: dict[str, None] = {}
    for path in changes:
        inside = PurePosixPath(path)
        if inside.suffix != ".py" or is_test(path) or not inside.is_relative_to(folder):
            continue
        parts = inside.relative_to(folder).parts
        parts = parts[1:] if parts[0] in ("src", "lib") and len(parts) > 1 else parts
        name = parts[0].removesuffix(".py")
        if name.isidentifier() and name not in ("setup", "conftest", "noxfile"):
            names[name] = None
    return list(names)


def import_folders(check: Check, root: Path) -> list[str]:
    """The folders of the worktree that are first on the path of a check: its own where a module is run (`-m`) or
    pytest finds a conftest.py or a package of tests there, and those of pytest's `pythonpath`."""
    folder = root / check.folder
    first = "-m" in f"{check.line} {check.means}".split() or (folder / "conftest.py").exists()
    first = first or any((folder / name / "__init__.py").exists() for name in ("tests", "test"))
    text = ""
    for name in ("pyproject.toml", "pytest.ini", "tox.ini", "setup.cfg"):
        try:
            text += (folder / name).read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
    settings = re.search(r"^\s*pythonpath\s*=\s*(.+)$", text, re.MULTILINE)
    named = re.findall(r"[\w./-]+", settings[1]) if settings else []
    return [*(["."] if first else []), *named]


async def _linked_packages(changes: Sequence[str], checkout: Checkout, place: Place, witness: Witness) -> str:
    """A package of a JavaScript workspace that `node_modules` links into the person's folder, where the worktree is
    seen elsewhere than that folder. Empty where there is none."""
    root = Path(place.workspace.root)
    sources = [Path(lent.source) for lent in place.lent if PurePosixPath(lent.path).name == "node_modules"]
    if not sources or (await _output(checkout.commands, ("pwd", "-P"), ".", witness)).strip() == str(place.at):
        return ""
    return await asyncio.to_thread(_linked_into, root, sources, changes)


def _linked_into(root: Path, sources: Sequence[Path], changes: Sequence[str]) -> str:
    for source in sources:
        entries = [entry for entry in source.iterdir() if entry.is_symlink()]
        entries += [entry for scope in source.glob("@*") for entry in scope.iterdir() if entry.is_symlink()]
        for entry in entries:
            target = Path(os.path.realpath(entry))
            if target.is_relative_to(root) and any((root / path).is_relative_to(target) for path in changes):
                return str(target)
    return ""


async def _output(commands: Commands, words: tuple[str, ...], folder: str, witness: Witness) -> str:
    """What a command prints; empty when it cannot run."""
    kept = Kept(20_000, 20_000)
    run = commands.run(Command(words=words, folder=folder, seconds=SECONDS))
    try:
        await heard(run, witness.prepare, kept, LiveLines(lambda _: None))
    except WorldFault:
        return ""
    return kept.text
