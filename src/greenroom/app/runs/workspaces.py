"""Where a run works: a worktree of the person's files as they were when it began, in which every step is a commit.

Going back makes a new run that begins as another one was right after one of its steps, with the files of then; what it
begins with follows from its own log.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final
from weakref import WeakKeyDictionary

from greenroom.adapters.git.repository import locate
from greenroom.adapters.git.workspace import GitWorkspace, is_known
from greenroom.adapters.git.worktree import GitWorktrees
from greenroom.app.conversation.names import JOB
from greenroom.app.conversation.send import tell
from greenroom.app.conversation.typed import is_secret
from greenroom.app.lookup import Found, refused
from greenroom.app.messages.findings import WHY_LEFT, one_line
from greenroom.app.runtime import Runtime
from greenroom.app.settings.home import home_folder, worktrees_folder
from greenroom.app.settings.layers import load
from greenroom.app.toolset.redaction import without_secrets
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.ids import StepId, TeamId
from greenroom.core.base.records import record
from greenroom.core.ports.codec import decode_event
from greenroom.core.ports.workspace import (
    SCRATCH,
    Clashes,
    Diff,
    Kept,
    Snapshot,
    Standing,
    Workspace,
    WorkspaceFault,
    Worktrees,
)
from greenroom.core.rules.intents import QueueSteps
from greenroom.core.state.fold import fold
from greenroom.core.state.step import Step, StepEnded, Work, ended
from greenroom.core.state.team import Team
from greenroom.core.state.world import NOWHERE
from greenroom.runs import checkout
from greenroom.runs.verdict import COMMIT
from greenroom.runs.workspace import History, Place

OWN: Final = "folders"
"""Where the history of folders is kept that are in no repository: beside the log, which nobody empties."""

MOST: Final = 20_000
"""Files of a folder that is no repository."""

ALWAYS_OUT: Final = frozenset({"node_modules", ".venv", "venv", "__pycache__", ".tox", ".nox"})
THREAD: Final = "main"


_open: Final[WeakKeyDictionary[asyncio.AbstractEventLoop, dict[Path, GitWorkspace]]] = WeakKeyDictionary()
"""The workspaces that this event loop has opened: a repository is opened once, not once per question."""


async def workspace(root: Path) -> GitWorkspace:
    """The person's files, wherever a repository of theirs begins."""
    known = _open.setdefault(asyncio.get_running_loop(), {})
    if root not in known:
        known[root] = await _find(root)
    return known[root]


async def _find(root: Path) -> GitWorkspace:
    try:  # whose keys are known: the person's hooks, which git runs, do not get them
        providers = tuple(load({}, os.environ, root).settings.providers.values())
    except WorldFault:
        providers = ()  # settings that cannot be read have given nobody a key
    own, env = home_folder() / OWN, without_secrets(os.environ, providers)
    return await GitWorkspace.find(
        root, worktrees_folder(), own=own, env=env, secret=lambda path: is_secret(PurePosixPath(path))
    )


async def refuse_too_wide(root: Path) -> None:
    """A folder without a repository is copied whole: `WorldFault` for one that nobody means to be copied."""
    if locate(root, home=Path.home()) is not None:
        return
    if root == Path.home() or await asyncio.to_thread(_has_more_than, root, MOST):
        raise WorldFault(
            f"{str(root)!r} is no repository, and has more than {MOST:,} files or is your home: too much for a copy. "
            "Go to a folder of its own, make it a repository (`git init`), or let it work there with --in-place."
        )


def _has_more_than(root: Path, most: int) -> bool:
    count = 0
    for _, folders, files in os.walk(root):
        folders[:] = [one for one in folders if one not in ALWAYS_OUT]
        count += len(files)
        if count > most:
            return True
    return False


async def opened(team: Team, history: History) -> Place:
    """The place of a run, as it was left; made when the run is new.

    One that was forked begins with what its origin began with, at the last commit that its own log has: whatever a kill
    left undone of that is done here, before anybody works. Where those files cannot be had any more, it is refused:
    others would not be those that were talked about.
    """
    root, run = Path(team.workspace), team.team_id
    theirs, snapshot = await begun(team, history)
    worktree = await theirs.open(run, THREAD, snapshot.commit)
    lent, git = tuple(await theirs.lent()), await worktree.view()
    return Place(run=run, at=root, workspace=theirs, snapshot=snapshot, worktree=worktree, lent=lent, git=git)


