"""The planner by rules, the estimate, the decision for a team, and the split by a design."""

from __future__ import annotations

from itertools import combinations
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom.core.base.records import evolve
from greenroom.teamwork.estimate import Basis, decide_team, estimate_plan
from greenroom.teamwork.plan import Plan, PlannedSubtask, TaskType, TeamSettings
from greenroom.teamwork.plan_graph import build_phases, check_plan, find_disjoint_write_sets
from greenroom.teamwork.planner import plan_by_rules, recommend, split_by_design
from tests.teamwork.plans import AGENTS, plans

SETTINGS = TeamSettings()
TYPES: tuple[TaskType, ...] = get_args(TaskType)


def make(*types: TaskType, **changes: object) -> Plan:
    settings = evolve(SETTINGS, **changes)
    return plan_by_rules("add OAuth login", types, recommend(types, settings.default_agents), settings)


def show(plan: Plan) -> dict[str, tuple[str, ...]]:
    return {subtask.id: subtask.dependencies for subtask in plan.subtasks}


def test_a_feature_gets_its_specialists_and_the_default_agents() -> None:
    advice = [(row.agent, row.priority) for row in recommend(["feature-development"])]
    assert advice == [
        ("architect", "required"),
        ("code-writer", "required"),
        ("test-writer", "required"),
        ("documentation", "recommended"),
        ("review", "recommended"),
    ]
    assert all(row.reason and not row.reason.startswith("plan.") for row in recommend(TYPES))


def test_other_types_get_their_own_specialists() -> None:
    assert [row.agent for row in recommend(["bug-fix"])] == ["debug", "code-writer", "test-writer"]
    assert [row.agent for row in recommend(["testing"])] == ["test-writer"]
    assert [row.agent for row in recommend(["documentation"])] == ["documentation"]
    assert [row.agent for row in recommend(["refactoring"])] == ["refactor", "test-writer", "architect", "review"]
    assert recommend([]) == ()


def test_a_need_that_is_stronger_wins() -> None:
    both = {row.agent: row.priority for row in recommend(["feature-development", "documentation"])}
    assert both["documentation"] == "required"


def test_a_feature_has_the_subtasks_of_the_design() -> None:
    plan = make("feature-development")
    assert show(plan) == {
        "architect": (),
        "code": ("architect",),
        "test": ("code",),
        "doc": ("architect",),
        "review": ("architect", "code", "test", "doc"),
    }
    rows = [(subtask.priority, subtask.seconds) for subtask in plan.subtasks]
    assert rows == [(1, 300), (2, 180), (3, 150), (2, 120), (4, 240)]
    assert plan.subtasks[1].description == "add OAuth login"
    assert [phase.subtasks for phase in build_phases(plan)] == [("architect",), ("code", "doc"), ("test",), ("review",)]
    free_plan = make("feature-development", strategy="dependency-only")
    free = [phase.subtasks for phase in build_phases(free_plan, "dependency-only")]
    assert free == [("architect", "doc"), ("code",), ("test",), ("review",)]


def test_debug_and_refactor_come_before_the_code_and_tests_after_both() -> None:
    assert show(make("bug-fix", "refactoring", default_agents=())) == {
        "debug": (),
        "refactor": ("debug",),
        "code": ("debug", "refactor"),
        "test": ("refactor", "code"),
        "review": ("debug", "refactor", "code", "test"),
    }


@pytest.mark.parametrize("types", [kinds for count in range(1, 6) for kinds in combinations(TYPES, count)])
@pytest.mark.parametrize("changes", [{}, {"consider_dependencies": False}, {"default_agents": AGENTS}])
def test_every_plan_by_rules_is_valid(types: tuple[TaskType, ...], changes: dict[str, object]) -> None:
    plan = make(*types, **changes)
    assert check_plan(plan, AGENTS, SETTINGS) is None
    assert plan.phases is ("consider_dependencies" in changes)


def test_the_least_needed_specialists_are_left_out_of_a_full_plan() -> None:
    plan = make("feature-development", max_subtasks=3)
    assert [subtask.id for subtask in plan.subtasks] == ["architect", "code", "test"]


