"""The organisation that a command means, and listening to it for one of its people."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final

from greenroom.app.conversation.start import Cast, model_of
from greenroom.app.cost import dollars
from greenroom.app.host import Host
from greenroom.app.messages import phrase
from greenroom.app.organisation.charter import charters, find_charter, misfits, no_charter, path_of, read_charter
from greenroom.app.organisation.founders import (
    all_staff,
    elsewhere,
    found,
    found_by_id,
    founded,
    founders_of,
    renew,
)
from greenroom.app.organisation.inbox import Letter, at_rest, kind_of, owed
from greenroom.app.organisation.people import HumanAgent, more_messages, oldest_first
from greenroom.app.organisation.words import BASE
from greenroom.app.runtime import Told
from greenroom.app.task_status import Standing, standing
from greenroom.cli.context import Invocation, command, refused
from greenroom.cli.exit_codes import Exit, of_standings
from greenroom.cli.interactive.follow import GRACE
from greenroom.cli.options import RunOptions
from greenroom.cli.render.output import harmless
from greenroom.cli.render.team import TeamHistory
from greenroom.cli.render.words import Way, end_word, reason, still, team_word, word
from greenroom.cli.start import ask_trust, meet_servers, refuse_unpriced
from greenroom.core.base.amounts import UNLIMITED
from greenroom.core.base.errors import WorldFault
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
from greenroom.core.state.world import World

KEYS: Final = {"money": "cost", "tokens": "tokens", "millis": "time"}
"""What a charter calls its limits, by what a budget calls them."""


@record
class Organisation:
    """Whether its charter lies in this workspace, and its team, if it was founded.

    The charter is not read yet: one with a mistake can still be looked at and stopped.
    """

    name: str
    chartered: bool
    team: TeamId | None

    @property
    def called(self) -> str:
        """What a command that is typed here calls it: elsewhere than at its charter only its id is known."""
        return self.name if self.chartered or self.team is None else self.team


async def find_organisation(cli: Invocation, name: str) -> Organisation:
    """Which organisation is meant: the only one, or by name or id; `Refused` says which there are."""
    root, language = cli.means.root, cli.means.language
    known = charters(root)
    if not name and not known:
        raise refused("no_team", phrase("charter", "none_here", language))
    if not name and len(known) > 1:
        why = phrase("charter", "several_here", language, count=len(known), known=", ".join(known))
        raise refused("which_team", why)
    name = name or known[0]
    if name in known:
        return Organisation(name=name, chartered=True, team=await founded(cli.runtime, root, name))
    team = await found_by_id(cli.runtime, name)
    if team is None:
        raise no_charter(root, name, language)
    its = (await cli.runtime.world(team)).team
    return Organisation(name=its.name, chartered=Path(its.workspace) == root and its.name in known, team=team)


async def find_founded(cli: Invocation, name: str) -> tuple[Organisation, TeamId]:
    """One that was founded already."""
    one = await find_organisation(cli, name)
    if one.team is None:
        raise refused("not_founded", phrase("charter", "not_begun", cli.means.language, name=one.name))
    return one, one.team


async def bring_up(cli: Invocation, one: Organisation, options: RunOptions) -> TeamId:
    """The organisation, founded if it was not, as its charter says, with models that can be asked."""
    cli.means.use_recording(options.record, options.replay)
    provisions, root, language = cli.means.provisions, cli.means.root, cli.means.language
    await provisions.look_around()
    if one.team is not None and not one.chartered:
        world = await cli.runtime.world(one.team)
        _refuse_models(cli, world.agents[world.tasks[BASE].manager].spec)
        return one.team
    charter = find_charter(root, one.name, language)
    charter = evolve(charter, language=charter.language or language)
    ask_trust(cli, charter.path.parent.parent.parent)
    agents = cli.means.agents()
    for trouble in agents.troubles:
        cli.progress.note(trouble.text, style="yellow")
    staff, caps = all_staff(charter.language, agents.specs), provisions.loaded.settings.limits
    await meet_servers(cli, Cast(members=tuple((AgentId(name), spec) for name, spec in staff.items())))
    tools = cli.means.toolbox(root)
    founders = founders_of(charter, staff, tools, settled=provisions.settled, caps=caps)
    for misfit in misfits(charter, staff, tools, charter.language):
        cli.progress.note(harmless(misfit), style="yellow")
    _refuse_models(cli, *founders.managers)
    if one.team is None:
        await _name_others(cli, one.name, founders.language)
        return await found(cli.runtime, founders)
    for change in await renew(cli.runtime, one.team, founders, str(charter.path)):
        cli.progress.note(harmless(change), style="yellow")
    return one.team


async def _name_others(cli: Invocation, name: str, language: str) -> None:
    """A folder that was moved has left its organisation behind: what is founded in it now is another one."""
    for team, place in await elsewhere(cli.runtime, cli.means.root, name):
        what = "another" if path_of(place, name).exists() else "moved"
        told = {"name": name, "team": team, "place": place, "show": command(cli, "show", team)}
        cli.progress.note(harmless(team_word(what, language, **told)), style="yellow")


def _refuse_models(cli: Invocation, *specs: AgentSpec) -> None:
    """See that their models can be asked, and that what they cost is known where it counts."""
    for spec in specs:
        refuse_unpriced(cli.means.named(model_of(spec)), cli.means.provisions.loaded.settings.limits)


def find_mistakes(cli: Invocation, name: str) -> str:
    """What is wrong with a charter of this workspace, a line for each mistake; nothing when all of it can be used."""
    root, agents = cli.means.root, cli.means.agents()
    try:
        charter = read_charter(root, path_of(root, name), cli.means.language)
    except WorldFault as fault:
        return str(fault)
    language = charter.language or cli.means.language
    wrong = misfits(charter, all_staff(language, agents.specs), cli.means.toolbox(root), language)
    why = (trouble.text for trouble in agents.troubles if trouble.name in (*charter.managers, *charter.blueprints))
    model = bad_model(cli, charter.model, language)
    return "\n".join((*wrong, *why, *((f"{charter.path}: {model}",) if model else ())))


def bad_model(cli: Invocation, name: str, language: str) -> str:
    """Why a charter cannot name this model; empty when it can."""
    why = cli.means.provisions.supply.misnamed(name)
    return phrase("charter", "no_model", language, name=name, why=why) if why else ""


def resume_intents(world: World) -> list[ResumeTeam | ResumeTask | SetLimits]:
    """What lets go on all that stands still in it."""
    team = [ResumeTeam()] if world.team.paused is not None else []
    tasks = [ResumeTask(task_id=task.task_id) for task in world.tasks.values() if task.paused is not None]
    return [*more_messages(world), *team, *tasks] if team or tasks else []


def way_on(cli: Invocation, world: World) -> Way:
    """What lets it go on from here: from elsewhere it is known by its id, and a charter with mistakes holds nothing."""
    root, name, budget = Path(world.team.workspace), world.team.name, world.budgets[TEAM_BUDGET]
    path, limits, spent, left = path_of(root, name), budget.limits, budget.spent, dict[str, str]()
    try:
        held = read_charter(root, path).caps.limits
    except WorldFault:
        held = UNLIMITED
    if limits.money is not None:
        left["money"] = dollars(max(0, limits.money - spent.money))
    if limits.tokens is not None:
        left["tokens"] = f"{max(0, limits.tokens - spent.tokens):,}"
    here = root == cli.means.root and path.exists()
    return Way(
        name=name,
        start=command(cli, "team", "start", name if here else world.team.team_id),
        path=str(path),
        keys={what: key for what, key in KEYS.items() if getattr(held, what) == getattr(limits, what) is not None},
        left=left,
    )


# ----------------------------------------------------------------------------------------------------------- listening

LOOK: Final = 1.0  # seconds between two looks whether the organisation runs anywhere
SUMS_UP: Final = "compact"
"""Makes the window of a thread shorter. Where it fails the work goes on with a longer one: nothing was given up."""


class Failures:
    """Keeps a sentence for each failure that stays. A worker's failure is its manager's to deal with; a manager's own
    stays, unless the same work is done once more."""

    def __init__(self, language: str) -> None:
        self._language = language
        self._steps: dict[StepId, tuple[str, str]] = {}
        self._tasks: list[str] = []

    def add(self, world: World, event: Event) -> None:
        """One event, on the world as it was before it."""
        match event:
            case StepEnded(state="failed", step_id=name) if _is_managers(world, step := world.steps[name]):
                told = word("gave_up", self._language, who=step.agent_id, why=event.error)
                self._steps[name] = (step.work.executor, told)
            case StepQueued(cause=cause, agent_id=agent) if cause in self._steps and agent_of(cause) == agent:
                # The same work once more. What others do because they hear of the failure repairs nothing.
                if event.work.executor == self._steps[cause][0]:
                    del self._steps[cause]
            case TaskEnded(state="failed" | "cancelled") if (task := world.tasks[event.task_id]).parent in (None, BASE):
                # A part of another task is for that one's manager.
                state = end_word(event.state, self._language)
                self._tasks.append(word("lost", self._language, task=task.task_id, name=task.name, state=state))
            case _:
                pass

    def all(self) -> tuple[str, ...]:
        return (*(told for _, told in self._steps.values()), *self._tasks)


def _is_managers(world: World, step: Step) -> bool:
    """Whether it is a manager's own work: no agent is above it that would hear of a failure and do something."""
    thread = world.threads.get(step.thread_id)
    if thread is None or thread.subtask_id is not None or thread.call is not None:
        return False
    task = world.tasks.get(thread.task_id)
    own = task is not None and task.manager == thread.agent_id
    return own and step.work.type == "skill" and step.work.executor != SUMS_UP


