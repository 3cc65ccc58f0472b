"""`greenroom workspaces list|clean`: the copies in which jobs were done."""

from __future__ import annotations

from greenroom.app.jobs.copies import copies
from greenroom.core.ports.workspace import Clashes, Standing
from greenroom.interfaces.cli.asked.taking import WorkspacesClean, WorkspacesList
from greenroom.interfaces.cli.exits import Exit
from greenroom.interfaces.cli.runs.session import Desk

SHOWN = 5
"""Files and commits that are named; of more, how many there are."""


async def workspaces_list(desk: Desk, _: WorkspacesList) -> Exit:
    """Each with what is in it."""
    every = await copies().list()
    for one in every:
        desk.out.show(f"{one.name}  run {one.run or '?'} of {one.root or '?'}: {told(one)}")
    if not every:
        desk.out.show("There are no copies: every job was applied or dropped.")
    return desk.out.result("listed", Exit.DONE, workspaces=[_data(one) for one in every])


async def workspaces_clean(desk: Desk, order: WorkspacesClean) -> Exit:
    """Take away what can go, and say what stays."""
    known = await copies().list()
    wanted = [one for one in known if not order.names or one.name in order.names or one.run in order.names]
    kept = list[Standing]()
    gone = list[str]()
    for one in wanted:
        done = await copies().clean(one.name, discard=order.discard)
        if isinstance(done, Clashes):
            kept.append(one)
            desk.out.show(f"{one.name} stays: {told(one)}. --discard drops it; its commits stay in the repository.")
        else:
            gone.append(one.name)
    desk.out.show(f"Taken away: {len(gone)}. Left: {len(known) - len(gone)}.")
    there = {name for one in known for name in (one.name, one.run)}
    missing = [name for name in order.names if name not in there]
    for name in missing:
        desk.out.show(f"There is no workspace {name!r}.")
    code = Exit.USAGE if missing else Exit.FAILED if kept and order.names else Exit.DONE
    return desk.out.result("cleaned", code, gone=gone, kept=[_data(one) for one in kept])


def told(one: Standing) -> str:
    """What is in a copy."""
    if one.orphan:
        return one.orphan.rstrip(".")
    work = [f"not applied: {text}" for text in one.unapplied] + [f"in no commit: {path}" for path in one.dirty]
    more = f" and {len(work) - SHOWN} more" if len(work) > SHOWN else ""
    return "; ".join(work[:SHOWN]) + more or "nothing that is not applied"


def _data(one: Standing) -> dict[str, object]:
    return {name: getattr(one, name) for name in ("name", "run", "root", "folder", "unapplied", "dirty", "orphan")}
