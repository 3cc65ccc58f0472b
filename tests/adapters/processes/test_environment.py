"""What reaches a command of our own environment: what is let in by name, and nothing else."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from greenroom.adapters.processes.plain import check, environment
from greenroom.core.base.errors import WorldFault
from tests.adapters.processes.running import commands_in
from tests.conformance.running import PLANTED, ran, shell

OWN = {**PLANTED, "PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/home/ann", "LC_ALL": "C.UTF-8", "TZ": "UTC"}


def test_only_what_is_let_in_is_passed_on() -> None:
    made = environment(OWN, {"FLAVOUR": "sweet"})
    assert "planted" not in str(made)
    assert (made["HOME"], made["LC_ALL"], made["TZ"], made["FLAVOUR"]) == ("/home/ann", "C.UTF-8", "UTC", "sweet")


def test_a_person_can_let_in_more() -> None:
    assert environment(OWN, {}, also={"SOMETHING_NEW"})["SOMETHING_NEW"] == "planted-12"


def test_there_is_always_a_path() -> None:
    assert environment({}, {})["PATH"]


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
        check(name, "x")


def test_ordinary_names_are_fine() -> None:
    for name in ("FLAVOUR", "DJANGO_SETTINGS_MODULE", "RUST_LOG", "ENVIRONMENT"):
        check(name, "x")
