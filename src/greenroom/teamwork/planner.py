"""The planner by rules: specialists for task types, their subtasks, and the split of code by an architect's design."""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from itertools import pairwise
from typing import Final, get_args

from msgspec import ValidationError, convert

from greenroom.core.base.errors import translate
from greenroom.core.base.records import Data, evolve, record
from greenroom.teamwork.plan import Need, Plan, PlannedSubtask, PlanSource, Recommendation, TaskType, TeamSettings
from greenroom.teamwork.plan_graph import find_cycle, find_disjoint_write_sets, is_inside

MAX_NAME_CHARS: Final = 60
"""Maximum characters of a component's name in a plan. A design is the text of a model."""


@record
class PlanRules:
    """The content of `rules.toml`: specialists by task type with need and reason, and their subtasks."""

    recommend: Mapping[TaskType, Mapping[str, tuple[Need, str]]]
    subtasks: Mapping[str, PlannedSubtask]


@cache
def read_rules() -> PlanRules:
    """Return the rules. The subtasks are in the order in which specialists work."""
    data = tomllib.loads((files(__package__) / "rules.toml").read_text(encoding="utf-8"))
    for agent, subtask in data["subtasks"].items():
        subtask["agent"] = agent
    return convert(data, PlanRules)


def recommend(
    types: Collection[TaskType], default_agents: Iterable[str] = TeamSettings().default_agents
) -> tuple[Recommendation, ...]:
    """Return each specialist for these task types once, required ones first, then in the order in which they work.

    Features and refactorings get the default agents too. A refactoring alone gets no code writer beside its own one.
    """
    rules, needs = read_rules(), get_args(Need)
    wanted = [(agent, *advice) for kind in _sort(types) for agent, advice in rules.recommend[kind].items()]
    if {"feature-development", "refactoring"} & set(types):
        is_code = bool({"feature-development", "bug-fix"} & set(types))
        wanted += [(agent, "recommended", "default") for agent in default_agents if agent != "code-writer" or is_code]
    order = {agent: index for index, agent in enumerate(rules.subtasks)}
    wanted.sort(key=lambda row: (needs.index(row[1]), order.get(row[0], len(order))))
    best: dict[str, Recommendation] = {}
    for agent, need, reason in wanted:
        best.setdefault(agent, Recommendation(agent=agent, priority=need, reason=translate(f"plan.because_{reason}")))
    return tuple(best.values())


def _sort(types: Collection[TaskType]) -> tuple[TaskType, ...]:
    return tuple(kind for kind in get_args(TaskType) if kind in types)


def plan_by_rules(
    request: str,
    types: Collection[TaskType],
    recommended: Sequence[Recommendation],
    settings: TeamSettings,
    *,
    source: PlanSource = "rules",
) -> Plan:
    """Return the plan with one subtask per specialist. The least needed are left out if there are too many."""
    rules = read_rules().subtasks
    order = {agent: index for index, agent in enumerate(rules)}
    chosen = sorted(recommended[: settings.max_subtasks], key=lambda advice: order.get(advice.agent, -1))
    code = rules["code-writer"]  # an own profile works on the request as a code writer does
    names = [advice.agent for advice in chosen]
    drafts = [rules.get(name) or evolve(code, id=name, agent=name, name=name) for name in names]
    subtasks = [
        evolve(
            draft,
            name=draft.name or translate(f"plan.name_{draft.id}"),
            description=request if draft.name or draft is code else translate(f"plan.goal_{draft.id}"),
            dependencies=_find_dependencies(draft, drafts, settings) if settings.consider_dependencies else (),
            required=advice.priority == "required",
            tries=settings.tries,
        )
        for draft, advice in zip(drafts, chosen, strict=True)
    ]
    return Plan(
        request=request,
        task_types=_sort(types),
        subtasks=tuple(subtasks),
        source=source,
        on_failure=settings.on_failure,
        phases=not (settings.optimize_for_speed and settings.consider_dependencies),
        max_concurrent=settings.max_concurrent_agents,
    )


