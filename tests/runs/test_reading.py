"""What the output of checks says, as runners really print it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom.core.ports.checks import WHOLE_CHECK, Check, CheckKind
from greenroom.core.ports.commands import CommandEnded
from greenroom.runs.output import (
    LOW_COVERAGE_REASON,
    count_tests,
    find_test_names,
    parse_findings,
    parse_junit,
    read_outcome,
)

JUNIT = """<?xml version="1.0"?><testsuites><testsuite>
<testcase classname="tests.test_a" name="test_x[a - b]" file="tests/test_a.py"/>
<testcase classname="tests.test_a.TestA" name="test_y" file="tests/test_a.py"><failure message="m"/></testcase>
<testcase classname="tests.test_a.TestA" name="test_y" file="tests/test_a.py"/>
<testcase classname="tests.test_a.TestB" name="test_i" file="tests/shared.py"><skipped/></testcase>
<testcase classname="elsewhere.C" name="test_z"/>
<testcase classname="" name="tests.test_a"><error message="collection failure"/></testcase>
</testsuite></testsuites>"""


def check(kind: CheckKind = "test") -> Check:
    return Check(name="c", line="c", kind=kind, why="w.", seconds=7)


def exited(code: int) -> CommandEnded:
    return CommandEnded(how="exited", code=code)


def test_a_report_names_every_test_as_pytest_is_told_to_run_it() -> None:
    assert parse_junit(JUNIT) == {
        "tests/test_a.py::test_x[a - b]": "passed",
        "tests/test_a.py::TestA::test_y": "failed",
        "tests/test_a.py::TestB::test_i": "skipped",
        "elsewhere.C::test_z": "passed",
        "tests/test_a.py": "failed",
    }
    assert parse_junit("<testsuite><") == {}
    assert parse_junit('<!DOCTYPE x [<!ENTITY a "b">]><testsuite><testcase name="a" classname="b"/></testsuite>') == {}


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (
            "FAILED t/test_a.py::test_b[x - y] - assert 1\nPASSED t/test_a.py::test_c\nERROR t/test_d.py - x",
            {"t/test_a.py::test_b[x - y]": "failed", "t/test_a.py::test_c": "passed", "t/test_d.py": "failed"},
        ),
        (
            "test_a (t.T.test_a) ... ok\ntest_b (t.T.test_b) ... FAIL\ntest_c (t.T.test_c) ... skipped 'no'",
            {"test_a (t.T.test_a)": "passed", "test_b (t.T.test_b)": "failed", "test_c (t.T.test_c)": "skipped"},
        ),
        (
            "--- FAIL: TestA (0.00s)\n    --- PASS: TestB/one (0.01s)\n--- SKIP: TestC\nFAIL\tx/y [build failed]",
            {"TestA": "failed", "TestB/one": "passed", "TestC": "skipped", "x/y": "failed"},
        ),
        (
            "test a::b ... ok\ntest c ... FAILED\ntest d ... ignored, slow",
            {"a::b": "passed", "c": "failed", "d": "skipped"},
        ),
        (
            "ok 1 - adds\nnot ok 2 - takes\n    ok 3 - later # SKIP not now",
            {"adds": "passed", "takes": "failed", "later": "skipped"},
        ),
        ("✔ adds (0.5ms)\n  ✖ takes (1 ms)\n✓ three", {"adds": "passed", "takes": "failed", "three": "passed"}),
        (
            "1/2 Test #1: one ......   Passed    0.00 sec\n2/2 Test #2: two ......***Failed    0.00 sec",
            {"one": "passed", "two": "failed"},
        ),
        ("rspec ./spec/a_spec.rb:3 # A does", {"./spec/a_spec.rb # A does": "failed"}),
        (
            "FAIL: test_a (t.T.test_a)\nERROR: test_b (t.T.test_b)",
            {"test_a (t.T.test_a)": "failed", "test_b (t.T.test_b)": "failed"},
        ),
        ("  ● Sums › adds\n  ● Console\n    ✕ adds (3 ms)", {"adds": "failed"}),
        ("    ✔ takes\n    1) adds\n  1) Sums", {"takes": "passed", "adds": "failed"}),
        (
            "test_a (t.T.test_a)\nIt adds. ... ok\ntest_b (t.T.test_b) ... ok",
            dict.fromkeys(("test_a (t.T.test_a)", "test_b (t.T.test_b)"), "passed"),
        ),
        ("1) FooTest::testAdds", {"FooTest::testAdds": "failed"}),
        (
            "[ERROR] a.Foo.adds -- Time elapsed: 0 s <<< FAILURE!\n[ERROR] Tests run: 3 <<< FAILURE! -- in a.Foo",
            {"a.Foo.adds": "failed"},
        ),
        (
            "FooTest > adds() FAILED\n  Failed Foo.Takes(a: 1) [3 ms]",
            {"FooTest > adds()": "failed", "Foo.Takes(a: 1)": "failed"},
        ),
        (" ✓ src/a.test.ts (7 tests) 3ms\n   × adds 3ms\n✖ failing tests:", {"adds": "failed"}),
        ("✖ 3 problems (3 errors, 0 warnings)", {}),
        (
            "ok  \tx/y\t0.01s\nFAIL\tx/z\t0.02s\nok x/w (cached)",
            {"x/y": "passed", "x/z (names no test)": "failed", "x/w": "passed"},
        ),
        ("PASS src/a.test.js\nFAIL src/b.test.js (5.1 s)", {"src/a.test.js": "passed", "src/b.test.js": "failed"}),
        ("not ok 2 - takes # time=4ms", {"takes": "failed"}),
        (
            "test src/lib.rs - add (line 3) ... ok\ntest src/lib.rs - add (line 9) ... FAILED",
            {"src/lib.rs - add": "passed", "src/lib.rs - add (2)": "failed"},
        ),
        (
            "--- FAIL: TestA (0.00s)\nFAIL\tx/y\t0.02s\nFAIL\tx/z\t0.02s",
            {"TestA": "failed", "x/y": "failed", "x/z (names no test)": "failed"},
        ),
        ("nothing at all\nFAILED to do it\nok then\nlook at the ✖ here", {}),
    ],
)
def test_lines_of_runners_name_their_tests(text: str, wanted: dict[str, str]) -> None:
    assert find_test_names(text) == wanted


@pytest.mark.parametrize(
    ("text", "passed", "failed", "skipped"),
    [
        ("===== 2 failed, 3 passed, 1 skipped in 0.3s =====", 3, 2, 1),
        ("Tests:       1 failed, 4 passed, 5 total", 4, 1, 0),
        ("ℹ pass 3\nℹ fail 1\nℹ skipped 2", 3, 1, 2),
        ("# pass 3\n# fail 0", 3, 0, 0),
        ("test result: ok. 5 passed; 0 failed; 2 ignored", 5, 0, 0),
        ("  7 passing (3ms)\n  1 failing", 7, 1, 0),
        ("we passed 3 rivers", 0, 0, 0),
        ("      Tests  1 failed | 7 passed | 2 skipped (10)\n Test Files  1 failed | 2 passed (3)", 7, 1, 2),
        ("Ran 7 tests in 0.001s\n\nOK", 7, 0, 0),
        ("Ran 7 tests in 0.001s\n\nFAILED (failures=1, errors=1, skipped=1, expected failures=1)", 3, 2, 2),
        ("FAILED (failures=1)", 0, 1, 0),
        ("7 examples, 1 failure, 2 pending", 4, 1, 2),
        ("[INFO] Tests run: 2, Failures: 0, Errors: 0, Skipped: 0, Time elapsed: 1 s -- in A", 0, 0, 0),
        ("[WARNING] Tests run: 7, Failures: 1, Errors: 1, Skipped: 2", 3, 2, 2),
        ("OK (7 tests, 9 assertions)", 7, 0, 0),
        ("Tests: 7, Assertions: 9, Failures: 1, Skipped: 2.", 4, 1, 2),
        ("Failed!  - Failed:     1, Passed:     7, Skipped:     2, Total:    10, Duration: 3 ms - a.dll", 7, 1, 2),
        ("Test summary: total: 8, failed: 1, succeeded: 7, skipped: 0, duration: 1.2s", 7, 1, 0),
        ("7 runs, 9 assertions, 1 failures, 1 errors, 1 skips", 4, 2, 1),
        ("3 doctests, 7 tests, 1 failure, 2 excluded", 4, 1, 2),
        ("ok | 7 passed | 0 failed (3ms)", 7, 0, 0),
    ],
)
def test_last_words_are_counted(text: str, passed: int, failed: int, skipped: int) -> None:
    found = count_tests(text)
    assert (found["passed"], found["failed"], found["skipped"]) == (passed, failed, skipped)


def test_findings_have_no_line_numbers_and_equal_ones_are_counted() -> None:
    text = (
        'a.py:3: error: Name "x"  [name]\na.py:9: error: Name "x"  [name]\na.py:9: note: see\n'
        "src/b.ts(1,2): error TS1: no\nE501 Line too long\n  --> c.py:1:1\n\n"
        "/x/d.js\n  1:2  error  Unexpected  no-x\n  2:2  warning  Meh  no-y\nFound 3 errors.\n"
    )
    assert set(parse_findings(text)) == {
        'a.py: error: Name "x" [name]',
        'a.py: error: Name "x" [name] (2)',
        "src/b.ts: error TS1: no",
        "c.py: E501 Line too long",
        "/x/d.js: error Unexpected no-x",
    }
    assert parse_findings(text.replace("a.py:3:", "a.py:77:")) == parse_findings(text)


def test_a_report_counts_more_than_an_exit_code_that_hides_it() -> None:
    assert read_outcome(check(), exited(0), "", JUNIT).outcome == "failed"
    assert read_outcome(check(), exited(0), "FAILED t.py::a\n1 passed in 0.1s").outcome == "passed"


def test_who_fails_and_names_nothing_fails_as_a_whole() -> None:
    read = read_outcome(check("build"), exited(2), "make: *** [x] Error 2")
    assert (read.outcome, dict(read.tests)) == ("failed", {WHOLE_CHECK: "failed"})
    assert read_outcome(check("lint"), exited(1), "a.py:1:1: E1 no").tests == {"a.py: E1 no": "failed"}


LOW = "FAIL Required test coverage of 85% not reached. Total coverage: 69.86%\n3 passed in 0.21s\n"
PASSING = '<testsuite><testcase classname="t" name="test_a" file="t.py"/></testsuite>'


def test_a_coverage_threshold_is_no_test() -> None:
    read = read_outcome(check(), exited(1), LOW, PASSING)
    assert (read.outcome, read.reason, dict(read.tests)) == ("passed", LOW_COVERAGE_REASON, {"t.py::test_a": "passed"})
    assert read_outcome(check(), exited(1), LOW, JUNIT).outcome == "failed", "a test fails"
    assert WHOLE_CHECK in read_outcome(check(), exited(1), LOW).tests, "there is no report"
    assert WHOLE_CHECK in read_outcome(check(), exited(1), "1 passed", PASSING).tests, "it says nothing of coverage"


@pytest.mark.parametrize(
    ("ended", "text", "reason"),
    [
        (CommandEnded(how="timed_out"), "", "It did not finish within 7 s."),
        (CommandEnded(how="signalled", signal=9), "", "It was killed by signal 9."),
        (CommandEnded(how="cancelled"), "", "It was stopped before it finished."),
        (CommandEnded(how="lost"), "", "Its end is unknown: its supervisor was killed."),
        (exited(127), "sh: 1: jest: not found", "A program is missing: jest"),
        (exited(126), "", "A program is missing: it does not say which"),
        (exited(5), "collected 0 items", "It found no tests."),
        (exited(0), "Ran 0 tests in 0.0s\n\nOK", "It found no tests."),
        (exited(0), "running 0 tests\n\ntest result: ok. 0 passed; 0 failed", "It found no tests."),
        (exited(0), "?   \tx/y\t[no test files]", "It found no tests."),
        (exited(0), "ℹ tests 0\nℹ pass 0", "It found no tests."),
        (exited(0), "===== 2 skipped in 0.3s =====", "It skipped all tests."),
        (
            exited(1),
            "/usr/bin/python3: No module named pytest",
            "Something that it needs is missing: /usr/bin/python3: No module named pytest",
        ),
        (
            exited(2),
            "make: *** No rule to make target 'x'.  Stop.",
            "There is no such target any more: make: *** No rule to make target 'x'.  Stop.",
        ),
    ],
)
def test_a_check_that_could_not_run_says_why(ended: CommandEnded, text: str, reason: str) -> None:
    read = read_outcome(check(), ended, text)
    assert (read.outcome, read.reason) == ("could_not_run", reason)


@given(st.text(max_size=400), st.text(max_size=200), st.integers(0, 255), st.sampled_from(["test", "lint", "build"]))
def test_any_output_can_be_read(text: str, report: str, code: int, kind: CheckKind) -> None:
    read = read_outcome(check(kind), exited(code), text, report)
    assert (read.outcome == "passed") <= (code == 0)


def test_what_fails_and_is_only_counted_has_no_name() -> None:
    read = read_outcome(check(), exited(1), "Tests: 2 failed, 1 passed, 3 total")
    assert (read.outcome, read.passed, set(read.tests)) == ("failed", 1, {WHOLE_CHECK})
    partly = read_outcome(check(), exited(1), "Tests: 2 failed, 1 passed, 3 total\n  ● Sums › adds")
    assert set(partly.tests) == {"adds", WHOLE_CHECK}
