"""The verdict of a run: `verified`, `failed` or `unverified`, its reasons, its exit code, and what checks see."""

import ast
from pathlib import Path

from tests.acceptance.kit import (
    ALONE,
    APP,
    BAD,
    FAILED,
    FINISH,
    GOOD,
    JSON,
    PLAN,
    PRICES,
    PYTEST,
    SETTINGS,
    TEST,
    UNVERIFIED,
    VERIFIED,
    Desk,
    Turns,
    call,
    fields,
    git,
    replace,
    rows,
    say,
    serve_model,
    snapshot,
)
from tests.acceptance.later import EXPECTED_LATER
from tests.acceptance.process import Ended

DONE = FINISH
FASTER = replace("sum(prices)", "sum(list(prices))", "app.py")
ALTERED = (PLAN, replace("sum(prices)", "max(prices)", "app.py"), replace("== 3", "== 2", "test_app.py", 2), DONE)
OLD = "\n\ndef test_old():\n    assert total([]) == 1\n"


def verdict(desk: Desk, ended: Ended) -> str:
    """The code of the verdict, which `run` and `show` agree on; with reasons unless it is verified."""
    shown = fields(desk.show(str(ended.json["team"]))["verdict"])
    assert shown["code"] == fields(ended.json["verdict"])["code"]
    assert all(reason["code"] for reason in rows(shown["reasons"]))
    assert bool(rows(shown["reasons"])) or shown["code"] == "verified"
    return str(shown["code"])


def python_project(folder: Path, test: str = TEST, own: str = PRICES) -> Desk:
    """A project whose tests pytest runs; the person has agreed to that."""
    desk = Desk(folder, own, files={"app.py": APP, "test_app.py": test, "pyproject.toml": PYTEST})
    assert desk.type("trust", "--yes").code == 0
    return desk


def test_a_run_that_nothing_can_judge_is_unverified(tmp_path: Path) -> None:
    desk = Desk(tmp_path, PRICES, files={"app.txt": "good\n"})
    ended = desk.work(*GOOD, words=("--allow-unverified", "--apply"))
    assert (ended.code, verdict(desk, ended), desk.read()) == (UNVERIFIED, "unverified", "good\n")
    assert desk.type("apply", "last").code == 0
    assert desk.read() == "good, red\n"


def test_where_nothing_can_run_and_nobody_is_asked_no_model_is_paid(tmp_path: Path) -> None:
    desk = Desk(tmp_path, PRICES, files={"app.txt": "good\n"})
    with serve_model(Turns(*GOOD)) as server:
        ended = desk.type("run", "Paint it.", *ALONE, **server.reach)
    assert (ended.code, server.asked) == (UNVERIFIED, 0)


