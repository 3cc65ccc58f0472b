"""Throw-away worktrees in which checks run, prepared by `[workspace] setup`, and where their tests import code from."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final, Protocol, TypeAlias

from greenroom.abilities.skills.conversation.builtin_calls import build_finish
from greenroom.abilities.tools.command_output import LiveLines, OutputBuffer, collect_output
from greenroom.abilities.tools.tool import CardedTool
from greenroom.core.base.errors import WorldFault, translate
from greenroom.core.base.records import Data, record
from greenroom.core.ports.checks import Check, CheckObserver
from greenroom.core.ports.commands import Command, CommandEnded, CommandRunner
from greenroom.core.ports.executor import Outcome, StepContext
from greenroom.core.ports.model import ToolSpec
from greenroom.core.ports.tool import Target, ToolCard
from greenroom.core.ports.workspace import scratch_thread
from greenroom.runs.discovery import is_test
from greenroom.runs.verdict import Finding
from greenroom.runs.workspace import RunWorkspace, WorktreeTools

NAME: Final = "prepare"
SPEC: Final = ToolSpec(
    name=NAME,
    description="Run the project's setup command in a new worktree. Greenroom does that once.",
    parameters={"type": "object", "properties": {}},
)
MAX_HEAD_CHARS: Final = 4_000
MAX_TAIL_CHARS: Final = 16_000
"""Maximum characters of the setup's output that are kept, at its beginning and its end. The end says why it failed."""

MAX_ERROR_CHARS: Final = 1_500
"""Maximum characters of that end in the message for a person."""


@record
class WorkspaceSetup:
    """The command `line` of `[workspace] setup` and its time limit in `seconds`; an empty line means none. `left` says
    why it is not run."""

    line: str = ""
    seconds: float = 600.0
    left: str = ""

    @property
    def is_enabled(self) -> bool:
        """Whether worktrees are prepared at all."""
        return bool(self.line) and not self.left


@record
class Preparation:
    """The result of a setup: `why` it failed (empty if it did not), and what it `printed`."""

    why: str = ""
    printed: str = ""


async def run_setup(setup: WorkspaceSetup, commands: CommandRunner, observer: CheckObserver) -> Preparation:
    """Run the setup line with these commands."""
    buffer = OutputBuffer(MAX_HEAD_CHARS, MAX_TAIL_CHARS)
    command = Command(words=("sh", "-c", setup.line), seconds=setup.seconds, env={"CI": "1"})
    try:
        end = await collect_output(commands.run(command), observer.prepare, buffer, LiveLines(observer.show))
    except WorldFault as fault:
        return Preparation(why=translate("checks.setup_cannot_start", fault=fault))
    well = end.how == "exited" and end.code == 0
    return Preparation(why="" if well else _describe_end(end, setup.seconds), printed=buffer.text)


class PrepareTool(CardedTool):
    """Prepares the run's worktree. Keyed: an interrupted setup is run again. What it makes stays for later commands."""

    def __init__(self, setup: WorkspaceSetup, commands: CommandRunner) -> None:
        self.card = ToolCard(spec=SPEC, group="command", effect="keyed")
        self._setup = setup
        self._commands = commands

    def targets(self, _: Data) -> tuple[Target, ...]:
        """Return nothing: the line is the person's own, or runs in a sandbox."""
        return ()

    async def run(self, context: StepContext) -> Outcome:
        """Run the setup. Without it checks mean nothing, so a failure ends the run before anything is spent."""
        if self._setup.left:
            return Outcome(result={"output": self._setup.left})
        result = await run_setup(self._setup, self._commands, context)
        if result.why:
            return self._build_failure(context, result.why, result.printed)
        message = f"Prepared with `{self._setup.line}`."
        return Outcome(result={"output": message, "exit": 0, "printed": result.printed})

    def _build_failure(self, context: StepContext, why: str, printed: str) -> Outcome:
        end = f"\n{printed[-MAX_ERROR_CHARS:].strip()}" if printed.strip() else ""
        message = translate("checks.setup_failed", line=self._setup.line, why=why, output=end)
        return Outcome(
            result={"output": message, "printed": printed}, intents=(build_finish(context.step, message, failed=True),)
        )


