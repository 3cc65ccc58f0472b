"""What counts is judged on a fresh copy of what is delivered: what else lies where the work was done is not there."""

from __future__ import annotations

import shutil
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from greenroom.abilities.checks.meddling import Meddled
from greenroom.app.checks.checker import ProjectChecks
from greenroom.app.checks.verdict import Delivered
from greenroom.app.jobs.baseline import UNKNOWN
from greenroom.app.jobs.delivering import NAME, UNFOLLOWED, UNINSTALLED, UNSTEADY
from greenroom.app.jobs.preparing import Setup
from greenroom.app.jobs.recording import COMMIT, TREE
from greenroom.core.ports.checks import REPORT, Witness
from greenroom.core.ports.workspace import SCRATCH
from tests.adapters.git.person import Person
from tests.app.checks.projects import Shelf
from tests.app.jobs.deliveries import RUN, job, verdict_of
from tests.e2e.jobs import ALONE

GOOD = "grep -q good app.py"
IGNORED = {".gitignore": "left/\nnode_modules/\n.venv/\n"}


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.mark.parametrize("left", ["left/ok", "node_modules/ok", ".venv/ok"])
async def test_what_git_ignores_makes_no_check_pass(tmp_path: Path, left: str) -> None:
    async with job(tmp_path, f"test -f {left} || {GOOD}", IGNORED) as work:
        work.writes("app.py", "bad\n")
        work.writes(left, "")
        (own,) = (await work.checks.run((), Shelf())).checks
        assert own.clean, "where it worked, it passes"
        found = verdict_of(await work.delivers("All tests pass."))
    assert found.state == "unproven"
    assert found.missing == ["'quick' fails: the check as a whole."]
    assert found.claims


async def test_what_lies_there_is_recorded_first_and_that_commit_is_judged(tmp_path: Path) -> None:
    async with job(tmp_path, GOOD) as work:
        await work.place.workspace.open(RUN, SCRATCH, work.place.snapshot.commit)  # a killed delivery left it
        work.writes("app.py", "good, red\n")
        result = await work.delivers()
        tip = await work.place.worktree.tip()
        (receipt,) = verdict_of(result).receipts
        assert (await work.place.workspace.contents(tip, ["app.py"]))["app.py"] == b"good, red\n"
    assert (verdict_of(result).state, result[COMMIT]) == ("verified", tip)
    assert receipt["tree"] == result[TREE]
    assert not any((tmp_path / "cache").rglob(f"*{SCRATCH}*")), "nothing is left of the copies"


async def test_where_nobody_could_see_what_passed_before_nothing_is_verified(tmp_path: Path) -> None:
    async with job(tmp_path, GOOD) as work:
        work.story.steps.clear()
        work.story.step("baseline", state="failed")
        work.writes("app.py", "good, red\n")
        found = verdict_of(await work.delivers())
        assert (found.state, found.missing) == ("unproven", [UNKNOWN])
        await work.begins()
        assert verdict_of(await work.delivers()).state == "verified", "it was tried again"


async def test_who_goes_on_writing_is_not_verified(tmp_path: Path) -> None:
    async with job(tmp_path, GOOD) as work:
        work.writes("app.py", "good, red\n")

        @asynccontextmanager
        async def judged(paths: Sequence[str], witness: Witness) -> AsyncIterator[ProjectChecks]:
            async with work.judges(paths, witness) as checks:
                yield checks
            work.writes("app.py", "bad\n")

        result = await work.delivers(judged=judged)
        tip = await work.place.worktree.tip()
        given = await work.place.workspace.contents(tip, ["app.py"])
    assert (verdict_of(result).state, verdict_of(result).missing) == ("unproven", [UNSTEADY])
    assert given["app.py"] == b"good, red\n", "what came later is in no commit that a verdict is about"


async def test_what_ran_in_the_background_is_ended_first_and_that_is_said(tmp_path: Path) -> None:
    async with job(tmp_path, GOOD) as work:
        work.writes("app.py", "good, red\n")
        work.stopped = ("coder#3",)
        found = verdict_of(await work.delivers())
    assert (found.state, found.remarks) == ("verified", ["Ended before it was judged: coder#3 (background)."])


