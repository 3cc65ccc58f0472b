"""A read-only workspace: commands read, run programs and use their own /tmp and home, and change nothing in it."""

from __future__ import annotations

import shutil
import socket
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from greenroom.adapters.sandbox.bubblewrap import Bubblewrap
from greenroom.adapters.sandbox.landlock import MIN_VERSION, Landlock, read_landlock_version
from greenroom.adapters.sandbox.layers import can_keep_overlay
from greenroom.adapters.sandbox.programs import find_programs
from greenroom.adapters.sandbox.seatbelt import Seatbelt
from greenroom.core.base.records import evolve
from greenroom.core.ports.sandbox import CommandLimits, Sandbox, SandboxMount
from tests.adapters.sandbox.walls import CACHE, behind, git, ground_of
from tests.conformance.running import ran, shell

Build = Callable[..., Sandbox]


def bubblewrap(root: Path, *mounts: SandboxMount, at: Path | None = None, overlays: bool = True) -> Sandbox:
    programs = [program for program in find_programs(CACHE) if program.overlays == overlays]
    if not programs:
        pytest.skip("there is no bubblewrap here, or none with overlays")
    view = evolve(ground_of(root, root.parent / "scratch", at, mounts), read_only=True)
    return Bubblewrap(view, CommandLimits(), program=programs[0])


def old_bubblewrap(root: Path, *mounts: SandboxMount) -> Sandbox:
    return bubblewrap(root, *mounts, overlays=False)


def landlock(root: Path, *mounts: SandboxMount) -> Sandbox:
    if read_landlock_version() < MIN_VERSION:
        pytest.skip("the kernel has no Landlock, or an old one")
    view = evolve(ground_of(root, root.parent / "scratch", lent=mounts), read_only=True)
    return Landlock(view, CommandLimits(), version=read_landlock_version())


TIERS = pytest.mark.parametrize("build", [bubblewrap, landlock])
ALL = pytest.mark.parametrize("build", [bubblewrap, old_bubblewrap, landlock])


@pytest.fixture(name="repository")
def _repository(repository: Path) -> Path:
    (repository / "src").mkdir()
    (repository / "src" / "code.py").write_text("TEXT = 'read'\n")
    (repository / "src" / "run.sh").write_text("echo ran\n")
    (repository / "src" / "run.sh").chmod(0o755)
    (repository / "link").symlink_to("file")
    (repository / ".greenroom").mkdir()
    (repository / ".greenroom" / "config.toml").touch()
    (repository / ".greenroom" / "talk").write_text("private")
    (repository / ".git" / "info" / "exclude").write_text("talk\n")
    git(repository, "add", "-A")
    git(repository, "commit", "-qm", "second")
    return repository


