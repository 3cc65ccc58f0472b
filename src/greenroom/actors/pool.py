"""The actor pool: the actors of one team. An actor takes its agent's next step, runs it and submits the outcome.

It reads views and submits intents; it changes nothing itself. All its data can be rebuilt at any time.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from greenroom.actors.history_windows import WindowCache
from greenroom.actors.payload import MAX_INLINE_CHARS, cut_result, is_large, move_to_blob
from greenroom.core.base.amounts import NOTHING, Amounts
from greenroom.core.base.errors import (
    Bug,
    GreenroomError,
    IncompleteAnswer,
    ModelFault,
    ProviderFault,
    StaleOwner,
    WorldFault,
)
from greenroom.core.base.ids import AgentId, StepId, step_id
from greenroom.core.base.records import Data, encode, evolve
from greenroom.core.ports.codec import decode_data, normalise_data
from greenroom.core.ports.executor import Capabilities, LiveEvent, Outcome, check_outcome, check_terms
from greenroom.core.ports.log import Blobs
from greenroom.core.ports.submit import IntentSubmitter
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
from greenroom.core.rules.queue import find_touched_agents, next_step
from greenroom.core.state.agent import AgentState
from greenroom.core.state.archive import ArchiveEntry
from greenroom.core.state.events import Event
from greenroom.core.state.origin import merge_labels
from greenroom.core.state.step import PreparedEffect, Step, StepCancelling, StepTerms, count_bytes_added
from greenroom.core.state.team_state import TeamState
from greenroom.core.state.thread import add_origins


def _no_partial_outcome() -> None:
    """Return None: the attempt has set no partial outcome."""


@dataclass(slots=True, eq=False)
class AttemptContext:
    """The step context of one attempt."""

    step: Step
    read_state: Callable[[], TeamState]
    submit: IntentSubmitter
    windows: WindowCache
    blobs: Blobs
    show_live: Callable[[Step, LiveEvent], None]
    partial_outcome: Callable[[], Outcome | None] = field(default=_no_partial_outcome, init=False)

    @property
    def state(self) -> TeamState:
        """The newest committed team state."""
        return self.read_state()

    @property
    def agent(self) -> AgentState:
        """The agent that runs the step."""
        return self.read_state().agents[self.step.agent_id]

    @property
    def key(self) -> str:
        """A name that is unique over all teams, and the same for every attempt."""
        return f"{self.read_state().team.team_id}/{self.step.step_id}"

    async def prepare(self, *prepared: PreparedEffect) -> None:
        """Record effects before they happen. Raise `WorldFault` if this attempt is not the current one."""
        intent = PrepareEffect(step_id=self.step.step_id, attempt=self.step.attempt, prepared=prepared)
        (refused,) = await self.submit.submit(intent, by=self.step.agent_id)
        if refused is not None:
            raise WorldFault("actors.effect_not_begun", refused=refused)

    async def blob(self, digest: str) -> bytes:
        """Return a large result, whole."""
        return await self.blobs.get_blob(digest)

    async def keep(self, data: bytes) -> str:
        """Store a blob. It is durable before the event that names it."""
        return await self.blobs.put_blob(data)

    def show(self, event: LiveEvent) -> None:
        """Send an event to live listeners. It is not stored."""
        self.show_live(self.step, event)

    def set_partial_outcome(self, partial_outcome: Callable[[], Outcome | None]) -> None:
        """Set the function that returns the partial outcome if the attempt is cancelled."""
        self.partial_outcome = partial_outcome

    async def history(self) -> Sequence[Step]:
        """Return the ended steps in the thread's window."""
        return await self.windows.read(self.step.thread_id)


def predict_state(state: TeamState, step: Step, outcome: Outcome) -> TeamState:
    """Return the state as far as the next step's terms depend on it: the conversation after this outcome."""
    thread = state.threads.get(step.thread_id)
    if thread is None:
        return state
    began = step.terms.origins if step.terms is not None else ()
    origins = merge_labels(step.origins, (*began, *outcome.origins))
    thread_after = evolve(
        thread, size=thread.size + count_bytes_added(step.work, outcome.result, outcome.error, origins)
    )
    thread_after = add_origins(thread_after, origins, state.at)
    return evolve(state, threads=state.threads.set(step.thread_id, thread_after))


def predict_next_step(state: TeamState, step: Step, intents: Sequence[Consequence]) -> Step | None:
    """Return the step that probably follows. It starts in the same commit if the rules accept it."""
    agent = state.agents[step.agent_id]
    own_queued = [
        intent
        for intent in intents
        if isinstance(intent, QueueSteps) and intent.agent_id == step.agent_id and intent.works
    ]
    first = next((intent for intent in own_queued if intent.place == "next"), None)
    if first is None and agent.todo:
        return state.steps[agent.todo[0]]
    first = first or (own_queued[0] if own_queued else None)
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


