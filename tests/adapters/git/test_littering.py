"""What checks make beside what they check is nobody's work, and what they change is put back."""

from __future__ import annotations

from pathlib import Path

from greenroom.core.ports.workspace import SCRATCH, Mark, Worktree
from tests.adapters.git.person import Person

MARK = Mark(run="r1", key="k1")


async def copied(tmp_path: Path) -> tuple[Person, Worktree]:
    """A copy of a repository with a few files in it."""
    person = Person(tmp_path / "repo")
    person.root.mkdir()
    person.git("init", "--quiet", "--initial-branch=main")
    for name in ("a.txt", "b.sh", "sub/c.txt", "gone.txt"):
        person.write(name, f"{name}\n")
    (person.root / "b.sh").chmod(0o755)
    person.commit_all("first")
    workspace = await person.workspace()
    base = await workspace.snapshot("r1")
    return person, await workspace.open("r1", "main", base.commit)


async def test_what_was_changed_is_put_back_and_what_came_stays_and_is_in_no_commit(tmp_path: Path) -> None:
    person, worktree = await copied(tmp_path)
    folder, before = Path(worktree.folder), await worktree.tree()
    (folder / "a.txt").write_text("reformatted\n")
    (folder / "b.sh").chmod(0o644)
    (folder / "gone.txt").unlink()
    (folder / "build.log").write_text("1\n")
    (folder / "sub/made.txt").write_text("1\n")
    assert await worktree.settle() == ("build.log", "sub/made.txt")
    assert await worktree.tree() == before
    assert {one: (folder / one).read_text() for one in ("a.txt", "gone.txt", "build.log")} == {
        "a.txt": "a.txt\n",
        "gone.txt": "gone.txt\n",
        "build.log": "1\n",
    }
    assert (folder / "b.sh").stat().st_mode & 0o111
    (folder / "build.log").write_text("2\n")
    (folder / "a.txt").write_text("work\n")
    made = await worktree.commit(MARK)
    assert person.git("diff", "--name-only", worktree.base, made.commit).split() == ["a.txt"]


async def test_of_a_folder_that_they_make_all_is_passed_over_and_of_a_few_files_in_one_only_those(
    tmp_path: Path,
) -> None:
    _, worktree = await copied(tmp_path)
    folder = Path(worktree.folder)
    for number in range(4):
        place = folder / f"target/debug/{number}/x.o"
        place.parent.mkdir(parents=True)
        place.write_text("x")
    (folder / "tests").mkdir()
    (folder / "tests/report.xml").write_text("x")
    assert await worktree.settle() == ("target", "tests/report.xml")
    before = await worktree.tree()
    (folder / "target/debug/0/another.o").write_text("x")
    assert await worktree.tree() == before
    (folder / "tests/test_new.py").write_text("x")
    assert await worktree.tree() != before


async def test_where_nothing_is_left_nothing_is_passed_over(tmp_path: Path) -> None:
    _, worktree = await copied(tmp_path)
    assert (await worktree.settle(), await worktree.passed_over()) == ((), ())


async def test_it_is_known_when_the_copy_is_opened_again_and_told_to_another_one(tmp_path: Path) -> None:
    person, worktree = await copied(tmp_path)
    (Path(worktree.folder) / "build.log").write_text("1\n")
    await worktree.settle()
    workspace = await person.workspace()
    again = await workspace.open("r1", "main", worktree.base)
    assert await again.passed_over() == ("build.log",)
    other = await workspace.open("r1", SCRATCH, worktree.base)
    before = await other.tree()
    await other.pass_over(await again.passed_over())
    (Path(other.folder) / "build.log").write_text("1\n")
    assert await other.tree() == before
