"""Run a team here and follow it to its end. A person at the terminal is asked what it waits for, and can talk to it."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Final, TypeAlias

from greenroom.app.conversation.chat import settle
from greenroom.app.conversation.names import RUN
from greenroom.app.conversation.send import tell as deliver
from greenroom.app.host import Host, watch_steps
from greenroom.app.lookup import Found
from greenroom.app.task_status import Standing
from greenroom.app.toolset.policy import persons_rules
from greenroom.cli.context import Invocation, command
from greenroom.cli.errors import explain
from greenroom.cli.exit_codes import Exit, of_standings
from greenroom.cli.render.progress import Progress
from greenroom.cli.render.questions import Gone, TypedLine, ask_line, unechoed
from greenroom.cli.render.talk import Work
from greenroom.cli.render.team import Teller
from greenroom.core.base.errors import GreenroomError
from greenroom.core.base.ids import TaskId, TeamId
from greenroom.core.base.records import record
from greenroom.core.base.text import seen
from greenroom.core.rules.intents import AnswerApproval
from greenroom.core.state.approval import Approval, Scope
from greenroom.core.state.world import World
from greenroom.runs.verdict import CONFIRM
from greenroom.runs.workspace import wanted_in

SCOPES: Final[dict[str, Scope]] = {
    "y": "once",
    "yes": "once",
    "once": "once",
    "r": "run",
    "run": "run",
    "a": "always",
    "always": "always",
}
NO: Final = ("n", "no")
PLANS: Final = "propose_plan"
EDIT: Final = re.compile(r"\A(?:e|edit)(?::\s*|\s+|$)", re.IGNORECASE)
ABOUT_A_PLAN: Final = "[y] yes  [e WHAT] edit: what to do differently  [n] no, end it here: "


def waiting(world: World) -> list[Approval]:
    """All questions that nobody has answered yet, the oldest first."""
    pending = [one for one in world.approvals.values() if one.state == "pending"]
    return sorted(pending, key=lambda one: (one.asked_at, one.approval_id))


def is_plan(world: World, approval: Approval) -> bool:
    """Whether it is asked what becomes of a plan."""
    step = world.steps.get(approval.step_id)
    return step is not None and step.work.executor == PLANS


def is_confirmation(world: World, approval: Approval) -> bool:
    """Whether it is asked if the run goes on although nothing can verify it."""
    step = world.steps.get(approval.step_id)
    return step is not None and step.work.executor == CONFIRM


def to_type(world: World, approval: Approval) -> tuple[str, str]:
    """What a person types behind `greenroom answer`, and what else they may."""
    if is_plan(world, approval):
        return "yes", 'or no, or "what to do differently"'
    if is_confirmation(world, approval):
        return "yes", "or no"
    return ('"what you say"', "") if approval.words else ("yes", "or no")


def asked_by(approval: Approval) -> str:
    """A question as a person reads it. What an agent says itself is marked as its words, line by line: no model can
    make them look like a question of the house."""
    if not approval.words:
        return approval.question
    return f"{approval.agent_id} asks: " + "\n  | ".join(seen(approval.question).splitlines())


def question(approval: Approval, *, plan: bool = False) -> str:
    """What is asked, and how it can be answered."""
    if plan:
        return f"{asked_by(approval)}\n{ABOUT_A_PLAN}"
    if approval.words:
        return f"{asked_by(approval)}\n(Ctrl-D: not now) "
    if not approval.grant:
        run = "once  [r] this run" if approval.release else "yes"
        return f"{approval.question}\n[y] {run}  [n] no: "
    rules = approval.grant.replace("\n", "; ")
    return f"{approval.question}\n[y] once  [r] this run  [a] always: {rules}  [n] no: "


def answered(approval: Approval, line: str, *, plan: bool = False) -> AnswerApproval | None:
    """What a line means; None when it means nothing. To a plan also what is only typed is said: so it is edited."""
    name, said = approval.approval_id, line.strip()
    if approval.words:
        said = EDIT.sub("", said, count=1) if plan else said
        return AnswerApproval(approval_id=name, answer="approved", reason=said) if said else None
    word, _, reason = said.partition(" ")
    if word.lower() in NO or not word:
        return AnswerApproval(approval_id=name, answer="denied", reason=reason.strip())
    scope = SCOPES.get(word.lower())
    if scope is None or (scope != "once" and not (approval.grant or (scope == "run" and approval.release))):
        return None
    return AnswerApproval(approval_id=name, answer="approved", scope=scope, reason=reason.strip())


def kept(world: World, approval: Approval, answer: AnswerApproval) -> str:
    """Keep what was agreed to for good, in the person's own file; a sentence about it, empty when there was nothing."""
    if answer.answer != "approved" or answer.scope != "always":
        return ""
    if not world.team.workspace:
        return "It has no workspace for which that could be kept, so it holds for this run."
    for rule in (answer.grant or approval.grant).splitlines():
        persons_rules().add(rule, Path(world.team.workspace))
    return "Kept: `greenroom permissions` lists what you have agreed to."


