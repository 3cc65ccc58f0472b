"""`greenroom tools`: which tools agents can have here, what models are told of one, and calling one yourself."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Final, TypeAlias

import typer
from rich.text import Text

from greenroom.app.host import watch_steps
from greenroom.app.toolset.by_hand import called_by_hand, found_by_hand
from greenroom.app.toolset.custom import equipment_in
from greenroom.cli.context import Invocation, command, invoke, refused
from greenroom.cli.exit_codes import Exit
from greenroom.cli.options import STDIN, from_stdin
from greenroom.cli.render.conversation import RunView
from greenroom.cli.render.output import Column, Fitted, harmless, row
from greenroom.cli.render.words import shorten
from greenroom.core.base.records import Data
from greenroom.core.ports.tool import ToolCard
from greenroom.core.state.step import Effect, Step

TOOLS: Final = (
    Column(name="tool"),
    Column(name="group"),
    Column(name="what it does", gives=True, needs=40),
    Column(name="from", style="dim"),
)
LINE: Final = 100
EXAMPLE: Final = 'Write an object: --json \'{"file": "a.py"}\'.'
EFFECTS: Final[Mapping[Effect, str]] = {
    "pure": "changes nothing outside the run",
    "keyed": "is found again after a crash",
    "effectful": "is never run twice",
}
ToolName: TypeAlias = Annotated[str, typer.Argument(metavar="TOOL", help="Its name, as `greenroom tools list` has it.")]


async def tools_list(cli: Invocation) -> None:
    """List the tools that agents can have in this folder, by group."""
    root = cli.means.root
    cards = [tool.card for tool in cli.means.toolbox()]
    cli.out.listing("tool", map(_summary, cards))
    cells = list[list[Text]]()
    for card in cards:
        first = f"The same as {card.alias_of}" if card.alias_of else card.spec.description.split(". ", 1)[0]
        cells.append(row(card.spec.name, card.group, shorten(harmless(first), LINE), card.source))
    cli.out.show(Fitted(TOOLS, cells))
    equipment = equipment_in(root)
    for note in (*equipment.notes, *equipment.unagreed):
        cli.progress.note(harmless(f"! {note}"), style="yellow")
    cli.progress.note(f"\nOne of them: {command(cli, 'tools', 'show', cards[0].spec.name)}")


def _summary(card: ToolCard) -> dict[str, object]:
    return {
        "name": card.spec.name,
        "group": card.group,
        "effect": card.effect,
        "from": card.source,
        "description": card.spec.description,
    }


async def tools_show(cli: Invocation, name: ToolName) -> Exit:
    """Show what models are told of a tool: description and parameters."""
    card = cli.means.toolbox().named(name.strip()).card
    cli.out.show(Text(f"{card.spec.name} · {card.group} · {EFFECTS[card.effect]} · {card.source}\n"))
    cli.out.show(harmless(card.spec.description), Text("\nparameters", style="dim"))
    cli.out.show(harmless(json.dumps(card.spec.parameters, indent=2, ensure_ascii=False)))
    return cli.out.result("ok", Exit.DONE, tool={**_summary(card), "parameters": dict(card.spec.parameters)})


def tools_run(
    context: typer.Context,
    name: ToolName,
    given: Annotated[
        list[str] | None, typer.Argument(metavar="NAME=VALUE", help="Its parameters, as `tools show` has them.")
    ] = None,
    *,
    whole: Annotated[
        str,
        typer.Option("--json", metavar="OBJECT", help="All parameters in one JSON object; `-` reads it from stdin."),
    ] = "",
) -> int:
    """Call a tool yourself, in this workspace: you are not asked, but what your rules deny is denied."""
    text = from_stdin("object") if whole.strip() == STDIN else whole
    return invoke(context, lambda cli: _call(cli, name.strip(), given or (), text))


async def _call(cli: Invocation, name: str, given: Sequence[str], whole: str) -> Exit:
    """Call it; what it returns comes on stdout."""
    root = cli.means.root
    card = cli.means.toolbox().named(name).card
    properties = card.spec.parameters.get("properties")
    known = properties if isinstance(properties, Mapping) else {}
    arguments = _object(whole) if whole else dict(_argument(name, known, text) for text in given)
    team = await found_by_hand(cli.runtime, root, name, arguments)
    cli.out.begin(team=team, tool=name)
    view = RunView(cli.setup, cli.out)
    host = await cli.runtime.start(team)
    host.listen_trouble(view.trouble)
    host.watch(view.piece)
    watch_steps(host, view.began, lambda _: None)
    try:
        step = await called_by_hand(cli.runtime, team)
    finally:
        view.end()
    return _result(replace(cli, progress=view), step)


def _result(cli: Invocation, step: Step) -> Exit:
    result = dict(step.result or {})
    output = str(result.get("output", ""))
    if output:
        cli.out.write(harmless(output if output.endswith("\n") else f"{output}\n"))
    status, error = str(step.state), step.error
    how, code = result.get("how", "exited"), result.get("exit_code", 0)
    if status == "finished" and how != "exited":  # a command that was run to its end may have ended badly
        status, error = "failed", f"{step.work.executor} was ended ({how})."
    elif status == "finished" and code:
        status, error = "failed", f"{step.work.executor} ended with exit code {code}."
    if status != "finished":
        cli.progress.note(harmless(f"{status}: {error}"), style="red")
    done = Exit.DONE if status == "finished" else Exit.FAILED
    return cli.out.result(status, done, output=output, error=error, result=result)


def _object(text: str) -> Data:
    try:
        found = json.loads(text)
    except ValueError as error:
        raise refused("bad_arguments", f"--json is no JSON: {error}.", EXAMPLE) from None
    if not isinstance(found, dict):
        raise refused("bad_arguments", "--json is no object.", EXAMPLE)
    return found


def _argument(tool: str, known: Mapping[str, object], given: str) -> tuple[str, object]:
    name, sign, text = given.partition("=")
    if given.lstrip().startswith("{") or not sign or name not in known:
        hint = f"Write NAME=VALUE. There are: {', '.join(known) or 'none'}."
        if given.lstrip().startswith("{"):
            hint = f"An object goes behind --json: --json '{given}'."
        raise refused("bad_arguments", f"{given!r} names no parameter of {tool}.", hint)
    shape = known[name]
    if isinstance(shape, Mapping) and shape.get("type") == "string":
        return name, text
    try:
        return name, json.loads(text)
    except ValueError:
        return name, text  # whether it fits is said by the check of the whole call
