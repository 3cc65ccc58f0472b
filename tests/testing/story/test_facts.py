"""What the demo looks up: each fact holds of a run that went well, and does not of one that was tampered with."""

import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from greenroom.core.base.errors import WorldFault
from greenroom.core.base.ids import AgentId, StepId, TaskId, TeamId, ThreadId
from greenroom.core.base.records import Data, evolve
from greenroom.core.ports.checks import REPORT, Checked, Compared, Report, as_data
from greenroom.core.state.step import Step, StepEnded, Terms, Work
from greenroom.core.state.team import OwnerChanged
from greenroom.testing.story import facts, script, shop
from greenroom.testing.story.facts import Before, Fact
from greenroom.testing.story.reading import Log

TEAM = TeamId("k3fx9a2m")
TREE = "d08aabb8b8"


def checked(passed: int, failing: int, *new: str, tree: str = TREE) -> Checked:
    compared = Compared(new=new)
    return Checked(
        check="pytest",
        kind="test",
        digest="1",
        outcome="failed",
        passed=passed,
        failing=failing,
        tree=tree,
        compared=compared,
    )


def step(number: int, executor: str, result: Data | None = None, *, state: str = "finished", error: str = "") -> Step:
    name = f"coder#{number}"
    made = Step(
        step_id=StepId(name),
        agent_id=AgentId("coder"),
        thread_id=ThreadId("coder@t1"),
        task_id=TaskId("t1"),
        stage_id=None,
        subtask_id=None,
        work=Work(type="tool", executor=executor),
        queued_at=0,
        result=result,
        error=error,
        ended_in=number,
        terms=Terms(effect="keyed", rule=facts.BEHIND_WALLS),
    )
    return evolve(made, state="failed") if state == "failed" else evolve(made, state="finished")


def report(*checks: Checked, base: bool = False) -> Data:
    return as_data(Report(tree=TREE, checks=checks, base=base))


BASE = step(1, "baseline", {REPORT: report(checked(2, 1, tree="0"), base=True)})
FAILS = step(
    3,
    "deliver",
    {
        REPORT: report(checked(2, 2, script.NEW)),
        "verdict": {"state": "unproven", "missing": [f"'pytest' fails: {script.NEW}."]},
    },
)
MENDS = step(4, "patch")
PROVES = step(5, "deliver", {REPORT: report(checked(3, 1)), "verdict": {"state": "verified"}})
GOOD = (BASE, FAILS, MENDS, PROVES)


def log(*steps: Step, pid: int = 7, twice: bool = False) -> Log:
    ended = [
        StepEnded(at=0, step_id=one.step_id, thread_id=one.thread_id, attempt=1, state="finished") for one in steps
    ]
    again = ended[:1] if twice else []
    taken = OwnerChanged(at=0, epoch=2, owner=f"vm:{pid}:abc")
    return Log(team=TEAM, events=(*ended, *again, taken), steps=steps, running=())


@pytest.fixture(name="root")
def _root(tmp_path: Path) -> Path:
    """The shop with the commits of a run in it, as they are when it is proven."""
    root = tmp_path / "shop"
    shop.made(root, ())
    shop.git(root, "update-ref", f"refs/greenroom/{TEAM}/@base", "HEAD")
    for name in script.FILES:
        (root / name).write_text(f"# {script.MENDED}\n")
    shop.git(root, "add", *script.FILES)
    shop.git(root, "commit", "--quiet", "--message=work")
    shop.git(root, "update-ref", f"refs/greenroom/{TEAM}/main", "HEAD")
    return root


def wrong(found: Iterable[Fact]) -> str:
    """All that did not hold."""
    return "\n".join(one.text for one in found if not one.held)


# ------------------------------------------------------------------------------------------------------------- the log


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        (GOOD, ""),
        ((), "no check ran before the work"),
        ((step(1, "baseline", {"output": "Nobody has confirmed it."}),), "Nobody has confirmed it."),
        (
            (step(1, "baseline", {REPORT: report(checked(0, 3), base=True)}),),
            "0 pass and 3 fail; it should be 2 and 1",
        ),
    ],
)
def test_the_base_has_the_failures_that_it_was_made_with(steps: tuple[Step, ...], said: str) -> None:
    found = wrong(facts.based(log(*steps)))
    assert said in found
    assert bool(found) == bool(said)


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        (GOOD, ""),
        ((BASE, PROVES), f"{script.NEW} should have failed"),
        ((BASE, FAILS, PROVES), "it was not mended: no step changed a file after that"),
        ((BASE, FAILS, step(4, "patch", state="failed", error="No."), PROVES), "it was not mended: No."),
        ((BASE, FAILS, MENDS, step(5, "deliver", {REPORT: report(checked(2, 2, "x"))})), "but 2 pass and 2 fail"),
        ((BASE,), "but no check ran"),
    ],
)
def test_what_failed_was_seen_and_mended(steps: tuple[Step, ...], said: str) -> None:
    found = wrong(facts.mended(log(*steps), "walled"))
    assert said in found
    assert bool(found) == bool(said)


