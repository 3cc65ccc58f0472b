"""How to type what is done with the outcome of a job: `diff`, `apply`, `branch`, `discard`, `undo`, `rewind` …"""

from __future__ import annotations

from typing import Annotated

import typer

from greenroom.interfaces.cli.asked.taking import (
    Apply,
    Blame,
    Branch,
    Diff,
    Discard,
    Rewind,
    Undo,
    WorkspacesClean,
    WorkspacesList,
)
from greenroom.interfaces.cli.entry.doing import do
from greenroom.interfaces.cli.entry.ids import Id
from greenroom.interfaces.cli.entry.options import NonInteractive


def diff(context: typer.Context, name: Id) -> int:
    """Print what a job changed, as a patch."""
    return do(context, Diff(name=name))


def apply(
    context: typer.Context,
    name: Id,
    *,
    no_commit: Annotated[bool, typer.Option("--no-commit", help="Change the files only.")] = False,
    message: Annotated[str, typer.Option("--message", "-m", help="The message of the commit.")] = "",
    hooks: Annotated[bool, typer.Option("--hooks", help="Run your hooks also if the job changes them.")] = False,
    no_hooks: Annotated[bool, typer.Option("--no-hooks", help="Run none of your hooks.")] = False,
) -> int:
    """Bring what a job changed to your files, as one commit in your name. Your hooks run, unless the job changes what
    they run: then you are asked."""
    if hooks and no_hooks:
        raise typer.BadParameter("Either --hooks or --no-hooks: they run, or they do not.")
    said = True if hooks else False if no_hooks else None
    return do(context, Apply(name=name, commit=not no_commit, message=message.strip(), hooks=said))


def branch(
    context: typer.Context,
    name: Id,
    new: Annotated[str, typer.Argument(metavar="BRANCH", help="What the new branch is called.")],
) -> int:
    """Put what a job changed on a new branch; your files stay as they are."""
    return do(context, Branch(name=name, branch=new))


def discard(
    context: typer.Context,
    name: Id,
    *,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> int:
    """Drop the copy in which a job was done. Its commits stay in the repository."""
    return do(context, Discard(name=name, yes=yes))


def undo(
    context: typer.Context,
    name: Id,
    *,
    revert: Annotated[bool, typer.Option("--revert", help="By a commit on top, where others came since.")] = False,
) -> int:
    """Take back what was applied of a job, byte for byte."""
    return do(context, Undo(name=name, revert=revert))


def rewind(
    context: typer.Context,
    name: Id,
    words: Annotated[
        list[str] | None, typer.Argument(metavar="TEXT", help="What to say to the agent before it goes on.")
    ] = None,
    *,
    to: Annotated[
        str | None,
        typer.Option("--to", metavar="STEP", help="As it was when this step had ended; without it, list them."),
    ] = None,
    no_run: Annotated[bool, typer.Option("--no-run", help="Do not go on yet.")] = False,
    non_interactive: NonInteractive = False,
) -> int:
    """Go back to the end of a step, with conversation, files and board, and on from there as a new run. The old one
    stays as it is."""
    if to is not None and not to.strip():
        raise typer.BadParameter("--to names no step. Without it, all steps are listed that one can go back to.")
    text, step = " ".join(words or ()).strip(), (to or "").strip()
    return do(context, Rewind(name=name, step=step, text=text, runs=not no_run, alone=non_interactive))


def blame(
    context: typer.Context,
    place: Annotated[str, typer.Argument(metavar="FILE:LINE", help="Which line.")],
) -> int:
    """Say which step of which job wrote a line, why, and what proves it."""
    return do(context, Blame(place=place))


def workspaces_list(context: typer.Context) -> int:
    """List the copies in which jobs were done, and what is in each."""
    return do(context, WorkspacesList())


def workspaces_clean(
    context: typer.Context,
    names: Annotated[
        list[str] | None, typer.Argument(metavar="NAME", help="Which; without one, all empty ones.")
    ] = None,
    *,
    discard: Annotated[bool, typer.Option("--discard", help="Also those with work in them.")] = False,
    refs: Annotated[
        bool, typer.Option("--refs", help="Also what git keeps of applied runs: no undo, no blame any more.")
    ] = False,
) -> int:
    """Take copies away. One with work in it stays, and it is said what that is, unless --discard."""
    return do(context, WorkspacesClean(names=tuple(names or ()), discard=discard, refs=refs))
