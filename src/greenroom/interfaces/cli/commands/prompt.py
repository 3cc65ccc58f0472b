"""`greenroom prompt`: exactly what a model gets."""

from __future__ import annotations

import json

from rich.rule import Rule
from rich.text import Text

from greenroom.app.agents.finding import find_agents, missing_tools
from greenroom.app.first_request import FirstRequest, Surroundings, first_request
from greenroom.app.reading import TextReader
from greenroom.app.trust import agreed_notes, own_ledger
from greenroom.app.workspace import current_folder, workspace_root
from greenroom.core.base.records import encode, evolve
from greenroom.core.ports.model import ChatMessage, ModelRequest, ToolSpec
from greenroom.core.state.spec import AgentSpec
from greenroom.interfaces.cli.asked.orders import PromptShow
from greenroom.interfaces.cli.display.output import harmless
from greenroom.interfaces.cli.exits import Exit
from greenroom.interfaces.cli.runs.hands import toolbox_of
from greenroom.interfaces.cli.runs.session import Desk


async def prompt_show(desk: Desk, order: PromptShow) -> Exit:
    """Messages, tools and settings of its first request."""
    folder = current_folder()
    agents = find_agents(folder)
    tools = toolbox_of(workspace_root(folder))
    spec = tools.equipped(_spoken(desk, agents.get(order.name).spec))
    notes = agreed_notes(folder, own_ledger().trusted(workspace_root(folder)))
    around = Surroundings(tools=tools.specs, others=agents.specs, reader=TextReader(), project=notes)
    await desk.means.provisions.look_around()
    found = await first_request(spec, order.message, desk.means, around)
    desk.out.begin(command="prompt show")
    if found.trouble:
        desk.progress.note(f"! {found.trouble}", style="yellow")
    for note in missing_tools(spec, {tool.name for tool in around.tools}):
        desk.progress.note(f"! {note}", style="yellow")
    _show(desk, found)
    return desk.out.result("ok", Exit.DONE, agent=spec.name, version=spec.version, **fields(found))


def _spoken(desk: Desk, spec: AgentSpec) -> AgentSpec:
    """An agent that does not say in which language it is told things is told them in the settings'."""
    return evolve(spec, language=spec.language or desk.means.provisions.loaded.settings.language)


def _show(desk: Desk, found: FirstRequest) -> None:
    request = found.request
    desk.out.show(Text(_settings(found), style="dim"))
    for message in request.messages:
        _part(desk, message.role, message.content)
    if request.tools:
        _part(desk, "tools", "\n\n".join(_tool(tool) for tool in request.tools))
    if request.schema is not None:
        _part(desk, "schema", _json(request.schema))


def _part(desk: Desk, title: str, content: str) -> None:
    desk.out.show(Text(""), Rule(Text(title, style="bold"), align="left", style="dim"))
    desk.out.write(f"{content}\n")


def _tool(tool: ToolSpec) -> str:
    return f"{tool.name}: {tool.description}\n{_json(tool.parameters)}"


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
    """The same for a program."""
    request = found.request
    return {
        "model": found.model or None,
        "trouble": found.trouble or None,
        "request": {
            "messages": [_message(one) for one in request.messages],
            "tools": [
                {"name": one.name, "description": one.description, "parameters": json.loads(encode(one.parameters))}
                for one in request.tools
            ],
            **_options(request),
        },
    }


def _message(message: ChatMessage) -> dict[str, object]:
    return {"role": message.role, "content": message.content}


def _options(request: ModelRequest) -> dict[str, object]:
    return {
        "tool_choice": request.tool_choice,
        "schema": request.schema,
        "max_output": request.max_output,
        "temperature": request.temperature,
        "effort": request.effort,
        "streaming": request.streaming,
    }


def _json(data: object) -> str:
    return json.dumps(json.loads(encode(data)), ensure_ascii=False, indent=2)
