"""The subtask graph: faults are named, phases respect dependencies, the critical path is a real chain."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom.core.base.records import evolve
from greenroom.teamwork.plan import MAX_REQUEST, Plan, PlanFault, PlannedSubtask, TeamSettings
from greenroom.teamwork.plan_graph import (
    add_barriers,
    build_phases,
    check_plan,
    find_critical_path,
    find_cycle,
    find_disjoint_write_sets,
    is_inside,
    may_overlap,
)
from tests.teamwork.plans import AGENTS, graphs, plans

SETTINGS = TeamSettings(max_subtasks=20)


def make(*subtasks: PlannedSubtask) -> Plan:
    return Plan(request="add a search", subtasks=subtasks)


def part(name: str, *needs: str, agent: str = "code-writer", **more: object) -> PlannedSubtask:
    return evolve(PlannedSubtask(id=name, agent=agent, dependencies=needs), **more)


@given(plans())
def test_a_valid_plan_has_no_fault(plan: Plan) -> None:
    assert check_plan(plan, AGENTS, SETTINGS) is None


@given(plans(), st.sampled_from(["priority-based", "dependency-only"]))
def test_every_subtask_is_in_one_phase_after_all_its_dependencies(plan: Plan, strategy: str) -> None:
    phases = build_phases(plan, "priority-based" if strategy == "priority-based" else "dependency-only")
    number = {name: phase.number for phase in phases for name in phase.subtasks}
    assert sum(len(phase.subtasks) for phase in phases) == len(number) == len(plan.subtasks)
    assert [phase.number for phase in phases] == list(range(1, len(phases) + 1))
    for subtask in plan.subtasks:
        assert all(number[need] < number[subtask.id] for need in subtask.dependencies)
    seconds = {subtask.id: subtask.seconds for subtask in plan.subtasks}
    for phase in phases:
        assert phase.seconds == max(seconds[name] for name in phase.subtasks)
        assert phase.can_parallelize is (len(phase.subtasks) > 1)


@given(plans())
def test_priorities_admit_only_the_lowest_number_of_those_that_are_ready(plan: Plan) -> None:
    known = {subtask.id: subtask for subtask in plan.subtasks}
    done: set[str] = set()
    for phase in build_phases(plan):
        ready = [task for task in plan.subtasks if task.id not in done and done.issuperset(task.dependencies)]
        assert {known[name].priority for name in phase.subtasks} == {min(task.priority for task in ready)}
        done.update(phase.subtasks)


@given(plans())
def test_the_critical_path_is_a_chain_that_no_other_chain_exceeds(plan: Plan) -> None:
    known = {subtask.id: subtask for subtask in plan.subtasks}
    path = find_critical_path(plan)
    assert all(first in known[second].dependencies for first, second in pairwise(path))
    length = sum(known[name].seconds for name in path)
    assert length <= sum(subtask.seconds for subtask in plan.subtasks)

    def measure(name: str) -> int:
        return known[name].seconds + max(map(measure, known[name].dependencies), default=0)

    assert length == max(map(measure, known))


@given(graphs())
def test_a_cycle_is_always_found_and_is_a_real_one(subtasks: tuple[PlannedSubtask, ...]) -> None:
    known = {subtask.id: subtask for subtask in subtasks}

    def reach(name: str, seen: frozenset[str]) -> bool:
        return name in seen or any(reach(need, seen | {name}) for need in known[name].dependencies)

    cycle = find_cycle(subtasks)
    assert bool(cycle) is any(reach(name, frozenset()) for name in known)
    if cycle:
        assert cycle[0] == cycle[-1]
        assert all(second in known[first].dependencies for first, second in pairwise(cycle))
        fault = check_plan(make(*subtasks), AGENTS, SETTINGS)
        assert fault
        assert " → ".join(cycle) in str(fault)
        with pytest.raises(PlanFault, match="cycle"):
            build_phases(make(*subtasks))


@pytest.mark.parametrize(
    ("plan", "words", "nearest"),
    [
        (Plan(request=" \n"), "request is empty", ""),
        (Plan(request="x" * (MAX_REQUEST + 1)), "20,001 characters", ""),
        (make(), "no subtasks", ""),
        (make(*(part(f"s{number}") for number in range(21))), "21 subtasks. The limit is 20", ""),
        (make(part("Code 1")), "`Code 1`", ""),
        (make(part("../x")), "`../x`", ""),
        (make(part("verify")), "belongs to Greenroom", ""),
        (make(part("a"), part("a")), "Two subtasks have the id `a`", ""),
        (make(part("a", agent="code-writter")), "no specialist `code-writter`", "code-writer"),
        (make(part("a", agent="documentaton")), "no specialist", "documentation"),
        (make(part("code"), part("b", "coed")), "`b` depends on `coed`", "code"),
        (make(part("a", "a")), "a → a", ""),
        (make(part("a", writes=("../other/x.py",))), "leaves the repository: `../other/x.py`", ""),
        (make(part("a", symbols=("/etc/passwd:root",))), "leaves the repository: `/etc/passwd`", ""),
    ],
)
def test_a_fault_says_what_is_wrong_and_the_nearest_right_word(plan: Plan, words: str, nearest: str) -> None:
    fault = check_plan(plan, AGENTS, SETTINGS)
    assert fault
    assert words in str(fault)
    assert fault.nearest == nearest
    assert not nearest or f"Did you mean `{nearest}`?" in str(fault)


@pytest.mark.parametrize(
    "path",
    ["/a", "~/a", "a/../../b", "..", "C:\\x", "\\\\host\\x", ".git/config", "a/.GIT/x", "", " ", ".", "./", "a\nb"],
)
def test_a_path_outside_of_the_repository_is_found(path: str) -> None:
    assert not is_inside(path)


@pytest.mark.parametrize(
    "path", ["a.py", "src/**/*.py", ".github/x.yml", "./a", "a..b/c", "文档/说明.md", ".gitignore"]
)
def test_a_path_inside_of_the_repository_is_right(path: str) -> None:
    assert is_inside(path)


@pytest.mark.parametrize(
    ("first", "second", "meet"),
    [
        ("src/a.py", "src/b.py", False),
        ("src/a.py", "src/a.py", True),
        ("src/a.py", "SRC/A.py", True),
        ("src", "src/a.py", True),
        ("src/", "srcs/a.py", False),
        ("src/**", "docs/**", False),
        ("src/**/x.py", "src/y/z.py", True),
        ("src/*.py", "src/a.md", False),
        ("src/a*.py", "src/b*.py", False),
        ("src/a*.py", "src/*b.py", True),
        ("src/[ab].py", "src/[cd].py", True),
        ("*.md", "docs/a.md", False),
        ("./src/a.py", "src\\a.py", True),
        ("**", "a", True),
    ],
)
def test_patterns_that_may_name_one_file_overlap(first: str, second: str, meet: bool) -> None:
    assert may_overlap(first, second) is meet
    assert may_overlap(second, first) is meet


def test_disjoint_write_sets_join_subtasks_that_may_meet() -> None:
    plan = make(
        part("architect", agent="architect"),
        part("code-1", writes=("src/a/**",)),
        part("code-2", writes=("src/b/**",)),
        part("code-3", writes=("src/b/x.py", "src/c.py")),
        part("test", agent="test-writer", writes=("tests/**",)),
        part("doc", agent="documentation"),
        part("review", agent="review"),
    )
    assert find_disjoint_write_sets(plan) == (("code-1",), ("code-2", "code-3"), ("test",), ("doc",))


def test_unknown_write_sets_of_code_are_one_set() -> None:
    plan = make(part("a"), part("b", agent="refactor"), part("doc", agent="documentation"))
    assert find_disjoint_write_sets(plan) == (("a", "b"), ("doc",))


@given(plans())
def test_groups_of_write_sets_share_no_file(plan: Plan) -> None:
    known = {subtask.id: subtask for subtask in plan.subtasks}
    groups = find_disjoint_write_sets(plan)
    for number, group in enumerate(groups):
        for other in groups[number + 1 :]:
            pairs = [(known[a], known[b]) for a in group for b in other]
            assert not any(may_overlap(x, y) for a, b in pairs for x in a.writes for y in b.writes)


@given(plans())
def test_with_phases_a_subtask_waits_for_the_whole_phase_before(plan: Plan) -> None:
    plain, phased = add_barriers(evolve(plan, phases=False)), add_barriers(evolve(plan, phases=True))
    assert plain == {subtask.id: subtask.dependencies for subtask in plan.subtasks}
    phases = build_phases(plan)
    for before, phase in zip(((), *(phase.subtasks for phase in phases)), phases, strict=False):
        assert all(phased[name] == before for name in phase.subtasks)
