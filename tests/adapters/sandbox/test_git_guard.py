"""The guard of git: what a command leaves is harmless whatever its state, what was there is what it was."""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from greenroom.adapters.commands.plain import PlainCommands
from greenroom.adapters.sandbox.guarding import Guarding
from greenroom.adapters.sandbox.leading import led_to
from greenroom.adapters.sandbox.opening import Opening
from greenroom.adapters.sandbox.outer_git import outer_git
from greenroom.adapters.sandbox.repositories import Repositories, is_git
from greenroom.core.ports.commands import Commands
from greenroom.testing.conformance.running import ran, shell
from tests.adapters.sandbox.test_governing import git, script, tree
from tests.adapters.sandbox.walls import behind, ground_of, walled

HOST_S_TMP = (
    't=$(awk \'$5 == "/tmp" && $4 != "/" {print $4}\' /proc/self/mountinfo | tail -n 1); t=${t:-/tmp}; '
    "mkdir -p /tmp/{token} && cd /tmp/{token} && git init -q . && "
    "printf '[core]\\nfsmonitor = \"touch {ran};false\"\\n' >>.git/config && cd - >/dev/null; "
)
ELSEWHERE = {
    "a file": HOST_S_TMP + 'mkdir sub; echo "gitdir: $t/{token}/.git" >sub/.git',
    "a link": HOST_S_TMP + "ln -s $t/{token} sub",
    "a link called .git": HOST_S_TMP + "mkdir sub; ln -s $t/{token}/.git sub/.git",
}


@pytest.fixture(name="root")
def _root(open_folder: Path) -> Path:
    found = open_folder / "work"
    found.mkdir()
    return found


@pytest.fixture
def repository(root: Path) -> Path:
    git(root, "init", "-q")
    (root / "file").write_text("x")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "first")
    return root


async def _planted(commands: Commands, root: Path, how: str) -> bool:
    """Whether it runs, while the walls still stand."""
    await ran(
        commands,
        shell(ELSEWHERE[how].replace("{ran}", str(root.parent / "ran")).replace("{token}", root.parent.name + "-evil")),
    )
    git(root / "sub", "status")
    return (root.parent / "ran").exists()


@pytest.mark.parametrize("how", ELSEWHERE)
async def test_what_leads_to_what_commands_have_for_themselves_is_harmless(root: Path, how: str) -> None:
    async with behind(walled(root, root.parent / "scratch"), root) as commands:
        assert not await _planted(commands, root, how)


@pytest.mark.parametrize("how", ELSEWHERE)
async def test_without_walls_it_is_not(root: Path, how: str) -> None:
    commands = PlainCommands(root)
    try:
        assert await _planted(commands, root, how)
    finally:
        commands.close()
        shutil.rmtree(f"/tmp/{root.parent.name}-evil", ignore_errors=True)


async def test_settings_with_a_second_name_are_not_changed_by_it(root: Path) -> None:
    """Made by one command, and harmless; a later one writes to the other name."""
    await script(walled, root, "git init -q sub; ln sub/.git/config other")
    evil = f"printf '[core]\\nfsmonitor = \"touch {root.parent}/ran;false\"\\n' >>other"
    await script(walled, root, evil)
    git(root / "sub", "status")
    assert "fsmonitor" in (root / "other").read_text(), "or this shows nothing"
    assert not (root.parent / "ran").exists()


async def test_a_person_s_settings_with_a_second_name_are_put_back(repository: Path) -> None:
    config = repository / ".git" / "config"
    before = config.read_text()
    (repository / "other").hardlink_to(config)
    await script(walled, repository, "echo '[core] fsmonitor = evil' >>other")
    assert config.read_text() == before


async def test_while_a_command_runs_git_works_and_nothing_is_left_of_what_stands_in(repository: Path) -> None:
    before = tree(repository / ".git")
    async with behind(walled(repository, repository.parent / "scratch"), repository) as commands:
        line = (
            "cat .git/commondir; git stash list; git checkout -q -b side; ! echo x 2>/dev/null >.git/commondir; ls sub"
        )
        made = await ran(commands, shell(f"{line}; git worktree add -q ../w 2>/dev/null; git log --format=%s"))
    assert made.text.startswith(".\n")
    assert made.text.endswith("first\n")
    assert git(repository, "branch", "--show-current") == "side\n"
    assert [one for one in tree(repository / ".git") if "by-greenroom" in one or one == "commondir"] == []
    assert set(before) <= set(tree(repository / ".git"))


