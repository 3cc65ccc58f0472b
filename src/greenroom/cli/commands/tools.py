"""`greenroom tools`: list, show and call tools."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Final, TypeAlias

import typer
from rich.text import Text

from greenroom.app.messages import translate
from greenroom.app.team_host import watch_steps
from greenroom.app.toolset.custom import find_tool_source
from greenroom.app.toolset.manual_call import create_manual_call, run_manual_call
from greenroom.app.words import shorten
from greenroom.cli.context import Invocation, invoke, render_command
from greenroom.cli.exit_codes import Exit
from greenroom.cli.options import STDIN, read_stdin
from greenroom.cli.render.conversation import RunView
from greenroom.cli.render.output import Column, FittedTable, make_row, strip_control_characters
from greenroom.core.base.errors import make_refusal
from greenroom.core.base.records import Data
from greenroom.core.ports.tool import ToolCard
from greenroom.core.state.step import Step

TOOL_COLUMNS: Final = (
    Column(name="tool"),
    Column(name="group"),
    Column(name="what it does", can_shrink=True, min_terminal_width=40),
    Column(name="from", style="dim"),
)
MAX_LINE_CHARS: Final = 100
ToolName: TypeAlias = Annotated[
    str, typer.Argument(metavar="TOOL", help="Name of the tool; see `greenroom tools list`.")
]


async def tools_list(cli: Invocation) -> None:
    """List the tools for agents in this folder.

    They are sorted by group; the last column says where each comes from.

    Examples:
      greenroom tools list
      greenroom tools list --output-format json

    Exit codes: 0; 2; 3.
    """
    root = cli.app.root
    cards = [tool.card for tool in cli.app.toolbox()]
    cli.out.listing("tool", map(_summary, cards))
    cells = list[list[Text]]()
    for card in cards:
        first = (
            translate("tools.same_as", name=card.alias_of) if card.alias_of else card.spec.description.split(". ", 1)[0]
        )
        cells.append(
            make_row(card.spec.name, card.group, shorten(strip_control_characters(first), MAX_LINE_CHARS), card.source)
        )
    cli.out.show(FittedTable(TOOL_COLUMNS, cells))
    tool_source = find_tool_source(root)
    for note in (*tool_source.notes, *tool_source.untrusted):
        cli.progress.note(strip_control_characters(f"! {note}"), style="yellow")
    command = render_command(cli, "tools", "show", cards[0].spec.name)
    cli.progress.note(f"\n{translate('tools.show_one', command=command)}")


def _summary(card: ToolCard) -> dict[str, object]:
    return {
        "name": card.spec.name,
        "group": card.group,
        "effect": card.effect,
        "from": card.source,
        "description": card.spec.description,
    }


async def tools_show(cli: Invocation, name: ToolName) -> Exit:
    """Show the description and parameters of a tool.

    This is what models get.

    Examples:
      greenroom tools show read_code
      greenroom tools show patch --output-format json

    Exit codes: 0; 2; 3.
    """
    card = cli.app.toolbox().get(name.strip()).card
    cli.out.show(
        Text(f"{card.spec.name} · {card.group} · {translate(f'tools.effect_{card.effect}')} · {card.source}\n")
    )
    cli.out.show(
        strip_control_characters(card.spec.description), Text(f"\n{translate('tools.parameters')}", style="dim")
    )
    cli.out.show(strip_control_characters(json.dumps(card.spec.parameters, indent=2, ensure_ascii=False)))
    return cli.out.result("ok", Exit.DONE, tool={**_summary(card), "parameters": dict(card.spec.parameters)})


def tools_run(
    context: typer.Context,
    name: ToolName,
    given: Annotated[
        list[str] | None, typer.Argument(metavar="NAME=VALUE", help="Parameters of the tool; see `tools show`.")
    ] = None,
    *,
    whole: Annotated[
        str,
        typer.Option("--json", metavar="OBJECT", help="All parameters as JSON; `-` reads it from stdin."),
    ] = "",
) -> int:
    """Call a tool yourself.

    It works in this workspace. You are not asked for approval, but your deny rules apply.

    Examples:
      greenroom tools run list_files
      greenroom tools run read_code file=README.md end_line=20

    Exit codes: 0; 1 the tool failed; 2; 3.
    """
    text = read_stdin("object") if whole.strip() == STDIN else whole
    return invoke(context, lambda cli: _call_tool(cli, name.strip(), given or (), text))


async def _call_tool(cli: Invocation, name: str, given: Sequence[str], whole: str) -> Exit:
    root = cli.app.root
    card = cli.app.toolbox().get(name).card
    properties = card.spec.parameters.get("properties")
    known_properties = properties if isinstance(properties, Mapping) else {}
    arguments = _parse_object(whole) if whole else dict(_parse_argument(name, known_properties, text) for text in given)
    kept = cli.app.model_session.redaction.withhold(arguments)  # the log never holds a key
    team = await create_manual_call(cli.runtime, root, name, kept)
    cli.out.begin(team=team, tool=name)
    view = RunView(cli.setup, cli.out)
    host = await cli.runtime.start(team)
    host.listen_trouble(view.trouble)
    host.watch(view.piece)
    watch_steps(host, view.begin_step, lambda _: None)
    try:
        step = await run_manual_call(cli.runtime, team)
    finally:
        view.end()
    return _report_result(replace(cli, progress=view), step)


def _report_result(cli: Invocation, step: Step) -> Exit:
    result = dict(step.result or {})
    output = str(result.get("output", ""))
    if output:
        cli.out.write(strip_control_characters(output if output.endswith("\n") else f"{output}\n"))
    status, error = str(step.state), step.error
    ending, code = result.get("how", "exited"), result.get("exit_code", 0)
    if status == "finished" and ending != "exited":  # a command that ran to its end may still have failed
        status, error = "failed", translate("tools.stopped", executor=step.work.executor, ending=ending)
    elif status == "finished" and code:
        status, error = "failed", translate("tools.failed_exit_code", executor=step.work.executor, exit_code=code)
    if status != "finished":
        text = translate("report.reason", state=translate(f"states.{status}"), reason=error)
        cli.progress.note(strip_control_characters(text), style="red")
    done = Exit.DONE if status == "finished" else Exit.FAILED
    return cli.out.result(status, done, output=output, error=error, result=result)


def _parse_object(text: str) -> Data:
    try:
        parsed = json.loads(text)
    except ValueError as error:
        raise make_refusal(
            "bad_arguments", translate("tools.json_invalid", error=error), translate("tools.json_example")
        ) from None
    if not isinstance(parsed, dict):
        raise make_refusal("bad_arguments", translate("tools.json_not_object"), translate("tools.json_example"))
    return parsed


def _parse_argument(tool: str, properties: Mapping[str, object], given: str) -> tuple[str, object]:
    name, sign, text = given.partition("=")
    if given.lstrip().startswith("{") or not sign or name not in properties:
        hint = translate("tools.write_name_value", properties=", ".join(properties) or translate("hints.none"))
        if given.lstrip().startswith("{"):
            hint = translate("tools.pass_object_as_json", given=given)
        raise make_refusal("bad_arguments", translate("tools.not_a_parameter", given=given, tool=tool), hint)
    shape = properties[name]
    if isinstance(shape, Mapping) and shape.get("type") == "string":
        return name, text
    try:
        return name, json.loads(text)
    except ValueError:
        return name, text  # the validation of the whole call decides
