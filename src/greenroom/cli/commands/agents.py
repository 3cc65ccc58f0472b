"""`greenroom agents` and `prompt`: list, show and create agents, and show what a model is sent."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Annotated, Final, TypeAlias

import typer
from rich.rule import Rule
from rich.text import Text

from greenroom.app.agents.coder import CODER
from greenroom.app.agents.discovery import (
    AgentFile,
    Agents,
    NewAgent,
    collect_notes,
    find_agents,
    note_missing_tools,
    write_agent,
)
from greenroom.app.conversation.start import ASSISTANT
from greenroom.app.first_request import FirstRequest, RequestContext, build_first_request
from greenroom.app.messages import translate
from greenroom.app.run_plan import add_built_in
from greenroom.app.task_status import format_duration
from greenroom.app.teams.metrics import ProfileMetrics, read_metrics
from greenroom.app.teams.profiles import Profiles
from greenroom.app.text_reader import TextReader
from greenroom.app.trust import describe_agent, explain_untrusted_agent, may_be_used, open_trust_store
from greenroom.app.words import shorten
from greenroom.app.workspace import current_folder, find_workspace_root
from greenroom.cli.context import Invocation, render_command
from greenroom.cli.exit_codes import Exit
from greenroom.cli.render.output import Column, FittedTable, make_row, strip_control_characters
from greenroom.core.base.records import encode, evolve, to_full_dict
from greenroom.core.state.spec import Cooperation

AGENT_COLUMNS: Final = (
    Column(name="agent"),
    Column(name="what it is for", can_shrink=True, min_terminal_width=40),
    Column(name="skill tags", can_shrink=True, min_terminal_width=110),
    Column(name="tool groups", min_terminal_width=130),
    Column(name="at once", min_terminal_width=130, right=True),
    Column(name="past runs", min_terminal_width=90),
    Column(name="model", min_terminal_width=100),
    Column(name="from", style="dim"),
)
FIELD_COLUMNS: Final = (Column(name="key"), Column(name="value", can_shrink=True))
MAX_LINE_CHARS: Final = 100
AgentName: TypeAlias = Annotated[
    str, typer.Argument(metavar="AGENT", help="Name of the agent; see `greenroom agents list`.")
]
SHOWN_APART: Final = ("name", "prompt", "version")
"""Fields that are shown above or below the table of fields."""


async def agents_list(
    cli: Invocation,
    *,
    skill: Annotated[str, typer.Option("--skill", metavar="TAG", help="List only agents with this skill tag.")] = "",
) -> None:
    """List the agents you can use.

    These are the built-in agents, those of the project, your own, and those of Claude Code.
    Past runs are the subtasks of team runs: number, success rate, average working time.

    Examples:
      greenroom agents list
      greenroom agents list --skill debugging
      greenroom agents list --output-format json

    Exit codes: 0; 2; 3.
    """
    agents, agreed = _find_agents_and_trust(cli.app.language)
    metrics = await read_metrics(cli.runtime.log, cli.home)
    if skill:
        found = {spec.name for spec in Profiles(agents).find_by_skill(skill.strip())}
        agents = evolve(agents, by_name={name: file for name, file in agents.by_name.items() if name in found})
    cli.out.listing(
        "agent",
        ({**_summary(file, metrics.get(name)), "agreed": agreed(file)} for name, file in agents.by_name.items()),
    )
    cli.out.listing(
        "trouble", ({"agent": broken_file.name, "error": broken_file.text} for broken_file in agents.broken_files)
    )
    cells = list[list[Text]]()
    for agent_file in agents.by_name.values():
        spec, place = agent_file.spec, str(agent_file.folder)
        place = place if agreed(agent_file) else translate("agents.not_trusted", folder=place)
        model = str((spec.llm_config or {}).get("model", "")) or Text(translate("agents.default_model"), style="dim")
        what = shorten(strip_control_characters(spec.description or spec.role or spec.prompt), MAX_LINE_CHARS)
        groups, at_once = ", ".join(spec.groups), str(spec.cooperation.concurrency) if spec.cooperation else ""
        runs = _render_metrics(spec.name, metrics.get(spec.name))
        cells.append(make_row(spec.name, what, ", ".join(spec.capabilities), groups, at_once, runs, model, place))
    cli.out.show(FittedTable(AGENT_COLUMNS, cells))
    _note_others(cli, agents)
    if not all(map(agreed, agents.by_name.values())):
        cli.progress.note(translate("agents.some_untrusted", command=render_command(cli, "trust")))


def _find_agents_and_trust(language: str) -> tuple[Agents, Callable[[AgentFile], bool]]:
    """Return all agents here, and a function that says whether an agent is trusted."""
    folder = current_folder()
    root = find_workspace_root(folder)
    trusted = open_trust_store().make_trust_check(root)
    return add_built_in(find_agents(folder), language), lambda agent_file: may_be_used(agent_file, root, trusted)


def _note_others(cli: Invocation, agents: Agents) -> None:
    for agent_file in agents.hidden:
        nearer = agents.by_name.get(agent_file.spec.name)
        key = "agents.ignored" if nearer else "agents.ignored_broken"
        note = translate(key, path=agent_file.path, nearer=nearer and nearer.path)
        cli.progress.note(strip_control_characters(note), style="dim")
    for broken_file in agents.broken_files:
        cli.progress.note(f"! {broken_file.text}", style="yellow")
    own = next((name for name, agent_file in agents.by_name.items() if agent_file.folder.scope != "built-in"), "")
    show = translate("agents.show_one", command=render_command(cli, "agents", "show", own or CODER.name))
    cli.progress.note(f"\n{show}")
    if not own:
        cli.progress.note(translate("agents.create_one", command=render_command(cli, "agents", "new", "NAME")))


def _render_metrics(name: str, metrics: ProfileMetrics | None) -> Text:
    if metrics is None:  # the agents of other kinds of runs are not measured
        return Text(translate("agents.no_runs") if name not in (CODER.name, ASSISTANT.name) else "", style="dim")
    time = format_duration(round(metrics.basis.seconds * 1000))
    return Text(translate("agents.past_runs", runs=metrics.runs, rate=metrics.success_rate, time=time))


def _summary(agent_file: AgentFile, metrics: ProfileMetrics | None) -> dict[str, object]:
    spec, cooperation = agent_file.spec, agent_file.spec.cooperation or Cooperation(concurrency=0)
    measured = metrics and {
        "tasks_completed": metrics.completed,
        "tasks_failed": metrics.failed,
        "success_rate": metrics.success_rate,
        "average_seconds": metrics.basis.seconds,
        "average_tokens": metrics.basis.tokens,
        "average_cost": metrics.basis.cost,
    }
    return {
        "name": spec.name,
        "label": spec.role,
        "description": spec.description,
        "skill_tags": list(spec.capabilities),
        "tool_groups": list(spec.groups),
        "max_concurrency": cooperation.concurrency or None,
        "partners": list(cooperation.partners),
        "protocol": cooperation.protocol,
        "metrics": measured,
        "model": (spec.llm_config or {}).get("model", ""),
        "from": str(agent_file.folder),
        "file": str(agent_file.path) if agent_file.folder.scope != "built-in" else "",
        "version": spec.version,
    }


async def agents_show(cli: Invocation, name: AgentName) -> Exit:
    """Show the settings of an agent.

    It also shows the agent's file, and the parts of the file that are ignored here.

    Examples:
      greenroom agents show code-reviewer
      greenroom agents show code-reviewer --output-format json

    Exit codes: 0; 2; 3.
    """
    agents, agreed = _find_agents_and_trust(cli.app.language)
    agent_file = agents.get(name.strip())
    metrics = (await read_metrics(cli.runtime.log, cli.home)).get(agent_file.spec.name)
    names = {tool.name for tool in cli.app.toolbox()}
    report = [str(note) for note in collect_notes(agent_file, agents, names)]
    if not agreed(agent_file):
        cli.progress.note(f"! {explain_untrusted_agent(agent_file)}\n", style="yellow")
    head = str(agent_file.folder)
    if agent_file.folder.scope != "built-in":
        known = {"path": agent_file.path, "folder": head, "version": agent_file.spec.version}
        head = translate("agents.file_version", **known)
    heading = Text(agent_file.spec.name, style="bold")
    cli.out.show(heading.append(strip_control_characters(f"  {head}"), style="not bold dim"), Text(""))
    cli.out.show(
        FittedTable(
            FIELD_COLUMNS,
            [
                *(make_row(key, strip_control_characters(value)) for key, value in _list_fields(agent_file)),
                make_row(translate("agents.runs_key"), _render_metrics(agent_file.spec.name, metrics)),
            ],
        )
    )
    if agent_file.spec.prompt:
        cli.out.show(Text(f"\n{translate('agents.prompt')}", style="dim"))
        cli.out.write(f"{agent_file.spec.prompt}\n")
    if report:
        cli.out.show(Text(f"\n{translate('agents.ignored_here')}", style="dim"))
        cli.out.show(*(Text(strip_control_characters(f"! {text}"), style="yellow") for text in report))
    command = render_command(cli, "prompt", "show", agent_file.spec.name)
    cli.progress.note(f"\n{translate('agents.see_request', command=command)}")
    extra_fields = {
        "agreed": agreed(agent_file),
        "spec": json.loads(encode(to_full_dict(agent_file.spec))),
        "report": report,
    }
    return cli.out.result("ok", Exit.DONE, **_summary(agent_file, metrics), **extra_fields)


def _list_fields(entry: AgentFile) -> list[tuple[str, str]]:
    flat: dict[str, object] = {}
    for key, value in json.loads(encode(entry.spec)).items():
        inner = value if isinstance(value, dict) and key != "answer" else {"": value}
        flat |= {f"{key}.{name}".strip("."): entry for name, entry in inner.items()}
    return [
        (key.removeprefix("llm_config."), _render_value(value)) for key, value in flat.items() if key not in SHOWN_APART
    ]


def _render_value(value: object) -> str:
    if isinstance(value, str):
        return shorten(value, 2 * MAX_LINE_CHARS)
    return ", ".join(map(str, value)) if isinstance(value, list) else json.dumps(value, ensure_ascii=False)


async def agents_new(
    cli: Invocation,
    name: Annotated[str, typer.Argument(metavar="AGENT", help="Name of the agent, like code-reviewer.")],
    *,
    description: Annotated[str, typer.Option("--description", "-d", metavar="TEXT", help="Purpose of the agent.")] = "",
    model: Annotated[
        str, typer.Option("--model", "-m", metavar="NAME", help="Model: strong, fast, a group or provider:model.")
    ] = "",
    tools: Annotated[str, typer.Option("--tools", metavar="A,B", help="The only tools it may use.")] = "",
    user: Annotated[bool, typer.Option("--user", help="Create it for all projects, not this folder.")] = False,
) -> Exit:
    """Create the file of a new agent.

    The file is .greenroom/agents/AGENT.md and works as it is. Existing files are never overwritten.

    Examples:
      greenroom agents new code-reviewer
      greenroom agents new scout -d "Finds things." --tools read_code,search_files

    Exit codes: 0; 2; 3.
    """
    name, root = name.strip(), cli.app.root
    tool_names = tuple(each.strip() for each in tools.split(",") if each.strip())
    if not user:
        open_trust_store().make_classifier(root)  # refuse before writing if the file could not be trusted
    new_agent = NewAgent(name=name, description=description, model=model.strip(), tools=tool_names, user=user)
    path = write_agent(current_folder(), new_agent)
    if not user:  # who creates the file trusts its content
        open_trust_store().trust_items(root, [describe_agent(find_agents(root).get(name), root)])
    cli.out.show(strip_control_characters(str(path)))
    cli.progress.note(translate("agents.open_file"), style="green")
    if not user:
        cli.progress.note(translate("agents.trust_edits", command=render_command(cli, "trust")))
    cli.progress.note(translate("agents.then_see_request", command=render_command(cli, "prompt", "show", name)))
    return cli.out.result("written", Exit.DONE, name=name, file=str(path))


REQUEST_OPTIONS: Final = ("tool_choice", "schema", "max_output", "temperature", "effort", "streaming")


async def prompt_show(
    cli: Invocation,
    name: AgentName,
    *,
    message: Annotated[str, typer.Option("--message", metavar="TEXT", help="First message to the agent.")] = "Hello.",
) -> Exit:
    """Show the first request of an agent to its model.

    You see exactly what the model gets: messages, tools, settings. No model is called.

    Examples:
      greenroom prompt show code-reviewer
      greenroom prompt show code-reviewer --message "Review README.md."

    Exit codes: 0; 2; 3.
    """
    agents = add_built_in(find_agents(current_folder()), cli.app.language)
    tools, agent_spec = cli.app.toolbox(), agents.get(name.strip()).spec
    spec = tools.equip(evolve(agent_spec, language=agent_spec.language or cli.app.language))
    context = RequestContext(
        tools=tools.specs,
        callable_agents=agents.specs,
        reader=TextReader(),
        project_notes=cli.app.notes(),
        skills=cli.app.skills,
    )
    await cli.app.model_session.find_local_servers()
    request = await build_first_request(spec, message, cli.app, context)
    missing = note_missing_tools(spec, {tool.name for tool in context.tools})
    for note in filter(None, (request.trouble, *map(str, missing))):
        cli.progress.note(f"! {note}", style="yellow")
    _show_request(cli, request)
    return cli.out.result("ok", Exit.DONE, agent=spec.name, version=spec.version, **request_fields(request))


def _show_request(cli: Invocation, agent_request: FirstRequest) -> None:
    request = agent_request.request
    cli.out.show(Text(_describe_request(agent_request), style="dim"))
    for message in request.messages:
        _show_part(cli, message.role, message.content)
    if request.tools:
        described = (f"{tool.name}: {tool.description}\n{_json(tool.parameters)}" for tool in request.tools)
        _show_part(cli, "tools", "\n\n".join(described))
    if request.schema is not None:
        _show_part(cli, "schema", _json(request.schema))


def _show_part(cli: Invocation, title: str, content: str) -> None:
    cli.out.show(Text(""), Rule(Text(title, style="bold"), align="left", style="dim"))
    cli.out.write(f"{content}\n")


def _describe_request(agent_request: FirstRequest) -> str:
    request = agent_request.request
    model = agent_request.model
    how = [translate("agents.to_model", model=model) if model else translate("agents.to_no_model")]
    how.append(translate("agents.max_output", tokens=request.max_output))
    if request.temperature is not None:
        how.append(translate("agents.temperature", value=request.temperature))
    if request.effort is not None:
        how.append(translate("agents.effort", value=request.effort))
    how += [translate("agents.skills", names=", ".join(agent_request.skills))] if agent_request.skills else []
    how += [] if request.streaming else [translate("agents.not_streamed")]
    return strip_control_characters(" · ".join(how))


def request_fields(agent_request: FirstRequest) -> dict[str, object]:
    request = agent_request.request
    return {
        "model": agent_request.model or None,
        "trouble": agent_request.trouble or None,
        "skills": list(agent_request.skills),
        "request": {
            "messages": [{"role": item.role, "content": item.content} for item in request.messages],
            "tools": [
                {"name": item.name, "description": item.description, "parameters": json.loads(encode(item.parameters))}
                for item in request.tools
            ],
            **{name: getattr(request, name) for name in REQUEST_OPTIONS},
        },
    }


def _json(data: object) -> str:
    return json.dumps(json.loads(encode(data)), ensure_ascii=False, indent=2)
