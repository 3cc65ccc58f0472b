"""What is new since the base, and what is not there any more."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom.abilities.checks.comparing import compared, entry, in_a_sentence, in_two_copies
from greenroom.abilities.checks.ids_of_tests import UNNAMED, unnamed
from greenroom.core.base.records import evolve
from greenroom.core.ports.checks import AS_A_WHOLE, NAMED, UNCOVERED, Checked, CheckKind, Compared, Ran, Report, Word

WORDS: st.SearchStrategy[Word] = st.sampled_from(["passed", "failed", "skipped"])
FAILED: Word = "failed"
TESTS = st.dictionaries(st.sampled_from([f"t.py::test_{n}" for n in range(8)]), WORDS)


def ran(
    tests: dict[str, Word],
    *,
    kind: CheckKind = "test",
    passed: int | None = None,
    code: int | None = None,
    exact: bool = False,
) -> Ran:
    failed = "failed" in tests.values()
    count = sum(word == "passed" for word in tests.values())
    return Ran(
        check="c",
        digest="d",
        kind=kind,
        outcome="failed" if failed else "passed",
        exit=int(failed) if code is None else code,
        exact=exact,
        tests=tests,
        passed=count if passed is None else passed,
    )


LOST = Ran(check="c", digest="d", outcome="could_not_run", reason="It is gone.")


@given(TESTS, TESTS, st.data())
def test_new_is_exactly_what_fails_now_and_did_not_before(
    base: dict[str, Word], now: dict[str, Word], data: st.DataObject
) -> None:
    failing = {name for name, word in now.items() if word == "failed"}
    before = {name for name, word in base.items() if word == "failed"}
    flaky = data.draw(st.sets(st.sampled_from(sorted(failing - before)))) if failing - before else set()
    found = compared(ran(base, exact=True), ran(now, exact=True), flaky)
    assert set(found.new) == failing - before - flaky
    assert set(found.old) == failing & before
    assert set(found.mended) == {name for name in before if now.get(name, "" if now else "passed") == "passed"}
    assert set(found.skipped) == {name for name in base if now.get(name) == "skipped" and base[name] != "skipped"}
    assert set(found.gone) == (set(base) - set(now) if now else set())
    assert set(found.relieved) == before & (set(found.gone) | set(found.skipped))
    assert bool(found.flaky) == bool(flaky)


@given(TESTS)
def test_nothing_is_new_where_nothing_changed(tests: dict[str, Word]) -> None:
    found = compared(ran(tests), ran(tests))
    assert (found.new, found.gone, found.skipped, found.mended, found.fewer) == ((), (), (), (), 0)


def test_fewer_tests_are_counted_also_where_none_is_named() -> None:
    quiet = ran({}, passed=12)
    assert compared(quiet, ran({}, passed=10)).fewer == 2
    assert compared(quiet, ran({}, passed=13)).fewer == 0
    assert compared(quiet, ran({}, passed=0)).fewer == 12


def test_a_runner_that_names_only_what_fails_has_lost_nothing_when_it_names_less() -> None:
    found = compared(ran({"a": "failed"}, passed=4), ran({}, passed=5))
    assert (found.mended, found.gone, found.relieved, found.fewer) == (("a",), (), (), 0)
    deleted = compared(ran({"a": "failed"}, passed=4), ran({}, passed=4))
    assert deleted.fewer == 1


def test_a_runner_that_names_only_what_fails_and_counts_nothing_has_lost_nothing_when_some_of_it_is_mended() -> None:
    base = ran({"TestA": "failed", "TestB": "failed"})
    for now, mended in ((ran({"TestB": "failed"}), ("TestA",)), (ran({}), ("TestA", "TestB"))):
        found = compared(base, now)
        assert (found.mended, found.gone, found.relieved, found.fewer) == (mended, (), (), 0)


MOVED = {
    "to another file": ("tests/test_a.py::test_x", "tests/unit/test_a.py::test_x"),
    "into a class": ("t.py::test_x", "t.py::TestX::test_x"),
    "to other parameters": ("t.py::test_x[a - b]", "t.py::test_x[a - b-1]"),
    "to another module of unittest": ("test_x (tests.a.T.test_x)", "test_x (tests.b.T.test_x)"),
    "to another module of Rust": ("a::tests::adds", "b::tests::adds"),
    "to another line of Rust": ("src/lib.rs - sums::add (line 5)", "src/lib.rs - sums::add (line 9)"),
    "to another line of a file of Rust": ("src/lib.rs - add (line 5)", "src/lib.rs - add (line 9)"),
    "to another number in its name": ("listens on 127.0.0.1:51234", "listens on 127.0.0.1:8080"),
}


@pytest.mark.parametrize("case", MOVED)
def test_a_test_that_was_moved_is_not_gone(case: str) -> None:
    old, new = MOVED[case]
    assert compared(ran({old: "passed"}), ran({new: "passed"})).gone == ()


def test_a_test_in_whose_place_stands_another_one_is_gone_and_one_that_was_moved_stands_for_one_only() -> None:
    found = compared(ran({"t.py::test_a": "passed"}), ran({"t.py::test_b": "passed"}))
    assert (found.gone, found.fewer) == (("t.py::test_a",), 0)
    two = ran({"a.py::test_a": "passed", "b.py::test_a": "passed"})
    assert compared(two, ran({"c.py::test_a": "passed", "c.py::test_b": "passed"})).gone == ("b.py::test_a",)


def test_a_finding_of_a_linter_that_is_gone_is_no_loss() -> None:
    found = compared(ran({"a.py: E1": "failed"}, kind="lint"), ran({}, kind="lint"))
    assert (found.gone, found.fewer, found.mended) == ((), 0, ("a.py: E1",))


def test_a_check_that_cannot_run_any_more_fails_as_a_whole() -> None:
    assert compared(ran({"a": "passed"}), LOST) == Compared(new=(AS_A_WHOLE,))
    assert compared(LOST, LOST) == Compared()
    assert compared(LOST, ran({"a": "failed"})).new == ("a",)


def test_another_bad_end_that_names_nothing_is_new() -> None:
    old = ran({"a": "failed"}, code=1)
    assert compared(old, ran({"a": "failed"}, code=3)).new == (AS_A_WHOLE,)
    assert compared(old, ran({"a": "failed"}, code=1)).new == ()


def test_a_file_that_cannot_be_read_takes_its_tests_with_it() -> None:
    found = compared(ran({"t.py::a": "passed", "t.py::b": "failed"}), ran({"t.py": "failed"}))
    assert (found.new, found.gone, found.relieved, found.fewer) == (("t.py",), (), (), 0)


def test_of_very_many_names_some_are_kept() -> None:
    many: dict[str, Word] = {f"t{n:04}": "failed" for n in range(NAMED + 5)}
    assert len(compared(ran({}), ran(many)).new) == NAMED


def test_what_is_compared_with_another_run_is_whole() -> None:
    many: dict[str, Word] = {f"t{n:04}": "failed" for n in range(NAMED + 5)}
    assert compared(ran(many), ran({})).mended == tuple(many)
    assert compared(ran({}), ran(many), many).flaky == tuple(many)


def test_that_some_are_not_named_is_known_also_of_very_many() -> None:
    many = {**{f"A{n:04}": FAILED for n in range(NAMED)}, **dict.fromkeys(unnamed(1), FAILED)}
    assert compared(ran(many), ran(many)).old[0].startswith(UNNAMED)


def test_a_floor_of_coverage_is_no_test() -> None:
    red, green = ran({"t.py::a": "passed", UNCOVERED: "failed"}), ran({"t.py::a": "passed"})
    assert compared(red, green) == Compared(mended=(UNCOVERED,))
    assert compared(green, red) == Compared(new=(UNCOVERED,))


def test_what_is_flaky_passes_in_another_copy_and_is_seen_to() -> None:
    doubtful = entry(ran({"z": "failed"}), "test", Compared(flaky=("z",)), tests="", excerpt="")
    well = entry(ran({"z": "passed"}), "test", Compared(), tests="", excerpt="")
    very_many = tuple(f"t{n:04}" for n in range(NAMED))

    def stays(*beside: Checked) -> bool:
        (one,) = in_two_copies(Report(tree="t", checks=(doubtful,)), Report(tree="u", checks=beside)).checks
        assert one.compared in (Compared(flaky=("z",)), Compared(new=("z",)))
        return one.compared == Compared(flaky=("z",))

    assert stays(well)
    assert stays(evolve(well, compared=None))
    assert stays(evolve(well, outcome="failed", compared=Compared(new=("other",))))
    assert not stays(evolve(well, compared=Compared(new=("z",))))
    assert not stays(doubtful)
    assert not stays(evolve(well, compared=Compared(new=very_many))), "it may be one that is not named"
    assert not stays(evolve(well, outcome="could_not_run"))
    assert not stays(evolve(well, outcome="failed", compared=None))
    assert not stays()


def test_a_report_is_told_in_a_line() -> None:
    base = ran({"a": "passed", "b": "failed", "c": "skipped"})
    now = ran({"a": "failed", "b": "failed", "c": "skipped", "d": "passed"})
    against = compared(base, now)
    first = entry(base, "test", None, tests="", excerpt="")
    second = entry(now, "test", against, tests="", excerpt="")
    third = entry(LOST, "test", None, tests="", excerpt="")
    fourth = entry(ran({}), "lint", Compared(), tests="", excerpt="")
    assert in_a_sentence(Report(tree="t", checks=(first,))) == "c: 1 pass, 1 already fails"
    assert in_a_sentence(Report(tree="t", checks=(second, third, fourth))) == (
        "c: 1 pass, 1 newly fails, 1 already fails; c: could not run (It is gone); c: passes"
    )
    assert in_a_sentence(Report(tree="t")) == "No check was run."


def test_one_more_that_fails_is_new_also_where_none_is_named() -> None:
    one, two = dict.fromkeys(unnamed(1), FAILED), dict.fromkeys(unnamed(2), FAILED)
    worse = compared(ran(one, passed=2), ran(two, passed=1))
    assert (worse.new, worse.old, worse.fewer) == ((f"{UNNAMED} (2)",), (f"{UNNAMED} (1)",), 0)
    better = compared(ran(two, passed=1), ran(one, passed=2))
    assert (better.new, better.mended, better.gone, better.fewer) == ((), (f"{UNNAMED} (2)",), (), 0)


def test_fewer_tests_are_counted_in_a_run_that_fails_too() -> None:
    red = ran({AS_A_WHOLE: "failed"}, passed=3)
    assert compared(red, ran({AS_A_WHOLE: "failed"}, passed=2)).fewer == 1


def test_a_file_that_could_be_read_again_is_mended_and_not_gone() -> None:
    found = compared(ran({"t.py": "failed", "u.py::a": "passed"}), ran({"t.py::a": "passed", "u.py::a": "passed"}))
    assert (found.mended, found.gone, found.relieved) == (("t.py",), (), ())


def test_where_one_new_file_cannot_be_read_and_so_nothing_runs_no_other_test_is_gone() -> None:
    base = ran({"t.py::a": "passed", "t.py::b": "passed"}, exact=True)
    found = compared(base, ran({"new.py": "failed"}, exact=True))
    assert (found.new, found.gone, found.fewer) == (("new.py",), (), 0)
    beside = compared(base, ran({"new.py": "failed", "t.py::a": "passed"}, exact=True))
    assert (beside.gone, beside.fewer) == (("t.py::b",), 0), "who goes on in spite of it has no such excuse"
