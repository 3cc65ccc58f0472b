"""Nothing that lies in a repository, or that an agent plants in its worktree, is run or redirects us."""

from __future__ import annotations

from pathlib import Path

import pytest

from greenroom.core.ports.workspace import AppliedChange, Conflicts, UndoResult, WorkspaceFault
from tests.adapters.git.person import Person, opened, worked
from tests.adapters.git.shapes import edit, plain

HOOKS = ("pre-commit", "commit-msg", "post-commit", "post-checkout", "post-index-change", "reference-transaction")


def trap(person: Person) -> str:
    """A program that tells that it was run."""
    place = person.root.parent / "trap"
    place.write_text(f"#!/bin/sh\necho \"$0 $*\" >>'{person.root.parent}/sprung'\ncat\n")
    place.chmod(0o755)
    return str(place)


def armed(person: Person) -> None:
    """Everything that git would run, planted in the repository's settings and attributes."""
    run = trap(person)
    for name in ("core.fsmonitor", "core.editor", "core.pager", "core.sshCommand", "diff.external", "gpg.program"):
        person.git("config", name, run)
    for name in ("clean", "smudge", "process"):
        person.git("config", f"filter.evil.{name}", run)
    for name, value in (
        ("diff.evil.textconv", run),
        ("diff.evil.command", run),
        ("merge.evil.driver", f"{run} %A"),
        ("commit.gpgSign", "true"),
        ("credential.helper", f"!{run}"),
        ("extensions.partialClone", "origin"),
        ("remote.origin.promisor", "true"),
        ("remote.origin.url", f"ext::{run}"),
        ("remote.origin.uploadpack", run),
        ("protocol.ext.allow", "always"),
        ("core.hooksPath", str(person.root / "hooks")),
        ("core.attributesFile", str(person.root / "attributes")),
        ("includeIf.gitdir:/.path", str(person.root / "included")),
        ("core.worktree", str(person.root.parent / "elsewhere")),
    ):
        person.git("config", name, value)
    (person.root.parent / "elsewhere").mkdir()
    person.write("included", f"[core]\n\tfsmonitor = {run}\n\teditor = {run}\n")
    person.write("attributes", "* filter=evil diff=evil merge=evil\n")
    person.write(".gitattributes", "* filter=evil diff=evil merge=evil\n")
    for folder in ("hooks", ".git/hooks"):
        for name in HOOKS:
            person.write(f"{folder}/{name}", f"#!/bin/sh\n{run} {name}\n").chmod(0o755)


def sprung(person: Person) -> str:
    place = person.root.parent / "sprung"
    return place.read_text() if place.exists() else ""


def test_the_traps_work(person: Person) -> None:
    armed(person)
    person.git("config", "--unset", "core.worktree")
    person.git("status")
    assert sprung(person), "or this file proves nothing"


def without_filters(person: Person) -> None:
    """Leave the filters defined, but let no file need them."""
    for name in ("attributes", ".gitattributes"):
        person.write(name, "* diff=evil merge=evil\n")


@pytest.mark.req("G-6")
async def test_files_that_need_a_filter_of_the_repository_are_refused_before_it_runs(person: Person) -> None:
    armed(person)
    workspace = await person.workspace()
    with pytest.raises(WorkspaceFault, match=r"needs the git filter 'evil'.*'git config --global --edit'"):
        await workspace.snapshot("r1")
    assert sprung(person) == ""


@pytest.mark.parametrize("where", ["config", "config.worktree", "included"])
@pytest.mark.parametrize("name", ["evil", "e=v.Il"])
async def test_a_change_to_a_file_that_needs_such_a_filter_is_not_applied(
    person: Person, where: str, name: str
) -> None:
    run = trap(person)
    workspace = await person.workspace()
    worktree = await opened(workspace)
    edit(Path(worktree.folder))
    done = await worked(worktree)
    person.write(".git/included", "")
    person.git("config", "extensions.worktreeConfig", "true")
    person.git("config", "include.path", "included")
    for key in ("clean", "smudge", "process"):
        person.git("config", "--file", f".git/{where}", f"filter.{name}.{key}", run)
    person.write(".git/info/attributes", f"* filter={name}\n")
    with pytest.raises(WorkspaceFault, match="needs the git filter"):
        await (await person.workspace()).apply("r1", worktree.base, done.commit)
    assert (sprung(person), "line twenty" in (person.root / "a.txt").read_text()) == ("", False)


async def test_filters_of_the_persons_own_settings_run_also_where_the_repository_names_others(person: Person) -> None:
    person.git("config", "--global", "filter.rot.clean", "tr a-z n-za-m")
    person.git("config", "--global", "filter.rot.smudge", "tr a-z n-za-m")
    person.write(".gitattributes", "a.txt filter=rot\n")
    person.git("rm", "--quiet", "--cached", "a.txt")
    person.commit_all("rot")
    for name in ("clean", "smudge"):
        person.git("config", f"filter.rot.{name}", trap(person))
    workspace = await person.workspace()
    worktree = await opened(workspace)
    edit(Path(worktree.folder))
    applied = await workspace.apply("r1", worktree.base, (await worked(worktree)).commit)
    assert isinstance(applied, AppliedChange)
    await workspace.commit(applied.id, "Do it")
    assert "line twenty" in (person.root / "a.txt").read_text()
    assert "yvar gjragl" in person.git("show", "HEAD:a.txt")
    assert sprung(person) == ""


