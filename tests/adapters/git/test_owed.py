"""The hook that comes after a commit: it is held back until the person's index knows of that, and then it runs, once;
and no hook can tell that one was held back."""

from __future__ import annotations

import os
from pathlib import Path
from unittest.mock import patch

import pytest

from greenroom.adapters.git import hooked, parting, undoing
from greenroom.adapters.git.house import House
from greenroom.core.ports.workspace import Undone, WorkspaceFault
from tests.adapters.git.killed import copied, live
from tests.adapters.git.person import Person, status
from tests.adapters.git.shapes import TEXT, plain
from tests.adapters.git.test_after_commit import KILL_PYTHON, QUIETLY, subjects
from tests.adapters.git.test_committing import brought, hook
from tests.adapters.git.test_parting import applied_to, texts, with_work

RAN = "echo ran >>.git/ran"
MOST = 5
"""How often a hook may call itself in a test before it gives up."""


class KilledError(BaseException):
    """Stands for a kill."""


@pytest.fixture
def person(tmp_path: Path) -> Person:
    person = Person(tmp_path / "tree")
    plain(person)
    return person


def ran(person: Person) -> str:
    place = person.root / ".git/ran"
    return place.read_text() if place.exists() else ""


@pytest.mark.req("G-2")
async def test_a_commit_that_a_hook_makes_in_another_repository_runs_the_hooks_of_that_one(person: Person) -> None:
    other = Person(person.root.parent / "backup", person.home)
    plain(other)
    hook(other, "pre-commit", RAN)
    alone = "unset GIT_DIR GIT_INDEX_FILE GIT_WORK_TREE GIT_PREFIX"
    up_to = f"[ $(wc -l <{person.root}/.git/ran) -lt {MOST} ] || exit 1"
    away = f"cd {other.root} && git commit --quiet --allow-empty -m backup"
    hook(person, "pre-commit", f"echo ran >>{person.root}/.git/ran; {up_to}; {alone}; {away}")
    hook(person, "post-commit", "true")
    workspace, applied = await applied_to(person)
    await workspace.commit(applied.id, "Do it")
    assert (ran(person), ran(other)) == ("ran\n", "ran\n")
    assert (subjects(person), subjects(other)) == (["Do it", "first"], ["backup", "first"])


async def test_no_hook_sees_a_setting_of_ours(person: Person) -> None:
    for name in ("pre-commit", "commit-msg", "post-commit"):
        hook(
            person,
            name,
            "env | grep ^GIT_CONFIG >>.git/seen; git config core.hooksPath >>.git/seen; echo $? >>.git/ran",
        )
    workspace, applied = await applied_to(person)
    await workspace.commit(applied.id, "Do it")
    assert (ran(person), (person.root / ".git/seen").read_text()) == ("1\n1\n1\n", "")


@pytest.mark.req("G-2")
@pytest.mark.parametrize("act", ["commit", "revert"])
async def test_a_kill_before_the_hook_that_comes_after_a_commit_leaves_it_to_whoever_comes_next(
    person: Person, tmp_path: Path, act: str
) -> None:
    workspace, worktree, applied = await brought(person)
    if act == "revert":
        await workspace.commit(applied.id, "Do it")
        person.git("commit", "--quiet", "--allow-empty", "--message", "another")
    one = copied(person.root, tmp_path / "killed")
    hook(one, "post-commit", RAN)
    killing = hook(one, "reference-transaction", f'[ "$1" = committed ] || exit 0\n{KILL_PYTHON}')
    assert live(one, "revert" if act == "revert" else "commit", (worktree.base, applied.tip), 10**6), "it was killed"
    killing.unlink()
    again = await one.workspace()
    if act == "revert":
        assert isinstance(await again.undo(applied.id, revert=True), Undone)
    else:
        made = await again.commit(applied.id, "Do it")
        assert (made.fresh, made.commit) == (False, one.git("rev-parse", "HEAD").strip())
        await again.commit(applied.id, "Do it")
    assert (ran(one), status(one)) == ("ran\n", "")