@record
class WaitResult:
    """How waiting ended: a status in a word, its exit code, and a sentence for all that is not as it should be."""

    status: str
    code: Exit
    reasons: tuple[str, ...] = ()


def wait_result(world: World, stands: Standing, failures: tuple[str, ...], language: str, way: Way) -> WaitResult:
    """The worst of how it stands and what went wrong. `way` is what lets it go on."""
    lost = (*failures, *(_stuck(world, language) if stands.word == "idle" else ()))
    if lost:
        return WaitResult(status="failed", code=Exit.FAILED, reasons=lost)
    if stands.word == "idle":
        return WaitResult(status="idle", code=Exit.DONE)
    why = _why_still(world, stands, language, way)
    return WaitResult(status=stands.word, code=of_standings([stands.word]), reasons=(why,))


def _stuck(world: World, language: str) -> Iterator[str]:
    """Tasks that are not over although nothing happens in them any more."""
    for task in oldest_first(world.tasks):
        stands = standing(world, task.task_id)
        if task.task_id != BASE and stands is not None and stands.word == "idle":
            yield word("stuck", language, task=task.task_id, name=task.name, manager=task.manager)


def _why_still(world: World, stands: Standing, language: str, way: Way) -> str:
    if world.team.paused is not None and stands.word == "paused":
        why = reason(world.team.paused, language)
        return word("stopped_why", language, name=world.team.name, why=why, command=way.start)
    if stands.word != "waiting":
        return still(stands.why, language, way)
    each = (name for letter in world.mail.values() for name in letter.receiver)
    owing = Counter(name for name in each if name in world.agents and world.agents[name].spec.kind == "human")
    people = ", ".join(f"{name} ({count})" for name, count in sorted(owing.items()))
    return word("waits_for", language, people=people) if people else stands.why


