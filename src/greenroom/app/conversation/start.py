"""Starts a question, a run or a chat: its participants, its first messages and its team."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from greenroom.abilities.skills.plan_task import name_copy
from greenroom.app.cost import MILLIONTHS_PER_DOLLAR
from greenroom.app.runtime import Runtime
from greenroom.app.settings.schema import AgentDefaults
from greenroom.app.team_host import TeamHost
from greenroom.app.words import shorten
from greenroom.core.base.amounts import Limits
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.ids import AgentId, TaskId, TeamId, task_id
from greenroom.core.base.records import evolve, record
from greenroom.core.ports.executor import Capabilities
from greenroom.core.ports.model import Model
from greenroom.core.rules.intents import AddTask, QueueSteps
from greenroom.core.state.origin import make_label
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.step import StoredMedia, Work
from greenroom.core.state.task import Routing
from greenroom.runs.workspace import DEFAULT_RUN_FLAGS, RunFlags

ASSISTANT_PROFILE: Final = "Answer what you are asked: to the point, and honest about what you do not know."
ASSISTANT: Final = AgentSpec(name="assistant", role="an assistant", profile=ASSISTANT_PROFILE, manager=True)
FIRST_TASK_ID: Final[TaskId] = task_id(1)
"""The only task of a conversation."""

PERSON_TOOLS: Final = frozenset({"ask_user", "propose_plan"})
"""Tools that ask the person. A copy that works on a part of a plan does not have them."""

MAX_NAME_CHARS: Final = 60
"""How many characters of a question become the task's name."""


@record
class Participants:
    """The participants: first the agent that the person talks to, then the agents it can call. `missing` are unknown
    names. `workspace` is the folder of their tools, empty without tools. A `routing` team joins one by one."""

    members: tuple[tuple[AgentId, AgentSpec], ...]
    missing: tuple[str, ...] = ()
    workspace: str = ""
    routing: Routing | None = None

    @property
    def with_copies(self) -> tuple[tuple[AgentId, AgentSpec], ...]:
        """The participants, and copies of those that split tasks. A copy has the same rights, asks no person, and ends
        its part by itself."""
        return (*self.members, *(copy for member in self.members for copy in _list_copies(*member)))

    @property
    def first(self) -> AgentId:
        """The agent that the person talks to."""
        return self.members[0][0]

    @property
    def models(self) -> tuple[str, ...]:
        """The models of the participants, the first agent's model first."""
        return tuple(dict.fromkeys(read_model_name(spec) for _, spec in self.members))


def select_participants(
    spec: AgentSpec,
    callable_agents: Mapping[str, AgentSpec],
    resolve_alias: Callable[[str], str],
    *,
    model: str = "",
    tools: bool = True,
    language: str = "",
    defaults: AgentDefaults | None = None,
    is_attended: bool = False,
) -> Participants:
    """Return an agent and the agents it calls. `resolve_alias` resolves model names; `model` overrides its own.

    Only if a person is there (`is_attended`), an agent looks back at its work with them.
    """
    main_model = resolve_alias(model or read_model_name(spec))
    specs, missing, todo = {spec.name: replace_model(spec, main_model)}, list[str](), list(spec.calls)
    for name in todo:
        if name in specs or name in missing:
            continue
        if name not in callable_agents:
            missing.append(name)
            continue
        other = callable_agents[name]
        specs[name] = replace_model(
            other, resolve_alias(read_model_name(other)) if read_model_name(other) else main_model
        )
        todo += other.calls
    members = [
        (AgentId(name), _adapt_spec(member_spec, defaults, tools=tools, language=language))
        for name, member_spec in specs.items()
    ]
    first, first_spec = members[0]
    looks_back = first_spec.history.retrospective
    if looks_back is None and defaults is not None:
        looks_back = defaults.retrospective
    saves = first_spec.history.force_save_memory
    if saves is None and defaults is not None:
        saves = defaults.force_save_memory
    history = evolve(first_spec.history, retrospective=bool(looks_back) and is_attended, force_save_memory=saves)
    members[0] = (first, evolve(first_spec, history=history))
    return Participants(members=tuple(members), missing=tuple(missing))


def select_team(
    routing: Routing, resolve_alias: Callable[[str], str], *, model: str, tools: bool, language: str
) -> Participants:
    """Return all members of a routing team, the main agent first. `model` overrides the model of the main agent, which
    members without their own use too."""
    main = next(member for member in routing.members if member.name == routing.main)
    others = {member.name: member for member in routing.members if member is not main}
    everyone = evolve(main, calls=tuple(others))
    found = select_participants(everyone, others, resolve_alias, model=model, tools=tools, language=language)
    return evolve(found, routing=routing)