def _describe_end(end: CommandEnded, seconds: float) -> str:
    match end.how:
        case "exited":
            return translate("git.exit_code", code=end.code)
        case "timed_out":
            return translate("checks.setup_too_slow", seconds=seconds)
        case "signalled":
            return translate("checks.setup_killed", signal=end.signal)
        case _:
            return translate("checks.setup_stopped")


IMPORT_PROBE: Final = """
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
"""Prints which of these modules Python imports from outside its working folder, or from a copy installed into an
environment there. A module that is not found counts too if the person's folder is an editable install: Landlock
keeps that folder unreadable."""

ELSEWHERE_PREFIX: Final = "elsewhere:"
PROBE_TIMEOUT_S: Final = 60.0
PYTHON_PROGRAM: Final = re.compile(r"(?:\S*/)?python[\d.]*")
RUNS_PYTHON: Final = re.compile(r"\bpy(?:thon[\d.]*|\.?test)\b|\bunittest\b")
SESSION_RUNNERS: Final = frozenset({"tox", "nox"})
"""Programs that create their own environments from the files that they run on."""


@dataclass(frozen=True, slots=True)
class Checkout:
    """A worktree of the person's folder `at`, with commands that run in it. `unable` says why nothing can run; else
    empty."""

    folder: Path
    at: Path
    tree: str
    commands: CommandRunner
    unable: str = ""


OpenCheckout: TypeAlias = Callable[[Sequence[str], CheckObserver], AbstractAsyncContextManager[Checkout]]
"""Opens a fresh worktree of the newest commit, with these files restored from the base."""


class CheckoutTools(Protocol):
    @property
    def commands(self) -> CommandRunner: ...

    async def close(self) -> None:
        """End what still runs."""
        ...


def build_checkout_opener(
    run_workspace: RunWorkspace,
    setup: WorkspaceSetup,
    toolset: Callable[[WorktreeTools], CheckoutTools],
    *,
    tip: str = "",
    thread: str = "",
) -> OpenCheckout:
    """Return a function that opens worktrees for checks, with the run's kind of commands and its `setup`.

    They are of the commit `tip`, else of the newest one. They are the scratch worktree of `thread`, else of the run's.
    """
    newest, scratch = tip, scratch_thread(thread or run_workspace.thread)

    @asynccontextmanager
    async def open_checkout(paths: Sequence[str], observer: CheckObserver) -> AsyncIterator[Checkout]:
        workspace, tip = run_workspace.workspace, newest or await run_workspace.worktree.tip()
        commit = await workspace.restore_paths(tip, run_workspace.snapshot.commit, paths) if paths else tip
        await workspace.close(run_workspace.run, scratch)
        tools: CheckoutTools | None = None
        try:
            worktree = await workspace.open(run_workspace.run, scratch, commit)
            tree, beside = await workspace.tree(commit), await run_workspace.with_worktree(worktree)
            tools = toolset(WorktreeTools(folder=beside.folder, mount_point=beside.mount_point, mounts=beside.mounts))
            unable = await _explain_setup_failure(setup, tools.commands, observer) if setup.is_enabled else ""
            yield Checkout(beside.folder, run_workspace.mount_point, tree, tools.commands, unable)
        finally:
            if tools is not None:
                await tools.close()
            await workspace.close(run_workspace.run, scratch)

    return open_checkout


async def _explain_setup_failure(setup: WorkspaceSetup, commands: CommandRunner, observer: CheckObserver) -> str:
    result = await run_setup(setup, commands, observer)
    if not result.why:
        return ""
    printed = result.printed[-MAX_ERROR_CHARS:].strip()
    code = "checks.setup_failed_printing" if printed else "checks.setup_failed_silently"
    return translate(code, line=setup.line, why=result.why, printed=printed)


async def find_foreign_imports(
    checks: Sequence[Check],
    changes: Sequence[str],
    checkout: Checkout,
    run_workspace: RunWorkspace,
    observer: CheckObserver,
) -> tuple[Finding, ...]:
    """Return the checks that import a changed module from outside the worktree. The source is an editable install of
    the person's folder, if the worktree is not mounted there, or a copy in site-packages."""
    found: list[Finding] = []
    for check in (check for check in checks if check.kind == "test"):
        modules = list_changed_modules(changes, str(PurePosixPath(run_workspace.snapshot.within, check.folder)))
        if modules and find_python(check):
            where = await _find_import_source(check, modules, checkout, observer)
            found += [Finding(code="imports_elsewhere", check=check.name, why=where)] if where else []
        elif linked := await _find_linked_package(changes, checkout, run_workspace, observer):
            found.append(Finding(code="imports_elsewhere", check=check.name, why=linked))
    return tuple(found)


