"""Commands in both tiers: the suites that all pass, and whole pieces of work."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from greenroom.adapters.processes.local_commands import LocalCommands
from greenroom.adapters.sandbox.bubblewrap import Bubblewrap
from greenroom.core.ports.commands import CommandRunner
from greenroom.core.ports.sandbox import CommandLimits, Sandbox
from tests.adapters.sandbox.walls import behind, bubblewrap_program, ground_of, landlocked, walled
from tests.conformance.commands import CommandsConformance, RunConformance, SurroundingsConformance
from tests.conformance.running import marked, ran, shell, until_gone, until_there
from tests.speed import is_soon


class Walled:
    """Walls of namespaces."""

    def open_commands(self, root: Path, own: Mapping[str, str]) -> CommandRunner:
        return LocalCommands(root, environ=own, sandbox=walled(root, root.parent / "scratch"))


@pytest.mark.req("MA-54")
class TestWalledCommands(Walled, RunConformance):
    """What is quick."""


@pytest.mark.prove
class TestAllOfWalledCommands(Walled, CommandsConformance):
    """Everything."""


class Landlocked:
    """Walls of Landlock around a folder that others can reach."""

    @pytest.fixture
    def root(self, open_folder: Path) -> Path:
        found = open_folder / "work"
        found.mkdir()
        return found

    def open_commands(self, root: Path, own: Mapping[str, str]) -> CommandRunner:
        return LocalCommands(root, environ=own, sandbox=landlocked(root, root.parent / "scratch"))


class TestLandlockedCommands(Landlocked, SurroundingsConformance):
    """What is quick."""

    async def test_git_does_not_ask_for_what_the_machine_has_set_and_nobody_here_may_read(self, root: Path) -> None:
        async with behind(landlocked(root, root.parent / "scratch"), root) as commands:
            ended = await ran(
                commands, shell('cat /etc/gitconfig 2>&1; git init -q made && echo "$GIT_CONFIG_NOSYSTEM"')
            )
        assert ended.text.splitlines()[-1:] == ["1"]


@pytest.mark.prove
class TestAllOfLandlockedCommands(Landlocked, CommandsConformance):
    """Everything."""


Build = Callable[[Path, Path], Sandbox]
BOTH = pytest.mark.parametrize("build", [walled, landlocked], ids=["bubblewrap", "landlock"])


async def said(wall: Sandbox | None, root: Path, script: str) -> str:
    """What a script prints behind a wall, or without one."""
    if wall is None:
        commands = LocalCommands(root)
        try:
            return (await ran(commands, shell(script))).text
        finally:
            commands.close()
    async with behind(wall, root) as commands:
        return (await ran(commands, shell(script))).text


@BOTH
async def test_files_that_it_makes_are_the_person_s_and_theirs_can_be_changed(build: Build, root: Path) -> None:
    (root / "theirs").write_text("old\n")
    (root / "closed").mkdir(mode=0o700)
    (root / "closed" / "inner").write_text("x")
    await said(
        build(root, root.parent / "scratch"), root, "echo new >>theirs; mkdir -p a/b; echo x >a/b/c; rm closed/inner"
    )
    assert (root / "theirs").read_text() == "old\nnew\n"
    for made in (root, root / "theirs", root / "a" / "b" / "c", root / "closed"):
        assert (made.stat().st_uid, made.stat().st_gid) == (os.getuid(), os.getgid())
    assert not (root / "closed" / "inner").exists()


@BOTH
async def test_what_it_leaves_for_itself_is_there_for_the_next_and_gone_in_the_end(build: Build, root: Path) -> None:
    scratch = root.parent / "scratch"
    async with behind(build(root, scratch), root) as commands:
        await ran(commands, shell("echo kept >$TMPDIR/note; echo too >~/note; mkdir -p ~/x/y; chmod 0 ~/x"))
        assert (await ran(commands, shell("cat $TMPDIR/note ~/note"))).text == "kept\ntoo\n"
    assert list(scratch.iterdir()) == []


async def test_what_a_killed_house_left_is_swept(root: Path) -> None:
    scratch = root.parent / "scratch"
    (scratch / "dead" / "home").mkdir(parents=True)
    (scratch / "dead" / "in-use").touch()
    first = walled(root, scratch)
    second = walled(root, scratch)
    assert len(list(scratch.iterdir())) == 2, "that of the dead is gone, that of the living is not"
    first.close()
    second.close()
    second.close()
    assert list(scratch.iterdir()) == []


ROOT = Path(__file__).resolve().parents[3]


async def test_an_editable_install_imports_the_tree_that_is_worked_on(tmp_path: Path) -> None:
    """The worktree is seen at the repository's own path, which is where the install points."""
    repository, worktree = tmp_path / "repository", tmp_path / "cache" / "worktree"
    for place, text in ((repository, "the person's"), (worktree, "the agent's")):
        (place / "src" / "thing").mkdir(parents=True)
        (place / "src" / "thing" / "__init__.py").write_text(f"text = {text!r}\n")
        (place / "site").mkdir()
        (place / "site" / "thing.pth").write_text(f"{repository}/src\n")
    wall = Bubblewrap(
        ground_of(worktree, tmp_path / "scratch", at=repository),
        CommandLimits(),
        program=bubblewrap_program(),
    )
    python = f"import site; site.addsitedir({str(repository / 'site')!r}); import thing; print(thing.text)"
    async with behind(wall, worktree) as commands:
        made = await ran(commands, shell(f'pwd; python3 -c "{python}"; echo x >made', folder="src"))
    assert made.text == f"{repository}/src\nthe agent's\n"
    assert (worktree / "src" / "made").exists()
    assert not (repository / "src" / "made").exists()


