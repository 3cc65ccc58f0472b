"""Two houses in one workspace know the same, and what a killed one left is mended by the next."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from greenroom.adapters.sandbox.keeping import Kept
from greenroom.adapters.sandbox.together import Facts, Together
from greenroom.core.ports.sandbox import Wall
from greenroom.testing.conformance.running import ran, shell, until_there
from tests.adapters.sandbox.walls import behind, landlocked, walled

HERE = Path(__file__).resolve().parents[3]
Build = Callable[[Path, Path], Wall]
BOTH = pytest.mark.parametrize("build", [walled, landlocked], ids=["walled", "landlocked"])
WAITS = "touch {name}; for n in $(seq 2000); do [ -e go-{name} ] && break; sleep 0.01; done"
PLANTS = "mkdir -p .greenroom/agents && echo evil >.greenroom/agents/evil.md; echo evil >.mcp.json; mkdir .claude/x"


@pytest.fixture(name="root")
def _root(open_folder: Path) -> Path:
    found = open_folder / "work"
    found.mkdir()
    return found


def nobody(_: Facts) -> None:
    """Nothing is to be mended."""
    pytest.fail("there was nothing to mend")


def nobody_looks() -> Facts:
    """Somebody else has looked."""
    pytest.fail("it is known")


def governing(root: Path) -> list[str]:
    return [name for name in (".greenroom", ".mcp.json", ".claude") if os.path.lexists(root / name)]


async def running(script: str, wall: Wall, root: Path, name: str) -> asyncio.Task[None]:
    """A command that has begun, in a house of its own."""

    async def house() -> None:
        async with behind(wall, root) as commands:
            await ran(commands, shell(f"{WAITS.format(name=name)}; {script}", seconds=60))

    task = asyncio.create_task(house())
    await until_there(root / name)
    return task


@BOTH
async def test_what_one_house_keeps_closed_stays_closed_when_another_one_ends(build: Build, root: Path) -> None:
    scratch = root.parent / "scratch"
    first = await running("true", build(root, scratch), root, "one")
    second = await running(PLANTS, build(root, scratch), root, "two")
    (root / "go-one").touch()
    await first
    (root / "go-two").touch()
    await second
    assert governing(root) == []


async def test_without_knowing_of_each_other_they_would_not(root: Path) -> None:
    first = await running("true", walled(root, root.parent / "one"), root, "one")
    second = await running(PLANTS, walled(root, root.parent / "two"), root, "two")
    (root / "go-one").touch()
    await first
    (root / "go-two").touch()
    await second
    assert ".greenroom" in governing(root), "so this shows that the other test can fail"


async def test_what_one_house_finds_is_not_what_the_other_s_commands_have_changed(root: Path) -> None:
    """Landlock cannot keep a command from git's settings; both put back what a person had."""
    config = root / ".git" / "config"
    config.parent.mkdir()
    for name in ("objects", "refs"):
        (config.parent / name).mkdir()
    (config.parent / "HEAD").write_text("ref: refs/heads/main\n")
    config.write_text("[core]\n\tbare = false\n")
    scratch = root.parent / "scratch"
    first = await running("true", landlocked(root, scratch), root, "one")
    evil = "echo '[core] fsmonitor = evil' >.git/config"
    async with behind(landlocked(root, scratch), root) as commands:
        await ran(commands, shell(evil))
        assert "evil" in config.read_text(), "the first one still runs"
    third = await running("true", landlocked(root, scratch), root, "three")
    for name in ("one", "three"):
        (root / f"go-{name}").touch()
    await asyncio.gather(first, third)
    assert config.read_text() == "[core]\n\tbare = false\n"


HOOK = "#!/bin/sh\\ntouch ../ran\\n"
KILLED = (
    f"git init -q sub; printf '{HOOK}' >sub/.git/hooks/pre-commit; chmod +x sub/.git/hooks/pre-commit; "
    "echo up; sleep 60"
)


@BOTH
async def test_what_the_command_of_a_killed_house_planted_is_harmless_once_the_next_one_works(
    build: Build, root: Path, tmp_path: Path
) -> None:
    """And what the walls stood on is gone."""
    script = tmp_path / "script"
    script.write_text(f"bash\0-c\0{KILLED}")
    house = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.sandbox.house", build.__name__, str(root), str(script), "TOKEN", "x"),
        cwd=HERE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert house.stdout is not None
    said = await asyncio.wait_for(house.stdout.readuntil(b"up\n"), 30)
    house.kill()
    await house.wait()
    hook = root / "sub" / ".git" / "hooks" / "pre-commit"
    assert hook.exists(), said
    async with behind(build(root, root.parent / "scratch"), root) as commands:
        await ran(commands, shell("true"))
    assert not hook.exists()
    assert hook.with_name("pre-commit.held-by-greenroom").exists()
    assert governing(root) == []


def test_facts_are_told_and_read_with_names_of_all_kinds(tmp_path: Path) -> None:
    odd = tmp_path / os.fsdecode(b"\xff\xfe")
    inner = Kept(mode=0o40755, entries={"a": Kept(mode=0o100644, content=b"\0\xff")})
    facts = Facts(
        known={odd: frozenset({"config"})},
        led={odd / "x": True},
        absent=(odd / "y",),
        kept={odd: inner, tmp_path: None},
    )
    first, second = Together(tmp_path, tmp_path / "root"), Together(tmp_path, tmp_path / "root")
    assert first.enter(lambda: facts, nobody) == facts
    first.alive()
    assert second.enter(nobody_looks, nobody) == facts
    mended: list[Facts] = []
    assert not first.leave(mended.append, facts)
    assert second.leave(mended.append, facts)
    assert mended == [facts]
    assert list(tmp_path.iterdir()) == []


def test_what_a_dead_house_left_is_mended_but_not_what_was_changed_since(tmp_path: Path) -> None:
    older, newer, gone = (tmp_path / name for name in ("older", "newer", "gone"))
    for path in (older, newer):
        path.write_text("")
    kept = {path: Kept(mode=0o100644, content=b"before") for path in (older, newer, gone / "inner")}
    facts = Facts(known={}, led={}, absent=(older,), kept=kept)
    dead = Together(tmp_path, tmp_path / "root")
    dead.enter(lambda: facts, nobody)
    os.close(dead._file)
    died = older.stat().st_ctime
    os.utime(dead._path, (died - 4.9, died - 4.9))
    while newer.stat().st_ctime <= died + 0.2:
        newer.chmod(0o600)
    mended: list[Facts] = []
    later = Together(tmp_path, tmp_path / "root")
    later.enter(lambda: facts, mended.append)
    assert [set(one.kept) for one in mended] == [{older, gone / "inner"}]
    later.leave(mended.append, facts)


def test_what_is_written_there_and_cannot_be_read_is_nothing(tmp_path: Path) -> None:
    facts = Facts(known={}, led={}, absent=(), kept={})
    one = Together(tmp_path, tmp_path / "root")
    for text in ("", "{", "[]", '{"known": 1}'):
        one._path.write_text(text)
        assert one.enter(lambda: facts, nobody) == facts
        os.close(one._file)


def test_who_cannot_look_leaves_nothing_behind(tmp_path: Path) -> None:
    def fails() -> Facts:
        raise OSError("no")

    one = Together(tmp_path, tmp_path / "root")
    with pytest.raises(OSError, match="no"):
        one.enter(fails, nobody)
    assert list(tmp_path.iterdir()) == []