CANCEL_TIMEOUT_S: Final = 5.0
"""How long an effect has to end after a cancellation, in seconds, before it is cancelled again."""

MAX_ERROR_CHARS: Final = 10_000
"""Maximum characters of an error that are stored."""

MAX_CANCEL_TRIES: Final = 3
"""Maximum cancellations. What still runs is abandoned; the next owner settles its step."""


ShowLive: TypeAlias = Callable[[Step, LiveEvent], None]


class ActorPool:
    """All actors of a team. An agent has an asyncio task only while it has work."""

    def __init__(
        self,
        submit: IntentSubmitter,
        read_state: Callable[[], TeamState],
        capabilities: Capabilities,
        windows: WindowCache,
        blobs: Blobs,
        show: ShowLive = lambda _, __: None,
    ) -> None:
        self._show = show
        self._submit = submit
        self._read_state = read_state
        self._capabilities = capabilities
        self._windows = windows
        self._blobs = blobs
        self._actors: dict[AgentId, asyncio.Task[None]] = {}
        self._effects: dict[StepId, asyncio.Task[None]] = {}
        self._woken: set[AgentId] = set()
        self._closing = False

    def follow(self, events: Sequence[Event], archived: Sequence[ArchiveEntry]) -> None:
        """React to a commit: wake agents that may have work, and end effects that are being cancelled."""
        self._windows.follow(events, archived)
        for event in events:
            if type(event) is StepCancelling:
                self._cancel_effect(event.step_id)
        self.wake(find_touched_agents(self._read_state(), events))

    def predict_starts(self, state: TeamState, events: Sequence[Event]) -> Iterator[tuple[Intent, str]]:
        """Yield the starts that idle agents will submit after this commit."""
        for agent in () if self._closing else find_touched_agents(state, events):
            step = next_step(state, agent) if agent not in self._actors else None
            start = self._build_start(state, step) if step is not None else None
            if start is not None:
                yield start, agent

    def wake(self, agents: Iterable[AgentId]) -> None:
        """Wake agents that have work. During shutdown, only those whose step has already started."""
        state = self._read_state()
        for agent in agents:
            if agent in self._actors:
                self._woken.add(agent)
            elif _find_running_step(state, agent) is not None or (
                not self._closing and next_step(state, agent) is not None
            ):
                self._actors[agent] = asyncio.create_task(self._act(agent), name=f"actor {agent}")

    @property
    def is_busy(self) -> bool:
        """Whether any actor has work."""
        return bool(self._actors)

    async def close(self, *, wait: bool = True, finish_calls: bool = False) -> None:
        """End all effects and submit that they were interrupted. With `wait`, first wait for the commit in progress.
        With `finish_calls`, model calls end by themselves."""
        self._closing, steps = True, self._read_state().steps
        for step in tuple(self._effects):
            if not (finish_calls and (terms := steps[step].terms) and terms.effect == "model"):
                self._cancel_effect(step)
        if wait:
            with suppress(WorldFault):
                await self._submit.submit(by=SYSTEM)  # wait for the commit in progress: it may start a step
        if self._actors:
            await asyncio.sleep(0)  # an actor that has just submitted its last step ends here
        for _ in range(MAX_CANCEL_TRIES):
            if not self._actors:
                return
            await asyncio.wait(tuple(self._actors.values()), timeout=None if finish_calls else CANCEL_TIMEOUT_S)
            for agent, actor in self._actors.items():
                logging.getLogger(__name__).warning("%s does not stop; it is cancelled again", agent)
                actor.cancel()

    def _cancel_effect(self, step: StepId) -> None:
        """Cancel an effect once: a second cancellation would cut the clean-up of the first one short."""
        effect = self._effects.pop(step, None)
        if effect is not None:
            effect.cancel()

    async def _act(self, agent: AgentId) -> None:
        """Run an agent's steps until none is left: the actor's top loop."""
        try:
            while True:
                self._woken.discard(agent)
                begun = _find_running_step(self._read_state(), agent)
                if begun is not None:
                    await self._continue(begun)
                    continue
                step = next_step(self._read_state(), agent) if not self._closing else None
                if step is not None and await self._run(step):
                    continue
                if agent not in self._woken:
                    return
        except WorldFault as error:
            # Another owner has the team, or its log is broken: work done here no longer counts.
            logging.getLogger(__name__).warning("%s stops: %s", agent, error)
        except Exception as error:
            logging.getLogger(__name__).exception("The actor of %s broke", agent)
            await self._fail_running(agent, f"The actor broke: {type(error).__name__}: {error}")
        finally:
            del self._actors[agent]
            if agent in self._woken:
                self.wake([agent])

    async def _fail_running(self, agent: AgentId, error: str) -> None:
        """Fail the agent's running step, so that no step stays running without an actor."""
        name = self._read_state().agents[agent].running
        if name is not None:
            step = self._read_state().steps[name]
            finish = FinishStep(step_id=name, attempt=step.attempt, outcome="failed", error=error)
            await self._submit.submit(finish, by=agent)

    async def _run(self, step: Step) -> bool:
        """Start a step and run the ones that follow immediately. Return False if it may not start."""
        try:
            executor = self._capabilities.get(step.work.type, step.work.executor)
            terms = check_terms(executor.terms(self._read_state(), step)) if executor else StepTerms(effect="pure")
        except (ModelFault, WorldFault) as error:  # for example no key: the step reports it
            return await self._fail_unstarted(step, str(error))
        except Exception as error:
            logging.getLogger(__name__).exception("%s has no terms for %s", step.work.executor, step.step_id)
            return await self._fail_unstarted(step, _describe_error(step, error))
        start = StartStep(step_id=step.step_id, terms=terms, work=step.work)
        try:
            (refused,) = await self._submit.submit(start, by=step.agent_id)
        except Bug as error:
            return await self._fail_unstarted(step, str(error))
        if refused is None:
            await self._continue(step.step_id)
        return refused is None

    async def _continue(self, name: StepId | None) -> None:
        """Run a started step, and the ones that follow immediately."""
        while name is not None:
            running = self._read_state().steps.get(name)
            if running is None or running.state not in ("running", "cancelling"):
                return
            name = await self._attempt(running)

    async def _fail_unstarted(self, step: Step, error: str) -> bool:
        """Fail a step whose terms cannot be determined."""
        start = StartStep(step_id=step.step_id, terms=StepTerms(effect="pure"), work=step.work)
        finish = FinishStep(
            step_id=step.step_id, attempt=step.attempt + 1, outcome="failed", error=_truncate_error(error)
        )
        refused, _ = await self._submit.submit(start, finish, by=step.agent_id)
        return refused is None

    async def _attempt(self, step: Step) -> StepId | None:
        """Run one attempt and submit its outcome. Return the step that was started with it, or None."""
        ends = step.state == "cancelling" or self._closing
        untouched = evolve(_build_release(step, "stopped"), spent=NOTHING, ran=False)
        outcome = untouched if ends else await self._run_effect(step)
        if isinstance(outcome, ReleaseStep):
            await self._submit.submit(outcome, by=step.agent_id)
            return None
        finish = FinishStep(
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
        state = predict_state(self._read_state(), step, outcome)
        following = None if self._closing else predict_next_step(state, step, outcome.intents)
        follower = self._build_start(state, following) if following is not None else None
        if follower is None:
            await self._submit_finish(finish, step)
            return None
        try:
            _, refused = await self._submit.submit(finish, follower, by=step.agent_id)
        except Bug as error:
            await self._submit_finish(_without_result(finish, error), step)
            return None
        return follower.step_id if refused is None else None

    def _build_start(self, state: TeamState, step: Step) -> StartStep | None:
        """Return the start of a step, or None if its terms cannot be determined."""
        executor = self._capabilities.get(step.work.type, step.work.executor)
        if executor is None:
            return None
        try:
            return StartStep(step_id=step.step_id, terms=check_terms(executor.terms(state, step)), work=step.work)
        except Exception:
            # A separate start meets the same error and fails the step properly.
            logging.getLogger(__name__).debug("%s has no terms yet", step.work.executor, exc_info=True)
            return None

    async def _submit_finish(self, finish: FinishStep, step: Step) -> None:
        """Submit the outcome. If it cannot be encoded, submit a failure that says so."""
        try:
            await self._submit.submit(finish, by=step.agent_id)
        except Bug as error:
            await self._submit.submit(_without_result(finish, error), by=step.agent_id)

    async def _run_effect(self, step: Step) -> Outcome | ReleaseStep:
        """Return the executor's outcome, or a release if it was cancelled or the provider does not answer."""
        executor = self._capabilities.get(step.work.type, step.work.executor)
        if executor is None:
            error = f"There is no {step.work.type} called {step.work.executor!r} in this team."
            return Outcome(state="failed", error=error)
        me = asyncio.current_task()
        if me is None:
            return _build_release(step, "stopped")
        self._effects[step.step_id] = me
        own_step, arguments = step, step.work.instruction_content
        if arguments is not None:  # a copy: the executor may change it, the state must not
            own_step = evolve(step, work=evolve(step.work, instruction_content=normalise_data(arguments)))
        context = AttemptContext(own_step, self._read_state, self._submit, self._windows, self._blobs, self._show)
        try:
            return await self._prepare_outcome(step, check_outcome(await executor.run(context)))
        except asyncio.CancelledError:
            if not me.cancelling():
                return _build_failure(step, f"{step.work.executor} was cancelled from inside.")
            me.uncancel()
            return await self._take_partial_outcome(context)
        except StaleOwner:
            raise
        except ProviderFault as error:
            partial = error.text if isinstance(error, IncompleteAnswer) and not error.again else ""
            return evolve(_build_release(step, str(error)), spent=error.spent, pause=not error.again, partial=partial)
        except (ModelFault, WorldFault, OSError) as error:
            return _build_failure(step, str(error), getattr(error, "spent", None))
        except BaseException as error:
            # Any exception of a tool or skill fails its own step, never the actor or the team.
            logging.getLogger(__name__).exception("%s failed in %s", step.work.executor, step.step_id)
            return _build_failure(step, _describe_error(step, error))
        finally:
            self._effects.pop(step.step_id, None)
            context.partial_outcome = _no_partial_outcome

    async def _take_partial_outcome(self, context: AttemptContext) -> Outcome | ReleaseStep:
        """Return the partial outcome of a cancelled attempt. An attempt that only stops has none: it runs again."""
        now = self._read_state().steps.get(context.step.step_id)
        partial_outcome = context.partial_outcome() if now is not None and is_cancelled(now) else None
        if partial_outcome is None:
            return _build_release(context.step, "stopped")
        return await self._prepare_outcome(
            context.step, evolve(check_outcome(partial_outcome), state="cancelled", error="Cancelled.", intents=())
        )

    async def _prepare_outcome(self, step: Step, outcome: Outcome) -> Outcome:
        """Return the outcome as the log will hold it."""
        for digest in outcome.blobs:
            await self._blobs.get_blob(digest)  # a missing blob is the executor's fault, not the log's
        if outcome.result is None:
            return outcome
        try:
            encoded = encode(outcome.result)
            outcome = evolve(outcome, result=decode_data(encoded))
        except (TypeError, ValueError, RecursionError) as error:
            return evolve(outcome, state="failed", intents=(), blobs=(), **_describe_unstorable(outcome.result, error))
        if len(encoded) <= MAX_INLINE_CHARS or not is_large(outcome.result or {}):
            return outcome
        try:
            return await move_to_blob(outcome, self._blobs)
        except WorldFault as fault:
            if step.work.type == "skill":
                raise  # half a reply is useless
            return cut_result(outcome, fault)


def _find_running_step(state: TeamState, agent: AgentId) -> StepId | None:
    """Return the agent's step that was started together with an earlier commit and has no actor yet."""
    known = state.agents.get(agent)
    return known.running if known is not None else None


def _build_release(step: Step, why: str) -> ReleaseStep:
    return ReleaseStep(step_id=step.step_id, attempt=step.attempt, why=why)


def _build_failure(step: Step, error: str, spent: Amounts | None = None) -> Outcome:
    """Build a failure. The unknown cost of a model call is its full reservation, so that limits hold."""
    unknown = step.reserved if step.terms is not None and step.terms.effect == "model" else NOTHING
    return Outcome(state="failed", error=_truncate_error(error), spent=unknown if spent is None else spent)


def _describe_error(step: Step, error: BaseException) -> str:
    """Describe an exception of an executor. Greenroom's own errors have their own message."""
    if isinstance(error, GreenroomError):
        return str(error)
    return f"{step.work.executor} broke: {type(error).__name__}: {error}"


def _truncate_error(error: str) -> str:
    """Return an error as valid text of limited length."""
    valid_text = error.encode(errors="replace").decode()
    return valid_text if len(valid_text) <= MAX_ERROR_CHARS else f"{valid_text[:MAX_ERROR_CHARS]} […]"


def _without_result(finish: FinishStep, error: Bug) -> FinishStep:
    """Build a failure to replace an outcome that cannot be encoded."""
    return evolve(finish, outcome="failed", intents=(), blobs=(), **_describe_unstorable(finish.result, error))


def _describe_unstorable(result: Data | None, error: Exception) -> dict[str, object]:
    """Return the printable part of a result that cannot be stored, and why it cannot."""
    try:
        shown = ascii(result or {})[:2_000]
    except RecursionError:
        shown = "(nested too deeply)"
    return {"result": {"shown": shown}, "error": f"Its result cannot be kept as it is. {error}"}
