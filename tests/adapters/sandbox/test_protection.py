"""What git runs is not a command's to change: several processes know the same, and a killed one's is mended."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from greenroom.adapters.sandbox.protection import (
    PathState,
    ProtectedState,
    SharedRecord,
    encode_path,
    find_included_settings,
    find_outer_git,
    find_sockets,
)
from greenroom.core.ports.sandbox import Sandbox
from tests.adapters.sandbox.test_governing import script, tree
from tests.adapters.sandbox.walls import behind, git, ground_of, landlocked, walled
from tests.conformance.running import ran, shell, until_there

HERE = Path(__file__).resolve().parents[3]
Build = Callable[[Path, Path], Sandbox]
BOTH = pytest.mark.parametrize("build", [walled, landlocked], ids=["bubblewrap", "landlock"])
WAITS = "touch {name}; for n in $(seq 2000); do [ -e go-{name} ] && break; sleep 0.01; done"
PLANTS = "mkdir -p .greenroom/agents && echo evil >.greenroom/agents/evil.md; echo evil >.mcp.json; mkdir .claude/x"


def governing(root: Path) -> list[str]:
    return [name for name in (".greenroom", ".mcp.json", ".claude") if os.path.lexists(root / name)]


async def running(text: str, wall: Sandbox, root: Path, name: str) -> asyncio.Task[None]:
    """A command that has begun, in a process's own commands."""

    async def house() -> None:
        async with behind(wall, root) as commands:
            await ran(commands, shell(f"{WAITS.format(name=name)}; {text}", seconds=60))

    task = asyncio.create_task(house())
    await until_there(root / name)
    return task


async def test_a_person_s_settings_with_a_second_name_are_put_back(repository: Path) -> None:
    config = repository / ".git" / "config"
    before = config.read_text()
    (repository / "other").hardlink_to(config)
    await script(walled, repository, "echo '[core] fsmonitor = evil' >>other")
    assert config.read_text() == before


async def test_while_a_command_runs_git_works_and_nothing_is_left_of_what_stands_in(repository: Path) -> None:
    before = tree(repository / ".git")
    async with behind(walled(repository, repository.parent / "scratch"), repository) as commands:
        line = "cat .git/commondir; git checkout -q -b side; ! echo x 2>/dev/null >.git/commondir"
        made = await ran(commands, shell(f"{line}; git log --format=%s"))
    assert made.text.startswith(".\n")
    assert made.text.endswith("first\n")
    assert git(repository, "branch", "--show-current") == "side\n"
    assert [one for one in tree(repository / ".git") if "by-greenroom" in one or one == "commondir"] == []
    assert set(before) <= set(tree(repository / ".git"))


@BOTH
async def test_branches_and_rebases_work(build: Build, repository: Path) -> None:
    work = (
        "git checkout -q -b side; echo a >a; git add a; git commit -qm on-side; git checkout -q -; echo b >b; "
        "git add b; git commit -qm on-main; git checkout -q side; git rebase -q -; git log --format=%s"
    )
    assert (await script(build, repository, work)).split()[-3:] == ["on-side", "on-main", "first"]
    assert git(repository, "log", "--format=%s").split() == ["on-side", "on-main", "first"], "they are seen outside"
    assert (git(repository, "fsck"), git(repository, "status", "--porcelain")) == ("", "")


@BOTH
async def test_a_submodule_s_hooks_and_settings_are_protected_too(build: Build, repository: Path) -> None:
    library = repository.parent / "library"
    library.mkdir()
    git(library, "init", "-q")
    git(library, "commit", "-qm", "of a library", "--allow-empty")
    git(repository, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(library), "sub")
    inner = repository / ".git" / "modules" / "sub"
    before = (inner / "config").read_text()
    evil = "echo '[core] fsmonitor = evil' >>.git/modules/sub/config; echo x >.git/modules/sub/hooks/pre-commit"
    await script(build, repository, f"{evil}; mkdir -p x; echo x/.git >.git/modules/sub/commondir")
    assert (inner / "config").read_text() == before
    assert not (inner / "hooks" / "pre-commit").exists()
    assert not (inner / "commondir").exists()


