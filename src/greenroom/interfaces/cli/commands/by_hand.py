"""`greenroom tools run`: a person calls a tool themselves."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace

from greenroom.app.host import watch_steps
from greenroom.app.toolset.by_hand import called_by_hand, found_by_hand
from greenroom.app.workspace import current_folder, workspace_root
from greenroom.core.base.errors import Refused, Rejected
from greenroom.core.base.records import Data
from greenroom.core.ports.tool import ToolCard
from greenroom.core.state.step import Step
from greenroom.interfaces.cli.asked.allowing import ToolsRun
from greenroom.interfaces.cli.display.output import harmless
from greenroom.interfaces.cli.display.talk import Talk
from greenroom.interfaces.cli.exits import Exit
from greenroom.interfaces.cli.runs.session import Door


async def tools_run(door: Door, order: ToolsRun) -> Exit:
    """Call it; what it returns comes on stdout."""
    root = workspace_root(current_folder())
    card = door.means.toolbox(root).named(order.name).card
    arguments = _arguments(card, order)
    team = await found_by_hand(door.runtime, root, order.name, arguments)
    door.out.begin(team=team, command="tools run", tool=order.name, home=str(door.home))
    talk = Talk(door.setup, door.out)
    host = await door.runtime.start(team)
    host.listen_trouble(talk.trouble)
    host.watch(talk.piece)
    watch_steps(host, talk.began, lambda _: None)
    try:
        step = await called_by_hand(door.runtime, team)
    finally:
        talk.end()
    return _told(replace(door, progress=talk), step)


def _told(door: Door, step: Step) -> Exit:
    output = str((step.result or {}).get("output", ""))
    if output:
        door.out.write(harmless(output if output.endswith("\n") else f"{output}\n"))
    bad = _not_well(step) if step.state == "finished" else ""
    status, error = ("failed", bad) if bad else (step.state, step.error)
    if status != "finished":
        door.progress.note(harmless(f"{status}: {error}"), style="red")
    code = Exit.DONE if status == "finished" else Exit.FAILED
    return door.out.result(status, code, output=output, error=error, result=dict(step.result or {}))


def _not_well(step: Step) -> str:
    """How a command ended that was run to its end; empty if it ended well, and for what is no command."""
    result = step.result or {}
    how, code = result.get("how", "exited"), result.get("exit_code", 0)
    if how != "exited":
        return f"{step.work.executor} was ended ({how})."
    return f"{step.work.executor} ended with exit code {code}." if code else ""


def _arguments(card: ToolCard, order: ToolsRun) -> Data:
    if order.whole:
        return _object(order.whole)
    properties = card.spec.parameters.get("properties")
    known = properties if isinstance(properties, Mapping) else {}
    return dict(_argument(card.spec.name, known, one) for one in order.given)


def _object(text: str) -> Data:
    try:
        found = json.loads(text)
    except ValueError as error:
        raise _bad(f"--json is no JSON: {error}.", 'Write an object: --json \'{"file": "a.py"}\'.') from None
    if not isinstance(found, dict):
        raise _bad("--json is no object.", 'Write one: --json \'{"file": "a.py"}\'.')
    return found


def _argument(tool: str, known: Mapping[str, object], given: str) -> tuple[str, object]:
    name, sign, text = given.partition("=")
    if given.lstrip().startswith("{"):
        raise _bad(f"{given!r} names no parameter of {tool}.", f"An object goes behind --json: --json '{given}'.")
    if not sign or name not in known:
        there = ", ".join(known) or "none"
        raise _bad(f"{given!r} names no parameter of {tool}.", f"Write NAME=VALUE. There are: {there}.")
    shape = known[name]
    if isinstance(shape, Mapping) and shape.get("type") == "string":
        return name, text
    try:
        return name, json.loads(text)
    except ValueError:
        return name, text  # whether it fits is said by whoever checks the whole call


def _bad(why: str, hint: str) -> Refused:
    return Refused(Rejected(code="bad_arguments", why=why, hint=hint))
