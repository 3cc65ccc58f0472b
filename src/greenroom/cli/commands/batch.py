"""`greenroom batch`: the same task for many files or items, several at once."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, count
from pathlib import Path
from typing import Annotated, Final

import typer

from greenroom.app.messages import count_things, translate
from greenroom.app.runs.workspaces import open_workspace
from greenroom.app.settings.layers import is_visible
from greenroom.app.teams.analysis import TeamAnalyst
from greenroom.cli.commands.run import start_team
from greenroom.cli.context import Invocation, invoke
from greenroom.cli.exit_codes import Exit
from greenroom.cli.interactive.plan_review import (
    TeamChoice,
    confirm_plan,
    open_analyst,
    read_named_file,
    render_estimate,
)
from greenroom.cli.options import (
    DEFAULT_OPTIONS,
    STDIN,
    AllowUnverified,
    ApplyOption,
    BranchOption,
    ModelName,
    NonInteractive,
    RunOptions,
    TestsMayChange,
    Yes,
    join_words,
    read_apply_mode,
    read_stdin,
)
from greenroom.cli.start import ask_trust
from greenroom.core.base.errors import make_refusal
from greenroom.core.base.records import evolve
from greenroom.runs.workspace import RunFlags
from greenroom.teamwork.plan import Plan, PlannedSubtask
from greenroom.teamwork.plan_graph import OWN_SUBTASKS, is_inside

MAX_ITEMS: Final = 1_000
MAX_CONCURRENCY: Final = 64
MAX_ID_CHARS: Final = 32
DEFAULT_AGENT: Final = "refactor"


def batch(
    context: typer.Context,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What to do with each item.", show_default=False)],
    patterns: Annotated[
        list[str] | None,
        typer.Argument(metavar="PATTERN", help="Files, folders or patterns of files that git tracks."),
    ] = None,
    *,
    source: Annotated[
        str, typer.Option("--from", metavar="FILE", help="Read an item from each line; `-` reads stdin.")
    ] = "",
    agent: Annotated[str, typer.Option("--agent", "-a", metavar="NAME", help="Specialist for each item.")] = (
        DEFAULT_AGENT
    ),
    concurrency: Annotated[
        int | None,
        typer.Option(
            "--concurrency", min=1, max=MAX_CONCURRENCY, metavar="N", help="Items at once.", show_default=False
        ),
    ] = None,
    yes: Yes = False,
    apply: ApplyOption = False,
    branch: BranchOption = None,
    tests_may_change: TestsMayChange = False,
    allow_unverified: AllowUnverified = False,
    non_interactive: NonInteractive = False,
    model: ModelName = "",
    options: RunOptions = DEFAULT_OPTIONS,
) -> int:
    """Do the same task for many files, several at once.

    Each item has its own agent and worktree. If one fails, the others continue. The change of all is then checked as
    a whole, and you decide about it. With --apply, what is verified is applied even if an item failed. An interrupted
    batch continues with `greenroom resume`.

    Examples:
      greenroom batch "port to pathlib" 'src/**/*.py'
      greenroom batch --concurrency 3 "add type hints" src/shop tests/test_cart.py
      git diff --name-only main | greenroom batch --from - "add docstrings"

    Exit codes: 0 all items are done and verified; 1 an item or a check failed; 2; 3; 4; 5; 6; 7.
    """
    wanted = RunFlags(tests_may_change=tests_may_change, allow_unverified=allow_unverified)
    request, apply_mode = join_words([text], "task"), read_apply_mode(branch, apply=apply)
    if not patterns and not source:
        raise typer.BadParameter(translate("batch.no_items"))

    async def work(cli: Invocation) -> Exit:
        cli.app.set_attendance(yes=yes, non_interactive=non_interactive)
        cli.app.override({"team.max_concurrent_agents": concurrency})
        options.apply(cli.app)
        ask_trust(cli, cli.app.root)
        items = await _find_items(cli, patterns or [], _read_lines(source) if source else [])
        analyst = await open_analyst(cli, model.strip())
        plan = _plan_items(analyst, request, items, agent.strip())
        choice = TeamChoice(analyst, await _confirm(cli, analyst, plan, len(items)))
        return await start_team(cli, choice, wanted, apply_mode)

    return invoke(context, work)


# ----------------------------------------------------------------------------------------------------------- the items


def _read_lines(source: str) -> list[str]:
    """Read an item from each line of a file or of stdin."""
    text = read_stdin("text") if source == STDIN else read_named_file(Path(source))
    return [" ".join(line.split()) for line in text.splitlines() if line.strip()]


async def _find_items(cli: Invocation, patterns: Sequence[str], lines: Sequence[str]) -> dict[str, bool]:
    """Return the items, and whether each is a file that git tracks. Raise `RefusedError` if there are none."""
    workspace, within = await open_workspace(cli.app.root), cli.app.folder.relative_to(cli.app.root)
    tracked, items = {*await workspace.list_tracked(["."])}, dict[str, bool]()
    for pattern in patterns:
        path = posixpath.normpath(within / pattern)
        if path != "." and not is_inside(path):
            raise make_refusal("outside", translate("batch.outside", pattern=pattern))
        is_pattern = not is_visible(cli.app.folder / pattern)
        found = [path] if path in tracked else await workspace.list_tracked([path], is_pattern=is_pattern)
        if not found:
            raise make_refusal("no_items", translate("batch.no_match", pattern=pattern))
        items |= dict.fromkeys(found, True)
    for line in lines:
        path = posixpath.normpath(within / line)
        items |= {path: True} if path in tracked else {line: False}
    if not items:
        raise make_refusal("no_items", translate("batch.no_items"))
    if len(items) > MAX_ITEMS:
        raise make_refusal("too_many_items", translate("batch.too_many", count=len(items), limit=MAX_ITEMS))
    return items


# ------------------------------------------------------------------------------------------------------------ the plan


def _plan_items(analyst: TeamAnalyst, request: str, items: dict[str, bool], agent: str) -> Plan:
    """Return a plan with a subtask for each item. They do not depend on each other."""
    spec, limit, seconds = analyst.profiles.get(agent), analyst.settings.max_concurrent_agents, 0
    if spec is not None and spec.cooperation is not None:
        seconds = spec.cooperation.seconds
        analyst.profiles.register(evolve(spec, cooperation=evolve(spec.cooperation, concurrency=limit)))
    analyst.settings = evolve(analyst.settings, max_subtasks=MAX_ITEMS)
    return Plan(
        request=request,
        subtasks=tuple(
            PlannedSubtask(
                id=name,
                agent=agent,
                name=item,
                description=f"{request}\n\nDo this only for: {item}",
                seconds=seconds,
                writes=(item,) if is_file else (),
                required=False,
                tries=analyst.settings.tries,
            )
            for name, (item, is_file) in zip(name_items(items), items.items(), strict=True)
        ),
        source="file",
        on_failure="continue",
        max_concurrent=limit,
    )


def name_items(items: Iterable[str]) -> Iterator[str]:
    """Name the subtask of each item after its end, such as `shop-cart-py`. Equal names get a number."""
    used = {"", *OWN_SUBTASKS}
    for number, item in enumerate(items, start=1):
        words = re.sub(r"[^a-z0-9]+", "-", item.lower())[-MAX_ID_CHARS:].strip("-")
        numbered = (f"{words}-{other}".strip("-") for other in count(number))
        name = next(name for name in chain((words,), numbered) if name not in used)
        used.add(name)
        yield name


async def _confirm(cli: Invocation, analyst: TeamAnalyst, plan: Plan, count: int) -> Plan | None:
    """Show how many items there are and what they take; return the plan that the person confirms."""
    proposal = analyst.assess(plan)
    agent, limit = plan.subtasks[0].agent, plan.max_concurrent
    cli.progress.note(translate("batch.items", items=count_things("item", count), agent=agent, limit=limit))
    cli.progress.note(render_estimate(proposal.analysis.estimate, proposal.model))
    analyst.require_model()
    return await confirm_plan(cli, analyst, proposal)
