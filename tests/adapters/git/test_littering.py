"""What checks make beside what they check is nobody's work, and what they change is put back."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from greenroom.core.ports.workspace import SCRATCH, Mark, Recorded, WorkspaceFault, Worktree
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
    few = ("tests/1.xml", "tests/2.xml", "tests/3.xml")
    for name in few:
        (folder / name).write_text("x")
    assert await worktree.settle() == ("target/", *few)
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


def files_of(person: Person, worktree: Worktree, commit: str) -> list[str]:
    """What a commit has changed since the beginning."""
    return person.git("diff", "--name-only", worktree.base, commit).split()


async def littered_folder(worktree: Worktree) -> Path:
    """A folder `out` that is passed over as a whole, and a file beside it."""
    folder = Path(worktree.folder)
    (folder / "out").mkdir()
    for name in ("out/1", "out/2", "out/3", "out/4", "report.json"):
        (folder / name).write_text("x")
    assert await worktree.settle() == ("out/", "report.json")
    return folder


async def test_what_is_claimed_is_work_wherever_it_lies_and_nothing_beside_it(tmp_path: Path) -> None:
    person, worktree = await copied(tmp_path)
    folder = await littered_folder(worktree)
    for name in ("out/mine.py", "out/5", "report.json"):
        (folder / name).write_text("work")
    await worktree.claim(("out/mine.py", "report.json", "a.txt"))
    assert await worktree.littered() == ("out/1", "out/2", "out/3", "out/4", "out/5")
    made = await worktree.commit(MARK)
    assert files_of(person, worktree, made.commit) == ["out/mine.py", "report.json"]
    assert await worktree.passed_over() == ("out/", "report.json"), "where checks run, it is still made"


async def moved_there(tmp_path: Path) -> tuple[Worktree, Path]:
    """A copy whose file `a.txt` somebody has moved into a folder that is passed over as a whole."""
    _, worktree = await copied(tmp_path)
    folder = await littered_folder(worktree)
    (folder / "a.txt").rename(folder / "out/caf\udce9")
    await worktree.commit(MARK)
    return worktree, folder


MOVED = '"out/caf\\351"'


async def test_a_file_that_went_where_all_is_passed_over_is_found_there(tmp_path: Path) -> None:
    worktree, folder = await moved_there(tmp_path)
    before = await worktree.look()
    assert await worktree.moved(("out/1", MOVED)) == {"a.txt": MOVED}
    assert (await worktree.moved(()), await worktree.moved(("out/1",))) == ({}, {}), "the checks made it"
    assert await worktree.look() == before
    (folder / "out/caf\udce9").rename(folder / "sub/b.txt")
    assert await worktree.moved((MOVED,)) == {}, "that will be in a commit"
    (folder / "sub/b.txt").unlink()
    assert await worktree.moved((MOVED,)) == {}, "it is to go"
    assert await worktree.moved((), {"a.txt": MOVED, "b.sh": "out/b.sh"}) == {"a.txt": MOVED}, "as it was before"


@pytest.mark.parametrize("way", ["written there", "put elsewhere", "put back"])
async def test_what_is_delivered_after_all_is_not_looked_for(tmp_path: Path, way: str) -> None:
    worktree, folder = await moved_there(tmp_path)
    if way == "written there":
        await worktree.claim(("out/caf\udce9",))
        (folder / "out/caf\udce9").write_text("another one")
    else:
        (folder / ("a.txt" if way == "put back" else "sub/b.txt")).write_text("a.txt\n")
    await worktree.commit(Mark(run="r1", key="k2"))
    assert await worktree.moved((MOVED,), {"a.txt": MOVED}) == {}


async def test_it_is_known_again_though_it_was_changed_and_an_empty_one_is_not(tmp_path: Path) -> None:
    person = Person(tmp_path / "repo")
    person.root.mkdir()
    person.git("init", "--quiet", "--initial-branch=main")
    person.write("guide.md", "".join(f"line {number}\n" for number in range(20)))
    person.write("empty", "")
    person.commit_all("first")
    workspace = await person.workspace()
    worktree = await workspace.open("r1", "main", (await workspace.snapshot("r1")).commit)
    folder = await littered_folder(worktree)
    (folder / "out/guide.md").write_text((folder / "guide.md").read_text().replace("line 3", "another line"))
    (folder / "out/nothing").touch()
    (folder / "empty").unlink()
    await worktree.commit(MARK)
    assert await worktree.moved(("out/guide.md", "out/nothing")) == {}, "it is still there"
    (folder / "guide.md").unlink()
    await worktree.commit(Mark(run="r1", key="k2"))
    assert await worktree.moved(("out/guide.md", "out/nothing")) == {"guide.md": "out/guide.md"}
    (folder / "manual.md").write_text((folder / "out/guide.md").read_text().replace("line 4", "a line more"))
    await worktree.commit(Mark(run="r1", key="k3"))
    assert await worktree.moved(("out/guide.md",)) == {}, "it has another name, whatever else is like it"


async def test_of_a_folder_that_they_made_a_file_of_and_that_was_put_back_nothing_is_passed_over(
    tmp_path: Path,
) -> None:
    person, worktree = await copied(tmp_path)
    place = Path(worktree.folder) / "sub"
    (place / "c.txt").unlink()
    place.rmdir()
    place.write_text("x")
    await worktree.settle()
    (place / "new.txt").write_text("work")
    made = await worktree.commit(MARK)
    assert files_of(person, worktree, made.commit) == ["sub/new.txt"]


@pytest.mark.parametrize(
    "name", [b"caf\xe9.txt", b"two\nlines", b'"quoted" \\ "', b" spaces ", "\u4f60\u597d".encode()]
)
async def test_any_name_can_be_written_down_and_is_found_again(tmp_path: Path, name: bytes) -> None:
    person, worktree = await copied(tmp_path)
    (Path(worktree.folder) / os.fsdecode(name)).write_text("x")
    names = await worktree.settle()
    assert all(one.encode() and one.isprintable() for one in names)
    workspace = await person.workspace()
    other = await workspace.open("r1", SCRATCH, worktree.base)
    before = await other.tree()
    await other.pass_over(names)
    (Path(other.folder) / os.fsdecode(name)).write_text("x")
    assert (await other.tree(), await other.passed_over()) == (before, names)


async def test_a_repository_that_they_make_is_passed_over(tmp_path: Path) -> None:
    person, worktree = await copied(tmp_path)
    folder, before = Path(worktree.folder), await worktree.look()
    person.git("init", "--quiet", str(folder / "fixture"))
    assert len((await worktree.look()).left_out) == 1
    assert await worktree.settle() == ("fixture/",)
    assert await worktree.look() == before
    (folder / "fixture/mine.py").write_text("work")
    await worktree.claim(("fixture/mine.py",))
    assert [one.path for one in (await worktree.look()).left_out] == ["fixture"], "work in there is not lost in silence"


async def test_files_that_they_leave_unusable_are_put_back(tmp_path: Path) -> None:
    _, worktree = await copied(tmp_path)
    place, before = Path(worktree.folder) / "a.txt", await worktree.look()
    place.unlink()
    os.mkfifo(place)
    assert (await worktree.settle(), place.read_text(), await worktree.look()) == ((), "a.txt\n", before)


async def test_what_says_which_files_are_work_is_not_left_by_them(tmp_path: Path) -> None:
    person, worktree = await copied(tmp_path)
    folder = Path(worktree.folder)
    (folder / ".gitignore").write_text("*.py\n")
    (folder / "made.py").write_text("x")
    assert await worktree.settle() == ("made.py",)
    (folder / "mine.py").write_text("work")
    assert files_of(person, worktree, (await worktree.commit(MARK)).commit) == ["mine.py"]


async def test_after_a_pause_all_is_as_it_was_before(tmp_path: Path) -> None:
    person, worktree = await copied(tmp_path)
    folder = await littered_folder(worktree)
    (folder / "a.txt").write_text("work")
    person.git("init", "--quiet", str(folder / "mine"))
    made = await worktree.commit(MARK)
    await worktree.pause()
    before = await worktree.look()
    assert files_of(person, worktree, made.commit) == ["a.txt"]
    (folder / "a.txt").write_text("reformatted")
    (folder / "gone.txt").unlink()
    (folder / "out/1").write_text("again")
    (folder / ".gitignore").write_text("hidden.py\n")
    for name in ("new.txt", "hidden.py", "caf\udce9"):
        (folder / name).write_text("x")
    person.git("init", "--quiet", str(folder / "theirs"))
    names = ('"caf\\351"', ".gitignore", "a.txt", "gone.txt", "hidden.py", "new.txt", "theirs/")
    assert tuple(sorted(await worktree.restore())) == names
    assert await worktree.look() == before
    assert ((folder / "a.txt").read_text(), (folder / "out/1").read_text()) == ("work", "again")
    assert [(folder / one).exists() for one in ("theirs", "mine", "new.txt", "hidden.py")] == [
        False,
        True,
        False,
        False,
    ]
    assert await worktree.restore() == ()


async def test_nothing_is_taken_away_behind_a_link(tmp_path: Path) -> None:
    _, worktree = await copied(tmp_path)
    folder, outside = Path(worktree.folder), tmp_path / "outside"
    outside.mkdir()
    (outside / "c.txt").write_text("mine")
    await worktree.pause()
    (folder / "sub/c.txt").unlink()
    (folder / "sub").rmdir()
    (folder / "sub").symlink_to(outside)
    await worktree.restore()
    assert ((outside / "c.txt").read_text(), (folder / "sub/c.txt").read_text()) == ("mine", "sub/c.txt\n")


async def test_folders_that_were_closed_meanwhile_are_opened(tmp_path: Path) -> None:
    _, worktree = await copied(tmp_path)
    folder, before = Path(worktree.folder), await worktree.tree()
    await worktree.pause()
    (folder / "sub/c.txt").unlink()
    (folder / "new/deep").mkdir(parents=True)
    (folder / "new/deep/x").write_text("x")
    shut = [folder / one for one in ("sub", "new/deep", "new")]
    for one in shut:
        one.chmod(0o555)
    assert await worktree.restore() == ("new/deep/x", "sub/c.txt")
    assert (await worktree.tree(), worktree.folder) == (before, str(folder))
    assert [one.stat().st_mode & 0o700 for one in shut] == [0o700] * 3


async def test_a_pause_that_cannot_be_ended_says_what_keeps_it_and_is_ended_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, worktree = await copied(tmp_path)
    await worktree.pause()
    place, unlinks = Path(worktree.folder) / "new.txt", os.unlink
    place.write_text("x")

    def refused(name: str, *, dir_fd: int | None = None) -> None:
        if name == place.name:
            raise PermissionError(1, "Operation not permitted")
        unlinks(name, dir_fd=dir_fd)

    monkeypatch.setattr(os, "unlink", refused)
    with pytest.raises(WorkspaceFault, match=r"new.txt' cannot be written: .* look who owns it, make it writable"):
        await worktree.restore()
    monkeypatch.undo()
    assert (await worktree.restore(), place.exists()) == (("new.txt",), False)


async def test_a_pause_that_a_kill_has_cut_short_ends_when_the_copy_is_opened_again(tmp_path: Path) -> None:
    person, worktree = await copied(tmp_path)
    folder = Path(worktree.folder)
    (folder / "b.sh").write_text("work")
    made = await worktree.commit(MARK)
    await worktree.pause()
    (folder / "a.txt").write_text("reformatted")
    (folder / "new.txt").write_text("x")
    again = await (await person.workspace()).open("r1", "main", worktree.base)
    assert await again.commit(Mark(run="r1", key="k2")) == Recorded(commit="", tree=made.tree)
    assert ((folder / "b.sh").read_text(), (folder / "new.txt").exists()) == ("work", False)


async def test_a_file_that_became_a_folder_and_a_folder_that_became_a_file_are_as_they_were(tmp_path: Path) -> None:
    _, worktree = await copied(tmp_path)
    folder, before = Path(worktree.folder), await worktree.tree()
    await worktree.pause()
    (folder / "a.txt").unlink()
    (folder / "a.txt").mkdir()
    (folder / "a.txt/x").write_text("x")
    (folder / "sub/c.txt").unlink()
    (folder / "sub").rmdir()
    (folder / "sub").write_text("x")
    assert set(await worktree.restore()) == {"a.txt", "a.txt/x", "sub", "sub/c.txt"}
    assert await worktree.tree() == before
    assert ((folder / "a.txt").read_text(), (folder / "sub/c.txt").read_text()) == ("a.txt\n", "sub/c.txt\n")