def test_an_own_profile_among_the_default_agents_is_in_the_plan() -> None:
    plan = make("feature-development", default_agents=("painter", "review"))
    assert show(plan)["painter"] == ("architect",)
    assert "painter" in show(plan)["review"]


def test_the_estimate_of_a_feature_has_the_numbers_of_the_profiles() -> None:
    estimate = estimate_plan(make("feature-development"))
    assert (estimate.serial_seconds, estimate.critical_seconds, estimate.agents) == (990, 870, 5)
    assert estimate.parallelizable_ratio == 0.303
    assert estimate.merge_seconds == 15
    assert estimate.gain == 1.12
    assert estimate.basis == "profiles"
    assert estimate.cost is None


def test_the_estimate_uses_past_runs_where_there_are_some() -> None:
    plan = make("testing", "documentation")
    past = {"test-writer": Basis(seconds=60, tokens=1000, cost=0.5, runs=3)}
    mixed = estimate_plan(plan, past)
    assert (mixed.basis, mixed.serial_seconds, mixed.cost) == ("mixed", 180, None)
    priced = estimate_plan(plan, past, lambda agent, tokens: tokens / 1_000_000)
    assert priced.cost
    assert priced.cost.low < 0.53 < priced.cost.high
    full = estimate_plan(plan, {**past, "documentation": Basis(seconds=10, tokens=10, cost=0.1, runs=1)})
    assert full.basis == "past_runs"
    assert full.seconds.high - full.seconds.low < mixed.seconds.high - mixed.seconds.low


@given(plans())
def test_an_estimate_is_between_the_critical_path_and_one_after_the_other(plan: Plan) -> None:
    estimate = estimate_plan(plan)
    assert estimate.critical_seconds <= estimate.serial_seconds
    assert 0 <= estimate.parallelizable_ratio <= 1
    assert 0 <= estimate.seconds.low <= estimate.seconds.high
    alone = estimate_plan(evolve(plan, max_concurrent=1))
    assert alone.seconds.high >= estimate.seconds.high
    phased = estimate_plan(evolve(plan, phases=True))
    assert estimate_plan(evolve(plan, phases=False)).critical_seconds <= phased.critical_seconds


def test_a_team_is_chosen_only_where_parts_are_independent() -> None:
    def decide(plan: Plan, **changes: object) -> str:
        decision = decide_team(plan, estimate_plan(plan), evolve(SETTINGS, **changes))
        assert decision.is_team is (decision.code == "team")
        assert decision.reason.startswith("A team: " if decision.is_team else "One agent: ")
        return decision.code

    feature = make("feature-development")
    assert decide(feature) == "team"
    assert decide(feature, enabled=False) == "single_disabled"
    assert decide(feature, min_subtasks=6) == "single_few_subtasks"
    assert decide(feature, parallelization_threshold=0.5) == "single_low_ratio"
    assert decide(make("documentation")) == "single_few_subtasks"
    assert decide(make("bug-fix")) == "single_low_ratio"
    assert decide(make("testing", "documentation")) == "single_low_ratio"
    writers = [PlannedSubtask(id=name, agent="code-writer", seconds=90) for name in ("a", "b")]
    assert decide(Plan(request="x", subtasks=tuple(writers))) == "single_one_write_set"
    apart = [evolve(writer, writes=(f"{writer.id}.py",)) for writer in writers]
    assert decide(Plan(request="x", subtasks=tuple(apart))) == "team"
    short = [evolve(writer, seconds=9) for writer in apart]
    assert decide(Plan(request="x", subtasks=tuple(short))) == "single_slower", "merges take longer than they save"


def component(name: str, *writes: str, **more: object) -> dict[str, object]:
    return {"name": name, "purpose": f"does {name}", "writes": list(writes), **more}


def split(*components: object, most: int = 10) -> tuple[PlannedSubtask, ...] | None:
    return split_by_design(make("feature-development").subtasks, {"components": list(components)}, most)


