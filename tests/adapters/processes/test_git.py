"""git as a command: a folder that somebody made to look like a repository runs nothing, nobody is asked."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.adapters.processes.running import commands_in
from tests.conformance.running import ran, shell

PLAIN = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null", "PATH": "/usr/local/bin:/usr/bin:/bin"}
SILENT = ("status", "diff", "log -1", "ls-files", "rev-parse HEAD", "show")
"""What of git only reads, and is run without asking anybody."""


def git(folder: Path, *words: str) -> int:
    """git as it is without our rules; its exit code."""
    return subprocess.run(["git", *words], cwd=folder, env=PLAIN, capture_output=True, check=False).returncode


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository of the person's."""
    (tmp_path / "a.txt").write_text("a\n")
    for line in ("init", "config user.email a@example.org", "config user.name A", "add .", "commit -m first"):
        assert git(tmp_path, *line.split()) == 0
    return tmp_path


def plant(folder: Path, proof: Path) -> None:
    """What an agent that may only write files can make: a repository that says what is to be run, and where."""
    for name in ("objects", "refs", "hooks", "work"):
        (folder / name).mkdir(parents=True)
    program = folder / "program"
    program.write_text(f"#!/bin/sh\ntouch {proof}\n")
    program.chmod(0o755)
    (folder / "hooks" / "post-index-change").write_bytes(program.read_bytes())
    (folder / "hooks" / "post-index-change").chmod(0o755)
    (folder / "HEAD").write_text("ref: refs/heads/main\n")
    settings = f"repositoryformatversion = 0\n\tbare = false\n\tworktree = work\n\tfsmonitor = {program}\n"
    (folder / "config").write_text(f"[core]\n\t{settings}\tpager = {program}\n[diff]\n\texternal = {program}\n")


def test_without_the_rules_such_a_folder_runs_a_program(project: Path) -> None:
    plant(project / "sub", project / "proof")
    git(project / "sub", "status")
    assert (project / "proof").exists(), "or the next test shows nothing"


async def test_a_planted_repository_runs_nothing(project: Path) -> None:
    plant(project / "sub", project / "proof")
    async with commands_in(project) as commands:
        for words in SILENT:
            assert (await ran(commands, shell(f"git {words}", folder="sub"))).ended.code in (128, 129)
        assert "cannot use bare repository" in (await ran(commands, shell("git status", folder="sub"))).text
    assert not (project / "proof").exists()


async def test_a_monitor_of_files_is_not_run_in_any_repository(project: Path) -> None:
    (project / "monitor").write_text(f"#!/bin/sh\ntouch {project / 'proof'}\n")
    (project / "monitor").chmod(0o755)
    git(project, "config", "core.fsmonitor", "./monitor")
    async with commands_in(project) as commands:
        assert (await ran(commands, shell("git status --short"))).text == "?? monitor\n"
    assert not (project / "proof").exists()


async def test_a_repository_of_the_person_s_own_works_and_so_do_its_hooks(project: Path) -> None:
    hook = project / ".git" / "hooks" / "pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho checked\n")
    hook.chmod(0o755)
    async with commands_in(project) as commands:
        made = await ran(commands, shell("echo b >> a.txt; git commit -qam second; git log --oneline | wc -l"))
    assert made.text.split() == ["checked", "2"]


async def test_nobody_is_asked_for_a_text_nor_for_a_password(project: Path) -> None:
    async with commands_in(project) as commands:
        edited = await ran(commands, shell("git commit --amend; git rebase -i --root; git log -1", seconds=20))
        asked = await ran(commands, shell("git -c credential.helper= credential fill <<< url=http://localhost/x"))
    assert edited.ended.how == "exited"
    assert "first" in edited.text
    assert (asked.ended.how, asked.ended.code) == ("exited", 128)
    assert "terminal prompts disabled" in asked.text
