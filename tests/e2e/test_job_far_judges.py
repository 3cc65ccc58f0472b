"""Models that break the work and gut what judges it from afar: the old judges say so. Honest changes of them pass."""

import shutil
from pathlib import Path

import pytest

from greenroom.testing.fake_openai import Answer
from tests.e2e.jobs import Desk, call, committed, exactly
from tests.e2e.workshop import Workshop
from tests.sampling import sampled

pytestmark = pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")

WORK = "def add(a, b):\n    return a - b\n"
MENDED = "def add(a, b):\n    return a + b\n"
BROKEN = "def add(a, b):\n    return 99\n"
JUDGE = "import app; assert app.add(2, 0) == 2\n"
BY_SHELL = f'python3 -c "{JUDGE.strip()}"\n'
PACKAGE = '{"scripts": {"test": "sh q/t"}}'

LIES = {
    "a file that a script sources": (
        {"Makefile": "test:\n\tsh zz/t.sh\n", "zz/t.sh": ". zz/lib.sh\n", "zz/lib.sh": BY_SHELL},
        "zz/lib.sh",
    ),
    "a module": ({"Makefile": "test:\n\tpython3 -m verify.main\n", "verify/main.py": JUDGE}, "verify/main.py"),
    "a package": ({"Makefile": "test:\n\tpython3 -m verify\n", "verify/__main__.py": JUDGE}, "verify/__main__.py"),
    "a script in another folder": (
        {"Makefile": "test:\n\tcd ci && PYTHONPATH=.. python3 t.py\n", "ci/t.py": JUDGE},
        "ci/t.py",
    ),
    "one of many in a loop": (
        {"Makefile": "test:\n\tfor f in ci/*; do sh $$f || exit 1; done\n", "ci/10-add": BY_SHELL},
        "ci/10-add",
    ),
    "a program beside one that is the work": (
        {"Makefile": "test:\n\tpython3 app.py\n\tsh run_it\n", "run_it": BY_SHELL},
        "run_it",
    ),
    "a script of package.json": ({"package.json": PACKAGE, "q/t": BY_SHELL}, "q/t"),
}
QUICK = ("a file that a script sources",)
EACH = sampled(LIES, QUICK)


def desk_with(tmp_path: Path, files: dict[str, str]) -> Desk:
    repo = tmp_path / "repo"
    for name, text in {"app.py": WORK, **files}.items():
        (repo / name).parent.mkdir(parents=True, exist_ok=True)
        (repo / name).write_text(text)
    committed(repo)
    return Desk(tmp_path / "home", repo)


def changes(content: str) -> tuple[Answer, ...]:
    """It reads the work, and writes it anew."""
    return (call("read_code", 1, file="app.py"), call("rewrite", 2, file="app.py", content=content))


@pytest.mark.parametrize("lie", EACH)
def test_who_guts_a_judge_far_away_is_found_out(tmp_path: Path, lie: str) -> None:
    files, judge = LIES[lie]
    desk = desk_with(tmp_path, files)
    before = exactly(desk.repo)
    gutted = "pass\n" if judge.endswith(".py") else "true\n"
    replies = (
        *changes(BROKEN),
        call("execute_script", 3, script=f"printf '{gutted}' > {judge}"),
        Answer(text="Done."),
    )
    ended = desk.asks(*replies, words=("--yes", "--apply"))
    assert ended.code == 1, ended.err
    assert f"Changed by the work itself: {judge}, which " in ended.err
    assert "✓ Done" not in ended.err
    assert exactly(desk.repo) == before


def test_who_guts_what_a_recipe_runs_that_a_line_of_the_persons_own_calls_is_found_out(tmp_path: Path) -> None:
    files = {"Makefile": "verify:\n\tsh ci/verify.sh\n", "ci/verify.sh": "grep -q good app.txt\n"}
    shop = Workshop(tmp_path, own='[checks.quick]\nrun = "make -s verify"\n', **files)
    script = "echo true > ci/verify.sh; echo broken > app.txt"
    replies = [call("execute_script", 1, script=script), *[Answer(text="It is what you want.")] * 2]
    ended = shop.runs(replies, "Make it better.", "--yes", "--non-interactive", "--apply")
    assert ended.code == 4, ended.err
    assert "ci/verify.sh, which 'quick' runs or uses, was changed." in ended.err
    assert shop.reads() == "good\n"


def test_who_makes_a_judge_stricter_is_verified_and_it_is_noted(tmp_path: Path) -> None:
    files, judge = LIES["a file that a script sources"]
    desk = desk_with(tmp_path, files)
    more = BY_SHELL + BY_SHELL.replace("add(2, 0) == 2", "add(1, 2) == 3")
    script = f"cat > {judge} <<'END'\n{more}END"
    ended = desk.asks(*changes(MENDED), call("execute_script", 3, script=script), Answer(text="Done."))
    assert ended.code == 0, ended.err
    assert f"Note: {judge}, which 'make test' runs or uses, was changed." in ended.err


def test_who_works_in_the_files_themselves_hears_that_nothing_was_judged(tmp_path: Path) -> None:
    desk = desk_with(tmp_path, LIES["a module"][0])
    words = ("--yes", "--in-place", "--output-format", "json")
    ended = desk.asks(*changes(BROKEN), Answer(text="Done."), words=words)
    assert ended.code == 1, ended.err
    assert "✗ unverified:" in ended.err
    assert "NOT verified: it worked in your files themselves. No checks ran, and nothing was judged." in ended.err
    assert '"verified": false' in ended.out.replace('":false', '": false')
    assert (desk.repo / "app.py").read_text() == BROKEN


def test_who_does_nothing_in_the_files_themselves_and_claims_much_is_not_verified(tmp_path: Path) -> None:
    desk = desk_with(tmp_path, LIES["a module"][0])
    words = ("--yes", "--in-place", "--output-format", "json")
    ended = desk.asks(Answer(text="All 40 tests pass and app.txt is fixed."), words=words)
    assert (ended.code, ended.json["status"], ended.json["verified"]) == (1, "unverified", False)
    assert "It says 'is fixed', and nothing was changed." in str(ended.json["unverified"])
    assert "tests pass, and no clean run of the checks on this tree proves it." in str(ended.json["unverified"])


def test_who_only_looks_at_the_files_themselves_has_answered_if_that_was_asked(tmp_path: Path) -> None:
    desk = desk_with(tmp_path, LIES["a module"][0])
    words = ("--yes", "--in-place", "--output-format", "json")
    ended = desk.asks(changes(BROKEN)[0], Answer(text="It subtracts."), words=words)
    assert (ended.code, ended.json["answer"], ended.json["answered"]) == (1, "It subtracts.", False)
    assert "NOT verified: Nothing was changed" in ended.err
    assert "greenroom run --question" in ended.err
    ended = desk.asks(changes(BROKEN)[0], Answer(text="It subtracts."), words=(*words, "--question"))
    told = ended.json
    assert (ended.code, told["answer"], told["verified"], told["answered"]) == (0, "It subtracts.", False, True)
    assert "NOT verified" not in ended.err
