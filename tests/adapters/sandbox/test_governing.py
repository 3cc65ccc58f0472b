"""What governs a workspace is not a command's to change: git's settings and hooks in any form, ours, other agents'."""

from __future__ import annotations

import errno
import os
import time
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


THERE = (
    *("AGENTS.md", "docs/CLAUDE.md", ".mcp.json", ".claude/settings.json", ".vscode/tasks.json", ".envrc"),
    *(".husky/pre-commit", ".github/workflows/ci.yml"),
)
NEW = ("CLAUDE.md", "src/AGENTS.md", "sub/.envrc", "sub/.vscode/tasks.json", "sub/.github/workflows/x.yml", ".Envrc")


@BOTH
async def test_files_that_configure_agents_stay_as_they_are_and_new_ones_go(build: Build, root: Path) -> None:
    for name in THERE:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("mine\n")
    (root / ".vscode" / "other.json").write_text("{}")
    before = {name: (root / name).stat().st_mode for name in THERE}
    lines = [f"mkdir -p $(dirname {name}); echo x >>{name}" for name in (*THERE, *NEW)]
    lines += ["rm -rf .husky .github docs/CLAUDE.md", "mv docs gone", "echo y >.vscode/other.json", "echo z >plain"]
    said = await script(build, root, "; ".join(f"({line}) 2>/dev/null" for line in lines))
    assert {name: (root / name).read_text() for name in THERE} == dict.fromkeys(THERE, "mine\n")
    assert {name: (root / name).stat().st_mode for name in THERE} == before
    assert [name for name in NEW if (root / name).exists()] == []
    assert ((root / "plain").read_text(), (root / ".vscode" / "other.json").read_text()) == ("z\n", "y\n")
    assert "Put back: " in said
    for name in NEW[:3]:
        assert repr(name) in said
    assert [path.read_text() for path in set_aside(root, "src+AGENTS.md")] == ["x\n"], "a person may have written it"


def set_aside(root: Path, name: str) -> list[Path]:
    """What was not kept, by the name that it had in the workspace."""
    return sorted((root.parent / "scratch" / "put-back").glob(f"*/{root.name}+{name}"))


@BOTH
async def test_a_page_about_agents_is_not_one_that_configures_them(build: Build, root: Path) -> None:
    said = await script(build, root, "mkdir docs; echo x >docs/agents.md; echo x >docs/claude.md")
    assert (tree(root), "Put back" in said) == (["docs", "docs/agents.md", "docs/claude.md"], False)


@BOTH
async def test_a_folder_that_is_not_kept_is_set_aside_whole_each_time(build: Build, root: Path) -> None:
    for text in ("mine", "other"):
        said = await script(build, root, f"mkdir -p .husky/_; echo {text} >.husky/_/hook; chmod 500 .husky")
        assert "Put back: '.husky'" in said
    assert tree(root) == []
    assert sorted((path / "_" / "hook").read_text() for path in set_aside(root, ".husky")) == ["mine\n", "other\n"]


@BOTH
async def test_what_was_set_aside_is_removed_after_a_month(build: Build, root: Path) -> None:
    for text in ("old", "new"):
        await script(build, root, f"mkdir -p .husky; echo {text} >.husky/hook; chmod 500 .husky")
        for place in set_aside(root, ".husky") if text == "old" else ():
            os.utime(place.parent, (0, time.time() - 31 * 24 * 3600))
    assert [(path / "hook").read_text() for path in set_aside(root, ".husky")] == ["new\n"]


@BOTH
async def test_what_cannot_be_moved_to_the_scratch_folder_is_set_aside_beside_itself(build: Build, root: Path) -> None:
    (root.parent / "scratch").mkdir()
    (root.parent / "scratch" / "put-back").write_text("in the way")
    for _ in range(2):
        assert "Put back: '.husky'" in await script(build, root, "mkdir .husky; echo x >.husky/hook")
    names = [".husky.left-by-a-command", ".husky.left-by-a-command1"]
    assert [name for name in tree(root) if "/" not in name] == names
    assert (root / names[1] / "hook").read_text() == "x\n"


async def test_a_folder_of_a_container_s_image_is_set_aside_entry_by_entry(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An overlay refuses to rename such a folder (EXDEV)."""
    rename = Path.rename

    def refuse_folders(path: Path, target: Path) -> Path:
        if path.is_dir() and not path.is_symlink():
            raise OSError(errno.EXDEV, "Invalid cross-device link", str(path))
        return rename(path, target)

    (root / ".husky").mkdir()
    (root / ".husky" / "hook").write_text("mine\n")
    async with behind(landlocked(root, root.parent / "scratch"), root) as commands:
        monkeypatch.setattr(Path, "rename", refuse_folders)
        said = (await ran(commands, shell("cd .husky; echo x >hook; mkdir _; mkfifo _/pipe; chmod 500 _"))).text
        monkeypatch.undo()
    assert "Put back: '.husky'." in said
    assert tree(root / ".husky") == ["hook"]
    assert (root / ".husky" / "hook").read_text() == "mine\n"
    assert tree(root / ".husky.left-by-a-command") == ["_", "_/pipe", "hook"]


@BOTH
async def test_what_cannot_be_set_aside_stays_and_the_result_says_so(
    build: Build, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path, _: Path) -> Path:
        raise PermissionError(13, "Permission denied", str(path))

    wall = build(root, root.parent / "scratch")
    async with behind(wall, root) as commands:
        monkeypatch.setattr(Path, "rename", refuse)
        said = (await ran(commands, shell("mkdir .husky; echo x >.husky/hook"))).text
        monkeypatch.undo()
    assert "'.husky' (failed: Permission denied)" in said
    assert (root / ".husky" / "hook").read_text() == "x\n"


@BOTH
async def test_a_link_that_configures_agents_and_its_target_stay(build: Build, root: Path) -> None:
    (root / "AGENTS.md").write_text("mine\n")
    (root / "CLAUDE.md").symlink_to("AGENTS.md")
    said = await script(build, root, "rm CLAUDE.md; echo x >CLAUDE.md; echo x >>AGENTS.md; true")
    assert ((root / "CLAUDE.md").is_symlink(), (root / "CLAUDE.md").read_text()) == (True, "mine\n")
    assert "'CLAUDE.md'" in said


async def test_memory_is_not_a_command_s_to_write(root: Path) -> None:
    (root / ".greenroom" / "memory").mkdir(parents=True)
    (root / ".greenroom" / "memory" / "a.md").write_text("mine\n")
    said = await script(landlocked, root, "echo x >.greenroom/memory/a.md; echo x >.greenroom/memory/b.md")
    assert tree(root / ".greenroom") == ["memory", "memory/a.md"]
    assert (root / ".greenroom" / "memory" / "a.md").read_text() == "mine\n"
    assert "'.greenroom/memory'" in said


@BOTH
async def test_other_people_s_files_are_not_searched(build: Build, root: Path) -> None:
    said = await script(build, root, "mkdir -p node_modules/x; echo x >node_modules/x/AGENTS.md")
    assert ((root / "node_modules/x/AGENTS.md").exists(), "Put back" in said) == (True, False)
