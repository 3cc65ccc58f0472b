"""`greenroom agents`: which agents files describe, all that is known of one, and a file for a new one."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Final

from rich.text import Text

from greenroom.app.agents.finding import Agents, Found, find_agents, remarks
from greenroom.app.agents.writing import Wish, write_agent
from greenroom.app.trust import may_be_used, of_agent, own_ledger, refusal
from greenroom.app.workspace import current_folder, workspace_root
from greenroom.core.base.records import encode, whole
from greenroom.interfaces.cli.asked.orders import AgentsList, AgentsNew, AgentsShow
from greenroom.interfaces.cli.display.output import harmless
from greenroom.interfaces.cli.display.tables import Column, Fitted, row
from greenroom.interfaces.cli.display.words import shorten
from greenroom.interfaces.cli.exits import Exit
from greenroom.interfaces.cli.runs.hands import toolbox_of
from greenroom.interfaces.cli.runs.running import command
from greenroom.interfaces.cli.runs.session import Desk

AGENTS: Final = (
    Column(name="agent"),
    Column(name="what it is for", gives=True, needs=40),
    Column(name="model", needs=100),
    Column(name="from", style="dim"),
)
FIELDS: Final = (Column(name="key"), Column(name="value", gives=True))
LINE: Final = 100
APART: Final = ("name", "prompt", "version")
"""What is not shown among the other fields: it stands above or below them."""


# ------------------------------------------------------------------------------------------------------------ list


async def agents_list(desk: Desk, _: AgentsList) -> Exit:
    """A row per agent; what is wrong with other files is said beside it."""
    agents, agreed = _looked_at()
    desk.out.begin(command="agents list")
    for many in ("agents", "troubles"):
        desk.out.expect(many)
    for one in agents.found.values():
        desk.out.item("agent", {**_summary(one), "agreed": agreed(one)})
    for trouble in agents.troubles:
        desk.out.item("trouble", {"agent": trouble.name, "error": trouble.text})
    if agents.found:
        desk.out.show(Fitted(AGENTS, [_row(one, agreed=agreed(one)) for one in agents.found.values()]))
    _note_others(desk, agents)
    if not all(map(agreed, agents.found.values())):
        desk.progress.note(f"Of these some are used only when you have agreed to them: {command(desk, 'trust')}")
    return desk.out.result("ok", Exit.DONE)


def _looked_at() -> tuple[Agents, Callable[[Found], bool]]:
    """All agents here, and which of them may be used: not those that nobody has agreed to."""
    folder = current_folder()
    root = workspace_root(folder)
    trusted = own_ledger().trusted(root)
    return find_agents(folder), lambda one: may_be_used(one, root, trusted)


def _row(one: Found, *, agreed: bool) -> list[Text]:
    spec = one.spec
    place = str(one.place) if agreed else f"{one.place} (not agreed to)"
    model = str((spec.llm_config or {}).get("model", ""))
    what = shorten(harmless(spec.description or spec.role or spec.prompt), LINE)
    return row(spec.name, what, model or Text("normal", style="dim"), place)


def _note_others(desk: Desk, agents: Agents) -> None:
    for one in agents.hidden:
        nearer = agents.found.get(one.spec.name)
        why = f"{nearer.path} has the same name and comes first" if nearer else "the nearer file of its name is broken"
        desk.progress.note(harmless(f"! {one.path} does not count: {why}."), style="dim")
    for trouble in agents.troubles:
        desk.progress.note(f"! {trouble.text}", style="yellow")
    if agents.found:
        first = next(iter(agents.found))
        desk.progress.note(f"\nOne of them: {command(desk, 'agents', 'show', first)}")
    else:
        none = "There are no agents that can be used here." if agents.troubles else "There are no agents here yet."
        desk.progress.note(f"{none} Make one: {command(desk, 'agents', 'new', 'NAME')}")


def _summary(one: Found) -> dict[str, object]:
    spec = one.spec
    return {
        "name": spec.name,
        "description": spec.description,
        "model": (spec.llm_config or {}).get("model", ""),
        "from": str(one.place),
        "file": str(one.path),
        "version": spec.version,
    }


# ------------------------------------------------------------------------------------------------------------ show


async def agents_show(desk: Desk, order: AgentsShow) -> Exit:
    """All fields that differ from their default, the prompt, and the report."""
    agents, agreed = _looked_at()
    one = agents.get(order.name)
    names = {tool.name for tool in toolbox_of(workspace_root(current_folder()))}
    report = [str(note) for note in remarks(one, agents, names)]
    if not agreed(one):
        desk.progress.note(f"! {refusal(one)}\n", style="yellow")
    desk.out.begin(command="agents show")
    desk.out.show(_head(one), Text(""))
    desk.out.show(Fitted(FIELDS, [row(key, harmless(value)) for key, value in _fields(one)]))
    if one.spec.prompt:
        desk.out.show(Text("\nprompt", style="dim"))
        desk.out.write(f"{one.spec.prompt}\n")
    if report:
        desk.out.show(Text("\nwhat does not count here", style="dim"))
        desk.out.show(*(Text(harmless(f"! {text}"), style="yellow") for text in report))
    desk.progress.note(f"\nWhat a model gets: {command(desk, 'prompt', 'show', one.spec.name)}")
    return desk.out.result(
        "ok",
        Exit.DONE,
        **{**_summary(one), "agreed": agreed(one), "spec": json.loads(encode(whole(one.spec))), "report": report},
    )


def _head(one: Found) -> Text:
    text = Text(one.spec.name, style="bold")
    text.append(harmless(f"  {one.path}  ({one.place}; version {one.spec.version})"), style="not bold dim")
    return text


def _fields(one: Found) -> list[tuple[str, str]]:
    """What the file says, in the words of the spec; what has its default is left out."""
    flat: dict[str, object] = {}
    for key, value in json.loads(encode(one.spec)).items():
        inner = value if isinstance(value, dict) and key != "answer" else {"": value}
        flat |= {f"{key}.{name}".strip("."): one for name, one in inner.items()}
    return [(key.removeprefix("llm_config."), _shown(value)) for key, value in flat.items() if key not in APART]


def _shown(value: object) -> str:
    match value:
        case str():
            return shorten(value, 2 * LINE)
        case list():
            return ", ".join(map(str, value))
        case _:
            return json.dumps(value, ensure_ascii=False)


# ------------------------------------------------------------------------------------------------------------- new


async def agents_new(desk: Desk, order: AgentsNew) -> Exit:
    """Write it and say what comes next."""
    tools = tuple(name for one in order.tools.split(",") if (name := one.strip()))
    wish = Wish(name=order.name, description=order.description, model=order.model, tools=tools, user=order.user)
    if not order.user:
        own_ledger().standing(workspace_root(current_folder()))  # nothing is written that could not be agreed to
    path = write_agent(current_folder(), wish)
    if not order.user:
        _agree_to(order.name)
    desk.out.begin(command="agents new")
    desk.out.show(harmless(str(path)))
    desk.progress.note("✓ Open it in your editor and write what the agent is told of its work.", style="green")
    if not order.user:
        desk.progress.note(f"Then agree to what you have made of it: {command(desk, 'trust')}")
    desk.progress.note(f"Then see what a model gets: {command(desk, 'prompt', 'show', order.name)}")
    return desk.out.result("written", Exit.DONE, name=order.name, file=str(path))


def _agree_to(name: str) -> None:
    """Whoever has it written here has agreed to what is written."""
    root = workspace_root(current_folder())
    own_ledger().agree(root, [of_agent(find_agents(root).get(name), root)])
