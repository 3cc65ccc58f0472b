"""The first thing that people type, and what their shell types for them."""

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from greenroom.cli.app import COMMANDS
from tests.e2e.terminal import GREENROOM, PATIENCE, environment, greenroom
from tests.speed import is_soon

LIMIT = 0.25
"""Seconds that `greenroom --help` may take, on a machine that is not busy with tests."""


def test_help_fits_on_one_screen(tmp_path: Path) -> None:
    shown = greenroom(tmp_path, "--help", COLUMNS="80").out
    assert len(shown.splitlines()) <= 30
    assert max(map(len, shown.splitlines())) <= 80
    assert "greenroom help --all" in shown
    assert greenroom(tmp_path, COLUMNS="80").err == shown, "without a command the same help is shown"
    assert not (tmp_path / "greenroom.db").exists()


def test_help_all_lists_every_command(tmp_path: Path) -> None:
    shown = greenroom(tmp_path, "help", "--all").out
    for entry in COMMANDS:
        assert f"  {entry.name} " in shown
        assert entry.help in shown
    assert not (tmp_path / "greenroom.db").exists()


def test_help_is_quick(tmp_path: Path) -> None:
    assert within(LIMIT, tmp_path, "--help")


def within(limit: float, home: Path, *words: str, **more: str) -> bool:
    """Whether one of several runs is done so soon, in processor time: other tests may keep the machine busy."""
    clean = {name: value for name, value in environment(home, **more).items() if not name.startswith("COV")}
    for _ in range(5):
        before = os.times()
        begun = time.monotonic()
        subprocess.run([*GREENROOM, *words], env=clean, stdout=subprocess.DEVNULL, timeout=PATIENCE, check=True)
        after = os.times()
        spent = after.children_user + after.children_system - before.children_user - before.children_system
        if is_soon(min(spent, time.monotonic() - begun), limit):
            return True
    return False


LOADED = """
import sys
from greenroom.cli.app import run
try:
    run({words!r})
finally:
    print(sorted({heavy!r} & set(sys.modules)), file=sys.stderr)
"""


def loaded(home: Path, words: Sequence[str], *heavy: str, **more: str) -> tuple[str, str]:
    """What a command prints, and which of these modules it has loaded."""
    program = LOADED.format(words=list(words), heavy=set(heavy))
    clean = {name: value for name, value in environment(home, **more).items() if not name.startswith("COV")}
    words = [sys.executable, "-c", program]
    done = subprocess.run(words, env=clean, capture_output=True, text=True, timeout=PATIENCE, check=False)
    return done.stdout, done.stderr.splitlines()[-1]


BASIC = ("asyncio", "pydantic", "rich", "greenroom.app.runtime", "greenroom.core.state")


def test_help_imports_nothing_heavy(tmp_path: Path) -> None:
    for words in (["--help"], ["help", "--all"]):
        assert loaded(tmp_path, words, *BASIC, "sqlite3", "greenroom.app.context", "greenroom.app.settings")[1] == "[]"


@pytest.mark.parametrize("words", [("show", "last"), ("diff", "last"), ("undo", "last"), ("runs",)], ids=" ".join)
def test_who_only_looks_does_not_wait_for_what_works(home: Path, words: tuple[str, ...]) -> None:
    heavy = ("pydantic", "aiohttp", "greenroom.app.toolset.toolset", "greenroom.runs.delivery")
    assert loaded(home, words, *heavy)[1] == "[]"


def complete(home: Path, line: str) -> list[str]:
    """What a bash shows after a tab at the end of the line."""
    words = line.split(" ")
    ended = greenroom(home, _GREENROOM_COMPLETE="complete_bash", COMP_WORDS=line, COMP_CWORD=str(len(words) - 1))
    assert ended.err == ""
    return ended.out.split()


def test_a_shell_completes_commands_options_and_ids(home: Path) -> None:
    (folder,) = (home / "demo").iterdir()
    assert complete(home, "greenroom re") == ["research", "rewind", "report", "replay", "resume", "replan"]
    assert complete(home, "greenroom show ") == ["last", folder.name]
    assert complete(home, f"greenroom cancel {folder.name[:2]}") == [folder.name]
    assert complete(home, "greenroom show --out") == ["--output-format"]
    assert complete(home, "greenroom answer last ") == ["yes", "no"]
    assert complete(home, "greenroom mod") == ["models"]
    assert complete(home, "greenroom models ") == ["list", "check"]
    assert complete(home, "greenroom config show --out") == ["--output-format"]
    assert complete(home, "greenroom cost ") == ["last", folder.name]


def test_a_shell_does_not_wait_for_what_it_does_not_need(home: Path) -> None:
    line = {"_GREENROOM_COMPLETE": "complete_bash", "COMP_WORDS": "greenroom show ", "COMP_CWORD": "2"}
    offered, heavy = loaded(home, [], *BASIC, **line)
    assert (offered.split()[0], heavy) == ("last", "[]")


def test_a_shell_never_sees_an_error(home: Path) -> None:
    (home / "greenroom.db").write_text("no database")
    assert complete(home, "greenroom show ") == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_installed_for_a_shell(tmp_path: Path, shell: str) -> None:
    script = greenroom(tmp_path, _GREENROOM_COMPLETE=f"source_{shell}").out
    assert "_GREENROOM_COMPLETE" in script
