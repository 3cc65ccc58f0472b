"""`greenroom org` and `inbox`: create, run and show organisations, and open a person's inbox."""

from __future__ import annotations

import asyncio
import getpass
from dataclasses import replace
from typing import Annotated, Final, TypeAlias

import typer
from rich.text import Text

from greenroom.app.conversation.chat_input import NoPersonInput, PersonInput
from greenroom.app.messages import LANGUAGES, phrase, translate
from greenroom.app.organisation.charter import NewCharter, find_charter, list_charters, write_charter
from greenroom.app.organisation.creation import find_team, is_over, list_organisations
from greenroom.app.organisation.inbox import read_states, summarise_status
from greenroom.app.organisation.input import ManagerText, MessageCommand
from greenroom.app.organisation.people import HumanAgent, find_person
from greenroom.app.organisation.phrases import BASE_TASK, build_refusal, command_phrases, make_unknown_agent_error
from greenroom.app.task_status import classify_pause
from greenroom.app.team_host import TeamHost
from greenroom.app.toolset.redaction import SecretRedactor
from greenroom.app.words import (
    ORGANISATION_WORDS,
    STOPPED_BY_PERSON,
    describe_pause,
    describe_reason,
    inbox_phrase,
    organisation_phrase,
    status_word,
)
from greenroom.cli.context import Invocation, invoke, render_command
from greenroom.cli.exit_codes import Exit, exit_for_statuses
from greenroom.cli.interactive.follow import attach_progress, show_events_meanwhile
from greenroom.cli.interactive.inbox import InboxScreen
from greenroom.cli.interactive.lines import TypingAids, open_typist
from greenroom.cli.interactive.organisation import (
    Organisation,
    OrganisationListener,
    WaitResult,
    build_resume_help,
    build_resume_intents,
    build_wait_result,
    explain_bad_model,
    find_created,
    find_mistakes,
    find_organisation,
    keep_running,
    prepare_organisation,
)
from greenroom.cli.options import DEFAULT_OPTIONS, ModelName, Record, Replay, RunOptions
from greenroom.cli.render.output import Column, FittedTable, make_row, strip_control_characters
from greenroom.cli.render.team import TeamHistory, language_of, render_team
from greenroom.cli.start import new_limits
from greenroom.core.base.errors import WorldFault, make_refusal
from greenroom.core.base.ids import AgentId, TeamId
from greenroom.core.base.records import record as as_record
from greenroom.core.rules.intents import PauseTeam, RemoveAgent
from greenroom.core.state.team_state import TeamState

MAX_EVENTS_REPLAYED: Final = 50_000  # events; a longer log is not read again only to show what each agent spent before
OrganisationName: TypeAlias = Annotated[
    str,
    typer.Argument(metavar="NAME", help="Its name, or the start of its id. [default: the only one]"),
]


async def org_new(
    cli: Invocation,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the organisation.")],
    *,
    person: Annotated[
        list[str] | None,
        typer.Option("--person", metavar="NAME", help="A person in it. Repeatable. [default: you]"),
    ] = None,
    language: Annotated[
        str, typer.Option("--language", metavar="en|zh", help="Its language. [default: from your settings]")
    ] = "",
    model: ModelName = "",
) -> Exit:
    """Create the file of a new organisation.

    Open the file in your editor, then run it with `greenroom org start`.

    Examples:
      greenroom org new shop
      greenroom org new shop --person ann --person bob --language en

    Exit codes: 0; 2; 3.
    """
    language, root = language or cli.app.language, cli.app.root
    if language not in LANGUAGES:
        why = phrase("charter", "no_language", cli.app.language, language=language, known=", ".join(LANGUAGES))
        raise make_refusal("bad_language", why)
    people, others = tuple(person or (_find_login(),)), tuple(cli.app.agents().specs)
    no_model = explain_bad_model(cli, model, language)
    new_charter = NewCharter(name=name, people=people, language=language, model=model, others=others, no_model=no_model)
    path = write_charter(root, new_charter)
    cli.out.show(strip_control_characters(str(path)))
    cli.progress.note(organisation_phrase("made", language, name=name, people=", ".join(people)), style="green")
    existing_team = await find_team(cli.runtime, root, name)
    if existing_team is not None:
        known = {"name": name, "team": existing_team, "command": render_command(cli, "cancel", existing_team)}
        cli.progress.note(organisation_phrase("before", language, **known), style="yellow")
    cli.progress.note(organisation_phrase("let_work", language, command=render_command(cli, "org", "start", name)))
    cli.progress.note(organisation_phrase("talk_to", language, command=_inbox_command(cli, name, people)))
    return cli.out.result("written", Exit.DONE, name=name, file=str(path), people=list(people))


