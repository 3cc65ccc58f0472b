"""Finding, starting and following an organisation for a command."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final

from greenroom.app.conversation.chat import SETTLE_GRACE_S
from greenroom.app.conversation.start import Participants, read_model_name, refuse_unpriced
from greenroom.app.cost import format_dollars
from greenroom.app.messages import phrase
from greenroom.app.organisation.charter import (
    charter_path,
    find_charter,
    find_unknown_names,
    list_charters,
    make_unknown_charter_error,
    read_charter,
)
from greenroom.app.organisation.creation import (
    build_organisation_spec,
    create_organisation,
    find_elsewhere,
    find_team,
    find_team_by_id,
    merge_agents,
    update_organisation,
)
from greenroom.app.organisation.inbox import InboxMessage, find_unanswered, kind_of, summarise_status
from greenroom.app.organisation.people import HumanAgent, restore_message_limit, sort_oldest_first
from greenroom.app.organisation.phrases import BASE_TASK
from greenroom.app.run_plan import check_servers
from greenroom.app.runtime import LoggedEvent
from greenroom.app.task_status import TaskStatus, read_status
from greenroom.app.team_host import TeamHost
from greenroom.app.words import (
    ResumeHelp,
    describe_pause,
    describe_reason,
    end_word,
    inbox_phrase,
    organisation_phrase,
)
from greenroom.cli.context import Invocation, render_command
from greenroom.cli.exit_codes import Exit, exit_for_statuses
from greenroom.cli.options import RunOptions
from greenroom.cli.render.output import strip_control_characters
from greenroom.cli.render.team import TeamHistory
from greenroom.cli.start import ask_trust, warn
from greenroom.core.base.amounts import UNLIMITED
from greenroom.core.base.errors import WorldFault, make_refusal
from greenroom.core.base.ids import TEAM_BUDGET, AgentId, StepId, TeamId, agent_of
from greenroom.core.base.records import evolve, record
from greenroom.core.rules.intents import ResumeTask, ResumeTeam, SetLimits
from greenroom.core.state.agent import AgentRemoved
from greenroom.core.state.events import Event
from greenroom.core.state.message import Message, MessageSent
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.step import Step, StepEnded, StepQueued
from greenroom.core.state.task import TaskEnded, TaskPaused
from greenroom.core.state.team import TeamPaused
from greenroom.core.state.team_state import TeamState

LIMIT_KEYS: Final = {"money": "cost", "tokens": "tokens", "millis": "time"}
"""The keys of a charter's limits, by the budget fields they set."""


@record
class Organisation:
    """An organisation: its name, whether this workspace has its charter, and its team if it was created.

    The charter is not read here, so an organisation with a broken charter can still be shown and stopped.
    """

    name: str
    has_charter: bool
    team: TeamId | None

    @property
    def typed_name(self) -> str:
        """What commands typed here call it: its name, or its id if the charter is elsewhere."""
        return self.name if self.has_charter or self.team is None else self.team


async def find_organisation(cli: Invocation, name: str) -> Organisation:
    """Find an organisation by name or id; without a name, the only one. Raise `RefusedError` if that is ambiguous."""
    root, language = cli.app.root, cli.app.language
    charter_names = list_charters(root)
    if not name and not charter_names:
        raise make_refusal("no_team", phrase("charter", "none_here", language))
    if not name and len(charter_names) > 1:
        why = phrase("charter", "several_here", language, count=len(charter_names), known=", ".join(charter_names))
        raise make_refusal("which_team", why)
    name = name or charter_names[0]
    if name in charter_names:
        return Organisation(name=name, has_charter=True, team=await find_team(cli.runtime, root, name))
    team = await find_team_by_id(cli.runtime, name)
    if team is None:
        raise make_unknown_charter_error(root, name, language)
    team_record = (await cli.runtime.state(team)).team
    return Organisation(
        name=team_record.name,
        has_charter=Path(team_record.workspace) == root and team_record.name in charter_names,
        team=team,
    )


async def find_created(cli: Invocation, name: str) -> tuple[Organisation, TeamId]:
    """Find an organisation that was created already."""
    organisation = await find_organisation(cli, name)
    if organisation.team is None:
        raise make_refusal("not_founded", phrase("charter", "not_begun", cli.app.language, name=organisation.name))
    return organisation, organisation.team


