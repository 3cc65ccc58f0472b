"""The crew: the actors of one team. An actor takes its agent's next step, runs it and hands the outcome in.

It reads views and asks for changes; it changes nothing itself. Everything it knows can be forgotten at any moment.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from greenroom.actors.payload import LARGE, is_large, lighten, unkept
from greenroom.actors.windows import Windows
from greenroom.core.base.amounts import NOTHING, Amounts
from greenroom.core.base.errors import Bug, GreenroomError, ModelFault, ProviderFault, StaleOwner, WorldFault
from greenroom.core.base.ids import AgentId, StepId, step_id
from greenroom.core.base.records import Data, encode, evolve
from greenroom.core.ports.codec import normal, read_back
from greenroom.core.ports.executor import Abilities, Live, Outcome, fair, sound
from greenroom.core.ports.log import Blobs
from greenroom.core.ports.submit import Submit
from greenroom.core.rules.draft import SYSTEM
from greenroom.core.rules.endings import is_cancelled
from greenroom.core.rules.intents import (
    Consequence,
    FinishStep,
    Intent,
    PrepareEffect,
    QueueSteps,
    ReleaseStep,
    StartStep,
)
from greenroom.core.rules.queue import next_step, touched
from greenroom.core.state.agent import Agent
from greenroom.core.state.archive import Archived
from greenroom.core.state.events import Event
from greenroom.core.state.origin import merged
from greenroom.core.state.step import Prepared, Step, StepCancelling, Terms, length
from greenroom.core.state.thread import absorbed
from greenroom.core.state.world import World


def _nothing_left() -> None:
    """What stays of an attempt that has said nothing about it."""


@dataclass(slots=True, eq=False)
class StepBench:
    """One per attempt."""

    step: Step
    look: Callable[[], World]
    submit: Submit
    windows: Windows
    blobs: Blobs
    watch: Callable[[Step, Live], None]
    left: Callable[[], Outcome | None] = field(default=_nothing_left, init=False)

    @property
    def world(self) -> World:
        """The newest committed world."""
        return self.look()

    @property
    def agent(self) -> Agent:
        """Whose step it is."""
        return self.look().agents[self.step.agent_id]

    @property
    def key(self) -> str:
        """Unique over all teams, the same for every attempt."""
        return f"{self.look().team.team_id}/{self.step.step_id}"

    async def prepare(self, *prepared: Prepared) -> None:
        """Make known what is about to be done; a refusal means that this attempt is not the current one."""
        intent = PrepareEffect(step_id=self.step.step_id, attempt=self.step.attempt, prepared=prepared)
        (refused,) = await self.submit.submit(intent, by=self.step.agent_id)
        if refused is not None:
            raise WorldFault(f"The effect was not begun. {refused}")

    async def blob(self, digest: str) -> bytes:
        """A large result, whole."""
        return await self.blobs.get_blob(digest)

    async def keep(self, data: bytes) -> str:
        """Keep something large: durable before the event that names it."""
        return await self.blobs.put_blob(data)

    def show(self, event: Live) -> None:
        """Let those see it who watch; nothing of it is kept."""
        self.watch(self.step, event)

    def leave(self, left: Callable[[], Outcome | None]) -> None:
        """Say what stays if somebody cancels this."""
        self.left = left

    async def history(self) -> Sequence[Step]:
        """The thread's window: its ended steps, from where it begins."""
        return await self.windows.of(self.step.thread_id)


def foreseen(world: World, step: Step, outcome: Outcome) -> World:
    """The world as far as the terms of the next step depend on this one's end: its conversation has read more."""
    thread = world.threads.get(step.thread_id)
    if thread is None:
        return world
    began = step.terms.origins if step.terms is not None else ()
    origins = merged(step.origins, (*began, *outcome.origins))
    grown = evolve(thread, size=thread.size + length(step.work, outcome.result, outcome.error, origins))
    grown = absorbed(grown, origins, world.at)
    return evolve(world, threads=world.threads.set(step.thread_id, grown))


def likely_next(world: World, step: Step, intents: Sequence[Consequence]) -> Step | None:
    """The step that probably follows: started in the same commit if the rules agree, else asked for again."""
    agent = world.agents[step.agent_id]
    mine = [one for one in intents if isinstance(one, QueueSteps) and one.agent_id == step.agent_id and one.works]
    first = next((one for one in mine if one.place == "next"), None)
    if first is None and agent.todo:
        return world.steps[agent.todo[0]]
    first = first or (mine[0] if mine else None)
    if first is None or first.thread_id is not None or first.task_id not in (None, step.task_id):
        return None
    return Step(
        step_id=step_id(step.agent_id, agent.steps_made + 1),
        agent_id=step.agent_id,
        thread_id=step.thread_id,
        task_id=step.task_id,
        stage_id=step.stage_id,
        subtask_id=step.subtask_id,
        work=first.works[0],
        queued_at=step.queued_at,
    )