@pytest.mark.parametrize("place", ["/var/tmp", "/dev/shm", "/tmp"])
async def test_a_workspace_may_lie_where_everybody_has_something(place: str, tmp_path: Path) -> None:
    with tempfile.TemporaryDirectory(dir=place) as name:
        root = Path(name)
        async with behind(walled(root, tmp_path / "scratch"), root) as commands:
            made = await ran(commands, shell("pwd; echo x >made; echo y >/var/tmp/other; cat /tmp/other"))
        assert made.text == f"{root}\ny\n"
        assert names(root) == ["made"]


async def test_nothing_is_written_beside_what_is_for_writing(tmp_path: Path) -> None:
    """What lies in memory would be taken from everybody."""
    root = tmp_path / "work"
    root.mkdir()
    script = (
        "for place in / /dev /var /usr /proc /home; do (: >$place/made) 2>/dev/null && echo $place; done; df /dev/shm"
    )
    async with behind(walled(root, tmp_path / "scratch", CommandLimits(temporary=2**20)), root) as commands:
        made = await ran(commands, shell(f"{script} | tail -n 1"))
    assert made.text.split()[1] == "1024"
    assert made.text.count("\n") == 1


def is_mounted(place: Path) -> bool:
    return str(place) in Path("/proc/self/mounts").read_text(encoding="utf-8")


def names(folder: Path) -> list[str]:
    return sorted(one.name for one in folder.iterdir())


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    line = await reader.readline()
    writer.write(b"HTTP/1.0 200 OK\r\n\r\nheard " + line)
    await writer.drain()
    writer.close()


class Through:
    """Every command gets out here."""

    def __init__(self, place: Path) -> None:
        self._place = place

    async def get_socket(self, _: tuple[str, ...]) -> str:
        return str(self._place)

    def allow_hosts(self, _: int, __: tuple[str, ...]) -> None:
        pass

    def describe_refusals(self, _: int, __: str) -> str:
        return ""

    def revoke_hosts(self, _: int) -> None:
        pass


async def test_the_one_way_out_leads_to_the_proxy_and_nowhere_else(tmp_path: Path) -> None:
    root = tmp_path / "work"
    root.mkdir()
    server = await asyncio.start_unix_server(_answer, str(tmp_path / "proxy"))
    ground = ground_of(root, tmp_path / "scratch")
    wall = Bubblewrap(ground, CommandLimits(), program=bubblewrap_program())
    fetch = "import urllib.request as u; print(u.urlopen('http://example.com/x').read().decode())"
    async with server, behind(wall, root, Through(tmp_path / "proxy")) as commands:
        made = await ran(commands, shell(f'python3 -c "{fetch}"; ls -a {tmp_path}'))
        late = await ran(commands, shell("sleep 60", seconds=0.3, token="bridge"))
    assert made.text.split("\n")[0] == "heard GET http://example.com/x HTTP/1.1\r"
    assert "proxy" not in made.text.split()
    assert late.ended.how == "timed_out"