async def prepare_organisation(cli: Invocation, organisation: Organisation, options: RunOptions) -> TeamId:
    """Create or update the organisation from its charter, and check its models. Return its team."""
    cli.app.use_recording(options.record, options.replay)
    provisions, root, language = cli.app.model_session, cli.app.root, cli.app.language
    await provisions.find_local_servers()
    if organisation.team is not None and not organisation.has_charter:
        state = await cli.runtime.state(organisation.team)
        _refuse_models(cli, state.agents[state.tasks[BASE_TASK].manager].spec)
        return organisation.team
    charter = find_charter(root, organisation.name, language)
    charter = evolve(charter, language=charter.language or language)
    ask_trust(cli, charter.path.parent.parent.parent)
    agents = cli.app.agents()
    for broken_file in agents.broken_files:
        cli.progress.note(broken_file.text, style="yellow")
    agent_specs, caps = merge_agents(charter.language, agents.specs), provisions.loaded_settings.settings.limits
    everyone = Participants(members=tuple((AgentId(name), spec) for name, spec in agent_specs.items()))
    await check_servers(cli.app, everyone, warn(cli))
    tools = cli.app.toolbox(root)
    agents.refuse_missing_tools((*charter.managers, *charter.blueprints), {tool.name for tool in tools})
    organisation_spec = build_organisation_spec(
        charter, agent_specs, tools, resolve_model=provisions.resolve_alias, caps=caps
    )
    for unknown_name in find_unknown_names(charter, agent_specs, tools, charter.language):
        cli.progress.note(strip_control_characters(unknown_name), style="yellow")
    _refuse_models(cli, *organisation_spec.managers)
    if organisation.team is None:
        await _note_others(cli, organisation.name, organisation_spec.language)
        return await create_organisation(cli.runtime, organisation_spec)
    for change in await update_organisation(cli.runtime, organisation.team, organisation_spec, str(charter.path)):
        cli.progress.note(strip_control_characters(change), style="yellow")
    return organisation.team


async def _note_others(cli: Invocation, name: str, language: str) -> None:
    """Tell the person about organisations of the same name elsewhere, for instance left behind by a moved folder."""
    for team, workspace in await find_elsewhere(cli.runtime, cli.app.root, name):
        what = "another" if charter_path(workspace, name).exists() else "moved"
        variables = {"name": name, "team": team, "place": workspace, "show": render_command(cli, "show", team)}
        cli.progress.note(strip_control_characters(organisation_phrase(what, language, **variables)), style="yellow")


def _refuse_models(cli: Invocation, *specs: AgentSpec) -> None:
    for spec in specs:
        refuse_unpriced(cli.app.get_model(read_model_name(spec)), cli.app.settings.limits.limits)


def find_mistakes(cli: Invocation, name: str) -> str:
    """Return the mistakes in a charter, one per line; empty if there are none."""
    root, agents = cli.app.root, cli.app.agents()
    try:
        charter = read_charter(root, charter_path(root, name), cli.app.language)
    except WorldFault as fault:
        return str(fault)
    language = charter.language or cli.app.language
    unknown_names = find_unknown_names(charter, merge_agents(language, agents.specs), cli.app.toolbox(root), language)
    agent_faults = (
        broken_file.text
        for broken_file in agents.broken_files
        if broken_file.name in (*charter.managers, *charter.blueprints)
    )
    model = explain_bad_model(cli, charter.model, language)
    return "\n".join((*unknown_names, *agent_faults, *((f"{charter.path}: {model}",) if model else ())))


def explain_bad_model(cli: Invocation, name: str, language: str) -> str:
    """Explain why a charter cannot name this model; empty if it can."""
    why = cli.app.model_session.registry.find_name_error(name)
    return phrase("charter", "no_model", language, name=name, why=why) if why else ""


def build_resume_intents(state: TeamState) -> list[ResumeTeam | ResumeTask | SetLimits]:
    """Return the intents that resume everything that is paused."""
    team = [ResumeTeam()] if state.team.paused is not None else []
    tasks = [ResumeTask(task_id=task.task_id) for task in state.tasks.values() if task.paused is not None]
    return [*restore_message_limit(state), *team, *tasks] if team or tasks else []


def build_resume_help(cli: Invocation, state: TeamState) -> ResumeHelp:
    """Return how to resume the organisation from here. Elsewhere than at its charter, the command names its id."""
    root, name, budget = Path(state.team.workspace), state.team.name, state.budgets[TEAM_BUDGET]
    path, limits, spent, left = charter_path(root, name), budget.limits, budget.spent, dict[str, str]()
    try:
        charter_limits = read_charter(root, path).caps.limits
    except WorldFault:
        charter_limits = UNLIMITED
    if limits.money is not None:
        left["money"] = format_dollars(max(0, limits.money - spent.money))
    if limits.tokens is not None:
        left["tokens"] = f"{max(0, limits.tokens - spent.tokens):,}"
    is_here = root == cli.app.root and path.exists()
    return ResumeHelp(
        name=name,
        start=render_command(cli, "org", "start", name if is_here else state.team.team_id),
        path=str(path),
        keys={
            what: key
            for what, key in LIMIT_KEYS.items()
            if getattr(charter_limits, what) == getattr(limits, what) is not None
        },
        left=left,
    )


