"""`greenroom agents` and `prompt`: the agents that files describe, a file for a new one, and what a model gets."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Annotated, Final, TypeAlias

import typer
from rich.rule import Rule
from rich.text import Text

from greenroom.app.agents.finding import Agents, Found, Wish, find_agents, missing_tools, remarks, write_agent
from greenroom.app.first_request import FirstRequest, Surroundings, first_request
from greenroom.app.reading import TextReader
from greenroom.app.trust import may_be_used, of_agent, own_ledger, refusal
from greenroom.app.workspace import current_folder, workspace_root
from greenroom.cli.context import Invocation, command
from greenroom.cli.exit_codes import Exit
from greenroom.cli.render.output import Column, Fitted, harmless, row
from greenroom.cli.render.words import shorten
from greenroom.core.base.records import encode, evolve, whole

AGENTS: Final = (
    Column(name="agent"),
    Column(name="what it is for", gives=True, needs=40),
    Column(name="model", needs=100),
    Column(name="from", style="dim"),
)
FIELDS: Final = (Column(name="key"), Column(name="value", gives=True))
LINE: Final = 100
AgentName: TypeAlias = Annotated[
    str, typer.Argument(metavar="AGENT", help="Its name, as `greenroom agents list` has it.")
]
APART: Final = ("name", "prompt", "version")
"""What is not shown among the other fields: it stands above or below them."""


async def agents_list(cli: Invocation) -> None:
    """List the agents that can be used in this folder: of the project, your own, and Claude Code's."""
    agents, agreed = _looked_at()
    cli.out.listing("agent", ({**_summary(one), "agreed": agreed(one)} for one in agents.found.values()))
    cli.out.listing("trouble", ({"agent": each.name, "error": each.text} for each in agents.troubles))
    if agents.found:
        cells = list[list[Text]]()
        for one in agents.found.values():
            spec, place = one.spec, str(one.place) if agreed(one) else f"{one.place} (not agreed to)"
            model = str((spec.llm_config or {}).get("model", "")) or Text("normal", style="dim")
            what = shorten(harmless(spec.description or spec.role or spec.prompt), LINE)
            cells.append(row(spec.name, what, model, place))
        cli.out.show(Fitted(AGENTS, cells))
    _note_others(cli, agents)
    if not all(map(agreed, agents.found.values())):
        cli.progress.note(f"Of these some are used only when you have agreed to them: {command(cli, 'trust')}")


def _looked_at() -> tuple[Agents, Callable[[Found], bool]]:
    """All agents here, and which of them may be used: not those that nobody has agreed to."""
    folder = current_folder()
    root = workspace_root(folder)
    trusted = own_ledger().trusted(root)
    return find_agents(folder), lambda one: may_be_used(one, root, trusted)


def _note_others(cli: Invocation, agents: Agents) -> None:
    for one in agents.hidden:
        nearer = agents.found.get(one.spec.name)
        why = f"{nearer.path} has the same name and comes first" if nearer else "the nearer file of its name is broken"
        cli.progress.note(harmless(f"! {one.path} does not count: {why}."), style="dim")
    for trouble in agents.troubles:
        cli.progress.note(f"! {trouble.text}", style="yellow")
    if agents.found:
        first = next(iter(agents.found))
        cli.progress.note(f"\nOne of them: {command(cli, 'agents', 'show', first)}")
    else:
        none = "There are no agents that can be used here." if agents.troubles else "There are no agents here yet."
        cli.progress.note(f"{none} Make one: {command(cli, 'agents', 'new', 'NAME')}")


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


async def agents_show(cli: Invocation, name: AgentName) -> Exit:
    """Show all that is known of an agent, which file it is from, and what of that file does not count here."""
    agents, agreed = _looked_at()
    one = agents.get(name.strip())
    names = {tool.name for tool in cli.means.toolbox()}
    report = [str(note) for note in remarks(one, agents, names)]
    if not agreed(one):
        cli.progress.note(f"! {refusal(one)}\n", style="yellow")
    head = harmless(f"  {one.path}  ({one.place}; version {one.spec.version})")
    cli.out.show(Text(one.spec.name, style="bold").append(head, style="not bold dim"), Text(""))
    cli.out.show(Fitted(FIELDS, [row(key, harmless(value)) for key, value in _fields(one)]))
    if one.spec.prompt:
        cli.out.show(Text("\nprompt", style="dim"))
        cli.out.write(f"{one.spec.prompt}\n")
    if report:
        cli.out.show(Text("\nwhat does not count here", style="dim"))
        cli.out.show(*(Text(harmless(f"! {text}"), style="yellow") for text in report))
    cli.progress.note(f"\nWhat a model gets: {command(cli, 'prompt', 'show', one.spec.name)}")
    told = {"agreed": agreed(one), "spec": json.loads(encode(whole(one.spec))), "report": report}
    return cli.out.result("ok", Exit.DONE, **_summary(one), **told)