async def test_a_repository_that_was_moved_away_is_back(repository: Path) -> None:
    await script(landlocked, repository, "mv .git gone; mkdir evil; ln -s evil .git")
    assert git(repository, "log", "--format=%s") == "first\n"
    assert (repository / ".git.left-by-a-command").is_symlink()


async def test_other_agents_settings_may_be_links(root: Path) -> None:
    (root / "shared").mkdir()
    (root / "shared" / "mcp.json").write_text("{}")
    (root / ".mcp.json").symlink_to("shared/mcp.json")
    (root / ".claude").symlink_to("/nowhere/of/a/person")
    said = await script(
        walled,
        root,
        "cat .mcp.json; echo evil >shared/mcp.json; mv shared away; rm .mcp.json .claude; echo evil >.mcp.json; "
        "mkdir .claude; echo evil >.claude/settings.json",
    )
    assert said.startswith("{}")
    assert (root / ".mcp.json").readlink() == Path("shared/mcp.json")
    assert (root / ".mcp.json").read_text() == "{}"
    assert (root / ".claude").readlink() == Path("/nowhere/of/a/person")


def test_a_repository_is_shown_only_to_a_worktree_that_it_knows(open_folder: Path) -> None:
    main, side, liar = (open_folder / name for name in ("main", "side", "liar"))
    for one in (main, liar):
        one.mkdir()
    git(main, "init", "-q")
    git(main, "commit", "-qm", "x", "--allow-empty")
    git(main, "worktree", "add", "-q", str(side))
    for line in (f"gitdir: {main}/.git", f"gitdir: {main}/.git/worktrees/side", "gitdir: ../main/.git"):
        (liar / ".git").write_text(f"{line}\n")
        assert find_outer_git(liar) == []
    assert find_outer_git(side) == [main / ".git"]


@pytest.mark.parametrize("line", ["h  # why", '"h"', '"h" ; why', "./h", "x/../h"])
def test_settings_are_read_as_git_reads_them(repository: Path, line: str) -> None:
    with (repository / ".git" / "config").open("a") as file:
        file.write(f"[core]\n\thooksPath = {line}\n")
    assert find_included_settings(ground_of(repository, repository.parent)) == {repository / "h": True}


def test_settings_for_all_repositories_count_too(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".gitconfig").write_text(f"[core]\nhooksPath = hooks\n[include]\npath = {repository}/more\n")
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    found = find_included_settings(ground_of(repository, tmp_path))
    assert found == {repository / "hooks": True, repository / "more": False}


def test_sockets_are_known_while_a_process_is_behind_them(root: Path) -> None:
    with socket.socket(socket.AF_UNIX) as one, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as two:
        one.bind(str(root / "stream"))
        one.listen()
        two.bind(str(root / "datagram"))
        assert sorted(set(find_sockets(root))) == [root / "datagram", root / "stream"]
    assert list(find_sockets(root)) == []


@BOTH
async def test_what_one_process_keeps_closed_stays_closed_when_another_one_ends(build: Build, root: Path) -> None:
    scratch = root.parent / "scratch"
    first = await running("true", build(root, scratch), root, "one")
    second = await running(PLANTS, build(root, scratch), root, "two")
    (root / "go-one").touch()
    await first
    (root / "go-two").touch()
    await second
    assert governing(root) == []


@BOTH
async def test_nothing_is_put_back_while_another_command_runs(build: Build, root: Path) -> None:
    """It could swap a folder with a link at that moment, and what lies behind the link would be removed."""
    async with behind(build(root, root.parent / "scratch"), root) as commands:
        first = asyncio.create_task(ran(commands, shell(WAITS.format(name="one"), seconds=60)))
        await until_there(root / "one")
        second = await ran(commands, shell("mkdir -p x/.claude; echo evil | tee x/.claude/a >x/CLAUDE.md"))
        there = [(root / name).exists() for name in ("x/.claude/a", "x/CLAUDE.md")]
        (root / "go-one").touch()
        last = await first
    assert (there, "Put back" in second.text) == ([True, True], False)
    assert "Put back: 'x/.claude', 'x/CLAUDE.md'." in last.text
    assert list((root / "x").iterdir()) == []