POLL_INTERVAL_S: Final = 1.0  # seconds between checks whether a process runs the organisation
COMPACT_SKILL: Final = "compact"
"""The skill that shortens the window of a thread. If it fails, work continues with a longer window."""


class FailureLog:
    """Collects failures that are not repaired. The failure of a worker is left to its manager.

    The failure of a manager stays, unless the same work is queued again.
    """

    def __init__(self, language: str) -> None:
        self._language = language
        self._steps: dict[StepId, tuple[str, str]] = {}
        self._tasks: list[str] = []

    def add(self, state: TeamState, event: Event) -> None:
        """Add an event; `state` is the team state before it."""
        match event:
            case StepEnded(state="failed", step_id=name) if _is_manager_work(state, step := state.steps[name]):
                sentence = inbox_phrase("gave_up", self._language, who=step.agent_id, why=event.error)
                self._steps[name] = (step.work.executor, sentence)
            case StepQueued(cause=cause, agent_id=agent) if cause in self._steps and agent_of(cause) == agent:
                # Only the same work again repairs the failure, not what other agents do about it.
                if event.work.executor == self._steps[cause][0]:
                    del self._steps[cause]
            case TaskEnded(state="failed" | "cancelled") if (task := state.tasks[event.task_id]).parent in (
                None,
                BASE_TASK,
            ):
                # A subtask is left to the manager of its task.
                state_name = end_word(event.state, self._language)
                self._tasks.append(
                    inbox_phrase("lost", self._language, task=task.task_id, name=task.name, state=state_name)
                )
            case _:
                pass

    def all(self) -> tuple[str, ...]:
        return (*(sentence for _, sentence in self._steps.values()), *self._tasks)


def _is_manager_work(state: TeamState, step: Step) -> bool:
    """Whether a step is a manager's own work, which has no agent above it to handle a failure."""
    thread = state.threads.get(step.thread_id)
    if thread is None or thread.subtask_id is not None or thread.call is not None:
        return False
    task = state.tasks.get(thread.task_id)
    is_manager = task is not None and task.manager == thread.agent_id
    return is_manager and step.work.type == "skill" and step.work.executor != COMPACT_SKILL


@record
class WaitResult:
    """The result of waiting: a status word, the exit code, and a sentence for each problem."""

    status: str
    code: Exit
    reasons: tuple[str, ...] = ()


def build_wait_result(
    state: TeamState, status: TaskStatus, failures: tuple[str, ...], language: str, resume_help: ResumeHelp
) -> WaitResult:
    """Combine the status and the failures; the worst counts. `resume_help` says how to resume."""
    reasons = (*failures, *(_find_stuck_tasks(state, language) if status.state == "idle" else ()))
    if reasons:
        return WaitResult(status="failed", code=Exit.FAILED, reasons=reasons)
    if status.state == "idle":
        return WaitResult(status="idle", code=Exit.DONE)
    why = _explain_pause(state, status, language, resume_help)
    return WaitResult(status=status.state, code=exit_for_statuses([status.state]), reasons=(why,))


def _find_stuck_tasks(state: TeamState, language: str) -> Iterator[str]:
    for task in sort_oldest_first(state.tasks):
        status = read_status(state, task.task_id)
        if task.task_id != BASE_TASK and status is not None and status.state == "idle":
            yield inbox_phrase("stuck", language, task=task.task_id, name=task.name, manager=task.manager)


def _explain_pause(state: TeamState, status: TaskStatus, language: str, resume_help: ResumeHelp) -> str:
    if state.team.paused is not None and status.state == "paused":
        why = describe_reason(state.team.paused, language)
        return inbox_phrase("stopped_why", language, name=state.team.name, why=why, command=resume_help.start)
    if status.state != "waiting":
        return describe_pause(status.reason, language, resume_help)
    receivers = (name for message in state.mail.values() for name in message.receiver)
    question_counts = Counter(
        name for name in receivers if name in state.agents and state.agents[name].spec.kind == "human"
    )
    people = ", ".join(f"{name} ({count})" for name, count in sorted(question_counts.items()))
    return inbox_phrase("waits_for", language, people=people) if people else status.reason