async def test_applying_committing_and_undoing_run_nothing_that_only_the_repository_names(person: Person) -> None:
    person.commit_all("as it is")
    workspace = await person.workspace()
    worktree = await opened(workspace)
    edit(Path(worktree.folder))
    done = await worked(worktree)
    armed(person)
    person.git("config", "--unset", "core.worktree")
    for name in ("gpg.program", "gpg.ssh.program", "commit.gpgSign"):
        person.git("config", name, "false" if name.startswith("commit") else trap(person))
    without_filters(person)
    for name in HOOKS:
        (person.root / ".git/hooks" / name).unlink()
    workspace = await person.workspace()
    applied = await workspace.apply("r1", worktree.base, done.commit)
    assert isinstance(applied, AppliedChange)
    assert workspace.local_hooks == str(person.root / "hooks")
    await workspace.commit(applied.id, "Do it")
    (person.root / "extra.txt").write_text("x\n")
    undone = await workspace.undo(applied.id)
    assert isinstance(undone, UndoResult)
    assert sprung(person) == ""
    again = await workspace.apply("r1", worktree.base, done.commit)
    assert isinstance(again, AppliedChange)
    await workspace.commit(again.id, "Do it", local_hooks=True)
    assert "pre-commit" in sprung(person), "the person asked for it"


@pytest.mark.req("G-6")
async def test_nothing_in_a_repository_is_run(person: Person) -> None:
    armed(person)
    without_filters(person)
    person.write("a.txt", (person.root / "a.txt").read_text().replace("line 5\n", "mine\n"))
    workspace = await person.workspace()
    await workspace.list_shared_folders()
    worktree = await opened(workspace)
    edit(Path(worktree.folder))
    done = await worked(worktree)
    assert (await workspace.diff(worktree.base, done.commit)).changes
    await workspace.blame("a.txt", 20)
    assert (sprung(person), list((person.root.parent / "elsewhere").iterdir())) == ("", [])


@pytest.mark.req("G-6")
async def test_an_agent_cannot_send_us_elsewhere(person: Person) -> None:
    workspace = await person.workspace()
    worktree = await opened(workspace)
    folder = Path(worktree.folder)
    other = Person(person.root.parent / "other", person.home)
    plain(other)
    armed(other)
    other.git("config", "--unset", "core.worktree")
    theirs = other.theirs()
    (folder / ".git").write_text(f"gitdir: {other.root}/.git\n")
    inner = Person(folder / "inner", person.home)
    plain(inner)
    inner.git("config", "core.fsmonitor", trap(person))
    (folder / "keep/.git").symlink_to(other.root / ".git")
    (folder / ".gitattributes").write_text("* filter=evil -diff\n")
    edit(folder)
    done = await worked(worktree)
    assert [(one.path, one.why) for one in (await worktree.inspect()).left_out] == [("inner", "repository")]
    diff = await workspace.diff(worktree.base, done.commit)
    assert "+line twenty" in diff.text, "no attribute hides a change"
    assert {one.path for one in diff.changes} >= {".gitattributes", "a.txt", "new-link", "keep/c.py"}
    assert (other.theirs(), sprung(person)) == (theirs, "")


async def test_a_common_folder_that_is_planted_is_not_followed(person: Person) -> None:
    workspace = await person.workspace()
    worktree = await opened(workspace)
    folder = Path(worktree.folder)
    (folder / ".git").unlink()
    (folder / ".git").mkdir()
    (folder / ".git/HEAD").write_text("ref: refs/heads/main\n")
    (folder / ".git/commondir").write_text(str(person.root.parent / "nowhere"))
    (folder / ".git/config").write_text(f"[core]\n\tfsmonitor = {trap(person)}\n")
    edit(folder)
    assert (await worked(worktree)).commit == await worktree.tip()
    assert sprung(person) == ""


async def test_what_is_ours_or_gits_is_never_applied(person: Person) -> None:
    workspace = await person.workspace()
    worktree = await opened(workspace)
    (Path(worktree.folder) / ".greenroom").mkdir()
    (Path(worktree.folder) / ".greenroom/config.toml").write_text("mine = true\n")
    said = await workspace.apply("r1", worktree.base, (await worked(worktree)).commit)
    assert isinstance(said, Conflicts)
    assert "never written" in said.clashes[0].why
    assert not (person.root / ".greenroom").exists()


async def test_a_git_in_the_tree_is_not_taken_for_git(person: Person) -> None:
    person.write("git", f"#!/bin/sh\n{trap(person)}\n").chmod(0o755)
    env = {**person.env, "PATH": f"{person.root}:.:{person.env['PATH']}"}
    workspace = await type(await person.workspace()).find(person.root, person.root.parent / "cache", env=env)
    assert (await workspace.snapshot("r1")).commit
    assert sprung(person) == ""