def _find_login() -> str:
    """Return the login name of the person, or "me" if it is unknown."""
    try:
        name = "".join(sign for sign in getpass.getuser() if sign.isalnum() or sign in "-_").lstrip("-")
    except (OSError, KeyError):
        name = ""
    return name or "me"


def _inbox_command(cli: Invocation, name: str, people: tuple[str, ...]) -> str:
    return render_command(cli, "inbox", name, *(("--as", people[0]) if len(people) > 1 else ()))


def _list_people(state: TeamState) -> tuple[str, ...]:
    return tuple(name for name, agent in sorted(state.agents.items()) if agent.spec.kind == "human")


async def org_start(cli: Invocation, name: OrganisationName = "", *, options: RunOptions = DEFAULT_OPTIONS) -> Exit:
    """Run an organisation until Ctrl-C.

    It continues where it stopped. Write to it from another terminal with `greenroom inbox`.

    Examples:
      greenroom org start shop
      greenroom org start shop --max-cost 10

    Exit codes: 0; 2; 3; 4; 5; 6; 130.
    """
    organisation = await find_organisation(cli, name)
    holder = await cli.runtime.log.holder(organisation.team) if organisation.team is not None else None
    if organisation.team is not None and holder is not None:
        state = await cli.runtime.state(organisation.team)
        language = language_of(state)
        known = {
            "talk": _inbox_command(cli, organisation.typed_name, _list_people(state)),
            "stop": render_command(cli, "org", "stop", organisation.typed_name),
        }
        raise WorldFault(organisation_phrase("held", language, name=organisation.name, owner=holder.owner, **known))
    options.apply_limits(cli.app)
    team = await prepare_organisation(cli, organisation, options)
    state = await cli.runtime.state(team)
    limits = () if organisation.has_charter else new_limits(cli, state, options)
    await cli.runtime.ask(team, *limits, *build_resume_intents(state))
    cli.out.begin(team=team, name=organisation.name)
    history = await _read_history(cli, team)
    host, language = await cli.runtime.start(team), history.language
    try:
        cli.progress.note(organisation_phrase("works", language, name=organisation.name, team=team), style="bold")
        inbox_hint = organisation_phrase(
            "talk", language, command=_inbox_command(cli, organisation.typed_name, _list_people(history.state))
        )
        cli.progress.note(inbox_hint, style="dim")
        cli.progress.begin(history)
        async with show_events_meanwhile(cli, team, history):
            state = await _wait_until_over(cli, host)
    except asyncio.CancelledError:
        cli.progress.end()
        again = render_command(cli, "org", "start", organisation.typed_name)
        cli.progress.note(organisation_phrase("again", language, command=again), style="bold")
        raise
    finally:
        cli.progress.end()
        await cli.runtime.stop(team)
    return _report_over(cli, state)


async def _read_history(cli: Invocation, team: TeamId) -> TeamHistory:
    """Read the history without ended records; of a long log only the current state."""
    head = (await cli.runtime.log.head(team)).version
    history = TeamHistory(keeps_records=False)
    if head > MAX_EVENTS_REPLAYED:
        history = TeamHistory(state=await cli.runtime.state(team, head), version=head, keeps_records=False)
    else:
        async for logged_event in cli.runtime.events(team):
            history.add(logged_event)
    history.language = language_of(history.state)
    return history


async def _wait_until_over(cli: Invocation, host: TeamHost) -> TeamState:
    """Wait until the organisation is stopped or has ended; return its team state."""

    def has_ended() -> bool:
        return host.sync.stopped is not None or host.state.team.paused is not None or BASE_TASK not in host.state.tasks

    attach_progress(host, cli.progress)
    over = asyncio.Event()
    for listen in (host.listen, host.listen_trouble):
        listen(lambda _: over.set() if has_ended() else None)
    while not has_ended():
        over.clear()
        await over.wait()
    if host.sync.stopped is not None:
        raise host.sync.stopped
    return host.state