def test_a_run_in_place_with_edits_is_unverified(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    ended = desk.work(*GOOD[:-1], say("Done."), words=("--in-place",))
    assert (ended.code, desk.read()) == (UNVERIFIED, "good, red\n")
    assert verdict(desk, ended) == "unverified"


def test_a_run_that_changes_nothing_is_unverified(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    ended = desk.work(PLAN, DONE)
    assert (ended.code, verdict(desk, ended)) == (UNVERIFIED, "unverified")


def test_an_altered_test_that_would_fail_is_unverified_and_not_applied_at_once(tmp_path: Path) -> None:
    desk = python_project(tmp_path)
    before = snapshot(desk.repo)
    ended = desk.work(*ALTERED, words=("--apply",))
    assert (ended.code, verdict(desk, ended)) == (UNVERIFIED, "unverified")
    assert snapshot(desk.repo) == before
    assert "test_total" in str(desk.show()["verdict"])


def test_an_altered_test_is_verified_where_tests_may_change(tmp_path: Path) -> None:
    desk = python_project(tmp_path)
    ended = desk.work(*ALTERED, words=("--tests-may-change",))
    assert (ended.code, verdict(desk, ended)) == (VERIFIED, "verified")


def test_a_check_that_newly_fails_gives_failed_with_its_name(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    ended = desk.work(*BAD)
    assert (ended.code, verdict(desk, ended)) == (FAILED, "failed")
    assert "unit" in str(rows(fields(desk.show()["verdict"])["reasons"]))


def test_a_linter_that_is_not_installed_does_not_prevent_verified(tmp_path: Path) -> None:
    desk = Desk(tmp_path, f'{SETTINGS}[checks.lint]\nrun = "nosuch-linter ."\nkind = "lint"\n')
    with serve_model(Turns(*GOOD)) as server:
        begun = desk.type("run", "Paint it.", "--yes", *JSON, **server.reach)
        ended = desk.answer_all(begun, **server.reach)
    assert (ended.code, verdict(desk, ended)) == (VERIFIED, "verified")
    assert server.asked == len(GOOD), "the model does not hear of it"


def test_a_check_that_could_not_run_on_the_base_does_not_judge(tmp_path: Path) -> None:
    desk = Desk(tmp_path, f'{PRICES}[checks.unit]\nrun = "nosuch-tests"\nkind = "test"\n')
    ended = desk.work(*GOOD, words=("--allow-unverified",))
    assert (ended.code, verdict(desk, ended)) == (UNVERIFIED, "unverified")


def test_a_check_that_ran_on_the_base_and_cannot_run_now_fails(tmp_path: Path) -> None:
    desk = Desk(tmp_path, f'{PRICES}[checks.unit]\nrun = "./tests.sh"\nkind = "test"\n', files={"app.txt": "good\n"})
    desk.put("tests.sh", "#!/bin/sh\ngrep -q good app.txt\n")
    (desk.repo / "tests.sh").chmod(0o755)
    desk.commit("tests")
    gone = call("execute_script", 2, script="rm tests.sh")
    ended = desk.work(PLAN, replace("good", "good, red"), gone, *(DONE,) * 4)
    assert (ended.code, verdict(desk, ended)) == (FAILED, "failed")


def test_a_check_that_fails_on_the_base_judges_by_names(tmp_path: Path) -> None:
    desk = python_project(tmp_path, TEST + OLD)
    ended = desk.work(PLAN, FASTER, DONE)
    assert (ended.code, verdict(desk, ended)) == (VERIFIED, "verified")


def test_a_check_that_fails_on_the_base_without_names_does_not_judge(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.put("app.txt", "bad\n")
    desk.commit("worse")
    ended = desk.work(PLAN, replace("bad", "worse"), DONE, words=("--allow-unverified",))
    assert (ended.code, verdict(desk, ended)) == (UNVERIFIED, "unverified")


LOOKS = """import os
import sys

seen = [os.path.exists(name) for name in ("_version.py", ".venv/pyvenv.cfg", "built.so")]
sys.exit(0 if all(seen) and not os.path.exists(".env") else 1)
"""


def test_checks_see_what_git_ignores_and_no_secrets(tmp_path: Path) -> None:
    ignored = "_version.py\n.venv/\n*.so\n.env\n"
    desk = Desk(tmp_path, files={"app.txt": "good\n", "check.py": LOOKS, ".gitignore": ignored})
    for name in ("_version.py", ".venv/pyvenv.cfg", "built.so", ".env"):
        desk.put(name, "x = 1\n")
    ended = desk.work(*GOOD)
    assert (ended.code, verdict(desk, ended)) == (VERIFIED, "verified")


def test_a_virtual_environment_that_git_does_not_ignore_is_never_committed(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    for name in (".venv/pyvenv.cfg", ".venv/lib/module.py", "env/pyvenv.cfg", "env/lib/module.py"):
        desk.put(name, "x = 1\n")
    ended = desk.work(*GOOD)
    assert ended.code == VERIFIED
    for commit in (str(ended.json["base"]), str(ended.json["tip"])):
        assert "module.py" not in git(desk.repo, "ls-tree", "-r", "--name-only", commit)


def test_a_test_added_to_an_existing_file_is_verified(tmp_path: Path) -> None:
    desk = python_project(tmp_path)
    more = "\n\ndef test_nothing():\n    assert total([]) == 0\n"
    ended = desk.work(PLAN, FASTER, replace("== 3\n", f"== 3\n{more}", "test_app.py", 2), DONE)
    assert (ended.code, verdict(desk, ended)) == (VERIFIED, "verified")


def test_checks_do_not_see_no_color(tmp_path: Path) -> None:
    colourless = "import os\nimport sys\n\nsys.exit('NO_COLOR' in os.environ)\n"
    desk = Desk(tmp_path, files={"app.txt": "good\n", "check.py": colourless})
    ended = desk.work(*GOOD)
    assert (ended.code, verdict(desk, ended)) == (VERIFIED, "verified")


def test_finish_ends_the_run_with_data(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    finish = call("finish", 5, status="done", summary="It is red.", files=["app.txt"], tests=["unit"])
    with serve_model(Turns(PLAN, replace("good", "good, red"), finish)) as server:
        begun = desk.type("run", "Paint it.", "--yes", *JSON, **server.reach)
        offered = {str(fields(tool["function"])["name"]) for tool in rows(server.requests[0].body["tools"])}
        ended = desk.answer_all(begun, **server.reach)
    assert "finish" in offered
    assert (ended.code, server.asked, ended.json["answer"]) == (VERIFIED, 3, "It is red.")


def test_apply_refuses_where_a_changed_file_has_uncommitted_edits(tmp_path: Path) -> None:
    long = "good\n" + "".join(f"line {number}\n" for number in range(20))
    desk = Desk(tmp_path, files={"app.txt": long, "check.py": "print('fine')\n"})
    assert desk.work(*GOOD).code == VERIFIED
    desk.put("app.txt", long.replace("line 15", "mine"))
    before = snapshot(desk.repo)
    refused = desk.type("apply", "last", *JSON)
    assert refused.code != 0
    assert "app.txt" in refused.out
    assert snapshot(desk.repo) == before
    assert desk.type("branch", "last", "red").code == 0


def test_each_test_that_is_expected_later_exists() -> None:
    sources = [ast.parse(path.read_text()) for path in Path(__file__).parent.glob("test_*.py")]
    known = {node.name for tree in sources for node in tree.body if isinstance(node, ast.FunctionDef)}
    assert set(EXPECTED_LATER) <= known
