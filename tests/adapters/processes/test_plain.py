"""Commands run plainly: the suite that all pass, what they get of our environment, and what git does there."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from contextlib import aclosing
from pathlib import Path

import pytest

from greenroom.adapters.processes.local_commands import (
    LocalCommands,
    build_environment,
    check_variable,
    is_alive,
    read_birth,
)
from greenroom.core.base.errors import WorldFault
from greenroom.core.ports.commands import Command, CommandRunner, CommandStarted
from tests.adapters.processes.running import commands_in
from tests.conformance.commands import CommandsConformance
from tests.conformance.running import PLANTED, ran, shell


@pytest.mark.req("MA-54")
class TestPlainCommands(CommandsConformance):
    def open_commands(self, root: Path, own: Mapping[str, str]) -> CommandRunner:
        return LocalCommands(root, environ=own)


async def test_a_file_that_is_no_program_says_so_in_its_output(tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("text")
    async with commands_in(tmp_path) as commands:
        made = await ran(commands, Command(words=("./notes",)))
    assert made.ended.code == 127
    assert "./notes could not be run: " in made.text


async def test_nothing_is_done_before_it_is_written_down(tmp_path: Path) -> None:
    commands = LocalCommands(tmp_path)
    try:
        async with aclosing(commands.run(shell("touch done"))) as events:
            begun = await anext(events)
            assert isinstance(begun, CommandStarted)
            assert begun.mark is not None
            assert read_birth(int(begun.mark.key)) == begun.mark.before
        assert not (tmp_path / "done").exists()
        assert not is_alive(int(begun.mark.key))
    finally:
        commands.close()


OWN = {**PLANTED, "PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/home/ann", "LC_ALL": "C.UTF-8", "TZ": "UTC"}


def test_only_what_is_let_in_is_passed_on() -> None:
    made = build_environment(OWN, {"FLAVOUR": "sweet"})
    assert "planted" not in str(made)
    assert (made["HOME"], made["LC_ALL"], made["TZ"], made["FLAVOUR"]) == ("/home/ann", "C.UTF-8", "UTC", "sweet")


def test_a_person_can_let_in_more() -> None:
    assert build_environment(OWN, {}, extra_names={"SOMETHING_NEW"})["SOMETHING_NEW"] == "planted-12"


def test_there_is_always_a_path() -> None:
    assert build_environment({}, {})["PATH"]


async def test_no_secret_reaches_a_command_nor_whoever_looks_after_it(tmp_path: Path) -> None:
    async with commands_in(tmp_path, OWN) as commands:
        theirs = await ran(commands, shell("env; cat /proc/self/environ /proc/$PPID/environ | tr '\\0' '\\n'"))
        above = "ps -o ppid= -p $PPID | xargs -I{} cat /proc/{}/environ | tr '\\0' '\\n'"
        supervisor = await ran(commands, shell(above))
    assert "HOME=/home/ann" in theirs.text
    assert "planted" not in theirs.text
    assert "PAGER=cat" in supervisor.text
    assert "planted" not in supervisor.text


REFUSED = re.findall(
    r"\w+",
    """LD_PRELOAD LD_LIBRARY_PATH PYTHONPATH PYTHONSTARTUP BASH_ENV ENV GIT_DIR GIT_SSH_COMMAND NODE_OPTIONS
HTTP_PROXY https_proxy ALL_PROXY no_proxy PATH HOME IFS DYLD_INSERT_LIBRARIES PERL5OPT RUBYOPT BASH_FUNC_ls
JAVA_TOOL_OPTIONS EDITOR PAGER GREENROOM_COMMAND ld_preload""",
)


@pytest.mark.parametrize("name", [*REFUSED, "", "A B", "A=B", "1A", "BASH_FUNC_ls%%"])
def test_what_changes_the_meaning_of_a_command_line_is_refused(name: str) -> None:
    with pytest.raises(WorldFault, match="variable"):
        check_variable(name, "x")


def test_ordinary_names_are_fine() -> None:
    for name in ("FLAVOUR", "DJANGO_SETTINGS_MODULE", "RUST_LOG", "ENVIRONMENT"):
        check_variable(name, "x")


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