def _report_over(cli: Invocation, state: TeamState) -> Exit:
    """Report what ended the organisation. A stop by a person is a success; a limit is not."""
    language, paused, code = language_of(state), state.team.paused, Exit.DONE
    if paused is None:
        why = organisation_phrase("over", language)
    elif (pause_state := classify_pause(paused)) == "paused":  # also while a step still runs
        why = organisation_phrase("ended", language, why=describe_reason(paused, language))
    else:
        why, code = describe_pause(paused, language, build_resume_help(cli, state)), exit_for_statuses([pause_state])
    cli.progress.note(why, style="bold")
    return cli.out.result("stopped", code, team=state.team.team_id, why=why)


async def org_status(
    cli: Invocation,
    name: OrganisationName = "",
    *,
    kind: Annotated[
        str,
        typer.Option("--type", metavar="TYPE", help="List every task, stage, agent or step."),
    ] = "",
) -> Exit:
    """Show the status of an organisation.

    It shows what each agent does, and which ones wait. With --type, all states of one type are listed.

    Examples:
      greenroom org status shop
      greenroom org status shop --type task

    Exit codes: 0; 2; 3.
    """
    organisation, team = await find_created(cli, name)
    state, holder = await cli.runtime.state(team), await cli.runtime.log.holder(team)
    cli.out.begin(team=team, name=organisation.name)
    if kind:
        state_fields = await read_states(cli.runtime, team, kind, secrets=cli.app.model_session.list_keys())
        for state_name, fields in state_fields.items():
            short = (
                (key, strip_control_characters(" ".join(str(value).split()))[:200]) for key, value in fields.items()
            )
            cli.out.show(Text(state_name, style="bold"), *(Text(f"  {key}: {value}") for key, value in short))
        return cli.out.result("ok", Exit.DONE, states=state_fields)
    history, status = await _read_history(cli, team), summarise_status(state).state
    language = history.language
    owner = holder.owner if holder is not None else None
    where = organisation_phrase("runs_in" if owner else "nobody", language, owner=owner)
    status_line = Text(f"\n{status_word(status, language)} · {where}", style="dim")
    cli.out.show(render_team(history, is_live=False), status_line)
    if holder is None:
        cli.progress.note(
            organisation_phrase("start", language, command=render_command(cli, "org", "start", organisation.typed_name))
        )
    agents = {agent: state_name.working_state for agent, state_name in sorted(state.agents.items())}
    return cli.out.result("ok", Exit.DONE, name=organisation.name, stands=status, owner=owner, agents=agents)


ORGANISATION_COLUMNS: Final = (
    Column(name="name"),
    Column(name="id", style="dim"),
    Column(name="stands", can_shrink=True),
    Column(name="people", min_terminal_width=60),
    Column(name="where", style="dim", can_shrink=True, min_terminal_width=80),
)


async def org_list(cli: Invocation) -> None:
    """List the organisations and what runs them.

    These are the ones of this workspace, and those that run from other workspaces.

    Examples:
      greenroom org list
      greenroom org list --output-format json

    Exit codes: 0; 2; 3.
    """
    root, language = cli.app.root, cli.app.language
    open_teams = [(team, state) async for team, state in list_organisations(cli.runtime)]
    created_names = {state.team.name for _, state in open_teams if state.team.workspace == str(root)}
    broken = {name: fault for name in list_charters(root) if (fault := find_mistakes(cli, name))}
    cli.out.expect("teams")
    rows = [
        await _list_uncreated(cli, name, broken.get(name, ""))
        for name in list_charters(root)
        if name not in created_names
    ]
    for team, state in open_teams:
        here = state.team.workspace == str(root)
        rows.append(await _list_created(cli, team, state, broken.get(state.team.name, "") if here else ""))
    if not rows:
        cli.progress.note(organisation_phrase("none", language, command=render_command(cli, "org", "new", "NAME")))
    elif cli.out.is_text:
        heads = ORGANISATION_WORDS.table("columns", language)
        cli.out.show(FittedTable([replace(column, name=heads[column.name]) for column in ORGANISATION_COLUMNS], rows))
    for fault in broken.values():
        cli.progress.note(strip_control_characters(fault), style="yellow")