class Listener:
    """Follows the log for a person. What came for them is kept until it is taken; `woken` says that there is some, or
    that they were dismissed. `language` is theirs."""

    def __init__(self, cli: Invocation, human: HumanAgent) -> None:
        self._cli = cli
        self._history = TeamHistory(keeps=False)
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._news: list[Message] = []
        self._pauses: list[str] = []
        self.me: AgentId = human.me
        self.team: TeamId = human.team
        self.language = ""
        self.failures = Failures("")
        self.woken = asyncio.Event()

    @property
    def world(self) -> World:
        """What is true as far as it was heard."""
        return self._history.world

    @property
    def gone(self) -> bool:
        """Whether the person was dismissed."""
        return self.me not in self.world.agents

    async def open(self) -> None:
        """Know what was, and listen from now on."""
        head = (await self._cli.runtime.log.head(self.team)).version
        world = await self._cli.runtime.world(self.team, head)
        self._history = TeamHistory(world=world, version=head, keeps=False)
        self.language = self.world.agents[self.me].spec.language
        self.failures = Failures(self.language)
        self._task = asyncio.create_task(self._follow())

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _follow(self) -> None:
        async for told in self._cli.runtime.events(self.team, after=self._history.version, follow=True):
            self._hear(told)

    def _hear(self, told: Told) -> None:
        self.failures.add(self.world, told.event)
        self._history.add(told)
        self._cli.out.stream(self.team, told)
        self._changed.set()
        match told.event:
            case MessageSent(message=message) if message.sender_id != self.me and (
                self.me in message.receiver or kind_of(message) == "approval"
            ):
                self._news.append(message)
                self.woken.set()
            case TaskPaused(why=why) | TeamPaused(why=why):
                self._pauses.append(why)
                self.woken.set()
            case AgentRemoved() if self.gone:
                self.woken.set()
            case _:
                pass

    async def catch_up(self) -> None:
        """Wait until all that is in the log by now was heard."""
        head = (await self._cli.runtime.log.head(self.team)).version
        while self._history.version < head:
            await self._next()

    async def _next(self) -> None:
        """Wait for more. A reader that has gone, or a log that cannot be read, ends it."""
        if self._task is not None and self._task.done():
            self._task.result()
        self._changed.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(LOOK):
                await self._changed.wait()

    def take_news(self) -> Iterator[tuple[Message, Letter | None]]:
        """What came since it was last taken; with its letter, where it still waits for an answer."""
        self.woken.clear()
        news, self._news = self._news, []
        letters = {letter.message.message_id: letter for letter in self.owed()}
        for message in news:
            yield message, letters.get(message.message_id)

    def take_pauses(self) -> tuple[str, ...]:
        """Why it came to stand still since this was last asked."""
        pauses, self._pauses = tuple(dict.fromkeys(self._pauses)), []
        return pauses

    def owed(self) -> tuple[Letter, ...]:
        """What the person owes an answer to."""
        return owed(self.world, self.me)

    async def wait_for_rest(self) -> Standing:
        """Wait until nothing more happens by itself."""
        while True:
            await self.catch_up()
            version, stands = self._history.version, at_rest(self.world)
            if not stands.settled:
                await self._next()
                continue
            await asyncio.sleep(GRACE)
            await self.catch_up()
            if self._history.version == version:
                return stands


