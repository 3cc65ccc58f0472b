"""The subtask graph of a plan: what is wrong with it, its phases, its critical path and its disjoint write sets."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase
from graphlib import CycleError, TopologicalSorter
from operator import itemgetter
from typing import Final, TypeVar

from greenroom.teamwork.plan import MAX_REQUEST, Phase, Plan, PlanFault, PlannedSubtask, Strategy, TeamSettings

K = TypeVar("K")

BASELINE_SUBTASK: Final = "baseline"
SPLIT_SUBTASK: Final = "split"
VERIFY_SUBTASK: Final = "verify"
OWN_SUBTASKS: Final = (BASELINE_SUBTASK, SPLIT_SUBTASK, VERIFY_SUBTASK, "main")
"""Names that Greenroom uses for its own subtasks and branches."""

WRITE_NOTHING: Final = ("architect", "review", "debug", "security")
"""Specialists that read and report unless their subtask has a write set."""

_ID: Final = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?")
_WILD: Final = re.compile(r"[*?\[]")


def find_nearest(word: str, known: Iterable[str]) -> str:
    """Return the known word that is most similar, or an empty text."""
    return next(iter(get_close_matches(word.lower(), list(known), n=1, cutoff=0.5)), "")


def check_plan(plan: Plan, profile_names: Collection[str], settings: TeamSettings) -> PlanFault | None:
    """Return the first fault of a plan, or None. `decide_team` looks at too few subtasks."""
    count, limit = len(plan.subtasks), settings.max_subtasks
    if fault := check_request(plan.request):
        return fault
    if not count:
        return PlanFault("plan.no_subtasks").at()
    if count > limit:
        return PlanFault("plan.too_many_subtasks", count=count, limit=limit).at(limit, "id")
    faults = filter(None, (_check_subtask(plan, index, profile_names) for index in range(count)))
    return next(faults, None) or _check_dependencies(plan)


def check_request(request: str) -> PlanFault | None:
    """Return the fault of an empty or over-long request."""
    if not request.strip():
        return PlanFault("plan.no_request").at(key="request")
    if len(request) > MAX_REQUEST:
        fault = PlanFault("plan.request_too_long", length=f"{len(request):,}", limit=f"{MAX_REQUEST:,}")
        return fault.at(key="request")
    return None


def _check_subtask(plan: Plan, index: int, profile_names: Collection[str]) -> PlanFault | None:
    """Return what is wrong with the id, the profile or the write set of a subtask."""
    subtask, used = plan.subtasks[index], {other.id for other in plan.subtasks[:index]}
    if not _ID.fullmatch(subtask.id):
        return PlanFault("plan.wrong_id", id=subtask.id).at(index, "id")
    if subtask.id in OWN_SUBTASKS:
        return PlanFault("plan.own_id", id=subtask.id).at(index, "id")
    if subtask.id in used:
        return PlanFault("plan.same_id", id=subtask.id).at(index, "id")
    if subtask.agent not in profile_names:
        fault = PlanFault("plan.unknown_agent", agent=subtask.agent, known=", ".join(sorted(profile_names)))
        return fault.at(index, "agent", nearest=find_nearest(subtask.agent, profile_names))
    for key, paths in (("writes", subtask.writes), ("symbols", [name.partition(":")[0] for name in subtask.symbols])):
        for path in paths:
            if not is_inside(path):
                return PlanFault("plan.outside", subtask=subtask.id, path=path).at(index, key)
    return None


def is_inside(path: str) -> bool:
    """Whether a path or pattern of a write set stays in the repository and out of `.git`."""
    parts = path.replace("\\", "/").split("/")
    is_absolute = path.startswith(("/", "\\", "~")) or ":" in parts[0]
    is_odd = not path.strip(" ./\\") or any(ord(letter) < 32 for letter in path)
    return not (is_absolute or is_odd or ".." in parts or ".git" in (part.casefold() for part in parts))


def _check_dependencies(plan: Plan) -> PlanFault | None:
    known = [subtask.id for subtask in plan.subtasks]
    for index, subtask in enumerate(plan.subtasks):
        for name in subtask.dependencies:
            if name not in known:
                fault = PlanFault("plan.unknown_dependency", subtask=subtask.id, dependency=name)
                return fault.at(index, "dependencies", nearest=find_nearest(name, known))
    if cycle := find_cycle(plan.subtasks):
        index = [subtask.id for subtask in plan.subtasks].index(cycle[0])
        return PlanFault("plan.cycle", cycle=" → ".join(cycle)).at(index, "dependencies")
    return None


def find_cycle(subtasks: Sequence[PlannedSubtask]) -> tuple[str, ...]:
    """Return the ids of a cycle, each of which depends on the next, with the first one repeated; or nothing."""
    try:
        TopologicalSorter({subtask.id: subtask.dependencies for subtask in subtasks}).prepare()
    except CycleError as error:
        return tuple(reversed(error.args[1]))
    return ()


def build_phases(plan: Plan, strategy: Strategy = "priority-based") -> tuple[Phase, ...]:
    """Return the phases: all subtasks whose dependencies are done, by priority only those with the lowest number.

    Raise `PlanFault` for a cycle and for an unknown dependency.
    """
    if fault := _check_dependencies(plan):
        raise fault
    waiting, done, phases = list(plan.subtasks), set[str](), list[Phase]()
    while waiting:
        ready = [subtask for subtask in waiting if done.issuperset(subtask.dependencies)]
        if strategy == "priority-based":
            first = min(subtask.priority for subtask in ready)
            ready = [subtask for subtask in ready if subtask.priority == first]
        names = tuple(subtask.id for subtask in ready)
        done.update(names)
        waiting = [subtask for subtask in waiting if subtask.id not in done]
        longest = max(subtask.seconds for subtask in ready)
        phases.append(Phase(number=len(phases) + 1, subtasks=names, can_parallelize=len(names) > 1, seconds=longest))
    return tuple(phases)


def find_critical_path(plan: Plan) -> tuple[str, ...]:
    """Return the ids of the chain of dependencies that takes longest, in their order. Raise `PlanFault` for a cycle."""
    if fault := _check_dependencies(plan):
        raise fault
    seconds = {subtask.id: subtask.seconds for subtask in plan.subtasks}
    return find_longest_chain(seconds, {subtask.id: subtask.dependencies for subtask in plan.subtasks})


def find_longest_chain(seconds: Mapping[K, int], needs: Mapping[K, Sequence[K]]) -> tuple[K, ...]:
    """Return the chain of what needs each other that takes longest, in its order. There are no cycles."""
    chains = dict[K, tuple[int, tuple[K, ...]]]()
    for name in TopologicalSorter(needs).static_order():
        before, chain = max((chains[need] for need in needs[name]), key=itemgetter(0), default=(0, ()))
        chains[name] = before + seconds[name], (*chain, name)
    return max(chains.values(), key=itemgetter(0), default=(0, ()))[1]


def find_disjoint_write_sets(plan: Plan) -> tuple[tuple[str, ...], ...]:
    """Return groups of writing subtasks: those of one group may touch the same files, those of two groups never do.

    Subtasks without a write set are in one group, apart from specialists for tests and documents.
    """
    writers = [subtask for subtask in plan.subtasks if subtask.writes or subtask.agent not in WRITE_NOTHING]
    groups: list[list[PlannedSubtask]] = []
    for subtask in writers:
        near = [group for group in groups if any(_may_meet(subtask, other) for other in group)]
        groups = [group for group in groups if group not in near]
        groups.append([*(other for group in near for other in group), subtask])
    order = {subtask.id: index for index, subtask in enumerate(plan.subtasks)}
    named = (tuple(sorted((subtask.id for subtask in group), key=order.__getitem__)) for group in groups)
    return tuple(sorted(named, key=lambda names: order[names[0]]))


def _may_meet(first: PlannedSubtask, second: PlannedSubtask) -> bool:
    if first.writes and second.writes:
        return any(may_overlap(path, other) for path in first.writes for other in second.writes)
    kinds = [subtask.agent if subtask.agent in ("test-writer", "documentation") else "" for subtask in (first, second)]
    return kinds[0] == kinds[1]


def may_overlap(first: str, second: str) -> bool:
    """Whether two paths or patterns can name the same file. A folder covers what is below it; if in doubt, True."""
    sides = [path.replace("\\", "/").casefold().removeprefix("./").strip("/").split("/") for path in (first, second)]
    for left, right in zip(*sides, strict=False):
        if "**" in (left, right):
            return True
        if not _may_match(left, right):
            return False
    return True


def _may_match(left: str, right: str) -> bool:
    """Whether two parts of paths can be the same name."""
    if not _WILD.search(f"{left}{right}"):
        return left == right
    if not _WILD.search(left):
        return fnmatchcase(left, right)
    if not _WILD.search(right):
        return fnmatchcase(right, left)
    heads = [_WILD.split(part)[0] for part in (left, right)]
    tails = [re.split(r"[*?\]]", part)[-1] for part in (left, right)]
    is_head = heads[0].startswith(heads[1]) or heads[1].startswith(heads[0])
    return is_head and (tails[0].endswith(tails[1]) or tails[1].endswith(tails[0]))


def add_barriers(plan: Plan, strategy: Strategy = "priority-based") -> Mapping[str, tuple[str, ...]]:
    """Return what each subtask waits for: its dependencies, or with `phases` all subtasks of the phase before."""
    if not plan.phases:
        return {subtask.id: subtask.dependencies for subtask in plan.subtasks}
    phases = build_phases(plan, strategy)
    before = ((), *(phase.subtasks for phase in phases))
    waits = {name: before[index] for index, phase in enumerate(phases) for name in phase.subtasks}
    return {subtask.id: waits[subtask.id] for subtask in plan.subtasks}