async def _list_uncreated(cli: Invocation, name: str, fault: str) -> list[Text]:
    root = cli.app.root
    status = "broken" if fault else "gone" if await is_over(cli.runtime, root, name) else "new"
    team_fields = {"name": name, "team": None, "stands": status, "workspace": str(root), "fault": fault or None}
    cli.out.item("team", team_fields)
    return make_row(
        Text(strip_control_characters(name), style="bold"),
        "",
        organisation_phrase(status, cli.app.language),
        "",
        strip_control_characters(str(root)),
    )


async def _list_created(cli: Invocation, team: TeamId, state: TeamState, fault: str) -> list[Text]:
    language, holder = cli.app.language, await cli.runtime.log.holder(team)
    people, team_record, owner = list(_list_people(state)), state.team, holder.owner if holder else None
    status = summarise_status(state).state if owner or team_record.paused is None else "stopped"
    status_text = (
        status_word(status, language) if owner or status == "stopped" else organisation_phrase("nobody", language)
    )
    status_text = organisation_phrase("stands_in", language, stands=status_text, owner=owner) if owner else status_text
    status_text = f"{status_text}; {organisation_phrase('broken', language)}" if fault else status_text
    fields = {
        "name": team_record.name,
        "team": team,
        "stands": status,
        "owner": owner,
        "workspace": team_record.workspace,
    }
    cli.out.item("team", {**fields, "people": people, "fault": fault or None})
    return make_row(
        Text(team_record.name, style="bold"),
        team,
        status_text,
        ", ".join(people),
        strip_control_characters(team_record.workspace),
    )


async def org_stop(cli: Invocation, name: OrganisationName = "") -> Exit:
    """Stop an organisation, here or in another terminal.

    Start it again with `greenroom org start`.

    Examples:
      greenroom org stop
      greenroom org stop shop

    Exit codes: 0; 2; 3.
    """
    organisation, team = await find_created(cli, name)
    language, holder = language_of(await cli.runtime.state(team)), await cli.runtime.log.holder(team)
    await cli.runtime.ask(team, PauseTeam(why=STOPPED_BY_PERSON, now=True))
    cli.out.show(organisation_phrase("is_stopped", language, name=organisation.name))
    cli.progress.note(
        organisation_phrase("go_on", language, command=render_command(cli, "org", "start", organisation.typed_name))
    )
    return cli.out.result("stopped", Exit.DONE, team=team, owner=holder.owner if holder else None)


async def org_dismiss(
    cli: Invocation,
    agent: Annotated[str, typer.Argument(metavar="AGENT", help="Agent or person to remove.")],
    name: OrganisationName = "",
) -> Exit:
    """Remove an agent or a person for good.

    Only members without open work can be removed: made by a manager, or no longer named in the file.

    Examples:
      greenroom org dismiss writer-2
      greenroom org dismiss writer-2 shop

    Exit codes: 0; 2; 3.
    """
    organisation, team = await find_created(cli, name)
    state, agent_id = await cli.runtime.state(team), AgentId(agent)
    language = language_of(state)
    if organisation.has_charter:  # members named in the charter would be created again, but a name is used once
        charter = find_charter(cli.app.root, organisation.name, language)
        if agent_id in (*charter.managers, *(person.name for person in charter.people)):
            raise build_refusal("in_charter", "take_out", language, name=agent_id, path=charter.path)
    if agent_id not in state.agents:
        raise make_unknown_agent_error(agent_id, state.agents, language)
    if state.tasks[BASE_TASK].manager == agent_id:
        raise build_refusal("hears_people", "stays", language, name=agent_id)
    await cli.runtime.ask(team, RemoveAgent(agent_id=agent_id, why="dismissed by a person"))
    cli.out.show(strip_control_characters(organisation_phrase("left", language, who=agent_id, name=organisation.name)))
    if undone := len(state.agents[agent_id].todo):
        cli.progress.note(
            strip_control_characters(organisation_phrase("undone", language, who=agent_id, count=undone)),
            style="yellow",
        )
    return cli.out.result("left", Exit.DONE, team=team, agent=agent_id)