async def test_a_commit_that_takes_work_back_is_found_again_where_it_was_merged_since(
    person: Person, tmp_path: Path
) -> None:
    workspace, worktree, applied = await brought(person)
    await workspace.commit(applied.id, "Do it")
    person.git("commit", "--quiet", "--allow-empty", "--message", "another")
    one = copied(person.root, tmp_path / "killed")
    killing = hook(one, "reference-transaction", f'[ "$1" = committed ] || exit 0\n{KILL_PYTHON}')
    assert live(one, "revert", (worktree.base, applied.tip), 10**6), "it was killed"
    killing.unlink()
    one.git("reset", "--quiet")
    one.git("checkout", "--quiet", "-b", "side", "HEAD~2")
    one.git("commit", "--quiet", "--allow-empty", "--message", "side")
    one.git("merge", "--quiet", "--no-edit", "main")
    assert isinstance(await (await one.workspace()).undo(applied.id, revert=True), Undone)
    assert (len(subjects(one)), status(one)) == (6, ""), "and no other is made"


async def test_a_commit_that_takes_work_back_may_be_amended_by_a_hook(person: Person) -> None:
    workspace, applied = await applied_to(person)
    await workspace.commit(applied.id, "Do it")
    person.git("commit", "--quiet", "--allow-empty", "--message", "another")
    hook(person, "post-commit", f"{QUIETLY} commit --quiet --amend --no-edit --date 2001-01-01T00:00:00")
    assert isinstance(await workspace.undo(applied.id, revert=True), Undone)
    assert (subjects(person)[0], texts(person)) == ('Revert "Do it"', (TEXT,) * 3)


async def test_a_kill_when_all_is_undone_but_for_the_hook_leaves_it_to_whoever_comes_next(
    person: Person,
) -> None:
    workspace, applied = await applied_to(person)
    await workspace.commit(applied.id, "Do it")
    person.git("commit", "--quiet", "--allow-empty", "--message", "another")
    hook(person, "post-commit", RAN)

    async def dies(house: House, whose: str) -> str:
        raise KilledError

    with patch.object(undoing, "run_owed", dies), pytest.raises(KilledError):
        await workspace.undo(applied.id, revert=True)
    assert ran(person) == ""
    for _ in range(2):
        assert await workspace.undo(applied.id) == Undone(paths=())
    assert ran(person) == "ran\n"


@pytest.mark.parametrize("hooks", [True, False])
async def test_an_owed_hook_runs_with_the_next_try_unless_that_is_without_hooks(person: Person, hooks: bool) -> None:
    hook(person, "post-commit", f"{RAN}; {QUIETLY} commit --quiet --amend --no-edit --date 2001-01-01T00:00:00")
    held = hook(person, "commit-msg", "touch .git/index.lock")
    workspace, applied = await applied_to(person)
    with pytest.raises(WorkspaceFault, match=r"index\.lock"):
        await workspace.commit(applied.id, "Do it")
    held.unlink()
    (person.root / ".git/index.lock").unlink()
    made = await workspace.commit(applied.id, "Do it", hooks=hooks)
    assert (ran(person), status(person)) == ("ran\n" if hooks else "", "")
    assert made.commit == person.git("rev-parse", "HEAD").strip(), "also where the hook has amended it"


async def test_a_hook_is_not_owed_for_a_commit_that_was_made_without_hooks(person: Person) -> None:
    hook(person, "post-commit", RAN)
    workspace, applied = await applied_to(person)

    async def dies(*_: object) -> None:
        raise KilledError

    with patch.object(parting, "committed", dies), pytest.raises(KilledError):
        await workspace.commit(applied.id, "Do it")
    assert (await workspace.commit(applied.id, "Do it", hooks=False)).fresh
    assert not (await workspace.commit(applied.id, "Do it")).fresh
    assert ran(person) == ""


async def test_a_hook_is_not_owed_where_somebody_has_taken_the_work_back_already(person: Person) -> None:
    workspace, applied = await applied_to(person)
    await workspace.commit(applied.id, "Do it")
    work = person.git("show", "HEAD:a.txt")
    person.git("revert", "--no-edit", "HEAD")
    person.write("a.txt", work)
    hook(person, "post-commit", RAN)
    head = person.git("rev-parse", "HEAD").strip()
    assert await workspace.undo(applied.id, revert=True) == Undone(paths=applied.paths, revert=head)
    await workspace.undo(applied.id)
    assert ran(person) == "", "no commit was made that it would come after"


