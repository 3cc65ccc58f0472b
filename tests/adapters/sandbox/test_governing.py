"""What governs a workspace is not a command's to change: git's settings and hooks in any form, ours, other agents'."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from greenroom.core.base.errors import WorldFault
from greenroom.core.ports.sandbox import Sandbox
from tests.adapters.sandbox.walls import behind, git, landlocked, walled
from tests.conformance.running import ran, shell

Build = Callable[[Path, Path], Sandbox]
BOTH = pytest.mark.parametrize("build", [walled, landlocked], ids=["bubblewrap", "landlock"])
MOSTLY_ONE = pytest.mark.parametrize("build", [walled, pytest.param(landlocked, marks=pytest.mark.prove)])


def tree(root: Path) -> list[str]:
    return sorted(str(one.relative_to(root)) for one in root.rglob("*"))


async def script(build: Build, root: Path, text: str) -> str:
    async with behind(build(root, root.parent / "scratch"), root) as commands:
        return (await ran(commands, shell(text))).text


def planted(root: Path) -> str:
    """A line that leaves something if it ever runs."""
    return f"touch {root.parent}/ran"


def ask_git(*folders: Path) -> None:
    """What a person, or a prompt of their shell, asks all day."""
    for folder in folders:
        for words in (("status",), ("diff",), ("log",), ("commit", "-q", "--allow-empty", "-m", "mine"), ("stash",)):
            git(folder, *words)


LEADS = {
    "a folder of hooks": (
        "core.hooksPath",
        "hooks",
        "mkdir -p hooks; printf '#!/bin/sh\\n{run}\\n' >hooks/pre-commit; chmod +x hooks/pre-commit",
    ),
    "more settings": ("include.path", "../more", "printf '[core]\\nfsmonitor = \"{run};false\"\\n' >more"),
}


@MOSTLY_ONE
@pytest.mark.parametrize("how", LEADS)
@pytest.mark.parametrize("there", [True, False])
async def test_what_a_person_s_settings_lead_to_is_theirs_too(
    build: Build, repository: Path, how: str, there: bool
) -> None:
    key, value, plant = LEADS[how]
    git(repository, "config", key, value)
    if there and value == "hooks":
        (repository / "hooks").mkdir()
    elif there:
        (repository / "more").touch()
    await script(build, repository, plant.format(run=planted(repository)))
    ask_git(repository)
    assert not (repository.parent / "ran").exists()


@MOSTLY_ONE
async def test_a_person_s_own_hooks_and_settings_stay(build: Build, repository: Path) -> None:
    hook = repository / ".git" / "hooks" / "pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nexit 0\n")
    hook.chmod(0o755)
    git(repository, "config", "alias.st", "status")
    await script(build, repository, "echo x >.git/hooks/pre-commit; git config --unset alias.st; rm -rf .git/hooks")
    assert (hook.read_text(), hook.stat().st_mode & 0o777) == ("#!/bin/sh\nexit 0\n", 0o755)
    assert git(repository, "config", "alias.st") == "status\n"


@BOTH
async def test_what_governs_agents_cannot_be_made_or_changed(build: Build, root: Path) -> None:
    (root / ".greenroom").mkdir()
    (root / ".greenroom" / "config.toml").write_text("language = 'en'\n")
    await script(
        build,
        root,
        "echo x >.greenroom/config.toml; echo x >.greenroom/permissions; mkdir .greenroom/tools; "
        "mkdir .claude; echo x >.claude/settings.json; echo x >.mcp.json; mv .greenroom gone; true",
    )
    assert (root / ".greenroom" / "config.toml").read_text() == "language = 'en'\n"
    assert [one for one in tree(root) if not one.startswith("gone")] == [".greenroom", ".greenroom/config.toml"]


async def test_of_our_own_folder_nothing_is_seen_that_agents_said(root: Path) -> None:
    (root / ".greenroom").mkdir()
    (root / ".greenroom" / "log.db").write_text("what was said")
    (root / ".greenroom" / "config.toml").write_text("x = 1")
    assert (await script(walled, root, "ls -A .greenroom")).split() == ["config.toml"]


async def test_a_link_in_the_place_of_what_governs_is_refused(root: Path) -> None:
    (root / ".greenroom").symlink_to("/tmp")
    with pytest.raises(WorldFault, match="is a link"):
        await script(walled, root, "true")
    (root / ".greenroom").unlink()
    assert await script(walled, root, "echo fine") == "fine\n"


async def test_nothing_is_left_to_stand_on(root: Path) -> None:
    assert await script(walled, root, "echo fine") == "fine\n"
    assert tree(root) == []