def inbox(
    context: typer.Context,
    name: OrganisationName = "",
    *,
    person: Annotated[str, typer.Option("--as", metavar="NAME", help="Who you are. [default: the only person]")] = "",
    say: Annotated[
        list[str] | None,
        typer.Option("--say", metavar="TEXT", help="Handle this line as if typed; repeatable."),
    ] = None,
    to: Annotated[
        str, typer.Option("--to", metavar="AGENT", help="Send it to these agents. [default: the manager]")
    ] = "",
    wait: Annotated[bool, typer.Option("--wait", help="Stay until all work is at rest.")] = False,
    inbox: Annotated[bool, typer.Option("--list", help="Only show what waits for your answer.")] = False,
    record: Record = None,
    replay: Replay = None,
) -> int:
    """Open your inbox in an organisation.

    Read messages, answer questions, and ask for something. Piped lines are handled like typed ones. A line that starts
    with a space is sent as it is, never run as a command.

    Examples:
      greenroom inbox shop
      greenroom inbox shop --say "Write a page about tea." --wait
      greenroom inbox shop --say "/answer 1 Green"
      greenroom inbox shop --list

    Exit codes: 0; 1 a line failed, or there was no answer; 2; 3; 4; 5; 6.
    """
    if not all(line.strip() for line in say or ()):
        raise typer.BadParameter(translate("org.say_empty"))
    if to and not say:
        raise typer.BadParameter(translate("org.to_needs_say"))
    if to and not to.strip(", "):
        raise typer.BadParameter(translate("org.to_empty"))
    if inbox and (say or wait):
        raise typer.BadParameter(translate("org.list_only_shows"))
    order = InboxOrder(person=person, say=tuple(say or ()), to=to, wait=wait, inbox=inbox)
    options = RunOptions(record=record, replay=replay)
    return invoke(context, lambda cli: _open_inbox(cli, name, order, options))


@as_record
class InboxOrder:
    """What to do in the inbox: `say` these lines `to` agents, `wait` for what follows, or only show the `inbox`."""

    person: str
    say: tuple[str, ...]
    to: str
    wait: bool
    inbox: bool


async def _open_inbox(cli: Invocation, name: str, order: InboxOrder, options: RunOptions) -> Exit:
    """Open the inbox of a person; show it, send a line, or stay. Known keys are never shown."""
    cli.out.hide_secrets(SecretRedactor(cli.app.model_session.list_keys()))
    organisation = await find_organisation(cli, name)
    team = await _find_team(cli, organisation, order, options)
    human = HumanAgent(cli.runtime, team, find_person(await cli.runtime.state(team), order.person))
    cli.out.begin(team=team, name=organisation.name, person=human.me)
    listener = OrganisationListener(cli, human)
    try:
        await listener.open()
        inbox = InboxScreen(cli, human, listener, NoPersonInput())
        if order.inbox:
            inbox.show_inbox()
            conversation_pool = (
                {} if cli.out.is_text else (await human.pool()).portrait
            )  # all messages, for programs only
            return cli.out.result("ok", Exit.DONE, person=human.me, conversation_pool=conversation_pool)
        if order.say:
            return await _send_lines(cli, order, inbox, listener)
        # Here an @ names an agent, not a file, and there is no history of chats.
        aids = TypingAids(
            commands=command_phrases(listener.language),
            words=lambda typed: (name for name in sorted(listener.state.agents) if name.startswith(typed)),
        )
        with open_typist(cli.out, aids) as person:
            return await _run_inbox(cli, order, InboxScreen(cli, human, listener, person), listener, person)
    finally:
        await listener.close()


async def _find_team(cli: Invocation, organisation: Organisation, order: InboxOrder, options: RunOptions) -> TeamId:
    """Return the team id; create or update the organisation, unless it runs elsewhere or is only shown."""
    if order.inbox:
        return (await find_created(cli, organisation.name))[1]
    if organisation.team is not None and await cli.runtime.log.holder(organisation.team) is not None:
        return organisation.team
    return await prepare_organisation(cli, organisation, options)


