"""Which walls are chosen: those that were tried and hold; and when nothing can be shown, none."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from greenroom.adapters.processes.local_commands import LocalCommands
from greenroom.adapters.sandbox import choice
from greenroom.adapters.sandbox.choice import SandboxChoice, choose_sandbox, make_sandbox
from greenroom.adapters.sandbox.programs import find_programs
from greenroom.adapters.sandbox.view import SandboxView
from greenroom.core.base.errors import WorldFault
from greenroom.core.ports.sandbox import CommandLimits, Sandbox, SandboxedCommand
from tests.adapters.sandbox.walls import bubblewrap_program, ground_of, walled


def opened(root: Path, wall: Sandbox | None) -> LocalCommands:
    return LocalCommands(root, sandbox=wall)


class Open:
    """A wall that lets everything through."""

    tier = "bubblewrap"

    def __init__(self, *_: object, **__: object) -> None:
        """Nothing to put up."""

    def confine(self, words: tuple[str, ...], folder: str, env: Mapping[str, str], _: str = "") -> SandboxedCommand:
        return SandboxedCommand(words=words, folder=folder, env=env, token="")

    def get_pause(self, supervisor_pid: int) -> float:
        return 0.25

    def find_exceeded_limit(self, command: SandboxedCommand, supervisor_pid: int) -> str:
        return ""

    def clean_up(self, command: SandboxedCommand) -> str:
        return ""

    def close(self) -> None:
        """Nothing."""


class Broken(Open):
    """One that does not let anybody work."""

    def confine(self, words: tuple[str, ...], folder: str, env: Mapping[str, str], _: str = "") -> SandboxedCommand:
        return SandboxedCommand(words=("echo", "no permission to make namespaces"), folder=folder, env=env, token="")


class Useless(Open):
    """One behind which nothing happens."""

    def confine(self, words: tuple[str, ...], folder: str, env: Mapping[str, str], _: str = "") -> SandboxedCommand:
        return SandboxedCommand(words=("true",), folder=folder, env=env, token="")


async def test_the_strongest_that_holds_is_chosen_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = tmp_path / "cache" / "sandbox.json"
    assert await choose_sandbox(opened, Path.home(), cache) == SandboxChoice(
        tier="bubblewrap", program=find_programs(cache.parent)[0]
    )
    monkeypatch.setattr(choice, "Bubblewrap", Open)
    assert (await choose_sandbox(opened, Path.home(), cache)).tier == "bubblewrap", "it is known already"
    kept = json.loads(cache.read_text())
    cache.write_text(json.dumps({**kept, "key": "another machine"}))
    assert (await choose_sandbox(opened, Path.home(), cache)).tier == "landlock", "so it was tried again"


async def test_walls_that_let_something_through_are_not_chosen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(choice, "Bubblewrap", Open)
    found = await choose_sandbox(opened, Path.home(), tmp_path / "sandbox.json")
    assert found.tier == "landlock"
    assert found.why[0].startswith("bubblewrap: a command could still ")


async def test_walls_that_do_not_work_are_not_chosen_and_their_words_are_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(choice, "Bubblewrap", Broken)
    monkeypatch.setattr(choice, "Landlock", Useless)
    found = await choose_sandbox(opened, Path.home(), tmp_path / "sandbox.json")
    assert found.tier == "none"
    assert "no permission to make namespaces" in found.why[0]
    assert found.why[-1] == "landlock: a command could not work in its workspace"


async def test_where_nothing_can_be_shown_no_walls_are_trusted(tmp_path: Path) -> None:
    def always(root: Path, wall: Sandbox | None) -> LocalCommands:
        return LocalCommands(root, sandbox=wall or walled(root, root.parent / "other"))

    found = await choose_sandbox(always, Path.home(), tmp_path / "sandbox.json")
    assert found.tier == "none"
    assert "the trial proves nothing" in found.why[0]


async def test_what_is_missing_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(choice, "find_programs", lambda _: [])
    monkeypatch.setattr(choice, "read_landlock_version", lambda: 1)
    found = await choose_sandbox(opened, Path.home(), tmp_path / "cache")
    assert found.tier == "none"
    assert "apt-get install bubblewrap" in found.why[0]
    assert "Landlock 1" in found.why[1]
    assert not (tmp_path / "cache").exists(), "tomorrow there may be some"


@pytest.mark.parametrize(
    ("system", "machine", "tiers"),
    [("darwin", "arm64", ["seatbelt"]), ("win32", "AMD64", []), ("linux", "riscv64", ["bubblewrap"])],
)
async def test_other_machines_have_others(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, system: str, machine: str, tiers: list[str]
) -> None:
    monkeypatch.setattr("sys.platform", system)
    monkeypatch.setattr("platform.machine", lambda: machine)
    assert [tier for tier, _, _ in choice._list_candidates(tmp_path)] == tiers
    assert all(missing for _, _, missing in choice._list_candidates(tmp_path))


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"key": 1}'])
def test_what_is_kept_and_cannot_be_read_is_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / "known").write_text(text)
    assert choice._read_cache(tmp_path / "known", "key") is None


@pytest.mark.parametrize("root", ["/", "/usr/share", "/etc", "/tmp", "/var", str(Path.home())])
def test_around_too_much_no_walls_are_put_up(root: str, tmp_path: Path) -> None:
    ground = ground_of(Path(root), tmp_path)
    with pytest.raises(WorldFault, match="it is a system folder"):
        make_sandbox("bubblewrap", ground, CommandLimits(), bubblewrap_program())


def test_around_what_commands_have_for_themselves_no_walls_are_put_up(tmp_path: Path) -> None:
    with pytest.raises(WorldFault, match="it is a system folder"):
        make_sandbox(
            "bubblewrap", ground_of(tmp_path, tmp_path / "cache" / "scratch"), CommandLimits(), bubblewrap_program()
        )


def test_there_can_be_none(tmp_path: Path) -> None:
    ground = SandboxView(root=tmp_path, at=tmp_path, home=Path.home(), scratch=tmp_path / "s")
    assert make_sandbox("none", ground, CommandLimits()) is None
    with pytest.raises(WorldFault, match="Landlock"):
        make_sandbox(
            "landlock",
            SandboxView(root=tmp_path, at=Path("/elsewhere"), home=Path.home(), scratch=tmp_path),
            CommandLimits(),
        )