SWAPS = """import os
os.makedirs('x/.claude')
for n in range(1000): open(f'x/.claude/{n}', 'w').close()
os.symlink('PERSON', 'link')
open('one', 'w').close()
while not os.path.exists('go-one'):
    os.rename('x', 'y'); os.rename('link', 'x')
    os.rename('x', 'link'); os.rename('y', 'x')
"""


@BOTH
async def test_a_command_that_swaps_a_folder_with_a_link_removes_nothing_outside(build: Build, root: Path) -> None:
    person = root.parent / "person"
    (person / ".claude").mkdir(parents=True)
    (person / ".claude" / "settings.json").write_text("mine")
    async with behind(build(root, root.parent / "scratch"), root) as commands:
        first = asyncio.create_task(ran(commands, shell(f'python3 -c "{SWAPS.replace("PERSON", str(person))}"')))
        await until_there(root / "one")
        for _ in range(10):
            assert (await ran(commands, shell("true"))).text == ""
        (root / "go-one").touch()
        assert "Put back: 'x/.claude'" in (await first).text
    assert (person / ".claude" / "settings.json").read_text() == "mine"


@BOTH
async def test_nothing_is_restored_or_removed_behind_a_link(build: Build, repository: Path) -> None:
    person = repository.parent / "person"
    (person / "info").mkdir(parents=True)
    for name in ("AGENTS.md", "config", "info/attributes"):
        (person / name).write_text("")
    (repository / "docs").mkdir()
    (repository / "docs" / "AGENTS.md").write_text("mine")
    lines = (f"mv {name} gone{number}; ln -s {person} {name}" for number, name in enumerate(("docs", ".git")))
    await script(build, repository, "; ".join((*lines, f"rm -rf .git/info; ln -s {person}/info .git/info")))
    assert tree(person) == ["AGENTS.md", "config", "info", "info/attributes"]
    assert {path.read_text() for path in person.rglob("*") if path.is_file()} == {""}


async def test_without_knowing_of_each_other_they_would_not(root: Path) -> None:
    first = await running("true", walled(root, root.parent / "one"), root, "one")
    second = await running(PLANTS, walled(root, root.parent / "two"), root, "two")
    (root / "go-one").touch()
    await first
    (root / "go-two").touch()
    await second
    assert ".greenroom" in governing(root), "so this shows that the other test can fail"


async def test_what_one_process_finds_is_not_what_the_other_s_commands_have_changed(repository: Path) -> None:
    """Landlock cannot keep a command from git's settings; both put back what a person had."""
    root, config = repository, repository / ".git" / "config"
    before, scratch = config.read_text(), repository.parent / "scratch"
    first = await running("true", landlocked(root, scratch), root, "one")
    async with behind(landlocked(root, scratch), root) as commands:
        await ran(commands, shell("echo '[core] fsmonitor = evil' >.git/config"))
        assert "evil" in config.read_text(), "the first one still runs"
    third = await running("true", landlocked(root, scratch), root, "three")
    for name in ("one", "three"):
        (root / f"go-{name}").touch()
    await asyncio.gather(first, third)
    assert config.read_text() == before


async def kill_a_planting_process(repository: Path, text: Path) -> Path:
    """Kill a process whose command has planted a hook and a CLAUDE.md. Return the hook."""
    script = "bash\0-c\0echo x >.git/hooks/pre-commit; echo x >CLAUDE.md; echo up; sleep 60"
    await asyncio.to_thread(text.write_text, script)
    house = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.sandbox.house", "landlock", str(repository), str(text), "TOKEN", "x"),
        cwd=HERE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert house.stdout is not None
    said = await asyncio.wait_for(house.stdout.readuntil(b"up\n"), 30)
    house.kill()
    await house.wait()
    hook = repository / ".git" / "hooks" / "pre-commit"
    assert hook.exists(), said
    return hook


