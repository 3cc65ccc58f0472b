"""What a command is and has in a sandbox, in both tiers. What it cannot reach: `tests/sandbox`."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import reduce
from operator import or_
from pathlib import Path

import pytest

from greenroom.core.ports.sandbox import Wall
from tests.adapters.sandbox.walls import behind, landlocked, walled
from tests.conformance.running import ran, shell

Build = Callable[[Path, Path], Wall]
BOTH = pytest.mark.parametrize("build", [walled, landlocked], ids=["bubblewrap", "landlock"])


def modes(root: Path) -> int:
    """All bits that any file there has."""
    return reduce(or_, (one.stat().st_mode for one in root.iterdir()))


async def said(wall: Wall, root: Path, script: str) -> str:
    """What a script prints in a sandbox."""
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