LONG: Final = 50_000  # events. A longer log is not read again only to say what each agent spent before
MAY_CHANGE: Final = frozenset({"patch", "rewrite", "execute_script"})  # tools that may change files
PROMPT: Final = "› "
QUICK: Final = 2.0  # seconds in which a second Ctrl-C leaves
GRACE: Final = 0.3  # seconds. That nobody has anything to do may be true between two commits: look again


@record
class Ending:
    """How a run ended: how each task stands, and what was told. A `fault` makes it a failure however they stand;
    `unverified` is the code of why nothing has verified what it did. `why` are the reasons of a verdict, which stand in
    the place of what the agent said."""

    standings: Sequence[tuple[TaskId, Standing]]
    teller: Teller
    fault: str = ""
    unverified: str = ""
    why: str = ""

    @property
    def code(self) -> Exit:
        """The worst of them, as an exit code."""
        worst = of_standings(standing.word for _, standing in self.standings)
        if self.fault:
            return Exit.FAILED
        return Exit.UNVERIFIED if self.unverified and worst == Exit.DONE else worst

    @property
    def status(self) -> str:
        """The word that the exit code stands for."""
        words = [standing.word for _, standing in self.standings]
        return next(
            (word for word in words if of_standings([word]) == self.code),
            "failed" if self.fault else "unverified" if self.unverified else "finished",
        )


async def follow(cli: Invocation, team: TeamId, *, new: bool = False) -> Ending:
    """Own the team, let it work, tell what happens until every task stands still, and let it go again."""
    teller = Teller() if new else await so_far(cli, team)
    cli.progress.begin(teller)
    try:
        async with telling(cli, team, teller):
            tasks = await _work(cli, team)
            await settle(cli.runtime, team)
    except asyncio.CancelledError:
        cli.progress.end()
        cli.progress.note(f"Stopped. Go on with: {command(cli, 'resume', team)}", style="bold")
        raise
    finally:
        cli.progress.end()
    standings = [(task, await cli.runtime.stands(team, task)) for task in tasks]
    return Ending(standings=standings, teller=teller, unverified=await unverified_code(cli, team, teller))


async def unverified_code(cli: Invocation, team: TeamId, teller: Teller) -> str:
    """Why nothing has verified a run in the person's own files: it has changed some, or changed none though that was
    asked for. Empty for every other run."""
    able = any(not MAY_CHANGE.isdisjoint(agent.spec.tools) for agent in teller.world.agents.values())
    if teller.world.team.kit != RUN or not able:
        return ""
    steps = await cli.means.steps(team)
    if any(step.work.executor in MAY_CHANGE and step.state in ("finished", "uncertain") for step in steps):
        return "in_place"
    return "" if wanted_in(steps).question else "nothing_changed"


@contextlib.asynccontextmanager
async def telling(cli: Invocation, team: TeamId, teller: Teller) -> AsyncIterator[None]:
    """Tell what happens meanwhile, by whichever process; at the end everything that is in the log has been told.

    When it cannot be told any more, because whoever read it has gone, what goes on is stopped.
    """
    listener, me = asyncio.create_task(tell(cli, team, teller)), asyncio.current_task()
    listener.add_done_callback(lambda done: me.cancel() if me is not None and _broke(done) else None)
    try:
        yield
    except asyncio.CancelledError:
        if me is None or not _broke(listener):
            raise
        me.uncancel()
    finally:
        listener.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await listener
        await tell(cli, team, teller, follow=False)


def _broke(task: asyncio.Task[None]) -> bool:
    return task.done() and not task.cancelled() and task.exception() is not None


async def _work(cli: Invocation, team: TeamId) -> tuple[TaskId, ...]:
    """Let the agents work until nothing more happens by itself; returns the tasks they worked on."""
    try:
        host = await cli.runtime.start(team)
        attend(host, cli.progress)
        return await _settled(cli, team, tuple(host.world.tasks))
    except asyncio.CancelledError:
        cli.progress.note("Stopping: what runs is ended and written down. Once more to end at once.", style="yellow")
        raise
    finally:
        await cli.runtime.stop(team)