def test_where_its_tests_ran_is_what_the_log_says() -> None:
    asked = evolve(PROVES, terms=Terms(effect="keyed", rule=""))
    assert facts.walled(log(*GOOD), "walled").held
    assert facts.walled(log(asked), "none").held
    assert not facts.walled(log(*GOOD), "none").held
    assert not facts.walled(log(FAILS, asked), "walled").held
    assert not facts.walled(log(BASE), "walled").held


def test_another_process_went_on_and_did_nothing_twice() -> None:
    before, after = log(BASE), log(*GOOD, pid=8)
    assert wrong(facts.resumed(after, before, 0, 8)) == ""
    assert "was not taken over by process 9" in wrong(facts.resumed(after, before, 0, 9))
    assert "the newest is other" in wrong(facts.resumed(evolve(after, team=TeamId("other")), before, 0, 8))
    assert "more than once: coder#1" in wrong(facts.resumed(log(*GOOD, pid=8, twice=True), before, 0, 8))
    assert "lost: coder#1" in wrong(facts.resumed(log(FAILS, MENDS, pid=8), before, 0, 8))
    assert "exit code 1" in wrong(facts.resumed(after, before, 1, 8))


def test_blame_names_the_step_of_the_log_and_its_reason() -> None:
    reason = script.TURNS[script.MENDS].text
    assert wrong(facts.blamed(log(*GOOD), f"run {TEAM}, step coder#4 of coder\nwhy: {reason}")) == ""
    assert "it should name run" in wrong(facts.blamed(log(*GOOD), f"run {TEAM}, step coder#40 of coder\n{reason}"))
    assert "it does not say why" in wrong(facts.blamed(log(*GOOD), f"run {TEAM}, step coder#4 of coder"))
    assert "step ?" in wrong(facts.blamed(log(BASE), ""))


# ------------------------------------------------------------------------------------------------------ files and git


def tree_of(root: Path) -> str:
    return shop.git(root, "rev-parse", "HEAD^{tree}").strip()


def delivered(root: Path, tree: str) -> Log:
    ran = step(5, "deliver", {REPORT: report(checked(3, 1, tree=tree)), "verdict": {"state": "verified"}})
    return log(BASE, FAILS, MENDS, ran)


SAYS = f"NOT verified: docs, which no check reads: {script.UNREAD}"


def test_what_is_handed_over_is_what_the_checks_ran_on(root: Path) -> None:
    good = delivered(root, tree_of(root))
    assert wrong(facts.proven(root, good, SAYS)) == ""
    assert "but the checks ran on" in wrong(facts.proven(root, delivered(root, "other"), SAYS))
    assert "is NOT verified" in wrong(facts.proven(root, good, "All is well."))
    assert "the verdict is: not judged" in wrong(facts.proven(root, log(BASE), SAYS))
    shop.git(root, "update-ref", "-d", f"refs/greenroom/{TEAM}/main")
    told = wrong(facts.proven(root, good, SAYS))
    assert "you would get tree none" in told
    assert "these are: nothing" in told


def test_a_killed_process_leaves_half_the_work_in_the_copy(root: Path) -> None:
    half = evolve(log(BASE), running=(step(8, "converse"),))
    told = wrong(facts.killed(half, root, -9, 7))
    assert told.startswith("the copy should have export.py changed and nothing else")
    assert "process 7 ended with 1" in wrong(facts.killed(half, root, 1, 7))
    assert "no step that was cut off" in wrong(facts.killed(log(BASE), root, -9, 7))
    for name in ("main", "@base"):
        shop.git(root, "update-ref", f"refs/greenroom/{TEAM}/{name}", "HEAD")
    (root / "export.py").write_text("half\n")
    shop.git(root, "commit", "--quiet", "--all", "--message=half")
    shop.git(root, "update-ref", f"refs/greenroom/{TEAM}/main", "HEAD")
    assert wrong(facts.killed(half, root, -9, 7)) == ""