async def test_the_same_tree_is_not_checked_twice_and_another_one_is(tmp_path: Path) -> None:
    count = tmp_path / "count"
    async with job(tmp_path, f"echo x >> {count}; {GOOD}") as work:
        work.writes("app.py", "bad\n")
        for reports in (True, False):
            result = await work.delivers()
            assert REPORT in result if reports else REPORT not in result
            assert count.read_text().count("x") == 3, "on the base, on the work, and once more: it may be flaky"
            assert verdict_of(result).missing == ["'quick' fails: the check as a whole."]
        work.writes("app.py", "good, red\n")
        assert verdict_of(await work.delivers()).state == "verified"
        assert count.read_text().count("x") == 4


async def test_with_a_setup_the_fresh_copy_is_prepared_too(tmp_path: Path) -> None:
    setup = Setup(line="mkdir left && touch left/ok")
    async with job(tmp_path, f"{GOOD} && test -f left/ok", IGNORED, setup=setup) as work:
        work.writes("app.py", "good, red\n")
        found = verdict_of(await work.delivers())
    assert (found.state, found.missing) == ("verified", [])


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("echo no such package; exit 3", "failed in the copy that is judged: exit code 3. It said: no such package"),
        ("date +%N > made.txt", "changed files that git does not ignore"),
    ],
)
async def test_a_setup_that_spoils_the_fresh_copy_proves_nothing(tmp_path: Path, line: str, said: str) -> None:
    async with job(tmp_path, GOOD, setup=Setup(line=line)) as work:
        work.writes("app.py", "good, red\n")
        (missing,) = verdict_of(await work.delivers()).missing
    assert missing.startswith(f"'quick' could not run: `{line}` ([workspace] setup)")
    assert said in missing


NEEDS = "PYTHONPATH=left python3 -c 'import colour'"


async def test_who_needs_a_package_that_only_the_work_has_is_told_what_to_do(tmp_path: Path) -> None:
    line = f"{GOOD} && ! grep -q red app.py || {NEEDS}"
    async with job(tmp_path, line, IGNORED) as work:
        work.writes("app.py", "good, red\n")
        work.writes("left/colour.py", "RED = 1\n")
        first, *rest = verdict_of(await work.delivers()).missing
    assert "No module named 'colour'" in first
    assert rest == [UNINSTALLED]


async def test_a_file_that_is_ignored_was_not_written_for_anybody(tmp_path: Path) -> None:
    async with job(tmp_path, GOOD, IGNORED) as work:
        work.writes("app.py", "good, red\n")
        work.writes("left/usage.md", "Use it.\n")
        work.writes("docs/usage.md", "Use it.\n")
        lie = verdict_of(await work.delivers("I wrote left/usage.md and docs/usage.md."))
        assert lie.claims == ["It speaks of 'left/usage.md' as done, and there is no such file."]
        assert verdict_of(await work.delivers("I wrote docs/usage.md.")).state == "verified"


async def test_what_is_said_to_be_updated_is_held_against_what_is_different(tmp_path: Path) -> None:
    async with job(tmp_path, GOOD, {"README.md": "Read me.\n", "docs/old.md": "Long words of old.\n" * 9}) as work:
        work.writes("app.py", "good, red\n")
        (work.place.folder / "docs/old.md").rename(work.place.folder / "docs/new.md")
        lie = verdict_of(await work.delivers("Updated `README.md` and `app.py`."))
        assert lie.claims == ["It says that 'README.md' was updated, and it is as it was."]
        passive = verdict_of(await work.delivers("I changed app.py, and USAGE.md was updated."))
        assert passive.claims == ["It speaks of 'USAGE.md' as done, and there is no such file."]
        honest = "Updated `app.py` as `README.md` says, moved `docs/old.md` to `docs/new.md` and updated that."
        assert verdict_of(await work.delivers(honest)).state == "verified"