def test_code_is_split_by_disjoint_write_sets() -> None:
    parts = split(component("api", "src/api/**"), component("ui", "web/**"), component("auth", "src/api/auth.py"))
    assert parts
    plan = evolve(make("feature-development"), subtasks=parts)
    assert check_plan(plan, AGENTS, SETTINGS) is None
    assert show(plan) == {
        "architect": (),
        "code-1": ("architect",),
        "code-2": ("architect",),
        "test": ("code-1", "code-2"),
        "doc": ("architect",),
        "review": ("architect", "code-1", "code-2", "test", "doc"),
    }
    assert parts[1].writes == ("src/api/**", "src/api/auth.py")
    assert parts[2].name == "Code Implementation: ui"
    assert "- ui (web/**)" in parts[2].description
    assert ("code-1",) in find_disjoint_write_sets(plan)
    assert estimate_plan(plan).gain > estimate_plan(make("feature-development")).gain


@pytest.mark.parametrize(
    "components",
    [
        [],
        [component("api", "src/**")],
        [component("api", "src/**"), component("ui", "src/ui.py")],
        [component("api", "src/**"), component("ui")],
        [component("api", "src/**"), component("ui", "../web")],
        [component("api", "src/**"), "ui"],
        [component("api", "src/**"), {"writes": ["web/**"]}],
        [component("api", "src/**"), {"name": "ui", "writes": 3}],
    ],
)
def test_a_design_without_two_disjoint_write_sets_splits_nothing(components: list[object]) -> None:
    assert split(*components) is None


def test_a_split_stays_within_the_limit_and_needs_exactly_one_code_subtask() -> None:
    many = [component(f"part {number}", f"src/{number}.py") for number in range(9)]
    parts = split(*many, most=7)
    assert parts
    assert [subtask.id for subtask in parts if subtask.agent == "code-writer"] == ["code-1", "code-2", "code-3"]
    assert [len(subtask.writes) for subtask in parts[1:4]] == [3, 3, 3]
    forty = split(*(component(f"c{number}", f"src/{number}.py") for number in range(40)))
    assert forty
    counts = [len(subtask.writes) for subtask in forty if subtask.agent == "code-writer"]
    assert (len(counts), sum(counts), max(counts) - min(counts)) == (6, 40, 1), "no writer gets all the rest"
    assert split(*many, most=5) is None
    assert split_by_design(make("documentation").subtasks, {"components": many}) is None
    taken = (PlannedSubtask(id="code", agent="code-writer"), PlannedSubtask(id="code-1", agent="review"))
    assert split_by_design(taken, {"components": many}) is None


def test_a_part_waits_for_the_components_that_it_needs() -> None:
    parts = split(component("api", "api/**"), component("ui", "web/**", dependencies=["api", "ui", "nothing"]))
    assert parts
    assert [subtask.dependencies for subtask in parts[1:3]] == [("architect",), ("architect", "code-1")]
    ring = split(component("a", "a/**", dependencies=["b"]), component("b", "b/**", dependencies=["a"]))
    assert ring
    assert [subtask.dependencies for subtask in ring[1:3]] == [("architect",), ("architect",)]


@given(plans(), st.lists(st.sampled_from(["a.py", "b.py", "c/**", "c/d.py"]), min_size=1, max_size=6))
def test_a_split_keeps_all_dependencies(plan: Plan, paths: list[str]) -> None:
    parts = split_by_design(plan.subtasks, {"components": [component(path, path) for path in paths]}, 20)
    codes = [subtask for subtask in plan.subtasks if subtask.agent == "code-writer"]
    assert (parts is not None) is (len(codes) == 1 and len({path[0] for path in paths}) > 1)
    if parts:
        assert check_plan(evolve(plan, subtasks=parts), AGENTS, evolve(SETTINGS, max_subtasks=20)) is None
        made = {subtask.id: subtask for subtask in parts}
        names = {name for name in made if name.startswith(f"{codes[0].id}-") and made[name].agent == "code-writer"}
        for subtask in plan.subtasks:
            wanted = {name for need in subtask.dependencies for name in (names if need == codes[0].id else {need})}
            for part in names if subtask is codes[0] else {subtask.id}:
                assert set(made[part].dependencies) == wanted