GRACE: Final = 5.0
"""Seconds that an effect has to end after it was cancelled, before it is cancelled again."""

LONGEST: Final = 10_000
"""Characters of an error that are kept."""

PATIENCE: Final = 3
"""How often. What still runs then is left behind; the next owner finds its step and settles it."""


Show: TypeAlias = Callable[[Step, Live], None]


class Crew:
    """All actors of a team; a task per agent only while it has something to do."""

    def __init__(
        self,
        submit: Submit,
        look: Callable[[], World],
        abilities: Abilities,
        windows: Windows,
        blobs: Blobs,
        show: Show = lambda _, __: None,
    ) -> None:
        self._show = show
        self._submit = submit
        self._look = look
        self._abilities = abilities
        self._windows = windows
        self._blobs = blobs
        self._actors: dict[AgentId, asyncio.Task[None]] = {}
        self._effects: dict[StepId, asyncio.Task[None]] = {}
        self._woken: set[AgentId] = set()
        self._closing = False

    def follow(self, events: Sequence[Event], archived: Sequence[Archived]) -> None:
        """React to a commit: wake who may have something to do, end effects that are being cancelled."""
        self._windows.follow(events, archived)
        for event in events:
            if type(event) is StepCancelling:
                self._end(event.step_id)
        self.wake(touched(self._look(), events))

    def foresee(self, world: World, events: Sequence[Event]) -> Iterator[tuple[Intent, str]]:
        """The starts that idle agents will ask for when this is committed."""
        for agent in () if self._closing else touched(world, events):
            step = next_step(world, agent) if agent not in self._actors else None
            start = self._start_of(world, step) if step is not None else None
            if start is not None:
                yield start, agent

    def wake(self, agents: Iterable[AgentId]) -> None:
        """Let these look whether they have something to do. When all ends, that is only to let go of what has begun."""
        world = self._look()
        for agent in agents:
            if agent in self._actors:
                self._woken.add(agent)
            elif _begun(world, agent) is not None or (not self._closing and next_step(world, agent) is not None):
                self._actors[agent] = asyncio.create_task(self._act(agent), name=f"actor {agent}")

    @property
    def busy(self) -> bool:
        """Whether any actor is doing something."""
        return bool(self._actors)

    async def close(self, *, wait: bool = True) -> None:
        """End all effects, see them dead, hand in that they were interrupted. `wait`: something is being written."""
        self._closing = True
        for step in tuple(self._effects):
            self._end(step)
        if wait:
            with suppress(WorldFault):
                await self._submit.submit(by=SYSTEM)  # what is being written now may begin something: let it be seen
        if self._actors:
            await asyncio.sleep(0)  # one that has just handed in its last step needs no more
        for _ in range(PATIENCE):
            if not self._actors:
                return
            await asyncio.wait(tuple(self._actors.values()), timeout=GRACE)
            for agent, actor in self._actors.items():
                logging.getLogger(__name__).warning("%s does not stop; it is told again", agent)
                actor.cancel()

    def _end(self, step: StepId) -> None:
        """Cancel an effect, once: a second cancellation would cut the clean-up of the first one short."""
        effect = self._effects.pop(step, None)
        if effect is not None:
            effect.cancel()

    async def _act(self, agent: AgentId) -> None:
        """An actor's top loop."""
        try:
            while True:
                self._woken.discard(agent)
                begun = _begun(self._look(), agent)
                if begun is not None:
                    await self._go_on(begun)
                    continue
                step = next_step(self._look(), agent) if not self._closing else None
                if step is not None and await self._run(step):
                    continue
                if agent not in self._woken:
                    return
        except WorldFault as error:
            # The team is no longer ours, or its log is broken: nothing that is done here counts any more.
            logging.getLogger(__name__).warning("%s stops: %s", agent, error)
        except Exception as error:
            logging.getLogger(__name__).exception("The actor of %s broke", agent)
            await self._bury(agent, f"The actor broke: {type(error).__name__}: {error}")
        finally:
            del self._actors[agent]
            if agent in self._woken:
                self.wake([agent])

    async def _bury(self, agent: AgentId, error: str) -> None:
        """Whatever the agent was at has failed: nothing stays running that nobody runs."""
        name = self._look().agents[agent].running
        if name is not None:
            step = self._look().steps[name]
            finish = FinishStep(step_id=name, attempt=step.attempt, outcome="failed", error=error)
            await self._submit.submit(finish, by=agent)

    async def _run(self, step: Step) -> bool:
        """Start a step and go on with the ones that follow in the same breath; False when it may not start."""
        try:
            executor = self._abilities.get(step.work.type, step.work.executor)
            terms = fair(executor.terms(self._look(), step)) if executor else Terms(effect="pure")
        except (ModelFault, WorldFault) as error:  # no key, say: the step tells it
            return await self._spoilt(step, str(error))
        except Exception as error:
            logging.getLogger(__name__).exception("%s has no terms for %s", step.work.executor, step.step_id)
            return await self._spoilt(step, _broke(step, error))
        start = StartStep(step_id=step.step_id, terms=terms, work=step.work)
        try:
            (refused,) = await self._submit.submit(start, by=step.agent_id)
        except Bug as error:
            return await self._spoilt(step, str(error))
        if refused is None:
            await self._go_on(step.step_id)
        return refused is None

    async def _go_on(self, name: StepId | None) -> None:
        """Run a step that has begun, and those that follow in the same breath."""
        while name is not None:
            running = self._look().steps.get(name)
            if running is None or running.state not in ("running", "cancelling"):
                return
            name = await self._attempt(running)

    async def _spoilt(self, step: Step, error: str) -> bool:
        """A step that cannot even say what it would do has failed."""
        start = StartStep(step_id=step.step_id, terms=Terms(effect="pure"), work=step.work)
        finish = FinishStep(step_id=step.step_id, attempt=step.attempt + 1, outcome="failed", error=_words(error))
        refused, _ = await self._submit.submit(start, finish, by=step.agent_id)
        return refused is None

    async def _attempt(self, step: Step) -> StepId | None:
        """Run one attempt and hand it in; returns the step that was started with it, if any."""
        ends = step.state == "cancelling" or self._closing
        untouched = evolve(_released(step, "stopped"), spent=NOTHING, ran=False)
        outcome = untouched if ends else await self._effect(step)
        if isinstance(outcome, ReleaseStep):
            await self._submit.submit(outcome, by=step.agent_id)
            return None
        finish = _finish(step, outcome)
        world = foreseen(self._look(), step, outcome)
        following = None if self._closing else likely_next(world, step, outcome.intents)
        follower = self._start_of(world, following) if following is not None else None
        if follower is None:
            await self._hand_in(finish, step)
            return None
        try:
            _, refused = await self._submit.submit(finish, follower, by=step.agent_id)
        except Bug as error:
            await self._hand_in(_without_result(finish, error), step)
            return None
        return follower.step_id if refused is None else None

    def _start_of(self, world: World, step: Step) -> StartStep | None:
        """The start of a step, if its executor can say its terms."""
        executor = self._abilities.get(step.work.type, step.work.executor)
        if executor is None:
            return None
        try:
            return StartStep(step_id=step.step_id, terms=fair(executor.terms(world, step)), work=step.work)
        except Exception:
            # When it is asked for by itself it will run into the same, and fail the step properly.
            logging.getLogger(__name__).debug("%s has no terms yet", step.work.executor, exc_info=True)
            return None

    async def _hand_in(self, finish: FinishStep, step: Step) -> None:
        """Record the outcome; one that cannot be written down is a failure that says so."""
        try:
            await self._submit.submit(finish, by=step.agent_id)
        except Bug as error:
            await self._submit.submit(_without_result(finish, error), by=step.agent_id)

    async def _effect(self, step: Step) -> Outcome | ReleaseStep:
        """The executor's outcome, or that there is none: it was cancelled and is dead, or nobody answers it."""
        executor = self._abilities.get(step.work.type, step.work.executor)
        if executor is None:
            error = f"There is no {step.work.type} called {step.work.executor!r} in this house."
            return Outcome(state="failed", error=error)
        me = asyncio.current_task()
        if me is None:
            return _released(step, "stopped")
        self._effects[step.step_id] = me
        own, given = step, step.work.instruction_content
        if given is not None:  # its executor may do with it what it likes: the world's own does not change
            own = evolve(step, work=evolve(step.work, instruction_content=normal(given)))
        bench = StepBench(own, self._look, self._submit, self._windows, self._blobs, self._show)
        try:
            return await self._kept(step, sound(await executor.run(bench)))
        except asyncio.CancelledError:
            if not me.cancelling():
                return _failed(step, f"{step.work.executor} was cancelled from inside.")
            me.uncancel()
            return await self._left(bench)
        except StaleOwner:
            raise
        except ProviderFault as error:
            return evolve(_released(step, str(error)), spent=error.spent, pause=not error.again)
        except (ModelFault, WorldFault, OSError) as error:
            return _failed(step, str(error), getattr(error, "spent", None))
        except BaseException as error:
            # A tool or skill that breaks costs its own step, never the actor or the team, whatever it raises.
            logging.getLogger(__name__).exception("%s failed in %s", step.work.executor, step.step_id)
            return _failed(step, _broke(step, error))
        finally:
            self._effects.pop(step.step_id, None)
            bench.left = _nothing_left

    async def _left(self, bench: StepBench) -> Outcome | ReleaseStep:
        """What stays of an attempt that somebody cancelled; of one that only stops nothing does, it is made again."""
        now = self._look().steps.get(bench.step.step_id)
        left = bench.left() if now is not None and is_cancelled(now) else None
        if left is None:
            return _released(bench.step, "stopped")
        return await self._kept(bench.step, evolve(sound(left), state="cancelled", error="Cancelled.", intents=()))

    async def _kept(self, step: Step, outcome: Outcome) -> Outcome:
        """The outcome as the log will have it."""
        for digest in outcome.blobs:
            await self._blobs.get_blob(digest)  # a fault of the executor, before it can become one of the log
        if outcome.result is None:
            return outcome
        try:
            written = encode(outcome.result)
            outcome = evolve(outcome, result=read_back(written))
        except (TypeError, ValueError, RecursionError) as error:
            return evolve(outcome, state="failed", intents=(), blobs=(), **_shown(outcome.result, error))
        if len(written) <= LARGE or not is_large(outcome.result or {}):
            return outcome
        try:
            return await lighten(outcome, self._blobs)
        except WorldFault as fault:
            if step.work.type == "skill":
                raise  # half a reply is none
            return unkept(outcome, fault)