async def test_a_submodule_that_a_command_adds_works_afterwards(repository: Path) -> None:
    library = repository / "library"
    library.mkdir()
    git(library, "init", "-q")
    git(library, "commit", "-qm", "of a library", "--allow-empty")
    await script(walled, repository, "git -c protocol.file.allow=always submodule add -q ./library sub")
    assert (repository / "sub" / ".git").is_file()
    assert git(repository / "sub", "log", "--format=%s") == "of a library\n"


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
        assert outer_git(liar) == []
    assert outer_git(side) == [main / ".git"]


@pytest.mark.parametrize("line", ["h  # why", '"h"', '"h" ; why', "./h", "x/../h"])
def test_settings_are_read_as_git_reads_them(repository: Path, line: str) -> None:
    with (repository / ".git" / "config").open("a") as file:
        file.write(f"[core]\n\thooksPath = {line}\n")
    assert git(repository, "config", "core.hooksPath").strip() in {"h", "./h", "x/../h"}
    assert led_to(repository, repository / ".git", repository.parent) == {repository / "h": True}


def test_settings_for_all_repositories_count_too(repository: Path, tmp_path: Path) -> None:
    (tmp_path / ".gitconfig").write_text(f"[core]\nhooksPath = hooks\n[include]\npath = {repository}/more\n")
    assert led_to(repository, repository / ".git", tmp_path) == {repository / "hooks": True, repository / "more": False}


@pytest.mark.parametrize("name", [".git", ".GIT", ".Git", "git~1", ".g\u200cit", ".git ", ".git."])
def test_every_spelling_that_some_disk_takes_for_git_is_known(name: str) -> None:
    assert is_git(name)


@pytest.mark.parametrize("name", ["git", ".gitignore", ".github", ".git.held-by-greenroom", "x.git"])
def test_other_names_are_not(name: str) -> None:
    assert not is_git(name)


def test_a_folder_that_is_just_changing_is_read_again(root: Path) -> None:
    """The kernel's clock is coarse: two changes may have the same date."""
    found = Repositories(root)
    for number in range(200):
        found.found()
        (root / str(number)).mkdir()
        (root / str(number) / ".git").mkdir()
        assert root / str(number) / ".git" in found.found().folders


def test_a_closed_folder_is_closed_again(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inner = root / "a" / "b"
    inner.mkdir(parents=True)
    inner.chmod(0o311)
    known = os.lstat(inner)
    monkeypatch.setattr("os.geteuid", lambda: 1 if known.st_uid == 0 else known.st_uid)
    opening = Opening(root)
    assert not opening.opened(root / "a", os.lstat(root / "a"))
    somebody = os.stat_result((known.st_mode, *known[1:4], 1, *known[5:]))
    opened = opening.opened(inner, somebody if known.st_uid == 0 else known)
    assert opened
    assert os.lstat(inner).st_mode & 0o777 == 0o711
    opening.close()
    assert os.lstat(inner).st_mode & 0o777 == 0o311


def _sockets(root: Path) -> Iterator[Path]:
    guard = Guarding(ground_of(root, root.parent / "scratch"))
    (root.parent / "scratch").mkdir(exist_ok=True)
    guard.begin()
    yield from guard.facts.sockets
    guard.end()


Bound = Callable[[str, int], socket.socket]


@pytest.fixture
def bound(root: Path) -> Iterator[Bound]:
    made: list[socket.socket] = []

    def _bound(name: str, kind: int) -> socket.socket:
        one = socket.socket(socket.AF_UNIX, kind)
        made.append(one)
        one.bind(str(root / name))
        return one

    yield _bound
    for one in made:
        one.close()


def test_doors_are_known_while_somebody_is_behind_them(root: Path, bound: Bound) -> None:
    bound("stream", socket.SOCK_STREAM).listen()
    bound("datagram", socket.SOCK_DGRAM)
    bound("dead", socket.SOCK_STREAM).close()
    os.mkfifo(root / "pipe")
    assert sorted(_sockets(root)) == [root / "datagram", root / "stream"]