def attend(host: Host, progress: Progress) -> None:
    """Show what goes on here, as it happens."""
    host.listen_trouble(progress.trouble)
    host.watch(progress.piece)
    watch_steps(host, progress.began, progress.ended)


async def so_far(cli: Invocation, team: TeamId) -> Teller:
    """What was told before, without telling it again."""
    head = (await cli.runtime.log.head(team)).version
    if head > LONG:
        return Teller(world=await cli.runtime.world(team, head), version=head)
    teller = Teller()
    async for told in cli.runtime.events(team):
        teller.tell(told)
    return teller


async def tell(cli: Invocation, team: TeamId, teller: Teller, *, follow: bool = True) -> None:
    """Tell everything after what `teller` knows; with `follow` without end."""
    async for told in cli.runtime.events(team, after=teller.version, follow=follow):
        line = teller.tell(told)
        cli.progress.line(teller, line)
        cli.out.stream(team, told)


async def _settled(cli: Invocation, team: TeamId, tasks: tuple[TaskId, ...]) -> tuple[TaskId, ...]:
    """Wait until every task, also those that came up meanwhile, is over or stands still; returns all of them."""
    while True:
        for task in tasks:
            await cli.runtime.wait(team, task)
        tasks = tuple(dict.fromkeys((*tasks, *(await cli.runtime.world(team)).tasks)))
        found = [await cli.runtime.stands(team, task) for task in tasks]
        if all(one.settled and one.word != "idle" for one in found):
            return tasks
        before = (await cli.runtime.log.head(team)).version
        await asyncio.sleep(GRACE)
        if before == (await cli.runtime.log.head(team)).version and all(one.settled for one in found):
            return tasks


Ear: TypeAlias = Callable[[], AbstractContextManager[None]]  # hears what is typed meanwhile


async def attended(cli: Invocation, team: TeamId, *, new: bool = False, ear: Ear = nullcontext) -> Ending:
    """Follow it to its end; where somebody can be asked, they are. Who says nothing leaves it parked. The `ear` is open
    while it is worked, and not while something is asked."""
    with ear() if cli.attended else nullcontext():
        ending = await follow(cli, team, new=new)
    while ending.status == "waiting" and cli.attended:
        try:
            await _ask(cli, team)
        except Gone:
            break
        with ear():
            ending = await follow(cli, team)
    return ending


async def _ask(cli: Invocation, team: TeamId) -> None:
    while asked := waiting(await cli.runtime.world(team)):
        world, one = await cli.runtime.world(team), asked[0]
        plan = is_plan(world, one)
        line = ask_line(question(one, plan=plan))
        line = "no" if not line.strip() and is_confirmation(world, one) else line  # as its [y/N] says
        answer = answered(one, line, plan=plan)
        if answer is None:
            cli.progress.note("That is none of the answers.", style="yellow")
            continue
        note = kept(world, one, answer)
        await cli.runtime.ask(team, answer)
        if note:
            cli.progress.note(note, style="dim")


class Hearing:
    """An open ear for one run. What was half typed when a question came is there again after it."""

    def __init__(self, cli: Invocation, team: TeamId, work: Work) -> None:
        self._cli = cli
        self._team = team
        self._work = work
        self._line = TypedLine()
        self._said: asyncio.Queue[str] = asyncio.Queue()
        self._saying: asyncio.Task[None] | None = None

    @contextmanager
    def open(self) -> Iterator[None]:
        """From now on, until the run stands still."""
        telling = asyncio.create_task(self._tell())
        self._work.hears, self._work.typed = True, self._line.text
        try:
            with unechoed(self._keys):
                yield
        finally:
            telling.cancel()
            self._work.hears = False

    def _keys(self, data: bytes) -> None:
        for line in self._line.take(data):
            self._said.put_nowait(line)
        self._work.typed = self._line.text

    async def _tell(self) -> None:
        """One after the other, in the order in which it was typed."""
        while True:
            if self._saying is None or self._saying.done():
                text = await self._said.get()
                self._saying = asyncio.create_task(self._say(text))
            await asyncio.shield(self._saying)  # who is stopped here has said it all the same

    async def _say(self, text: str) -> None:
        try:
            told = await deliver(self._cli.runtime, Found(team=self._team), text)
        except GreenroomError as error:
            self._work.note(f"Not said: {explain(error)}", style="yellow")
        else:
            self._work.hear(text, f"{told.reader} reads it in its next turn")