def was(root: Path) -> Before:
    return Before(whole="", head=shop.git(root, "rev-parse", "HEAD~1").strip())


def commit(root: Path, name: str) -> None:
    (root / name).write_text("more\n")
    shop.git(root, "add", name)
    shop.git(root, "commit", "--quiet", "--amend", "--no-edit")


TAMPERED: dict[str, tuple[Callable[[Path], object], str]] = {
    "one commit too many": (
        lambda root: shop.git(root, "commit", "--quiet", "--allow-empty", "--message=more"),
        "2 commits more, not one",
    ),
    "somebody else's name": (
        lambda root: shop.git(root, "commit", "--amend", "--quiet", "--no-edit", "--author=Eve <eve@localhost>"),
        "its author is Eve",
    ),
    "a file of the person's in it": (
        lambda root: commit(root, shop.LOOSE),
        f"in it is README.md, export.py, {shop.LOOSE}",
    ),
    "not what was proven": (lambda root: commit(root, "export.py"), "and not as it was proven"),
    "something left over": (lambda root: (root / "rest").write_text(""), "git status says"),
}


def test_what_was_applied_is_one_commit_with_the_work_in_it(root: Path) -> None:
    assert wrong(facts.applied(root, log(*GOOD), was(root))) == ""
    assert facts.place_of(root) == "export.py:1"


@pytest.mark.parametrize("how", TAMPERED)
def test_what_was_applied_otherwise_is_noticed(root: Path, how: str) -> None:
    before = was(root)
    tamper, said = TAMPERED[how]
    tamper(root)
    assert said in wrong(facts.applied(root, log(*GOOD), before))


@pytest.mark.parametrize(
    "tamper",
    [
        lambda root: (root / "README.md").write_text("# The shop\n"),
        lambda root: (root / "export.py").chmod(0o755),
        lambda root: (root / "empty").touch(),
        lambda root: shop.git(root, "add", shop.LOOSE),
        lambda root: shop.git(root, "switch", "--quiet", "--create", "other"),
        lambda root: shop.git(root, "commit", "--quiet", "--allow-empty", "--message=more"),
    ],
    ids=["bytes", "mode", "new file", "index", "branch", "commit"],
)
def test_not_a_byte_bit_or_commit_differs_unnoticed(root: Path, tamper: Callable[[Path], object]) -> None:
    before = facts.before(root)
    assert wrong([*facts.undone(root, before), facts.untouched(root, before)]) == ""
    tamper(root)
    assert "not the same" in wrong(facts.undone(root, before))
    assert not facts.untouched(root, before).held


def test_a_repository_in_which_all_is_committed_is_not_the_one_of_the_story(root: Path) -> None:
    assert wrong(facts.dirty(root)) == ""
    shop.git(root, "add", shop.LOOSE)
    assert f"{shop.LOOSE} is committed, or gone" in wrong(facts.dirty(root))


# ------------------------------------------------------------------------------------------------------- the repository


def test_a_git_that_cannot_is_said(tmp_path: Path) -> None:
    with pytest.raises(WorldFault, match="git rev-parse failed in"):
        shop.git(tmp_path, "rev-parse", "HEAD")
    with pytest.raises(WorldFault, match="Install git"):
        shop.git(tmp_path / "gone", "status")


def test_the_person_is_who_git_knows_and_their_hooks_and_signatures_stay_out_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = tmp_path / "gitconfig"
    theirs.write_text(
        "[user]\nname = Pia\nemail = pia@example.org\n[commit]\ngpgsign = true\n[core]\nhooksPath = /nowhere\n"
    )
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(theirs))
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    shop.made(tmp_path / "shop", (9, 0))
    assert shop.git(tmp_path / "shop", "log", "--format=%an %ae").strip() == "Pia pia@example.org"
    assert "--disable-plugin-autoload" in (tmp_path / "shop" / "pyproject.toml").read_text()


def test_an_old_pytest_is_not_told_what_it_does_not_know() -> None:
    assert "addopts" not in shop.files((8, 3))["pyproject.toml"]
    assert "addopts" in shop.files((8, 4))["pyproject.toml"]
    assert "pyproject.toml" not in shop.files(())


def test_a_repository_that_is_there_is_taken_as_it_stands(root: Path) -> None:
    before = facts.before(root)
    shop.made(root, (9, 0))
    assert facts.before(root) == before
    shutil.rmtree(root)