async def find_imported_folder(check: Check, checkout: Checkout, observer: CheckObserver) -> str:
    """Return the person's folder if a check imports the project from there instead of the worktree; else empty."""
    folder = checkout.folder / check.folder
    found = [
        path for pattern in ("*.py", "*/__init__.py", "src/*.py", "src/*/__init__.py") for path in folder.glob(pattern)
    ]
    modules = list_changed_modules([path.relative_to(folder).as_posix() for path in found], ".")
    return await _find_import_source(check, modules, checkout, observer) if modules and find_python(check) else ""


async def _find_import_source(check: Check, modules: Sequence[str], checkout: Checkout, observer: CheckObserver) -> str:
    """Return the location of the first module that a check's Python imports from outside the worktree."""
    folders = " ".join(list_import_folders(check, checkout.folder))
    words = (find_python(check), "-c", IMPORT_PROBE, " ".join(modules), folders, str(checkout.at))
    printed = await _read_output(checkout.commands, words, check.folder, observer)
    lines = (line for line in printed.splitlines() if line.startswith(ELSEWHERE_PREFIX))
    return next((line.removeprefix(ELSEWHERE_PREFIX).partition(":")[2] for line in lines), "")


def find_python(check: Check) -> str:
    """Return the Python that a check's line runs; empty if it runs none."""
    if check.name in SESSION_RUNNERS or not RUNS_PYTHON.search(f"{check.line}\n{check.means}"):
        return ""
    return next((word for word in check.line.split() if PYTHON_PROGRAM.fullmatch(word)), "python3")


def list_changed_modules(changes: Sequence[str], folder: str) -> list[str]:
    """Return the top-level modules of changed files in a folder. Tests are left out: they are imported by path."""
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


def list_import_folders(check: Check, root: Path) -> list[str]:
    """Return the worktree's folders that come first on a check's import path. They are its own folder, if it runs a
    module (`-m`) or pytest finds a conftest.py or a test package there, and those of pytest's `pythonpath`."""
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


async def _find_linked_package(
    changes: Sequence[str], checkout: Checkout, run_workspace: RunWorkspace, observer: CheckObserver
) -> str:
    """Return a JavaScript workspace package that `node_modules` links into the person's folder; else empty. It matters
    only if the worktree is not mounted at that folder."""
    root = Path(run_workspace.workspace.root)
    sources = [
        Path(share.source) for share in run_workspace.shared_folders if PurePosixPath(share.path).name == "node_modules"
    ]
    if not sources or (await _read_output(checkout.commands, ("pwd", "-P"), ".", observer)).strip() == str(
        run_workspace.mount_point
    ):
        return ""
    return await asyncio.to_thread(_find_link_into, root, sources, changes)


def _find_link_into(root: Path, sources: Sequence[Path], changes: Sequence[str]) -> str:
    for source in sources:
        entries = [entry for entry in source.iterdir() if entry.is_symlink()]
        entries += [entry for scope in source.glob("@*") for entry in scope.iterdir() if entry.is_symlink()]
        for entry in entries:
            target = Path(os.path.realpath(entry))
            if target.is_relative_to(root) and any((root / path).is_relative_to(target) for path in changes):
                return str(target)
    return ""


async def _read_output(commands: CommandRunner, words: tuple[str, ...], folder: str, observer: CheckObserver) -> str:
    """Return a command's output; empty if it cannot run."""
    buffer = OutputBuffer(20_000, 20_000)
    run = commands.run(Command(words=words, folder=folder, seconds=PROBE_TIMEOUT_S))
    try:
        await collect_output(run, observer.prepare, buffer, LiveLines(lambda _: None))
    except WorldFault:
        return ""
    return buffer.text