async def _send_lines(cli: Invocation, order: InboxOrder, inbox: InboxScreen, listener: OrganisationListener) -> Exit:
    """Handle the lines as if they were typed, up to the first that fails; with `wait`, show what follows.

    Text to agents named by --to is sent as it is, never run as a command.
    """
    names = tuple(dict.fromkeys(name.strip().lstrip("@") for name in order.to.split(",") if name.strip()))
    code = Exit.DONE
    for text in order.say:
        line: str | ManagerText | MessageCommand = text
        if names == (listener.state.tasks[BASE_TASK].manager,):
            line = ManagerText(text=text.strip())
        elif order.to:
            line = MessageCommand(names=names, text=text.strip(), mode="to")
        code = await inbox.do(line)
        if code != Exit.DONE:
            break
    if code == Exit.DONE and order.wait:
        return await _wait_until_settled(cli, order, inbox, listener)
    return await _report_end(cli, inbox, listener, "ok" if inbox.was_view else "sent", code)


async def _report_end(
    cli: Invocation, inbox: InboxScreen, listener: OrganisationListener, status: str, code: Exit
) -> Exit:
    """Report the end of a line or of piped lines: whether a process runs the organisation, and what failed."""
    if inbox.has_acted and await cli.runtime.log.holder(listener.team) is None:
        start = build_resume_help(cli, listener.state).start
        cli.progress.note(inbox_phrase("nobody", listener.language, command=start), style="dim")
    if code == Exit.DONE:
        return cli.out.result(status, code, person=listener.me)
    return cli.out.result("error", code, person=listener.me, error="\n".join(inbox.errors))


async def _wait_until_settled(
    cli: Invocation, order: InboxOrder, inbox: InboxScreen, listener: OrganisationListener
) -> Exit:
    """Stay until the organisation is at rest. Report what prevents the work, or that the manager has not answered."""
    try:
        async with keep_running(cli, listener):
            status = await inbox.wait_until_settled()
    except asyncio.CancelledError:
        cli.progress.note(
            inbox_phrase("stopped_waiting", listener.language, command=_return_command(cli, order, listener)),
            style="bold",
        )
        raise
    wait_outcome = build_wait_result(
        listener.state, status, listener.failures.all(), listener.language, build_resume_help(cli, listener.state)
    )
    if inbox.has_asked and wait_outcome.code == Exit.DONE and not inbox.messages_heard:
        why = inbox_phrase("unanswered", listener.language, manager=listener.state.tasks[BASE_TASK].manager)
        wait_outcome = WaitResult(status="failed", code=Exit.FAILED, reasons=(why,))
    inbox.show_reasons(wait_outcome.reasons)
    return cli.out.result(wait_outcome.status, wait_outcome.code, why=" ".join(wait_outcome.reasons))


async def _run_inbox(
    cli: Invocation, order: InboxOrder, inbox: InboxScreen, listener: OrganisationListener, person: PersonInput
) -> Exit:
    if not person.is_attended:
        code = await inbox.run()
        return await (
            _wait_until_settled(cli, order, inbox, listener)
            if order.wait and code == Exit.DONE
            else _report_end(cli, inbox, listener, "ok", code)
        )
    async with keep_running(cli, listener) as here:
        _greet(cli, inbox, listener, here=here)
        await inbox.run()
    if not listener.is_dismissed:
        cli.progress.note(
            inbox_phrase("left", listener.language, command=_return_command(cli, order, listener)), style="dim"
        )
    return cli.out.result("left", Exit.DONE)


def _return_command(cli: Invocation, order: InboxOrder, listener: OrganisationListener) -> str:
    return render_command(cli, "inbox", listener.state.team.name, *(("--as", listener.me) if order.person else ()))


def _greet(cli: Invocation, inbox: InboxScreen, listener: OrganisationListener, *, here: bool) -> None:
    state, language, name = listener.state, listener.language, listener.state.team.name
    where = "stopped" if state.team.paused is not None else "runs_here" if here else "runs_there"
    hello = inbox_phrase("hello", language, name=name, me=listener.me, where=inbox_phrase(where, language, name=name))
    cli.progress.note(hello, style="dim")
    for task in state.tasks.values():
        if task.paused is not None:
            inbox.say(describe_pause(task.paused, language, build_resume_help(cli, state)), "yellow")
    inbox.show_inbox()