def _begun(world: World, agent: AgentId) -> StepId | None:
    """The step of the agent that was started in the commit that made it possible, and that nobody runs yet."""
    known = world.agents.get(agent)
    return known.running if known is not None else None


def _finish(step: Step, outcome: Outcome) -> FinishStep:
    return FinishStep(
        step_id=step.step_id,
        attempt=step.attempt,
        outcome=outcome.state,
        result=outcome.result,
        error=outcome.error,
        spent=outcome.spent,
        intents=outcome.intents,
        blobs=outcome.blobs,
        origins=outcome.origins,
    )


def _released(step: Step, why: str) -> ReleaseStep:
    return ReleaseStep(step_id=step.step_id, attempt=step.attempt, why=why)


def _failed(step: Step, error: str, spent: Amounts | None = None) -> Outcome:
    """A failure. What a model call has cost that nobody knows of is what was reserved for it: a cap is a cap."""
    unknown = step.reserved if step.terms is not None and step.terms.effect == "model" else NOTHING
    return Outcome(state="failed", error=_words(error), spent=unknown if spent is None else spent)


def _broke(step: Step, error: BaseException) -> str:
    """What is told of an executor that raised something; a fault of ours says it itself."""
    if isinstance(error, GreenroomError):
        return str(error)
    return f"{step.work.executor} broke: {type(error).__name__}: {error}"


def _words(error: str) -> str:
    """An error as it is kept: text that can be written down, and not more than anybody reads."""
    sound = error.encode(errors="replace").decode()
    return sound if len(sound) <= LONGEST else f"{sound[:LONGEST]} […]"


def _without_result(finish: FinishStep, error: Bug) -> FinishStep:
    """A failure in the place of an outcome that cannot be written down."""
    return evolve(finish, outcome="failed", intents=(), blobs=(), **_shown(finish.result, error))


def _shown(result: Data | None, error: Exception) -> dict[str, object]:
    """What can be shown of a result that cannot be kept, and why it cannot be."""
    try:
        shown = ascii(result or {})[:2_000]
    except RecursionError:
        shown = "(nested too deeply)"
    return {"result": {"shown": shown}, "error": f"Its result cannot be kept as it is. {error}"}
