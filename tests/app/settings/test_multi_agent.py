"""The settings of teams: `[team]`, and JSON with the root `multiAgent`, which is read as the same table."""

from __future__ import annotations

import json

import pytest

from greenroom.app.settings.layers import list_settings_files
from greenroom.core.base.errors import WorldFault
from greenroom.teamwork.plan import TeamSettings
from tests.app.settings.places import Place, written

EVERYTHING = {
    "enabled": False,
    "maxConcurrentAgents": 3,
    "defaultAgents": ["review"],
    "taskAnalysis": {"autoDecompose": False, "minSubtasks": 3, "maxSubtasks": 20, "parallelizationThreshold": 0.5},
    "scheduling": {"strategy": "dependency-only", "considerDependencies": False, "optimizeForSpeed": False},
    "monitoring": {"realTimeProgress": False, "detailedLogs": False, "performanceMetrics": False},
    "conflictResolution": {"strategy": "priority", "fallbackToHuman": False, "autoResolveThreshold": 0.9},
    "integration": {"validateSyntax": False, "validateTypes": False, "minCoverage": 60, "requireDocumentation": True},
}


def imported(place: Place, content: object) -> str:
    text = content if isinstance(content, str) else json.dumps(content)
    return str(written(place.project / ".greenroom" / "multiAgent.json", text))


@pytest.mark.req("RC-153", "RC-154", "RC-155")
def test_every_key_of_the_json_sets_its_setting_and_the_others_keep_their_defaults(place: Place) -> None:
    team = place.load().settings.team
    assert team == TeamSettings()
    assert (team.conflict_strategy, team.fallback_to_human, team.auto_resolve_threshold) == ("merge", True, 0.8)
    path = imported(place, {"multiAgent": EVERYTHING})
    loaded = place.load()
    assert loaded.settings.team == TeamSettings(
        enabled=False,
        max_concurrent_agents=3,
        default_agents=("review",),
        auto_decompose=False,
        min_subtasks=3,
        max_subtasks=20,
        parallelization_threshold=0.5,
        strategy="dependency-only",
        consider_dependencies=False,
        optimize_for_speed=False,
        real_time_progress=False,
        detailed_logs=False,
        performance_metrics=False,
        conflict_strategy="priority",
        fallback_to_human=False,
        auto_resolve_threshold=0.9,
        validate_syntax=False,
        validate_types=False,
        min_coverage=60,
        require_documentation=True,
    )
    assert str(loaded.origin("team.max_subtasks")) == f"project: {path}"
    assert path in [str(file.path) for file in list_settings_files({"HOME": str(place.home)}, place.project)]


def test_the_toml_of_a_project_wins_over_its_json_and_both_over_the_persons(place: Place) -> None:
    written(place.user_file.parent / "multiAgent.json", '{"multiAgent": {"maxConcurrentAgents": 2, "enabled": false}}')
    assert place.load().settings.team.max_concurrent_agents == 2
    place.user("[team]\nmax_concurrent_agents = 4\n")
    imported(place, {"multiAgent": {"maxConcurrentAgents": 5, "taskAnalysis": {"maxSubtasks": 6}}})
    place.shared("[team]\nmax_subtasks = 7\n")
    team = place.load().settings.team
    assert (team.max_concurrent_agents, team.max_subtasks, team.enabled) == (5, 7, False)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ({"multiAgents": {}}, "there is no setting `multiAgents`. Did you mean `multiAgent`?"),
        ({"multiAgent": {"maxAgents": 3}}, "`multiAgent.maxAgents`. Did you mean `maxConcurrentAgents`?"),
        ({"multiAgent": {"scheduling": {"stategy": 1}}}, "`multiAgent.scheduling.stategy`. Did you mean `strategy`?"),
        ({"multiAgent": {"integration": {"coverage": 80}}}, "`multiAgent.integration.coverage`."),
        ({"multiAgent": {"scheduling": []}}, "`multiAgent.scheduling` is an object."),
        ([], "`multiAgent` is an object."),
        ("{", "is not JSON: Expecting property name"),
        ("[" * 100_000, "is not JSON"),
        ({"multiAgent": {"taskAnalysis": {"parallelizationThreshold": 30}}}, "a number from 0 to 1"),
        ({"multiAgent": {"conflictResolution": {"autoResolveThreshold": 80}}}, "a number from 0 to 1"),
        ({"multiAgent": {"integration": {"minCoverage": 101}}}, "a whole number from 0 to 100"),
        ({"multiAgent": {"maxConcurrentAgents": True}}, "a whole number from 1 to 64"),
    ],
)
def test_a_wrong_file_is_refused_in_one_sentence(place: Place, content: object, why: str) -> None:
    path = imported(place, content)
    with pytest.raises(WorldFault) as refused:
        place.load()
    assert why in str(refused.value)
    assert path in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("max_subtask = 3", "there is no setting `team.max_subtask`. Did you mean `max_subtasks`?"),
        ("max_subtasks = 0", "a whole number from 1 to 200"),
        ("tries = 2.5", "a whole number from 1 to 10"),
        ("parallelization_threshold = 'high'", "a number from 0 to 1"),
        ("max_rounds = 11", "a whole number from 0 to 10"),
        ("validate_types = 'no'", "true or false"),
        ("planner = 'ruels'", "one of 'auto', 'rules', 'model', 'manager'"),
    ],
)
def test_a_wrong_value_of_the_table_is_refused(place: Place, line: str, why: str) -> None:
    place.shared(f"[team]\n{line}\n")
    with pytest.raises(WorldFault, match=r"config\.toml") as refused:
        place.load()
    assert why in str(refused.value)


def test_zero_days_keep_everything(place: Place) -> None:
    place.shared("[team]\nkeep_days = 0\nparallelization_threshold = 0\n")
    assert place.load().settings.team.keep_days == 0
