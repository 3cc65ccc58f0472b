"""`greenroom tools`: which tools agents can have here, and what models are told of one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from rich.text import Text

from greenroom.app.custom import equipment_in
from greenroom.app.workspace import current_folder, workspace_root
from greenroom.core.ports.tool import ToolCard
from greenroom.core.state.step import Effect
from greenroom.interfaces.cli.asked.allowing import ToolsList, ToolsShow
from greenroom.interfaces.cli.display.output import harmless
from greenroom.interfaces.cli.display.tables import Column, Fitted, row
from greenroom.interfaces.cli.display.words import shorten
from greenroom.interfaces.cli.exits import Exit
from greenroom.interfaces.cli.runs.hands import toolbox_of
from greenroom.interfaces.cli.runs.running import command
from greenroom.interfaces.cli.runs.session import Desk

TOOLS: Final = (
    Column(name="tool"),
    Column(name="group"),
    Column(name="what it does", gives=True, needs=40),
    Column(name="from", style="dim"),
)
LINE: Final = 100
EFFECTS: Final[Mapping[Effect, str]] = {
    "pure": "changes nothing outside the run",
    "keyed": "is found again after a crash",
    "effectful": "is never run twice",
}


async def tools_list(desk: Desk, _: ToolsList) -> Exit:
    """A row per tool."""
    cards = _cards()
    desk.out.begin(command="tools list")
    desk.out.expect("tools")
    for card in cards:
        desk.out.item("tool", _summary(card))
    desk.out.show(Fitted(TOOLS, [_row(card) for card in cards]))
    equipment = equipment_in(workspace_root(current_folder()))
    for note in (*equipment.notes, *equipment.unagreed):
        desk.progress.note(harmless(f"! {note}"), style="yellow")
    desk.progress.note(f"\nOne of them: {command(desk, 'tools', 'show', cards[0].spec.name)}")
    return desk.out.result("ok", Exit.DONE)


async def tools_show(desk: Desk, order: ToolsShow) -> Exit:
    """All that is known of it."""
    card = toolbox_of(workspace_root(current_folder())).named(order.name).card
    desk.out.begin(command="tools show")
    desk.out.show(Text(f"{card.spec.name} · {card.group} · {EFFECTS[card.effect]} · {card.source}\n"))
    desk.out.show(harmless(card.spec.description), Text("\nparameters", style="dim"))
    desk.out.show(harmless(json.dumps(card.spec.parameters, indent=2, ensure_ascii=False)))
    return desk.out.result("ok", Exit.DONE, tool={**_summary(card), "parameters": dict(card.spec.parameters)})


def _cards() -> list[ToolCard]:
    return [tool.card for tool in toolbox_of(workspace_root(current_folder()))]


def _row(card: ToolCard) -> list[Text]:
    first = f"The same as {card.alias_of}" if card.alias_of else card.spec.description.split(". ", 1)[0]
    what = shorten(harmless(first), LINE)
    return row(card.spec.name, card.group, what, card.source)


def _summary(card: ToolCard) -> dict[str, object]:
    return {
        "name": card.spec.name,
        "group": card.group,
        "effect": card.effect,
        "from": card.source,
        "description": card.spec.description,
    }
