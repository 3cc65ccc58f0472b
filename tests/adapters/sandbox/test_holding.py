"""What is behind walls and what is not, in both tiers; each thing is shown to be there without them."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from functools import reduce
from operator import or_
from pathlib import Path

import pytest

from greenroom.adapters.processes.plain import PlainCommands
from greenroom.core.ports.sandbox import Wall
from tests.adapters.sandbox.walls import behind, landlocked, walled
from tests.conformance.running import ran, shell

Build = Callable[[Path, Path], Wall]
BOTH = pytest.mark.parametrize("build", [walled, landlocked], ids=["bubblewrap", "landlock"])


@pytest.fixture
def root(open_folder: Path) -> Path:
    found = open_folder / "work"
    found.mkdir()
    return found


def modes(root: Path) -> int:
    """All bits that any file there has."""
    return reduce(or_, (one.stat().st_mode for one in root.iterdir()))


async def said(wall: Wall | None, root: Path, script: str) -> str:
    """What a script prints behind a wall, or without one."""
    if wall is None:
        commands = PlainCommands(root)
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
async def test_it_has_no_capability_and_cannot_become_anybody(build: Build, root: Path) -> None:
    script = "id -u; grep -E '^(NoNewPrivs|Seccomp|Cap(Inh|Prm|Eff|Amb)):' /proc/self/status | tr -d '\\t'"
    uid, *status = (await said(build(root, root.parent / "scratch"), root, script)).split()
    assert int(uid) == (os.getuid() if build is landlocked else os.getuid() or 62_347)
    caps = [f"Cap{kind}:0000000000000000" for kind in ("Inh", "Prm", "Eff", "Amb")]
    assert status == [*caps, "NoNewPrivs:1", "Seccomp:2"]


@BOTH
async def test_no_process_outside_is_traced_or_read(build: Build, root: Path) -> None:
    script = f"head -c 1 /proc/{os.getpid()}/environ | wc -c; (exec 5</proc/{os.getpid()}/mem) && echo opened"
    assert "opened" in await said(None, root, script)
    assert (await said(build(root, root.parent / "scratch"), root, script)).splitlines()[-2:] != ["1", "opened"]
    assert "opened" not in (await said(build(root, root.parent / "scratch"), root, script)).splitlines()


@BOTH
async def test_what_lies_outside_is_neither_read_nor_written(build: Build, root: Path) -> None:
    outside = root.parent / "outside"
    outside.mkdir()
    outside.chmod(0o777)
    (outside / "secret").write_text("secret\n")
    script = f"cat {outside}/secret; echo x >{outside}/made; ls {Path.home()}/.bashrc /etc/shadow /etc/ssh"
    assert "secret\n" in (await said(None, root, script)).splitlines(keepends=True)
    (outside / "made").unlink()
    assert "secret" not in (await said(build(root, root.parent / "scratch"), root, script)).splitlines()
    assert not (outside / "made").exists()


@BOTH
async def test_the_kernel_s_settings_stay_what_they_are(build: Build, root: Path) -> None:
    script = "(: >>/proc/sys/kernel/core_pattern) && echo opened"
    assert "opened" not in await said(build(root, root.parent / "scratch"), root, script)


async def test_no_process_of_the_machine_is_to_be_seen(root: Path) -> None:
    script = "ls /proc | grep -c '^[0-9]'"
    assert int(await said(walled(root, root.parent / "scratch"), root, script)) < 10
    assert int(await said(None, root, script)) > 10


@BOTH
async def test_no_process_outside_is_reached(build: Build, root: Path) -> None:
    script = f"kill -0 {os.getpid()} && echo reached"
    assert "reached" in await said(None, root, script)
    assert "reached" not in await said(build(root, root.parent / "scratch"), root, script)


@BOTH
async def test_there_is_no_network_and_no_socket_of_the_machine(build: Build, root: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as other:
        other.bind(str(root / "sock"))
        (root / "sock").chmod(0o777)
        other.listen()
        elsewhere = root.parent / "sock"
        (root / "sock").rename(elsewhere)
        port = server.getsockname()[1]
        connect = f"import socket; socket.socket(socket.AF_UNIX).connect({str(elsewhere)!r}); print('unix')"
        script = f'(exec 5<>/dev/tcp/127.0.0.1/{port}) && echo tcp; /usr/bin/env python3 -c "{connect}"'
        assert (await said(None, root, script)).split() == ["tcp", "unix"]
        got = (await said(build(root, root.parent / "scratch"), root, script)).splitlines()
    assert "tcp" not in got
    assert "unix" not in got


async def test_a_server_of_its_own_is_reached_over_loopback(root: Path) -> None:
    script = (
        "python3 -m http.server 8123 --bind 127.0.0.1 >/dev/null 2>&1 & echo fine >page; "
        "for n in $(seq 100); do (exec 5<>/dev/tcp/127.0.0.1/8123) 2>/dev/null && break; sleep 0.05; done; "
        "python3 -c \"import urllib.request as u; print(u.urlopen('http://127.0.0.1:8123/page').read())\""
    )
    assert "fine" in await said(walled(root, root.parent / "scratch"), root, script)


@BOTH
async def test_a_program_that_would_run_as_its_owner_cannot_be_made(build: Build, root: Path) -> None:
    script = "touch f; chmod u+s f; chmod g+s f; python3 -c \"import os; os.open('g', os.O_CREAT, 0o4755)\"; umask 022"
    await said(build(root, root.parent / "scratch"), root, script)
    assert modes(root) & 0o6000 == 0


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