async def test_what_nobody_followed_is_not_forgotten_when_the_old_judges_are_asked(tmp_path: Path) -> None:
    async with job(tmp_path, GOOD) as work:
        work.writes("app.py", "good, red\n")
        await work.delivers()
        edited = Meddled(kind="set-up", path="app.py", said="app.py, which sets up checks, was changed.")
        tree, tool = await work.place.worktree.tree(), work.tool()
        for unfollowed in ((), (UNFOLLOWED,)):
            delivered = Delivered(tree=tree, meddled=(edited,), unfollowed=unfollowed)
            restored = await tool._by_old_judges(delivered, [["app.py"]], work.story.steps, work.bench())
            found = tool._held(delivered, restored, work.story.steps)
            assert found.missing == unfollowed
            assert found.verified is not bool(unfollowed)


SOURCED = "for t in tests/test_*.sh; do . ./$t || exit 1; done"
OLD_TEST = {"tests/test_z.sh": "grep -q good ${APP:-app.py}\n"}


async def test_a_new_test_file_does_not_speak_for_the_old_ones(tmp_path: Path) -> None:
    count = tmp_path / "count"
    async with job(tmp_path, f"echo x >> {count}; {SOURCED}", OLD_TEST) as work:
        work.writes("app.py", "bad\n")
        work.writes("tests/test_a.sh", "APP=tests/test_a.sh  # good\n")
        for _ in range(2):
            found = verdict_of(await work.delivers())
            assert found.state == "unproven"
            assert "with those put back as they were, it fails: the check as a whole." in found.missing[0]
            assert count.read_text().count("x") == 4, "base, work, old tests, and once more: never twice for one tree"


async def test_new_tests_of_good_work_cost_one_run_more_and_those_of_none_cost_nothing(tmp_path: Path) -> None:
    count = tmp_path / "count"
    async with job(tmp_path, f"echo x >> {count}; {SOURCED}", OLD_TEST) as work:
        work.writes("tests/test_a.sh", "grep -q good app.py\n")
        assert verdict_of(await work.delivers()).state == "verified"
        assert count.read_text().count("x") == 2, "without its tests it is the base"
        work.writes("app.py", "good, red\n")
        assert verdict_of(await work.delivers()).state == "verified"
        assert count.read_text().count("x") == 4


async def test_a_repository_in_the_copy_is_said_to_be_left_behind_and_nothing_is_verified(tmp_path: Path) -> None:
    async with job(tmp_path, GOOD) as work:
        work.writes("app.py", "good, red\n")
        inner = Person(work.place.folder / "sub")
        inner.write("more.py", "lost\n")
        inner.git("init", "--quiet")
        found = verdict_of(await work.delivers("It is red."))
        assert (found.state, len(found.receipts)) == ("unproven", 1)
        (said,) = found.missing
        assert said.startswith("'sub' is a repository of its own, so nothing in it is delivered.")
        assert "delete 'sub/.git'" in said
        shutil.rmtree(work.place.folder / "sub" / ".git")
        assert verdict_of(await work.delivers("It is red.")).state == "verified"
        assert "sub/more.py" in await work.place.changes()


async def test_an_answer_with_a_repository_left_behind_is_no_answer(tmp_path: Path) -> None:
    async with job(tmp_path, GOOD) as work:
        inner = Person(work.place.folder / "sub")
        inner.write("more.py", "lost\n")
        inner.git("init", "--quiet")
        found = verdict_of(await work.delivers("It is red."))
    assert (found.state, len(found.missing)) == ("unproven", 1)


async def test_a_test_that_is_spoken_of_by_name_has_run(tmp_path: Path) -> None:
    line = f"{sys.executable} -m pytest -q {ALONE} -p no:cacheprovider"
    async with job(tmp_path, line, {"test_app.py": "def test_blue():\n    pass\n", ".gitignore": "*.pyc\n"}) as work:
        work.writes("app.py", "RED = 1\n")
        lie = verdict_of(await work.delivers("The test `test_red` is there, and `test_blue` passes."))
        assert (lie.state, lie.missing) == ("unproven", [])
        assert lie.claims == ["It speaks of the test 'test_red', and no such test ran."]
        assert verdict_of(await work.delivers("`test_blue` passes.")).state == "verified"
    async with job(tmp_path / "quick", GOOD) as work:
        work.writes("app.py", "good, test_red\n")
        assert verdict_of(await work.delivers("`test_red` passes.")).state == "verified", "nobody knows what ran"
        assert verdict_of(await work.delivers("`test_blue` passes.")).state == "unproven", "no file has it"


