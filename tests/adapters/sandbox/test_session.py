"""What a sandbox needs while it stands: it is put up aside, taken down, and has an /etc of its own."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from greenroom.adapters.processes.local_commands import LocalCommands
from greenroom.adapters.sandbox.choice import make_sandbox
from greenroom.adapters.sandbox.session import SandboxSession, make_etc
from greenroom.adapters.sandbox.view import Identity
from greenroom.core.base.errors import WorldFault
from greenroom.core.ports.sandbox import CommandLimits, Sandbox, SandboxedCommand, Tier
from tests.adapters.sandbox.walls import behind, ground_of, landlocked, walled
from tests.conformance.running import marked, ran, shell
from tests.speed import measure_slowness


class Slow:
    """Walls that take their time, and notice in which thread."""

    tier: Tier = "bubblewrap"

    def __init__(self, overrun: Callable[[], str] = str) -> None:
        self.threads = list[threading.Thread]()
        self.looked_in = set[threading.Thread]()
        self.standing = 0
        self.begun = threading.Event()
        self.go = threading.Event()
        self._overrun = overrun

    def confine(self, words: tuple[str, ...], folder: str, env: Mapping[str, str], _: str = "") -> SandboxedCommand:
        self.threads.append(threading.current_thread())
        self.begun.set()
        assert self.go.wait(10)
        self.standing += 1
        return SandboxedCommand(words=words, folder=folder, env=env, token="x")

    def get_pause(self, supervisor_pid: int) -> float:
        self.looked_in.add(threading.current_thread())
        return 0.01

    def find_exceeded_limit(self, command: SandboxedCommand, supervisor_pid: int) -> str:
        self.looked_in.add(threading.current_thread())
        return self._overrun()

    def clean_up(self, command: SandboxedCommand) -> str:
        self.threads.append(threading.current_thread())
        self.standing -= 1
        return ""

    def close(self) -> None:
        """Nothing is left."""


async def test_the_loop_goes_on_while_walls_are_put_up(root: Path) -> None:
    wall = Slow()
    async with behind(wall, root) as commands:
        work = asyncio.create_task(ran(commands, shell("echo fine")))
        assert await asyncio.to_thread(wall.begun.wait, 10)
        wall.go.set()
        assert (await work).text == "fine\n"
    assert threading.main_thread() not in wall.threads
    assert (len(wall.threads), wall.standing) == (2, 0)


async def test_limits_are_looked_at_beside_the_loop(root: Path) -> None:
    wall = Slow(lambda: "Ended: enough.")
    wall.go.set()
    async with behind(wall, root) as commands:
        assert "Ended: enough." in (await ran(commands, shell("sleep 30"))).text
    assert wall.looked_in
    assert threading.main_thread() not in wall.looked_in


async def test_whoever_is_cancelled_while_walls_are_put_up_takes_them_down(root: Path) -> None:
    wall = Slow()
    async with behind(wall, root) as commands:
        work = asyncio.create_task(ran(commands, shell("touch made")))
        assert await asyncio.to_thread(wall.begun.wait, 10)
        work.cancel()
        wall.go.set()
        with pytest.raises(asyncio.CancelledError):
            await work
    assert (len(wall.threads), wall.standing) == (2, 0)
    assert not (root / "made").exists()


async def test_a_command_nobody_can_look_at_is_ended_and_that_is_said(root: Path) -> None:
    def fails() -> str:
        raise OSError("the disk is gone")

    wall = Slow(fails)
    wall.go.set()
    async with behind(wall, root) as commands:
        made = await ran(commands, shell("sleep 60", seconds=30))
    assert made.ended.how == "cancelled"
    assert "Ended: its usage can no longer be measured (the disk is gone)." in made.text


def _seatbelt(root: Path, scratch: Path) -> Sandbox:
    wall = make_sandbox("seatbelt", ground_of(root, scratch), CommandLimits())
    assert wall is not None
    return wall


@pytest.mark.parametrize("build", [walled, landlocked, _seatbelt], ids=["bubblewrap", "landlock", "seatbelt"])
def test_walls_that_cannot_be_put_up_leave_nothing(
    build: Callable[[Path, Path], Sandbox], root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = list[str]()
    real = SandboxSession.end

    def end(self: SandboxSession, token: str) -> None:
        ended.append(token)
        real(self, token)

    def fails(_self: SandboxSession, _env: Mapping[str, str]) -> list[Path]:
        raise WorldFault("no")

    monkeypatch.setattr(SandboxSession, "end", end)
    monkeypatch.setattr(SandboxSession, "find_tools", fails)
    wall = build(root, root.parent / "scratch")
    with pytest.raises(WorldFault, match="no"):
        wall.confine(("true",), str(root), {})
    wall.close()
    assert len(ended) == 1
    assert list((root.parent / "scratch").glob("*.before")) == []


async def test_all_are_dead_half_a_second_after_their_time(root: Path) -> None:
    """Whoever ignores being told, too. The best of three: this machine may be busy."""
    stubborn = "trap '' TERM; setsid sleep 60 & (trap '' TERM; sleep 60) & sleep 60"
    late = list[float]()
    async with behind(walled(root, root.parent / "scratch"), root) as commands:
        for _ in range(3):
            made = await ran(commands, shell(stubborn, token="late", seconds=0.3))
            assert made.ended.how == "timed_out"
            assert marked("late") == []
            late.append(made.ended.seconds - 0.3)
    assert min(late) <= 0.5, late


async def test_a_large_workspace_is_looked_at_quickly(root: Path) -> None:
    for number in range(2000):
        (root / f"{number % 50}" / f"{number}").mkdir(parents=True)
    commands = LocalCommands(root, sandbox=walled(root, root.parent / "scratch"))
    took = list[float]()
    try:
        for _ in range(4):
            began = time.monotonic()
            await ran(commands, shell("true"))
            took.append(time.monotonic() - began)
    finally:
        commands.close()
    assert min(took) < 0.5 * measure_slowness(), took


ANN = Identity(uid=4321, gid=4321, changes=True)


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    folder = tmp_path / "machine"
    (folder / "ssl" / "certs").mkdir(parents=True)
    (folder / "ssl" / "certs" / "one.pem").write_text("certificate")
    (folder / "ssl" / "openssl.cnf").write_text("settings")
    (folder / "ssl" / "private").mkdir(mode=0o710)
    (folder / "fonts" / "deep").mkdir(parents=True)
    (folder / "fonts" / "deep" / "fonts.conf").write_text("fonts")
    (folder / "alternatives").mkdir()
    (folder / "alternatives" / "vi").symlink_to("/usr/bin/vim")
    (folder / "shadow").write_text("root:secret")
    (folder / "timezone").write_text("Europe/Vienna")
    return folder


def test_a_folder_that_everybody_may_read_is_not_copied_but_shown_as_it_is(machine: Path, tmp_path: Path) -> None:
    shown = make_etc(tmp_path / "etc", ANN, Path("/home/x"), machine=str(machine))
    assert set(shown) == {"fonts", "alternatives", "ssl/certs"}
    assert all([*(tmp_path / "etc" / one).iterdir()] == [] for one in shown)


def test_of_a_folder_with_something_private_in_it_everything_else_is_there(machine: Path, tmp_path: Path) -> None:
    make_etc(tmp_path / "etc", ANN, Path("/home/x"), machine=str(machine))
    assert {one.name for one in (tmp_path / "etc" / "ssl").iterdir()} == {"certs", "openssl.cnf"}
    assert (tmp_path / "etc" / "timezone").read_text() == "Europe/Vienna"
    assert not (tmp_path / "etc" / "shadow").exists()


@pytest.mark.parametrize("path", ["fonts/deep/fonts.conf", "fonts/deep"])
def test_one_thing_that_others_may_not_read_and_nothing_around_it_is_shown_as_it_is(
    machine: Path, tmp_path: Path, path: str
) -> None:
    (machine / path).chmod(0o640 if path.endswith("conf") else 0o750)
    (machine / "fonts" / "open.conf").write_text("open")
    shown = make_etc(tmp_path / "etc", ANN, Path("/home/x"), machine=str(machine))
    assert not any(one.startswith("fonts/deep") or one == "fonts" for one in shown)
    assert [one.name for one in (tmp_path / "etc" / "fonts").rglob("*") if one.is_file()] == ["open.conf"]


def test_of_a_folder_that_can_be_listed_but_not_entered_nothing_is_there(machine: Path, tmp_path: Path) -> None:
    (machine / "fonts").chmod(0o754)
    assert not any("fonts" in one for one in make_etc(tmp_path / "etc", ANN, Path("/home/x"), machine=str(machine)))
    assert not (tmp_path / "etc" / "fonts").exists()


def test_it_says_who_a_command_is(machine: Path, tmp_path: Path) -> None:
    make_etc(tmp_path / "etc", ANN, Path("/home/x"), machine=str(machine))
    assert (tmp_path / "etc" / "passwd").read_text().startswith("greenroom:x:4321:4321::/home/x:")
