"""Folders of elsewhere that a command may write to, and never does: what it writes is kept in a layer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from greenroom.adapters.sandbox.bubblewrap import Bubblewrap
from greenroom.adapters.sandbox.landlock import Landlock, read_landlock_version
from greenroom.adapters.sandbox.layers import MAX_COPY_BYTES, FolderLinks, can_keep_overlay, list_readable_parts
from greenroom.adapters.sandbox.programs import find_programs
from greenroom.app.settings.schema import SandboxSettings
from greenroom.app.toolset.sandbox import WorkspaceSandbox
from greenroom.core.ports.sandbox import CommandLimits, Sandbox, SandboxMount
from tests.adapters.sandbox.walls import CACHE, behind, ground_of
from tests.conformance.running import ran, shell

Build = Callable[[Path, SandboxMount], Sandbox]


@pytest.fixture
def shown(open_folder: Path) -> SandboxMount:
    """An environment of the person's: a program, a package, a secret in it."""
    source = open_folder / "person" / "env"
    (source / "lib").mkdir(parents=True)
    (source / "lib" / "package.py").write_text("text = 'theirs'\n")
    (source / "lib" / ".env").write_text("secret\n")
    (source / "tool").write_text("#!/bin/sh\necho tool\n")
    (source / "tool").chmod(0o755)
    (open_folder / "work").mkdir()
    return SandboxMount(source=str(source), at="env", layer=str(open_folder / "layers" / "env"), hidden=("lib/.env",))


def bubblewrap(root: Path, shown: SandboxMount, *, overlays: bool = True) -> Sandbox:
    programs = [one for one in find_programs(CACHE) if one.overlays == overlays]
    if not programs:
        pytest.skip("there is no bubblewrap here, or none with overlays")
    ground, limits = ground_of(root, root.parent / "scratch", lent=(shown,)), CommandLimits()
    return Bubblewrap(ground, limits, program=programs[0])


def old_bubblewrap(root: Path, shown: SandboxMount) -> Sandbox:
    return bubblewrap(root, shown, overlays=False)


def landlock(root: Path, shown: SandboxMount) -> Sandbox:
    ground, limits = ground_of(root, root.parent / "scratch", lent=(shown,)), CommandLimits()
    return Landlock(ground, limits, version=read_landlock_version())


ALL = pytest.mark.parametrize("build", [bubblewrap, old_bubblewrap, landlock])
WRITABLE = pytest.mark.parametrize("build", [bubblewrap, old_bubblewrap])


async def said(wall: Sandbox, root: Path, *scripts: str) -> str:
    async with behind(wall, root) as commands:
        return "".join([(await ran(commands, shell(script))).text for script in scripts])


def files(folder: str) -> dict[str, bytes]:
    return {str(one.relative_to(folder)): one.read_bytes() for one in Path(folder).rglob("*") if one.is_file()}


@ALL
async def test_it_is_read_and_run_and_nothing_reaches_the_source(
    build: Build, shown: SandboxMount, open_folder: Path
) -> None:
    root, before = open_folder / "work", files(shown.source)
    text = await said(
        build(root, shown),
        root,
        "cat env/lib/package.py; env/tool; ls env/lib; echo x >env/new; echo y >env/lib/package.py; rm -f env/tool; "
        "sleep 0.6; echo whole",
    )
    assert text.endswith("whole\n"), "it is looked at several times while it runs"
    assert "text = 'theirs'\ntool\n" in text
    assert "package.py" in text
    assert files(shown.source) == before


@ALL
async def test_a_hidden_file_is_empty(build: Build, shown: SandboxMount, open_folder: Path) -> None:
    assert "secret" not in await said(build(open_folder / "work", shown), open_folder / "work", "cat env/lib/.env")


@WRITABLE
async def test_what_is_written_is_kept_for_the_next_command_and_the_next_sandbox(
    build: Build, shown: SandboxMount, open_folder: Path
) -> None:
    root = open_folder / "work"
    write = "echo mine >env/new; echo changed >env/lib/package.py; rm env/tool"
    text = await said(build(root, shown), root, write, "cat env/new env/lib/package.py; ls env")
    assert text.split() == ["mine", "changed", "lib", "new"]
    assert (await said(build(root, shown), root, "cat env/new; ls env")).split() == ["mine", "lib", "new"]
    other = replace(shown, layer=str(open_folder / "layers" / "other"))
    assert (await said(build(root, other), root, "ls env")).split() == ["lib", "tool"]