def _fields(one: Found) -> list[tuple[str, str]]:
    """What the file says, in the words of the spec; what has its default is left out."""
    flat: dict[str, object] = {}
    for key, value in json.loads(encode(one.spec)).items():
        inner = value if isinstance(value, dict) and key != "answer" else {"": value}
        flat |= {f"{key}.{name}".strip("."): one for name, one in inner.items()}
    return [(key.removeprefix("llm_config."), _shown(value)) for key, value in flat.items() if key not in APART]


def _shown(value: object) -> str:
    if isinstance(value, str):
        return shorten(value, 2 * LINE)
    return ", ".join(map(str, value)) if isinstance(value, list) else json.dumps(value, ensure_ascii=False)


async def agents_new(
    cli: Invocation,
    name: Annotated[str, typer.Argument(metavar="AGENT", help="What it is to be called, like code-reviewer.")],
    *,
    description: Annotated[str, typer.Option("--description", "-d", metavar="TEXT", help="What it is for.")] = "",
    model: Annotated[
        str, typer.Option("--model", "-m", metavar="NAME", help="strong, fast, a group or provider:model.")
    ] = "",
    tools: Annotated[str, typer.Option("--tools", metavar="A,B", help="The only tools that it may use.")] = "",
    user: Annotated[
        bool, typer.Option("--user", help="For all your projects, not only for the one in this folder.")
    ] = False,
) -> Exit:
    """Write .greenroom/agents/AGENT.md: a template that works as it is. Nothing is ever overwritten."""
    name, root = name.strip(), cli.means.root
    listed = tuple(each.strip() for each in tools.split(",") if each.strip())
    if not user:
        own_ledger().standing(root)  # nothing is written that could not be agreed to
    wish = Wish(name=name, description=description, model=model.strip(), tools=listed, user=user)
    path = write_agent(current_folder(), wish)
    if not user:  # a person who has it written here has agreed to what is written
        own_ledger().agree(root, [of_agent(find_agents(root).get(name), root)])
    cli.out.show(harmless(str(path)))
    cli.progress.note("✓ Open it in your editor and write what the agent is told of its work.", style="green")
    if not user:
        cli.progress.note(f"Then agree to what you have made of it: {command(cli, 'trust')}")
    cli.progress.note(f"Then see what a model gets: {command(cli, 'prompt', 'show', name)}")
    return cli.out.result("written", Exit.DONE, name=name, file=str(path))


OPTIONS: Final = ("tool_choice", "schema", "max_output", "temperature", "effort", "streaming")


async def prompt_show(
    cli: Invocation,
    name: AgentName,
    *,
    message: Annotated[str, typer.Option("--message", metavar="TEXT", help="What the agent is told.")] = "Hello.",
) -> Exit:
    """Print exactly what a model gets when this agent begins: messages, tools, settings. Nobody is asked."""
    agents = find_agents(current_folder())
    tools, found = cli.means.toolbox(), agents.get(name.strip()).spec
    spec = tools.equipped(evolve(found, language=found.language or cli.means.language))
    around = Surroundings(tools=tools.specs, others=agents.specs, reader=TextReader(), project=cli.means.notes())
    await cli.means.provisions.look_around()
    request = await first_request(spec, message, cli.means, around)
    missing = missing_tools(spec, {tool.name for tool in around.tools})
    for note in filter(None, (request.trouble, *map(str, missing))):
        cli.progress.note(f"! {note}", style="yellow")
    _show(cli, request)
    return cli.out.result("ok", Exit.DONE, agent=spec.name, version=spec.version, **fields(request))


def _show(cli: Invocation, found: FirstRequest) -> None:
    request = found.request
    cli.out.show(Text(_settings(found), style="dim"))
    for message in request.messages:
        _part(cli, message.role, message.content)
    if request.tools:
        described = (f"{tool.name}: {tool.description}\n{_json(tool.parameters)}" for tool in request.tools)
        _part(cli, "tools", "\n\n".join(described))
    if request.schema is not None:
        _part(cli, "schema", _json(request.schema))


def _part(cli: Invocation, title: str, content: str) -> None:
    cli.out.show(Text(""), Rule(Text(title, style="bold"), align="left", style="dim"))
    cli.out.write(f"{content}\n")


def _settings(found: FirstRequest) -> str:
    """The first line: who is asked, and how."""
    request = found.request
    how = [f"to {found.model}" if found.model else "to a model that is not set up yet"]
    how.append(f"at most {request.max_output:,} tokens back")
    if request.temperature is not None:
        how.append(f"temperature {request.temperature:g}")
    if request.effort is not None:
        how.append(f"effort {request.effort}")
    how += [] if request.streaming else ["in one piece"]
    return harmless(" · ".join(how))


def fields(found: FirstRequest) -> dict[str, object]:
    request = found.request
    return {
        "model": found.model or None,
        "trouble": found.trouble or None,
        "request": {
            "messages": [{"role": one.role, "content": one.content} for one in request.messages],
            "tools": [
                {"name": one.name, "description": one.description, "parameters": json.loads(encode(one.parameters))}
                for one in request.tools
            ],
            **{name: getattr(request, name) for name in OPTIONS},
        },
    }


def _json(data: object) -> str:
    return json.dumps(json.loads(encode(data)), ensure_ascii=False, indent=2)