def state_of(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Return the mode and the content of everything in a folder, with git's own files."""
    found = {}
    for place in (folder, *folder.rglob("*")):
        mode = place.lstat().st_mode
        content = str(place.readlink()).encode() if stat.S_ISLNK(mode) else b""
        found[str(place.relative_to(folder))] = mode, place.read_bytes() if stat.S_ISREG(mode) else content
    return found


async def run(sandbox: Sandbox, root: Path, script: str) -> tuple[str, int | None]:
    async with behind(sandbox, root) as commands:
        command = await ran(commands, shell(script))
    return command.text, command.ended.code


CHANGES = {
    "create": "touch new",
    "create in a folder": "mkdir src/new",
    "write": "echo x > file",
    "append": "echo x >> file",
    "truncate": "truncate -s 0 file",
    "remove": "rm -f file",
    "remove a folder": "rm -rf src",
    "move": "mv file other",
    "move away": "mv file /tmp/file || mv file $TMPDIR/file",
    "replace": "echo x > $TMPDIR/x; mv -f $TMPDIR/x file",
    "link": "ln -s /etc/passwd new",
    "hard link": "ln file new",
    "through a link in the workspace": "echo x > link",
    "through a link elsewhere": "ln -s $PWD/file $TMPDIR/link; echo x > $TMPDIR/link",
    "through a linked folder": "ln -s $PWD $TMPDIR/here; touch $TMPDIR/here/new",
    "through a hard link elsewhere": "ln file $TMPDIR/hard && echo x > $TMPDIR/hard",
    "through /proc/self/cwd": "echo x > /proc/self/cwd/file",
    "through /proc/self/root": "echo x > /proc/self/root$PWD/file",
    "through /proc/1/root": "echo x > /proc/1/root$PWD/file",
    "through the parent's folder": "echo x > /proc/$PPID/cwd/file",
    "through a descriptor": "exec 9< file; echo x > /proc/self/fd/9",
    "through a folder's descriptor": "exec 9< .; touch /proc/self/fd/9/new",
    "an unnamed file": "python3 -c 'import os; os.open(\".\", os.O_TMPFILE | os.O_RDWR)'",
    "memory": 'python3 -c \'import mmap; f = open("file", "r+b"); mmap.mmap(f.fileno(), 0)[0:1] = b"y"\'',
    "another name space": "unshare -Urm sh -c 'mount -o remount,rw,bind . && touch new'",
    "mount": "mount -o remount,rw,bind $PWD && touch new",
    "sed": "sed -i s/x/y/ file",
    "git commit": "git commit --allow-empty -m third",
    "git add": "echo x >> file; git add -A",
    "git checkout": "git checkout HEAD~1",
    "git branch": "git branch other",
    "git settings": "git config user.name x",
    "git stash": "git stash --include-untracked --all",
    "git tag": "git tag one",
    "git hook": "echo x > .git/hooks/pre-commit",
    "agents' settings": "echo x > .mcp.json",
    "greenroom's settings": "echo x > .greenroom/config.toml",
}


@TIERS
async def test_no_command_changes_it(build: Build, repository: Path) -> None:
    before = state_of(repository)
    async with behind(build(repository), repository) as commands:
        for way, script in CHANGES.items():
            command = await ran(commands, shell(script))
            assert command.ended.code != 0, (way, command.text)
            assert state_of(repository) == before, (way, command.text)


async def test_no_command_changes_a_mode(repository: Path) -> None:
    before = state_of(repository)  # in bubblewrap: Landlock does not know of modes, as docs/howto/sandbox.md says
    await run(bubblewrap(repository), repository, "chmod 600 file; chmod 777 src; chmod -x src/run.sh; chmod 000 src")
    assert state_of(repository) == before


READS = {
    "cat file link": "xx",
    "grep -rn TEXT src": "src/code.py:1:TEXT = 'read'\n",
    "python3 -c 'import sys; sys.path.insert(0, \"src\"); import code; print(1)'": "1\n",
    "cd src && python3 -c 'import importlib; print(importlib.import_module(\"code\").TEXT)'": "read\n",
    "python3 src/code.py": "",
    "src/run.sh": "ran\n",
    "git log --format=%s": "second\nfirst\n",
    "git status --short": "",
    "git diff HEAD~1 --stat --format= | tail -n 1 | cut -d, -f1": " 4 files changed\n",
    "git blame -s file | cut -d' ' -f2-": "1) x\n",
    "git grep -c TEXT": "src/code.py:1\n",
    "find . -name '*.py'": "./src/code.py\n",
    "echo mine > $TMPDIR/x && mkdir ~/y && mv $TMPDIR/x ~/y && cat ~/y/x && rm -r ~/y": "mine\n",
    "cp -r src $TMPDIR && cd $TMPDIR/src && echo more >> run.sh && chmod 700 run.sh && wc -l < run.sh": "2\n",
    "git clone -q . ~/own && cd ~/own && git commit -q --allow-empty -m own && git log -1 --format=%s": "own\n",
    "echo x > /dev/null; cat <<< here": "here\n",
}


@TIERS
async def test_commands_read_and_run_what_is_there(build: Build, repository: Path) -> None:
    before = state_of(repository)
    async with behind(build(repository), repository) as commands:
        for script, text in READS.items():
            command = await ran(commands, shell(script))
            assert (command.text, command.ended.code) == (text, 0), script
    assert state_of(repository) == before


async def test_conversations_stay_hidden(repository: Path) -> None:
    assert await run(bubblewrap(repository), repository, "ls .greenroom") == ("config.toml\n", 0)


async def test_pytest_runs_and_leaves_no_cache(repository: Path) -> None:
    if shutil.which("pytest") is None:
        pytest.skip("pytest is not on the PATH")
    (repository / "test_it.py").write_text("def test_it(tmp_path):\n    assert not list(tmp_path.iterdir())\n")
    before = state_of(repository)
    text, code = await run(bubblewrap(repository), repository, "pytest -q 2>&1")
    assert (code, "1 passed" in text) == (0, True), text
    assert state_of(repository) == before


@pytest.fixture(name="environment")
def _environment(open_folder: Path) -> SandboxMount:
    """Packages of the person that git ignores, with a key."""
    source = open_folder / "person" / "env"
    (source / "lib").mkdir(parents=True)
    (source / "lib" / "package.py").write_text("text = 'theirs'\n")
    (source / "key.pem").write_text("secret\n")
    return SandboxMount(source=str(source), at="deep/env", layer=str(open_folder / "layers/env"), hidden=("key.pem",))


@ALL
async def test_a_layered_mount_is_read_only_too(build: Build, environment: SandboxMount, root: Path) -> None:
    before = state_of(Path(environment.source))
    async with behind(build(root, environment), root) as commands:
        for way in ("touch deep/env/new", "echo x > deep/env/lib/package.py", "rm -rf deep/env/lib"):
            assert (await ran(commands, shell(way))).ended.code != 0, way
        read = await ran(commands, shell("ls deep/env/lib; cat deep/env/lib/package.py deep/env/key.pem 2>/dev/null"))
    assert read.text == "package.py\ntext = 'theirs'\n"
    assert state_of(Path(environment.source)) == before


async def test_what_a_layer_holds_already_is_read(environment: SandboxMount, root: Path) -> None:
    programs = [program for program in find_programs(CACHE) if program.overlays]
    if not programs or not can_keep_overlay(root):
        pytest.skip("there is no bubblewrap with overlays here, or the disk keeps no layer")
    writable = Bubblewrap(
        ground_of(root, root.parent / "scratch", lent=(environment,)), CommandLimits(), program=programs[0]
    )
    assert (await run(writable, root, "echo built > deep/env/new"))[1] == 0
    assert await run(bubblewrap(root, environment), root, "cat deep/env/new") == ("built\n", 0)


async def test_the_view_of_git_is_read_only_too(open_folder: Path, root: Path) -> None:
    """In a run's worktree, git's folder is mounted from elsewhere, and the files are seen at another path."""
    (open_folder / "view").mkdir()
    view = open_folder / "view"
    git(view, "init", "-q")
    (view / "file").write_text("x")
    git(view, "add", "-A")
    git(view, "commit", "-qm", "first")
    (root / "file").write_text("x")
    (open_folder / "link").write_text("gitdir: /greenroom/git\n")
    mounts = (
        SandboxMount(source=str(open_folder / "link"), at=".git"),
        SandboxMount(source=str(view / ".git"), at="/greenroom/git", writable=True),
    )
    before = state_of(view)
    script = "pwd; git log --format=%s; git status --short; git commit -q --allow-empty -m x; touch /greenroom/git/x"
    text, code = await run(bubblewrap(root, *mounts, at=Path("/somewhere/work")), root, f"({script}) 2>/dev/null")
    assert (text, code) == ("/somewhere/work\nfirst\n", 1)
    assert state_of(view) == before


async def test_a_mount_whose_place_leads_out_is_not_made_there(
    environment: SandboxMount, open_folder: Path, root: Path
) -> None:
    (open_folder / "outside").mkdir()
    (root / "deep").symlink_to(open_folder / "outside")
    _, code = await run(bubblewrap(root, environment), root, "true")
    assert code != 0
    assert list((open_folder / "outside").iterdir()) == []


async def test_a_socket_of_the_person_is_not_reached(root: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(root / "socket"))
        server.listen()
        script = "python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect(\"socket\")'"
        assert (await run(bubblewrap(root), root, script))[1] != 0


def test_the_profile_of_macos_allows_no_write_in_the_workspace(root: Path) -> None:
    for read_only, access in ((True, "file-read*"), (False, "file*")):
        sandbox = Seatbelt(evolve(ground_of(root, root.parent / "scratch"), read_only=read_only), CommandLimits())
        rules = [line for line in sandbox.render_profile({}).splitlines() if line.endswith(f'(subpath "{root}"))')]
        assert rules == [f'(allow {access} (subpath "{root}"))']
        sandbox.close()