async def test_where_the_disk_keeps_no_layer_it_is_kept_in_memory(
    shown: SandboxMount, open_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("greenroom.adapters.sandbox.bubblewrap.can_keep_overlay", lambda _: False)
    root = open_folder / "work"
    text = await said(bubblewrap(root, shown), root, "echo mine >env/new; cat env/new; cat env/lib/.env", "ls env")
    assert text.split() == ["mine", "lib", "tool"]


async def test_without_overlays_a_large_folder_is_read_only(shown: SandboxMount, open_folder: Path) -> None:
    with (Path(shown.source) / "large").open("wb") as file:
        file.truncate(MAX_COPY_BYTES + 1)
    text = await said(
        old_bubblewrap(open_folder / "work", shown),
        open_folder / "work",
        "env/tool; (echo x >env/new) 2>/dev/null || echo refused; cat env/lib/.env; sleep 0.6; echo whole",
    )
    assert text == "tool\nrefused\nwhole\n"


def make_environment(shown: SandboxMount) -> None:
    Path(shown.source, "pyvenv.cfg").touch()


async def test_a_link_is_gone_with_the_sandbox_and_what_a_command_put_there_is_not(
    shown: SandboxMount, open_folder: Path
) -> None:
    root = open_folder / "work"
    make_environment(shown)
    wall = landlock(root, shown)
    assert (root / "env").is_symlink()
    await said(wall, root, "true")
    assert not (root / "env").is_symlink()
    await said(landlock(root, shown), root, "rm env; mkdir env; touch env/own")
    assert (root / "env" / "own").exists()


async def test_without_a_sandbox_there_is_a_link_too(shown: SandboxMount, open_folder: Path) -> None:
    root, at = open_folder / "work", open_folder / "person"
    make_environment(shown)
    walls = WorkspaceSandbox(
        root, SandboxSettings(walls="off"), at=at, mounts=(shown, replace(shown, at=str(at / "deep/env")))
    )
    assert walls.get_sandbox() is None
    assert (root / "env").readlink() == (root / "deep" / "env").readlink() == Path(shown.source)
    await walls.close()
    assert not (root / "env").is_symlink()


def test_packages_are_linked_one_by_one_and_a_small_folder_is_copied(tmp_path: Path) -> None:
    root, person = tmp_path / "work", tmp_path / "person"
    for name in ("node_modules/left-pad/index.js", "node_modules/.cache/old", "build/out.txt", "build/key.pem"):
        (person / name).parent.mkdir(parents=True, exist_ok=True)
        (person / name).write_text("1")
    root.mkdir()
    packages = SandboxMount(source=str(person / "node_modules"), at="node_modules", layer="x")
    build = SandboxMount(source=str(person / "build"), at="build", layer="y", hidden=("key.pem",))
    links = FolderLinks(root, (packages, build))
    assert (root / "node_modules" / "left-pad").is_symlink()
    assert not (root / "node_modules" / ".cache").exists()
    assert sorted(path.name for path in (root / "build").iterdir()) == ["out.txt"]
    (root / "build" / "out.txt").write_text("2")
    assert (person / "build" / "out.txt").read_text() == "1"
    links.close()
    assert not (root / "node_modules" / "left-pad").is_symlink()


def test_a_folder_is_given_in_parts_where_something_in_it_is_hidden(shown: SandboxMount) -> None:
    source = Path(shown.source)
    assert list(list_readable_parts(source, ())) == [source]
    assert sorted(list_readable_parts(source, shown.hidden)) == [source / "lib" / "package.py", source / "tool"]


def test_some_disks_keep_no_layer(tmp_path: Path) -> None:
    assert can_keep_overlay(tmp_path)
    assert not can_keep_overlay(Path("/proc")) or can_keep_overlay(Path("/dev/shm"))


def write_editable_install(shown: SandboxMount, work: Path) -> None:
    packages, person = Path(shown.source, "lib", "python3.11", "site-packages"), Path(shown.source).parent
    packages.mkdir(parents=True)
    (packages / "package.pth").write_text(f"import os\n{person}/src\n/usr/share/elsewhere\n")
    (work / "src").mkdir()
    (work / "src" / "package.py").write_text("text = 'of the worktree'\n")


async def test_an_editable_install_imports_the_worktree_in_the_landlock_tier(
    open_folder: Path, shown: SandboxMount
) -> None:
    work = open_folder / "work"
    write_editable_install(shown, work)
    printed = await said(landlock(work, shown), work, "python3 -c 'import package; print(package.text)'")
    assert printed == "of the worktree\n"


async def test_an_editable_install_of_the_root_does_not_hide_the_standard_library(
    open_folder: Path, shown: SandboxMount
) -> None:
    work, person = open_folder / "work", Path(shown.source).parent
    write_editable_install(shown, work)
    (Path(shown.source) / "lib/python3.11/site-packages/flat.pth").write_text(f"{person}\n{person}/\n{person}/.\n")
    for name in ("code.py", "types.py"):
        (work / name).write_text("raise SystemExit('not the standard library')\n")
    (work / "bin").mkdir()
    (work / "bin" / "tool.py").write_text("import code, types, package\nprint(package.text)\n")
    assert await said(landlock(work, shown), work, "python3 bin/tool.py") == "of the worktree\n"
