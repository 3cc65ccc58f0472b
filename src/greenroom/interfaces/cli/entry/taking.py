"""What is typed to have a job taken over at once, when it has ended well."""

from __future__ import annotations

import typer

from greenroom.interfaces.cli.asked.taking import Apply, Branch


def take(branch: str | None, *, apply: bool, in_copy: bool = True) -> Apply | Branch | None:
    """How it is taken over, if that is wanted; `in_copy` says that there is something to be taken over from."""
    if not apply and branch is None:
        return None
    if branch is not None and not branch.strip():
        raise typer.BadParameter("--branch wants a name.")
    if apply and branch:
        raise typer.BadParameter("Either --apply or --branch: it is taken over once.")
    if not in_copy:
        raise typer.BadParameter("There is no copy to be taken over from. Leave --in-place and --no-tools out.")
    return Branch(name="", branch=branch.strip()) if branch else Apply(name="", commit=True, message="")