def _find_dependencies(
    draft: PlannedSubtask, drafts: Iterable[PlannedSubtask], settings: TeamSettings
) -> tuple[str, ...]:
    """Return what a subtask waits for. By priority, documents begin with the code: when it is designed."""
    begins_with_code = draft.agent == "documentation" and settings.strategy == "priority-based"
    wanted = read_rules().subtasks["code-writer"].dependencies if begins_with_code else draft.dependencies
    others = [other.id for other in drafts if other is not draft]
    return tuple(name for name in others if draft.agent == "review" or name in wanted)


@record
class DesignComponent:
    """A component of a `design-handoff`, as far as the split needs it."""

    name: str
    purpose: str = ""
    dependencies: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    symbols: tuple[str, ...] = ()


def split_by_design(
    subtasks: Sequence[PlannedSubtask], design: Data, max_subtasks: int = TeamSettings().max_subtasks
) -> tuple[PlannedSubtask, ...] | None:
    """Replace the only code subtask by one per group of components that share no file with another group.

    `design` is a `design-handoff`. Return None if its components do not have two disjoint write sets. If there are more
    groups than subtasks may be, each gets about as many. Subtasks that depend on the code then depend on all its parts.
    """
    codes = [subtask for subtask in subtasks if subtask.agent == "code-writer"]
    groups = _group_components(design)
    room = max_subtasks - len(subtasks) + 1
    if len(codes) != 1 or len(groups) < 2 or room < 2:
        return None
    cuts = [len(groups) * cut // min(room, len(groups)) for cut in range(min(room, len(groups)) + 1)]
    groups = [[part for group in groups[start:end] for part in group] for start, end in pairwise(cuts)]
    names = tuple(f"{codes[0].id}-{number}" for number in range(1, len(groups) + 1))
    if {subtask.id for subtask in subtasks} & set(names):
        return None
    parts = _order_parts([_make_part(codes[0], name, group) for name, group in zip(names, groups, strict=True)], groups)
    split: list[PlannedSubtask] = []
    for subtask in subtasks:
        needs = tuple(part for need in subtask.dependencies for part in (names if need == codes[0].id else (need,)))
        split += parts if subtask is codes[0] else [evolve(subtask, dependencies=needs)]
    return tuple(split)


def _order_parts(parts: list[PlannedSubtask], groups: Sequence[Sequence[DesignComponent]]) -> list[PlannedSubtask]:
    """Let each part depend on those whose components its own ones need, unless that is a cycle."""
    home = {component.name: part.id for part, group in zip(parts, groups, strict=True) for component in group}
    ordered = []
    for part, group in zip(parts, groups, strict=True):
        needs = [home[name] for component in group for name in component.dependencies if name in home]
        others = tuple(name for name in dict.fromkeys(needs) if name != part.id)
        ordered.append(evolve(part, dependencies=(*part.dependencies, *others)))
    return parts if find_cycle(ordered) else ordered


def _make_part(code: PlannedSubtask, name: str, group: Sequence[DesignComponent]) -> PlannedSubtask:
    names = [" ".join(part.name.split())[:MAX_NAME_CHARS] for part in group]
    duties = [f"- {name} ({', '.join(part.writes)})" for name, part in zip(names, group, strict=True)]
    return evolve(
        code,
        id=name,
        name=f"{code.name}: {', '.join(names)}",
        description="\n".join([code.description, "", translate("plan.your_part"), *duties]),
        writes=tuple(dict.fromkeys(path for part in group for path in part.writes)),
        symbols=tuple(dict.fromkeys(symbol for part in group for symbol in part.symbols)),
    )


def _group_components(design: Data) -> list[list[DesignComponent]]:
    """Join the components that may write the same file. Return nothing if the files of one are unknown or outside."""
    try:
        components = convert(design.get("components"), tuple[DesignComponent, ...])
    except ValidationError:
        return []
    if not all(part.writes and all(is_inside(path) for path in part.writes) for part in components):
        return []
    parts = [PlannedSubtask(id=str(at), agent="", writes=part.writes) for at, part in enumerate(components)]
    groups = find_disjoint_write_sets(Plan(request="", subtasks=tuple(parts)))
    return [[components[int(name)] for name in group] for group in groups]
