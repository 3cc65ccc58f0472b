"""Preparing a run at a terminal: its typed limits, and trust in the files of the workspace."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from rich.text import Text

from greenroom.app import run_plan
from greenroom.app.messages import translate
from greenroom.app.run_plan import Notify, RunPlan, TrustEntry, describe_left_out, list_untrusted
from greenroom.app.trust import open_trust_store
from greenroom.cli.context import Invocation, render_command
from greenroom.cli.options import RunOptions
from greenroom.cli.render.output import strip_control_characters
from greenroom.cli.render.questions import confirm
from greenroom.core.base.ids import TEAM_BUDGET
from greenroom.core.base.records import evolve
from greenroom.core.rules.intents import SetLimits
from greenroom.core.state.team_state import TeamState


def warn(cli: Invocation) -> Notify:
    """Return a function that prints warnings."""
    return partial(cli.progress.note, style="yellow")


async def plan_run(
    cli: Invocation,
    options: RunOptions,
    *,
    agent: str = "",
    model: str = "",
    tools: bool = True,
    in_worktree: bool = False,
    team_file: str = "",
) -> RunPlan:
    """Plan a run with the typed options, after asking for trust in what the workspace brings. See `run_plan`."""
    options.apply(cli.app)
    if agent or tools or team_file:
        ask_trust(cli, cli.app.root)
    return await run_plan.plan_run(
        cli.app,
        agent=agent,
        model=model,
        tools=tools,
        in_worktree=in_worktree,
        team_file=team_file,
        is_replayed=options.replay is not None,
        note=warn(cli),
        trust_command=render_command(cli, "trust"),
    )


def new_limits(cli: Invocation, state: TeamState, options: RunOptions) -> list[SetLimits]:
    """Return the intent that applies the typed limits to the team; empty if none was typed."""
    typed = {"money": options.cost, "tokens": options.tokens, "millis": options.time}
    if all(value is None for value in typed.values()):
        return []
    options.apply_limits(cli.app)
    new, old = cli.app.model_session.loaded_settings.settings.limits.limits, state.budgets[TEAM_BUDGET].limits
    changes = {name: getattr(new, name) for name, value in typed.items() if value is not None}
    return [SetLimits(budget_id=TEAM_BUDGET, limits=evolve(old, **changes))]


# --------------------------------------------------------------------------------------------- trust in a workspace

TRUST_STYLES: Final = {"agreed": "green", "changed": "yellow", "new": "yellow"}


def render_trust_entries(items: Sequence[TrustEntry]) -> Iterator[Text]:
    """Render a line per entry. Lines are never cut: a person must be able to read what they trust."""
    width = min(max((len(item.trust_item.name) for item in items), default=0), 24)
    for trust_item, standing in items:
        name, shown = (
            strip_control_characters(text.replace("\n", " ↵ ")) for text in (trust_item.name, trust_item.shown)
        )
        text = Text(f"{standing:8}", style=TRUST_STYLES[standing])
        yield text.append(f"{trust_item.kind:9} {name:{width}}  ", style="default").append(shown, style="dim")


def ask_trust(cli: Invocation, root: Path) -> None:
    """Ask the person to trust new entries before a run. A "no" holds for this run.

    Without a person, print what is left out.
    """
    untrusted = list_untrusted(cli.app, root)
    if not untrusted:
        return
    if not cli.is_attended:
        for text in describe_left_out(untrusted, render_command(cli, "trust")):
            cli.progress.note(strip_control_characters(f"! {text}"), style="yellow")
        return
    cli.progress.note(translate("start.workspace_untrusted"))
    for line in render_trust_entries(untrusted):
        cli.progress.note(line.plain)
    if confirm(translate("start.trust_question")):
        open_trust_store().trust_items(root, [item.trust_item for item in untrusted])