async def test_a_worktree_can_be_asked_and_its_repository_is_not_changed(tmp_path: Path) -> None:
    main, tree = tmp_path / "main", tmp_path / "tree"
    main.mkdir()
    await _git(main, "init", "-q")
    await _git(main, "-c", "user.name=p", "-c", "user.email=p@x", "commit", "-q", "--allow-empty", "-m", "first")
    await _git(main, "worktree", "add", "-q", str(tree))
    async with behind(walled(tree, tmp_path / "scratch"), tree) as commands:
        asked = await ran(commands, shell("git log --format=%s; git status --short"))
        plant = await ran(commands, shell(f"touch {main}/.git/hooks/x; echo x >.git; git config a.b c"))
    assert asked.text == "first\n"
    assert plant.ended.code != 0
    assert not (main / ".git" / "hooks" / "x").exists()


async def _git(folder: Path, *words: str) -> None:
    process = await asyncio.create_subprocess_exec("git", *words, cwd=folder)
    assert await process.wait() == 0


async def test_nothing_outlives_a_house_that_is_killed(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "tests.adapters.sandbox.house", str(tmp_path), "sandbox"]
    house = await asyncio.create_subprocess_exec(*words, cwd=ROOT, stdin=subprocess.DEVNULL)
    try:
        await until_there(tmp_path / "work" / "up")
        assert len(marked("sandbox")) >= 3, "or this shows nothing"
    finally:
        house.send_signal(signal.SIGKILL)
        killed = time.monotonic()
        await house.wait()
    await until_gone("sandbox")
    assert is_soon(time.monotonic() - killed, 1)
    assert not is_mounted(tmp_path)


@pytest.mark.prove
@pytest.mark.timeout(600)
async def test_two_hundred_commands_that_are_killed_at_random_leave_nothing(tmp_path: Path) -> None:
    root = tmp_path / "work"
    root.mkdir()
    async with behind(walled(root, tmp_path / "scratch"), root) as commands:
        gate = asyncio.Semaphore(16)

        async def one(number: int) -> None:
            async with gate:
                work = asyncio.create_task(ran(commands, shell("setsid sleep 60 & sleep 60", token="many")))
                await asyncio.sleep(number % 17 / 100)
                work.cancel()
                await asyncio.gather(work, return_exceptions=True)

        await asyncio.gather(*map(one, range(200)))
        assert marked("many") == []
    assert (names(tmp_path), names(root), names(tmp_path / "scratch")) == (["scratch", "work"], [], [])


HIDDEN = """
import os
for name in ("cmdline", "environ", "status", "comm", "stat", "task/{pid}/cmdline", "net/tcp"):
    try:
        open("/proc/{pid}/" + name, "rb").read()
        print("read", name)
    except OSError: pass
for name in ("/proc", "/proc/net/unix", "/proc/self/net/tcp", "/proc/thread-self/net/dev"):
    try:
        os.listdir(name) if name == "/proc" else open(name).read()
        print("read", name)
    except OSError: pass
own = (open("/proc/self/cmdline").read(), os.listdir("/proc/self/fd"), open("/proc/meminfo").read())
print("own", *map(bool, own))
"""


async def test_no_arguments_of_other_processes_are_read_in_landlock(open_folder: Path) -> None:
    root = open_folder / "work"
    root.mkdir()
    for pid in (os.getpid(), os.getppid()):
        (root / "look.py").write_text(HIDDEN.replace("{pid}", str(pid)))
        async with behind(landlocked(root, open_folder / "scratch"), root) as commands:
            told = (await ran(commands, shell("exec python3 look.py"))).text
        assert told == "own True True True\n"


@pytest.mark.parametrize(
    "line",
    [
        "python3 -c 'import subprocess, os; subprocess.run([\"true\"], check=True); print(os.cpu_count() > 0)'",
        'node -e \'console.log(require("os").cpus().length > 0); require("child_process").execSync("true")\'',
        "printf 'int main(){return 0;}' >a.c; gcc a.c -o a && ./a && cat <(echo True) /dev/stdin </dev/null",
        "java -version && echo True",
    ],
    ids=["python", "node", "gcc", "java"],
)
async def test_programs_still_run_with_so_little_of_proc(open_folder: Path, line: str) -> None:
    name = line.split(maxsplit=1)[0] if not line.startswith("printf") else "gcc"
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed")
    root = open_folder / "work"
    root.mkdir()
    async with behind(landlocked(root, open_folder / "scratch"), root) as commands:
        told = (await ran(commands, shell(f"set -e; {line}; true"))).text
    assert told.lower().endswith("true\n")