class OrganisationListener:
    """Follows the log for a person and keeps their messages until they are taken.

    `woken` is set when there are messages, or when the person was dismissed. `language` is the person's.
    """

    def __init__(self, cli: Invocation, human: HumanAgent) -> None:
        self._cli = cli
        self._history = TeamHistory(keeps_records=False)
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._news: list[Message] = []
        self._pauses: list[str] = []
        self.me: AgentId = human.me
        self.team: TeamId = human.team
        self.language = ""
        self.failures = FailureLog("")
        self.woken = asyncio.Event()

    @property
    def state(self) -> TeamState:
        """The team state as of the last event read."""
        return self._history.state

    @property
    def is_dismissed(self) -> bool:
        """Whether the person was dismissed."""
        return self.me not in self.state.agents

    async def open(self) -> None:
        """Load the current state, and follow the log from there."""
        head = (await self._cli.runtime.log.head(self.team)).version
        state = await self._cli.runtime.state(self.team, head)
        self._history = TeamHistory(state=state, version=head, keeps_records=False)
        self.language = self.state.agents[self.me].spec.language
        self.failures = FailureLog(self.language)
        self._task = asyncio.create_task(self._follow())

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _follow(self) -> None:
        async for logged_event in self._cli.runtime.events(self.team, after=self._history.version, follow=True):
            self._handle_event(logged_event)

    def _handle_event(self, logged_event: LoggedEvent) -> None:
        self.failures.add(self.state, logged_event.event)
        self._history.add(logged_event)
        self._cli.out.stream(self.team, logged_event)
        self._changed.set()
        match logged_event.event:
            case MessageSent(message=message) if message.sender_id != self.me and (
                self.me in message.receiver or kind_of(message) == "approval"
            ):
                self._news.append(message)
                self.woken.set()
            case TaskPaused(why=why) | TeamPaused(why=why):
                self._pauses.append(why)
                self.woken.set()
            case AgentRemoved() if self.is_dismissed:
                self.woken.set()
            case _:
                pass

    async def catch_up(self) -> None:
        """Wait until all events that are in the log now were read."""
        head = (await self._cli.runtime.log.head(self.team)).version
        while self._history.version < head:
            await self._next()

    async def _next(self) -> None:
        """Wait for more events, for at most a second. Raise the error that ended the follower."""
        if self._task is not None and self._task.done():
            self._task.result()
        self._changed.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(POLL_INTERVAL_S):
                await self._changed.wait()

    def take_news(self) -> Iterator[tuple[Message, InboxMessage | None]]:
        """Return the messages since the last call, each with its inbox entry if it still waits for an answer."""
        self.woken.clear()
        news, self._news = self._news, []
        inbox_messages = {inbox_message.message.message_id: inbox_message for inbox_message in self.list_unanswered()}
        for message in news:
            yield message, inbox_messages.get(message.message_id)

    def take_pauses(self) -> tuple[str, ...]:
        """Return the reasons of pauses since the last call."""
        pauses, self._pauses = tuple(dict.fromkeys(self._pauses)), []
        return pauses

    def list_unanswered(self) -> tuple[InboxMessage, ...]:
        """Return the messages that wait for an answer of the person."""
        return find_unanswered(self.state, self.me)

    async def wait_until_settled(self) -> TaskStatus:
        """Wait until the organisation is at rest; return its status."""
        while True:
            await self.catch_up()
            version, status = self._history.version, summarise_status(self.state)
            if not status.is_settled:
                await self._next()
                continue
            await asyncio.sleep(SETTLE_GRACE_S)
            await self.catch_up()
            if self._history.version == version:
                return status


@asynccontextmanager
async def keep_running(cli: Invocation, listener: OrganisationListener) -> AsyncIterator[bool]:
    """Run the organisation here while no other process does and it is not stopped. Yield whether it runs here now."""
    first = await _start_or_stop(cli, listener, None)

    async def keep(host: TeamHost | None) -> None:
        while True:
            await asyncio.sleep(POLL_INTERVAL_S)
            try:
                host = await _start_or_stop(cli, listener, host)
            except WorldFault as fault:
                cli.progress.trouble(str(fault))

    keeping = asyncio.create_task(keep(first))
    try:
        yield first is not None
    finally:
        keeping.cancel()
        await asyncio.gather(keeping, return_exceptions=True)
        await cli.runtime.stop(listener.team)


async def _start_or_stop(cli: Invocation, listener: OrganisationListener, host: TeamHost | None) -> TeamHost | None:
    """Start the organisation if no process runs it, stop it if it is at rest; return its host here."""
    await listener.catch_up()
    state, runtime, team = listener.state, cli.runtime, listener.team
    is_resting = state.team.paused is not None or BASE_TASK not in state.tasks
    if host is not None and (is_resting or host.sync.stopped is not None):
        await runtime.stop(team)
        return None
    if host is None and not is_resting and await runtime.log.holder(team) is None:
        try:
            host = await runtime.start(team)
        except WorldFault:
            if await runtime.log.holder(team) is None:
                raise
            return None  # another process was faster
        host.listen_trouble(cli.progress.trouble)
    return host