@asynccontextmanager
async def running(cli: Invocation, listener: Listener) -> AsyncIterator[bool]:
    """Run the organisation here while it runs nowhere else; whether it does so now. One that is stopped rests."""
    first = await _look(cli, listener, None)

    async def keep(host: Host | None) -> None:
        while True:
            await asyncio.sleep(LOOK)
            try:
                host = await _look(cli, listener, host)
            except WorldFault as fault:
                cli.progress.trouble(str(fault))

    keeping = asyncio.create_task(keep(first))
    try:
        yield first is not None
    finally:
        keeping.cancel()
        await asyncio.gather(keeping, return_exceptions=True)
        await cli.runtime.stop(listener.team)


async def _look(cli: Invocation, listener: Listener, host: Host | None) -> Host | None:
    """Start it where no process runs it, and stop it where it rests; returns its host here."""
    await listener.catch_up()
    world, runtime, team = listener.world, cli.runtime, listener.team
    rests = world.team.paused is not None or BASE not in world.tasks
    if host is not None and (rests or host.sync.stopped is not None):
        await runtime.stop(team)
        return None
    if host is None and not rests and await runtime.log.holder(team) is None:
        try:
            host = await runtime.start(team)
        except WorldFault:
            if await runtime.log.holder(team) is None:
                raise
            return None  # another process was quicker
        host.listen_trouble(cli.progress.trouble)
    return host
