"""Builds requests to models again by running a turn up to the model call: an agent's first one, and those of a run."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, cast

from greenroom.abilities.skills.converse import Converse
from greenroom.actors.payload import restore_result
from greenroom.adapters.storage.memory import MemoryLog
from greenroom.app.conversation.capability_names import SINGLE_TASK
from greenroom.app.runtime import Runtime
from greenroom.app.text_reader import TextReader
from greenroom.core.base.errors import Bug, GreenroomError, WorldFault
from greenroom.core.base.ids import AgentId, task_id
from greenroom.core.base.records import record
from greenroom.core.ports.executor import LiveEvent, Outcome, StepContext
from greenroom.core.ports.model import (
    Finished,
    Model,
    ModelCard,
    ModelEvent,
    ModelRequest,
    Models,
    ModelTextDelta,
    ToolSpec,
)
from greenroom.core.ports.reply_reader import ReplyReader
from greenroom.core.ports.skill_library import SkillLibrary
from greenroom.core.rules.intents import AddTask, QueueSteps
from greenroom.core.state.agent import AgentState
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.step import Step, Work
from greenroom.core.state.team_state import TeamState

if TYPE_CHECKING:
    from greenroom.app.context import AppContext

CAPTURING_MODEL_NAME: Final = "prompt:nobody"


@record
class RequestContext:
    """What a request contains besides the agent: tools, callable agents, the text reader, notes and skills."""

    tools: tuple[ToolSpec, ...] = ()
    callable_agents: Mapping[str, AgentSpec]
    reader: ReplyReader | None = None
    project_notes: str = ""
    skills: SkillLibrary | None = None


@record
class FirstRequest:
    """The request, its model, and the skills chosen for it. Without a model, `trouble` says why."""

    request: ModelRequest
    model: str = ""
    trouble: str = ""
    skills: tuple[str, ...] = ()


async def build_first_request(spec: AgentSpec, message: str, models: Models, context: RequestContext) -> FirstRequest:
    """Return the first request of this agent for a new task with `message`. No model is called."""
    capture = _CapturingModels(models)
    converse = Converse(
        capture,
        context.tools,
        solo=True,
        reader=context.reader,
        project=context.project_notes,
        skills=context.skills,
    )
    step_context = await _make_step_context(spec, message, context.callable_agents)
    outcome = await converse.run(cast("StepContext", step_context))
    if capture.request is None:
        raise Bug(f"{spec.name!r} would not call a model.")
    skills = tuple(cast("list[str]", (outcome.result or {}).get("skills", ())))
    return FirstRequest(request=capture.request, model=capture.model_name, trouble=capture.trouble, skills=skills)


async def rebuild_request(state: TeamState, step: Step, app: AppContext) -> ModelRequest | None:
    """Return the request of a running converse step. `state` is that of the run when the step began.

    The conversation is that of the log. Tools, notes and skills are those of now. None if the turn made no request.
    """
    capture, tools = _CapturingModels(app), app.toolbox()
    converse = Converse(
        capture,
        tools.specs,
        solo=state.team.kit in SINGLE_TASK,
        reader=TextReader(),
        project=app.notes(),
        skills=app.skills,
    )
    thread, team = state.threads[step.thread_id], state.team.team_id
    history = list(await app.thread_steps(team, thread.last, thread.window_from))
    whole = [await restore_result(ended, app.runtime.log) if ended.blobs else ended for ended in history]
    step_context = _FirstStepContext(state, step.agent_id, step, whole, app.blob)
    try:
        await converse.run(cast("StepContext", step_context))
    except (GreenroomError, LookupError):  # what it needs was changed or removed since
        return capture.request
    return capture.request


async def _make_step_context(
    spec: AgentSpec, message: str, callable_agents: Mapping[str, AgentSpec]
) -> _FirstStepContext:
    """Make the context of the first step, in an in-memory team with the agent and those it calls."""
    runtime = Runtime(MemoryLog())
    agent = AgentId(spec.name)
    called_agents = [
        (AgentId(name), callable_agents[name]) for name in spec.calls if name in callable_agents and name != spec.name
    ]
    work = Work(type="skill", executor="converse", intention="Answer.", text_content=message)
    first_intents = (
        AddTask(name="prompt", intention=message, manager=agent),
        QueueSteps(agent_id=agent, works=(work,), task_id=task_id(1)),
    )
    try:
        team = await runtime.create("prompt", [(agent, spec), *called_agents], first_intents=first_intents)
        return _FirstStepContext(await runtime.state(team), agent)
    finally:
        await runtime.close()


class _FirstStepContext:
    """The context of a step that is not really run. Without a `step` it is the agent's first."""

    def __init__(
        self,
        state: TeamState,
        agent: AgentId,
        step: Step | None = None,
        history: Sequence[Step] = (),
        read_blob: Callable[[str], Awaitable[bytes]] | None = None,
    ) -> None:
        self.state = state
        self.agent: AgentState = state.agents[agent]
        self.step: Step = step or next(known for known in state.steps.values() if known.agent_id == agent)
        self._history = history
        self._read_blob = read_blob
        self.key = f"prompt:{self.step.step_id}"

    def show(self, event: LiveEvent) -> None:
        """Do nothing: there are no observers."""

    def set_partial_outcome(self, partial_outcome: Callable[[], Outcome | None]) -> None:
        """Do nothing: the step is never cancelled."""

    async def history(self) -> Sequence[Step]:
        """Return the ended steps before it."""
        return self._history

    async def blob(self, digest: str) -> bytes:
        """Return a large result, whole."""
        if self._read_blob is None:
            raise Bug("A first step has no blobs.")
        return await self._read_blob(digest)


class _CapturingModels:
    """The models, with one that captures the request instead of answering."""

    def __init__(self, models: Models) -> None:
        self._models = models
        self.request: ModelRequest | None = None
        self.model_name = ""
        self.trouble = ""
        self.name = CAPTURING_MODEL_NAME
        self.card = ModelCard()

    def get_model(self, name: str) -> Model:
        """Return the capturing model in place of the named one."""
        try:
            meant = self._models.get_model(name)
        except WorldFault as fault:
            self.trouble = str(fault)
        else:
            self.model_name, self.name, self.card = meant.name, meant.name, meant.card
        return self

    def price(self, read: int, written: int) -> int | None:
        return 0 * (read + written)

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        self.request = request
        yield ModelTextDelta(text="(no model was called)")
        yield Finished()