async def test_what_the_command_of_a_killed_process_planted_is_gone_before_the_next_command(
    repository: Path, tmp_path: Path
) -> None:
    hook = await kill_a_planting_process(repository, tmp_path / "script")
    landlocked(repository, repository.parent / "scratch").close()
    assert not hook.exists()
    assert not (repository / "CLAUDE.md").exists()


async def test_a_repository_that_a_person_made_after_a_kill_stays(repository: Path, tmp_path: Path) -> None:
    await kill_a_planting_process(repository, tmp_path / "script")
    for record in (repository.parent / "scratch").glob("*.before"):
        os.utime(record, (0, 0))
    shutil.rmtree(repository / ".git")
    git(repository, "init", "-q")
    landlocked(repository, repository.parent / "scratch").close()
    assert (repository / ".git" / "HEAD").exists()
    assert not (repository / ".git.left-by-a-command").exists()


def nobody(_: ProtectedState) -> None:
    pytest.fail("there was nothing to mend")


def nobody_looks() -> ProtectedState:
    pytest.fail("it is known")


def test_a_record_is_written_and_read_with_names_of_all_kinds(tmp_path: Path) -> None:
    odd = encode_path(tmp_path / os.fsdecode(b"\xff\xfe"))
    inner = PathState(mode=0o40755, entries={"a": PathState(mode=0o100644, content=b"\0\xff")})
    before = ProtectedState(kept={odd: inner, encode_path(tmp_path): None}, absent=(odd,), led={odd: True})
    first, second = SharedRecord(tmp_path, tmp_path / "root"), SharedRecord(tmp_path, tmp_path / "root")
    assert first.enter(lambda: before, nobody) == before
    first.touch()
    assert second.enter(nobody_looks, nobody) == before
    mended: list[ProtectedState] = []
    first.leave(mended.append, before)
    assert mended == []
    second.leave(mended.append, before)
    assert mended == [before]
    assert list(tmp_path.iterdir()) == []


def test_what_a_dead_process_left_is_mended_but_not_what_was_changed_since(tmp_path: Path) -> None:
    older, newer, gone = (tmp_path / name for name in ("older", "newer", "gone"))
    for path in (older, newer):
        path.write_text("")
    kept = {encode_path(path): PathState(mode=0o100644, content=b"before") for path in (older, newer, gone / "inner")}
    dead = SharedRecord(tmp_path, tmp_path / "root")
    dead.enter(lambda: ProtectedState(kept=kept), nobody)
    os.close(dead._file)
    died = older.stat().st_ctime
    os.utime(dead._path, (died - 4.9, died - 4.9))
    while newer.stat().st_ctime <= died + 0.2:
        newer.chmod(0o600)
    mended: list[ProtectedState] = []
    later = SharedRecord(tmp_path, tmp_path / "root")
    later.enter(ProtectedState, mended.append)
    assert [set(one.kept) for one in mended] == [{encode_path(older), encode_path(gone / "inner")}]
    later.leave(mended.append, ProtectedState())


def test_a_record_that_cannot_be_read_is_nothing(tmp_path: Path) -> None:
    one = SharedRecord(tmp_path, tmp_path / "root")
    for text in ("", "{", "[]", '{"known": 1}'):
        one._path.write_text(text)
        assert one.enter(ProtectedState, nobody) == ProtectedState()
        os.close(one._file)


def test_who_cannot_look_leaves_nothing_behind(tmp_path: Path) -> None:
    def fails() -> ProtectedState:
        raise OSError("no")

    one = SharedRecord(tmp_path, tmp_path / "root")
    with pytest.raises(OSError, match="no"):
        one.enter(fails, nobody)
    assert list(tmp_path.iterdir()) == []
