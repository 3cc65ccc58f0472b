"""The ranking of finished runs: a total order that does not depend on how they are listed, with the deciding reason."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from greenroom.core.ports.workspace import PathChange
from greenroom.runs.comparison import (
    MEASURES,
    OUTCOMES,
    CandidateRun,
    count_failures,
    find_difference,
    judge_outcome,
    rank_candidates,
)
from greenroom.runs.verdict import Finding, Verdict

few = st.integers(0, 3)
candidates = st.builds(
    CandidateRun,
    team=st.text("abc", min_size=1, max_size=4),
    verdict=st.sampled_from(OUTCOMES),
    new_failures=few,
    missing_subtasks=few,
    review_score=st.none() | st.integers(0, 100),
    added=few,
    removed=few,
    cost=st.none() | few.map(float),
)
several = st.lists(candidates, min_size=2, max_size=6, unique_by=lambda candidate: candidate.team)


@settings(suppress_health_check=[HealthCheck.too_slow])  # on a busy machine
@given(several.flatmap(lambda rows: st.tuples(st.just(rows), st.permutations(rows))))
def test_the_order_does_not_depend_on_how_runs_are_listed(
    listed: tuple[list[CandidateRun], list[CandidateRun]],
) -> None:
    rows, shuffled = listed
    ranked = rank_candidates(rows)
    assert rank_candidates(shuffled) == ranked
    assert sorted(ranked, key=lambda candidate: candidate.team) == sorted(rows, key=lambda candidate: candidate.team)


@settings(suppress_health_check=[HealthCheck.too_slow])  # on a busy machine
@given(several)
def test_the_reason_is_the_first_difference_and_favours_the_better(rows: list[CandidateRun]) -> None:
    ranked = rank_candidates(rows)
    for index, better in enumerate(ranked):
        for worse in ranked[index + 1 :]:
            name = find_difference(better, worse, rows)
            if name == "equal":
                assert better.team < worse.team
                continue
            left, right = MEASURES[name](better), MEASURES[name](worse)
            assert left is not None
            assert right is not None
            assert left < right
            earlier = list(MEASURES)[: list(MEASURES).index(name)]
            for other in earlier:
                values = {MEASURES[other](row) for row in rows}
                assert None in values or MEASURES[other](better) == MEASURES[other](worse)


@settings(suppress_health_check=[HealthCheck.too_slow])  # on a busy machine
@given(several)
def test_a_verified_run_is_never_behind_another(rows: list[CandidateRun]) -> None:
    places = [OUTCOMES.index(candidate.verdict) for candidate in rank_candidates(rows)]
    assert places == sorted(places)


def test_a_score_that_only_one_run_has_decides_nothing() -> None:
    reviewed = CandidateRun(team="a", review_score=90, added=9)
    small = CandidateRun(team="b", added=2)
    assert rank_candidates([reviewed, small])[0] == small
    assert find_difference(small, reviewed, [reviewed, small]) == "lines"


def test_an_ended_run_is_as_good_as_its_verdict_unless_it_failed_or_changed_nothing() -> None:
    verdict, changes = Verdict(state="verified"), (PathChange(path="a.py", kind="added", added=1),)
    assert judge_outcome("finished", verdict, changes) == "verified"
    assert judge_outcome("failed", verdict, changes) == "failed"
    assert judge_outcome("cancelled", verdict, changes) == "failed"
    assert judge_outcome("finished", verdict, ()) == "nothing"


def test_failures_without_names_count_as_one() -> None:
    reasons = (
        Finding(code="new_failures", check="a", count=3),
        Finding(code="new_failures", check="b"),
        Finding(code="cannot_run_now", check="c"),
    )
    assert count_failures(Verdict(state="failed", reasons=reasons)) == 5
