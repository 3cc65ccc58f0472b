"""Who wrote a line: the agent only where it stands where the agent put it. And what is said of a line that is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from greenroom.adapters.git.workspace import GitWorkspace
from greenroom.core.ports.workspace import AppliedChange, WorkspaceFault
from tests.adapters.git.person import Person, opened, put, worked
from tests.adapters.git.shapes import TEXT, plain
from tests.adapters.git.test_committing import hook

WORK = "    return None\n"


async def applied(person: Person) -> tuple[GitWorkspace, AppliedChange]:
    """An agent has written line 20."""
    workspace = await person.workspace()
    worktree = await opened(workspace)
    put(worktree, "a.txt", TEXT.replace("line 20\n", WORK))
    done = await workspace.apply("r1", worktree.base, (await worked(worktree)).commit)
    assert isinstance(done, AppliedChange)
    return workspace, done


async def said(workspace: GitWorkspace, line: int, path: str = "a.txt") -> str:
    """The step that a line leads to, else its commit's name."""
    found = await workspace.blame(path, line)
    return "nobody" if found is None else found.step.step if found.step is not None else found.commit


@pytest.mark.parametrize("commits", [False, True], ids=["work in no commit", "work committed"])
async def test_a_line_of_a_person_that_reads_like_one_of_the_work_is_the_person_s(
    person: Person, commits: bool
) -> None:
    workspace, done = await applied(person)
    if commits:
        await workspace.commit(done.id, "Do it")
    person.write("a.txt", (person.root / "a.txt").read_text().replace("line 3\n", f"line 3\n{WORK}"))
    assert (await said(workspace, 4), await said(workspace, 21)) == ("nobody", "ann#1")
    own = person.commit_all("mine")
    assert (await said(workspace, 4), await said(workspace, 21)) == (own, "ann#1")


async def test_a_line_of_the_work_that_was_committed_taken_out_and_typed_again_is_whose_who_typed_it(
    person: Person,
) -> None:
    workspace, done = await applied(person)
    await workspace.commit(done.id, "Do it")
    worked_on = (person.root / "a.txt").read_text()
    person.write("a.txt", worked_on.replace(WORK, ""))
    person.commit_all("out")
    person.write("a.txt", worked_on)
    again = person.commit_all("in again")
    assert await said(workspace, 20) == again


async def test_a_line_that_is_in_a_commit_from_before_the_work_is_not_of_the_work_that_moved_it(person: Person) -> None:
    person.write("a.txt", "}\none\ntwo\nthree\n")
    old = person.commit_all("old")
    workspace = await person.workspace()
    worktree = await opened(workspace)
    put(worktree, "a.txt", "one\ntwo\nthree\n}\n")
    assert isinstance(await workspace.apply("r1", worktree.base, (await worked(worktree)).commit), AppliedChange)
    assert await said(workspace, 4) == "ann#1"
    person.write("a.txt", "}\n")
    assert await said(workspace, 1) == old


async def test_a_line_leads_to_its_step_when_its_file_has_another_name_by_now(person: Person) -> None:
    workspace, done = await applied(person)
    await workspace.commit(done.id, "Do it")
    person.git("mv", "a.txt", "z.txt")
    person.write("z.txt", f"mine\n{WORK}" + (person.root / "z.txt").read_text())
    own = person.commit_all("another name")
    assert (await said(workspace, 2, "z.txt"), await said(workspace, 22, "z.txt")) == (own, "ann#1")


async def test_a_line_leads_to_its_step_however_the_lines_of_a_commit_end(person: Person) -> None:
    person.git("config", "core.autocrlf", "true")
    person.write("a.txt", TEXT.replace("\n", "\r\n"))
    workspace = await person.workspace()
    worktree = await opened(workspace)
    (Path(worktree.folder) / "a.txt").write_bytes(TEXT.replace("line 20", "work").replace("\n", "\r\n").encode())
    done = await workspace.apply("r1", worktree.base, (await worked(worktree)).commit)
    assert isinstance(done, AppliedChange)
    await workspace.commit(done.id, "Do it")
    assert "\r" not in person.git("show", "HEAD:a.txt")
    assert await said(workspace, 20) == "ann#1"
    assert await said(workspace, 2) == person.git("rev-list", "--max-parents=0", "HEAD").strip()