async def begun(team: Team, history: History) -> tuple[GitWorkspace, Snapshot]:
    """The person's files, and what they were when a run began; no copy is made of them."""
    run = team.team_id
    theirs, steps = await workspace(Path(team.workspace)), await history(run)
    if steps:
        await theirs.adopt(run, THREAD, team.origin.team_id if team.origin is not None else run, last_commit(steps))
    return theirs, await theirs.snapshot(run)


def last_commit(steps: Iterable[Step]) -> str:
    """The newest commit that these steps have made; empty if none has."""
    made = [str(one.result[COMMIT]) for one in steps if one.result and COMMIT in one.result]
    return made[-1] if made else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of a run, as its repository keeps it, also when its worktree is gone: the person's files
    (`workspace`) as they were (`snapshot`), and its newest commit (`tip`)."""

    run: str
    workspace: Workspace
    snapshot: Snapshot
    tip: str

    async def diff(self) -> Diff:
        """All that was changed by now."""
        return await self.workspace.diff(self.snapshot.commit, self.tip)


async def outcome(team: Team, history: History) -> Outcome:
    """That of a run. No worktree is made to look."""
    theirs, snapshot = await begun(team, history)
    tip = await theirs.tip(team.team_id, THREAD)
    return Outcome(run=team.team_id, workspace=theirs, snapshot=snapshot, tip=tip)


NO_WAY_BACK: Final = "what was applied cannot be undone any more"


def copies() -> Worktrees:
    return GitWorktrees(worktrees_folder())


async def of_run(run: str) -> list[Standing]:
    return [one for one in await copies().list() if one.run == run]


async def drop(run: str) -> None:
    """Take away the copies of a run, with what is in them; its commits stay in the repository."""
    for one in await of_run(run):
        await copies().clean(one.name, discard=True)


@record
class Trace:
    """What a repository keeps of a run that has no copy any more."""

    root: str
    kept: Kept


async def traces(roots: Iterable[str], standing: Iterable[Standing]) -> list[Trace]:
    """Those in these repositories, where these copies are standing; one that is gone has none."""
    copied = {one.run for one in standing}
    found = list[Trace]()
    for root in dict.fromkeys(roots):
        try:
            theirs = await workspace(Path(root))
            found += [Trace(root=theirs.root, kept=one) for one in await theirs.kept() if one.run not in copied]
        except WorkspaceFault:
            continue
    return list({(one.root, one.kept.run): one for one in found}.values())


async def uncopied(root: Path, standing: Iterable[Standing]) -> list[Trace]:
    """Work that is kept for a folder, that nobody has, and that is in none of these copies. By looking, nothing is made
    for a folder that is in no repository."""
    if not is_known(root, worktrees_folder(), home_folder() / OWN, home=Path.home()):
        return []
    working = [one for one in standing if one.thread != SCRATCH]
    return [one for one in await traces([str(root)], working) if one.kept.unapplied]


async def wipe(trace: Trace, *, discard: bool) -> bool:
    """Delete it; False when there is work in it that nobody has, and that is not to go."""
    theirs = await workspace(Path(trace.root))
    return not isinstance(await theirs.forget(trace.kept.run, discard=discard), Clashes)


async def goes_with(root: Path, run: str) -> tuple[str, ...]:
    """What nobody has any more when a run is forgotten, in words: work, and the way back from what was applied."""
    files = [text for one in await of_run(run) for text in in_no_commit(one)]
    kept = [one for one in await (await workspace(root)).kept() if one.run == run]
    commits = [f"not applied: {text}" for one in kept for text in one.unapplied]
    return (*commits, *files, *((NO_WAY_BACK,) if any(one.applied for one in kept) else ()))


def in_no_commit(one: Standing) -> list[str]:
    """What lies in a copy, and nowhere else, in words."""
    return [
        *(f"in no commit: {one_line(path)}" for path in one.dirty),
        *(f"can be in none: {it}" for it in nowhere(one)),
    ]


def nowhere(one: Standing) -> list[str]:
    """What goes for good with a copy, and what it is."""
    return [f"{one_line(each.path)} ({WHY_LEFT[each.why]})" for each in one.left_out]


async def forget(root: Path, run: str) -> None:
    """Drop the copies of a run, and all that its repository keeps of it."""
    await drop(run)
    await (await workspace(root)).forget(run, discard=True)


NAMED: Final = 5
"""Steps that a refusal names."""


@record
class Moment:
    """A step that has ended, and the `version` at which all that was written with its end was."""

    step: Step
    version: int


async def moments(runtime: Runtime, team: TeamId) -> list[Moment]:
    """All that one can go back to, oldest first."""
    world, found, open_ones = NOWHERE, list[Moment](), list[Step]()
    async for page in runtime.log.read(team):
        for stored in page:
            event = decode_event(stored)
            if isinstance(event, StepEnded):
                open_ones.append(ended(world.steps[event.step_id], event, stored.version))
            world = fold(world, event)
            if stored.ends:
                found += [Moment(step=one, version=stored.version) for one in open_ones]
                open_ones.clear()
    return found


async def moment(runtime: Runtime, team: TeamId, text: str) -> Moment:
    """The one that `text` names: by the step's id, or by its number where only one agent has it; `Refused` says what
    there is instead."""
    every = await moments(runtime, team)
    names = [one.step.step_id for one in every]
    waiting = {one: step.state for one, step in (await runtime.world(team)).steps.items()}
    wanted = _named([*names, *waiting], text.strip())
    if len(wanted) > 1:
        raise refused("ambiguous_step", f"{text!r} may be {', '.join(wanted)}.", "Type all of it.")
    there = f"The last that have: {', '.join(reversed(names[-NAMED:]))}." if names else "None has ended yet."
    if not wanted:
        raise refused("unknown_step", f"{team} has no step {text!r} that has ended.", there)
    if wanted[0] not in names:
        why = f"Step {wanted[0]} of {team} has not ended ({waiting[wanted[0]]}), so nobody can go back to its end."
        raise refused("open_step", why, there)
    found = every[names.index(wanted[0])]
    if not (await runtime.world(team, found.version)).tasks:
        why = f"With step {wanted[0]} the work of {team} was over: nothing would go on from there."
        raise refused("over_then", why, "Name an earlier step.")
    return found


def _named(names: Sequence[StepId], text: str) -> list[StepId]:
    if text in names:
        return [StepId(text)]
    number = text.removeprefix("#")
    return [one for one in dict.fromkeys(names) if number.isdecimal() and one.rpartition("#")[2] == number]


async def rewound(runtime: Runtime, history: History, team: TeamId, to: Moment) -> TeamId:
    """A new team that begins as this one was then; of a job with a copy of the files of then. It does not work yet."""
    world = await runtime.world(team)
    job = world.team.kit == JOB
    if job:
        await outcome(world.team, history)  # what cannot be had is refused before anything is made
    new = await runtime.fork(team, to.version)
    if job:
        await opened((await runtime.world(new)).team, history)
        await _prepared_again(runtime, history, new)
    return new


async def _prepared_again(runtime: Runtime, history: History, team: TeamId) -> None:
    """A copy that had to be prepared was, and this is another one."""
    done = [one for one in await history(team) if one.work.executor == checkout.NAME and one.state == "finished"]
    world = await runtime.world(team)
    if done and done[-1].task_id in world.tasks:
        work = Work(type="tool", executor=checkout.NAME, intention="Prepare the copy.", instruction_content={})
        again = QueueSteps(agent_id=done[-1].agent_id, works=(work,), task_id=done[-1].task_id, place="next")
        await runtime.ask(team, again)


async def told(runtime: Runtime, team: TeamId, text: str) -> None:
    """Say something to whoever goes on, before they do."""
    if text:
        await tell(runtime, Found(team=team), text)