def let_others_join_later(participants: Participants) -> Participants:
    """Return a routing team of which only the main agent is there at the start; other participants unchanged."""
    if participants.routing is None:
        return participants
    everyone = tuple((name, evolve(spec, calls=())) for name, spec in participants.members)
    specs = tuple(spec for _, spec in everyone)
    return evolve(participants, members=everyone[:1], routing=evolve(participants.routing, members=specs))


def _list_copies(agent: AgentId, spec: AgentSpec) -> Iterator[tuple[AgentId, AgentSpec]]:
    """Yield a copy for each depth at which a part of a task can be split."""
    tools = tuple(name for name in spec.tools if name not in PERSON_TOOLS)
    turn = evolve(spec.turn, auto_complete=True)
    name = agent
    for depth in range(spec.planner.depth_limit):
        name = name_copy(name, depth)
        planner = evolve(spec.planner, depth=depth + 1)
        changes = {"planner": planner, "tools": tools, "turn": turn, "answer": None, "proof": "", "manager": False}
        yield (
            name,
            evolve(
                spec,
                name=name,
                history=evolve(spec.history, need_summary=False, retrospective=False, force_save_memory=False),
                **changes,
            ),
        )


def read_model_name(spec: AgentSpec) -> str:
    """Return the name of an agent's model. An empty name means the default model."""
    return str((spec.llm_config or {}).get("model", ""))


def replace_model(spec: AgentSpec, model: str) -> AgentSpec:
    return evolve(spec, llm_config={**(spec.llm_config or {}), "model": model})


def refuse_unpriced(model: Model, limits: Limits) -> None:
    """Raise `WorldFault` if there is a cost limit and the price of the model is unknown."""
    if limits.money is not None and model.price(1, 1) is None:
        raise WorldFault("start.price_unknown", name=model.name, cost=limits.money / MILLIONTHS_PER_DOLLAR)


def _adapt_spec(spec: AgentSpec, defaults: AgentDefaults | None, *, tools: bool, language: str) -> AgentSpec:
    """Return the agent as a participant of a conversation. Planning agents converse there too."""
    base = spec if tools else evolve(spec, tools=(), groups=())
    planner = spec.planner
    if defaults is not None and tools and planner.enabled is None:
        planner = evolve(planner, enabled=defaults.plan)
    if defaults is not None and planner.enabled and planner.max_depth is None:
        planner = evolve(planner, max_depth=defaults.plan_max_depth)
    return evolve(base, style="converse", skills=(), language=base.language or language, planner=planner)


async def create_single_task_team(
    runtime: Runtime,
    capabilities_name: str,
    participants: Participants,
    question: str,
    *,
    typed: str = "",
    media: tuple[StoredMedia, ...] = (),
    limits: Limits,
    wanted: RunFlags = DEFAULT_RUN_FLAGS,
    capabilities: Capabilities | None = None,
    on_open: Callable[[TeamHost], None] | None = None,
) -> TeamId:
    """Create a team whose answer ends its only task. `typed` is the part that a person wrote. See `Runtime.create`."""
    shown = typed or question
    task = make_question_task(shown, participants)
    works, origins = (make_turn(question, typed, wanted, media),), label_attachments(question, typed, media)
    first_turn = QueueSteps(agent_id=participants.first, works=works, task_id=FIRST_TASK_ID, origins=origins)
    return await runtime.create(
        capabilities_name,
        participants.with_copies,
        capabilities_name=capabilities_name,
        workspace=participants.workspace,
        limits=limits,
        first_intents=(task, first_turn),
        capabilities=capabilities,
        on_open=on_open,
    )


def make_turn(
    text: str, typed: str = "", wanted: RunFlags = DEFAULT_RUN_FLAGS, media: tuple[StoredMedia, ...] = ()
) -> Work:
    """Make the work of a turn. `typed` is stored for display if the text contains more than that."""
    return Work(
        type="skill",
        executor="converse",
        intention=typed if typed != text else "",
        text_content=text,
        instruction_content=wanted.data,
        media=media,
    )


def label_attachments(text: str, typed: str, media: tuple[StoredMedia, ...] = ()) -> tuple[str, ...]:
    """Return the origin labels of attached files or piped input."""
    return (make_label("file", "attached"),) if media or (typed and typed != text) else ()


def make_question_task(typed: str, participants: Participants) -> AddTask:
    """Make the task of a question or run."""
    return _make_task(shorten_name(typed) or "question", typed, participants)


def make_chat_task(typed: str, participants: Participants) -> AddTask:
    """Make the task of a chat, which stays open."""
    return _make_task(f"Chat: {shorten_name(typed)}", "Talk with a person.", participants)


def shorten_name(text: str) -> str:
    """Return what a person typed as the name of a task."""
    return shorten(text, MAX_NAME_CHARS)


def _make_task(name: str, intention: str, participants: Participants) -> AddTask:
    return AddTask(
        name=name,
        intention=intention,
        manager=participants.first,
        group=tuple(agent_id for agent_id, _ in participants.with_copies),
        routing=participants.routing,
    )