async def test_a_hook_that_does_not_end_after_a_commit_is_stopped_and_the_commit_stands(
    person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    hook(person, "post-commit", "exec sleep 100")
    workspace, applied = await applied_to(person)
    monkeypatch.setattr(hooked, "HOOKS", 3.0)
    made = await workspace.commit(applied.id, "Do it")
    assert (made.commit, status(person)) == (person.git("rev-parse", "HEAD").strip(), "")
    assert made.remark.startswith("The commit is made, but your post-commit hook had not ended after 0 minutes and was")
    assert (await workspace.commit(applied.id, "Do it")).remark == "", "it has run"


async def test_who_comes_while_the_hook_after_a_commit_runs_is_told_so(person: Person) -> None:
    workspace, applied = await applied_to(person)
    paper = workspace._house.folder / hooked.PAPER
    hook(person, "post-commit", f"for i in $(seq 500); do cp {paper} .git/ran && break; sleep 0.01; done")
    await workspace.commit(applied.id, "Do it")
    assert '"pid"' in ran(person)


async def test_a_hook_that_is_switched_off_is_passed_over(person: Person) -> None:
    hook(person, "post-commit", RAN)
    hook(person, "pre-commit", "exit 1").chmod(0o644)
    workspace, applied = await applied_to(person)
    assert (await workspace.commit(applied.id, "Do it")).fresh
    assert ran(person) == "ran\n"


def nothing_runs_from(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a disk that is mounted so."""
    access = os.access

    def refused(place: Path, mode: int) -> bool:
        return access(place, mode) and not (mode == os.X_OK and Path(place).is_relative_to(folder))

    monkeypatch.setattr(os, "access", refused)


async def test_where_nothing_can_be_run_from_our_folder_git_runs_all_hooks_itself(
    person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    hook(person, "pre-commit", "echo pre >>.git/ran")
    hook(person, "post-commit", 'echo "$GIT_INDEX_FILE" >>.git/ran')
    workspace, applied = await applied_to(person)
    nothing_runs_from(workspace._house.folder, monkeypatch)
    await workspace.commit(applied.id, "Do it")
    first, index = ran(person).splitlines()
    assert (first, Path(index).is_relative_to(workspace._house.folder)) == ("pre", True), (
        "once, and from git's own hand"
    )


@pytest.mark.parametrize("then", ["", "echo 1 >mine; git add mine; {quietly} commit --quiet -m mine"], ids=["", "mine"])
async def test_a_commit_that_the_hook_takes_away_is_not_taken_for_another_in_its_place(
    person: Person, then: str
) -> None:
    hook(person, "post-commit", f"git reset --quiet --hard HEAD^; {then.format(quietly=QUIETLY)}")
    workspace, applied = await applied_to(person)
    with pytest.raises(WorkspaceFault, match=r"Nothing is applied. The commit \w+ was made and then taken away"):
        await workspace.commit(applied.id, "Do it")
    assert [(one.state, one.commit) for one in await workspace.applied("r1")] == [("dropped", "")]


async def test_a_commit_from_which_a_hook_has_taken_the_work_is_still_the_one_that_was_made(person: Person) -> None:
    hook(person, "pre-commit", "git reset --quiet -- a.txt; echo 1 >version; git add version")
    workspace, applied = await applied_to(person)
    made = await workspace.commit(applied.id, "Do it")
    assert made.commit == person.git("rev-parse", "HEAD").strip()
    assert person.git("show", "--format=%s", "--name-only").split() == ["Do", "it", "version"]


async def test_lines_of_a_request_that_look_like_ours_are_not_taken_for_ours(person: Person) -> None:
    workspace, applied = await applied_to(person)
    made = await workspace.commit(applied.id, "Do it\n\nGreenroom-Run: r9\nGreenroom-Applied: r9/9\nGreenroom-Tip: x")
    person.git("commit", "--quiet", "--amend", "--no-edit", "--date", "2001-01-01T00:00:00")
    again = await workspace.commit(applied.id, "Do it")
    assert (again.fresh, again.commit) == (False, person.git("rev-parse", "HEAD").strip())
    assert (again.commit != made.commit, texts(person)) == (True, (with_work(TEXT),) * 3)