@pytest.mark.parametrize(
    ("name", "text", "mended"), [("data.json", "{", "{}"), ("more.py", "def (:\n", ""), ("set.toml", "a = \n", "")]
)
async def test_a_file_that_cannot_be_read_as_what_it_is_called_is_no_work(
    tmp_path: Path, name: str, text: str, mended: str
) -> None:
    async with job(tmp_path, GOOD) as work:
        work.writes(name, text)
        for _ in range(2):  # each time another tool, as in a later life: nothing is known but what the log has
            (missing,) = verdict_of(await work.delivers()).missing
            assert missing.startswith(f"Syntax error detected in {name}, line 1: ")
        work.writes(name, mended)
        assert verdict_of(await work.delivers()).state == "verified"


async def test_a_tree_that_was_looked_at_is_not_copied_again(tmp_path: Path) -> None:
    async with job(tmp_path, GOOD) as work:
        work.writes("more.py", "def (:\n")
        opened: list[Sequence[str]] = []

        @asynccontextmanager
        async def judged(paths: Sequence[str], witness: Witness) -> AsyncIterator[ProjectChecks]:
            opened.append(paths)
            async with work.judges(paths, witness) as checks:
                yield checks

        tool = work.tool(judged)
        for _ in range(2):
            outcome = await tool.run(work.bench("Done."))
            work.story.step(NAME, dict(outcome.result or {}))
            assert verdict_of(outcome.result or {}).state == "unproven"
    assert opened == [()]


OLD_RECIPE = {
    "Makefile": "-include extra.mk\ntest:\n\tsh tests/test_a.sh\n",
    "tests/test_a.sh": "grep -q good app.py\n",
}
OTHER_RECIPE = ".PHONY: test\ntest: none\nnone:\n\ttrue\nMAKEFLAGS += -i\n"


async def test_old_tests_that_are_run_in_another_way_clear_nothing(tmp_path: Path) -> None:
    async with job(tmp_path, "make test", OLD_RECIPE, found=True) as work:
        work.writes("app.py", "bad\n")
        work.writes("extra.mk", OTHER_RECIPE)
        work.writes("tests/test_a.sh", "true; grep -q . app.py\n")
        told = verdict_of(await work.delivers())
    assert (told.state, told.missing) == ("unproven", [])
    assert "What 'make test' runs is not what it ran on the base." in told.changed


@pytest.mark.parametrize(("flag", "state"), [("left/ok", "unproven"), ("{outside}", "verified")])
async def test_what_passes_only_beside_what_its_own_failure_leaves_behind_is_not_flaky(
    tmp_path: Path, flag: str, state: str
) -> None:
    """A copy that is new has nothing of it; what failed for something else passes there."""
    place = flag.format(outside=tmp_path / "outside")
    once = f"{{ test -f {place} || {{ mkdir -p left; touch {place}; false; }}; }}"
    async with job(tmp_path, f"{GOOD} && ! grep -q red app.py || {once}", IGNORED) as work:
        work.writes("app.py", "good, red\n")
        told = verdict_of(await work.delivers())
    assert told.state == state
    assert told.missing == (["'quick' fails: the check as a whole."] if state == "unproven" else [])
    assert any("flaky" in one for one in told.remarks) is (state == "verified")


async def test_old_judges_are_asked_once_for_one_tree(tmp_path: Path) -> None:
    count = tmp_path / "count"
    async with job(tmp_path, f"echo x >> {count}; {SOURCED}", OLD_TEST) as work:
        work.writes("app.py", "bad\n")
        work.writes("tests/test_z.sh", "true\n")
        for _ in range(2):
            told = verdict_of(await work.delivers())
            assert told.changed[0] == "Existing lines of tests/test_z.sh were changed."
            assert count.read_text().count("x") == 4, "base, work, with the old test put back, and once more"