@pytest.mark.parametrize(
    "script",
    [
        r"printf '\n\nReviewed elsewhere.\n' >>$1",
        r"printf '\nChange-Id: Iabc\n' >>$1",
        "tr '\\n' ' ' <$1 | fold -w 40 >$1.x; mv $1.x $1",
        "sed -i /^Greenroom/d $1",
        "echo another >$1",
    ],
    ids=["a paragraph more", "a line of others", "wrapped", "without our lines", "replaced"],
)
async def test_whatever_a_hook_makes_of_the_message_a_line_leads_to_its_step(person: Person, script: str) -> None:
    first = person.git("rev-parse", "HEAD").strip()
    hook(person, "commit-msg", script)
    workspace, done = await applied(person)
    made = await workspace.commit(done.id, "Do it")
    assert made.commit == person.git("rev-parse", "HEAD").strip()
    assert (await said(workspace, 20), await said(workspace, 2)) == ("ann#1", first)
    person.write("a.txt", "on top\n" + (person.root / "a.txt").read_text())
    assert (await said(workspace, 21), await said(workspace, 1)) == ("ann#1", "nobody")


@pytest.mark.parametrize("tip", ["--since=yesterday", "-h", "HEAD", "main", "0" * 40, "x y"])
async def test_whatever_a_commit_of_a_stranger_says_its_work_is_it_leads_to_no_step(person: Person, tip: str) -> None:
    person.write("a.txt", "theirs\n")
    head = person.commit_all(f"Theirs\n\nGreenroom-Base: {'0' * 40}\nGreenroom-Tip: {tip}\n")
    assert await said(await person.workspace(), 1) == head


async def test_of_a_commit_whose_steps_are_not_here_only_the_commit_is_said(tmp_path: Path) -> None:
    person = Person(tmp_path / "tree")
    plain(person)
    workspace, done = await applied(person)
    made = (await workspace.commit(done.id, "Do it")).commit
    other = Person(tmp_path / "cloned" / "tree", person.home)
    other.root.parent.mkdir()
    other.git("clone", "--quiet", "--no-local", str(person.root), str(other.root), folder=tmp_path)
    assert await said(await other.workspace(), 20) == made


@pytest.mark.parametrize(
    ("path", "line", "why"),
    [
        ("nosuch.py", 1, "There is no file 'nosuch.py' in '{root}'."),
        ("a.txt/below", 1, "There is no file 'a.txt/below' in '{root}'."),
        ("a.txt", 31, "There is no line 31 in 'a.txt': its last line is 30."),
        ("one", 2, "There is no line 2 in 'one': its last line is 1."),
        ("empty", 1, "There is no line 1 in 'empty': it is empty."),
        ("keep", 1, "'keep' is a folder. Name a file in it."),
        ("link", 1, "'link' is a link. Name its target: 'a.txt'."),
        ("picture", 1, "'picture' is binary, so it has no lines."),
    ],
)
async def test_what_has_no_such_line_is_named_for_what_it_is(person: Person, path: str, line: int, why: str) -> None:
    person.write("empty", "")
    person.write("one", "alone")
    person.write("picture", b"\x89PNG\n\0\0")
    (person.root / "link").unlink(missing_ok=True)
    (person.root / "link").symlink_to("a.txt")
    workspace = await person.workspace()
    with pytest.raises(WorkspaceFault) as caught:
        await workspace.blame(path, line)
    assert (caught.value.reason, str(caught.value)) == ("name", why.format(root=person.root))
