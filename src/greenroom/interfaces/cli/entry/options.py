"""Options that several commands share: whom to ask, what a run may spend, and recordings."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from greenroom.app.settings.values import Reader, Unfit, cost, time, tokens


def checked(read: Reader) -> Callable[[str | None], str | None]:
    """Says what it should be before anything begins."""

    def look(value: str | None) -> str | None:
        if value is None:
            return None
        try:
            read(value)
        except Unfit as unfit:
            raise typer.BadParameter(f"must be {unfit}, not {value!r}.") from None
        return value

    return look


ToDo: TypeAlias = Annotated[
    list[str] | None,
    typer.Argument(metavar="TEXT", help="What to do; `-` (or nothing, behind a pipe) reads it from stdin."),
]
AgentName: TypeAlias = Annotated[
    str, typer.Option("--agent", "-a", metavar="NAME", help="Who answers. `greenroom agents list` says who there is.")
]
ModelName: TypeAlias = Annotated[
    str, typer.Option("--model", "-m", metavar="NAME", help="provider:model, a role (strong, fast) or a group.")
]
MaxCost: TypeAlias = Annotated[
    str | None,
    typer.Option("--max-cost", metavar="USD", callback=checked(cost), help="Dollars it may cost, or none."),
]
MaxTokens: TypeAlias = Annotated[
    str | None,
    typer.Option("--max-tokens", metavar="N", callback=checked(tokens), help="Tokens it may use, like 200k, or none."),
]
MaxTime: TypeAlias = Annotated[
    str | None,
    typer.Option("--max-time", metavar="TIME", callback=checked(time), help="Time it may work, like 15m, or none."),
]
Yes: TypeAlias = Annotated[bool, typer.Option("--yes", "-y", help="Approve the plan and the checks that were found.")]
NonInteractive: TypeAlias = Annotated[
    bool, typer.Option("--non-interactive", help="Ask nobody: what needs a yes is not done, and the agent is told.")
]
InPlace: TypeAlias = Annotated[
    bool, typer.Option("--in-place", help="Work in your files themselves, not in a copy of them.")
]
AtOnce: TypeAlias = Annotated[bool, typer.Option("--apply", help="If it is verified, bring it to your files at once.")]
OnBranch: TypeAlias = Annotated[
    str | None, typer.Option("--branch", metavar="NAME", help="If it is verified, put it on this new branch at once.")
]
Question: TypeAlias = Annotated[
    bool, typer.Option("--question", help="An answer is all that is wanted: it counts though nothing is changed.")
]
AllowUnverified: TypeAlias = Annotated[
    bool, typer.Option("--allow-unverified", help="Go on when no check can verify the change, without asking.")
]
TestsMayChange: TypeAlias = Annotated[
    bool, typer.Option("--tests-may-change", help="Old tests may fail: they are named, and the run can be verified.")
]
Record: TypeAlias = Annotated[
    Path | None, typer.Option("--record", metavar="FILE", help="Write down what the models say.", show_default=False)
]
Replay: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--replay",
        metavar="FILE",
        help="Answer from such a file: no model is asked, no key is needed.",
        show_default=False,
    ),
]
