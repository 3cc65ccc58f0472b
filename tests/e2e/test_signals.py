"""A signal at any moment: the code that shells know, and not a word too many."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.terminal import PATIENCE, environment, greenroom
from tests.e2e.typing import CTRL_C, ENTER, Typing
from tests.sampling import first

MOMENTS = ("greenroom.app.runtime", "typer.core", "msgspec", "greenroom.core.state.team_state", "rich.console")
CODES = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}


SIGNAL_AT_IMPORT = """
import os, runpy, sys

class Moment:
    name, number = sys.argv[1], int(sys.argv[2])

    def find_spec(self, name, path=None, target=None):
        if name == self.name:
            os.kill(os.getpid(), self.number)

sys.meta_path.insert(0, Moment())
sys.argv[1:] = sys.argv[3:]
runpy.run_module("greenroom.cli", run_name="__main__")
"""


def interrupted(home: Path, moment: str, number: signal.Signals, *words: str) -> tuple[int, str, str]:
    """A process that gets a signal the moment it begins to import a module: its code, and what it said."""
    ended = subprocess.run(
        [sys.executable, "-c", SIGNAL_AT_IMPORT, moment, str(int(number)), *words],
        env=environment(home),
        stdin=subprocess.DEVNULL,
        check=False,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    return ended.returncode, ended.stdout, ended.stderr


@pytest.mark.parametrize("moment", first(*MOMENTS))
def test_a_process_that_is_still_loading_ends_quietly(home: Path, moment: str) -> None:
    assert interrupted(home, moment, signal.SIGINT, "show", "last") == (130, "", "")


@pytest.mark.parametrize("number", CODES)
def test_every_signal_has_its_code_from_the_beginning(home: Path, number: signal.Signals) -> None:
    assert interrupted(home, "typer.core", number, "runs") == (CODES[number], "", "")


def asked(home: Path) -> Typing:
    """A command that asks a person whether to go on."""
    terminal = Typing(home, "forget", "last")
    terminal.until("[y/N] ")
    return terminal


def test_a_person_who_is_asked_can_leave(home: Path) -> None:
    """Ctrl-C at a question is an answer: on a terminal, where it is asked at all."""
    with asked(home) as person:
        person.press(CTRL_C)
        assert person.ends() == 130
    assert greenroom(home, "show", "last").code == 0


@pytest.mark.parametrize(("word", "code"), [("y", 0), ("", 2)])
def test_a_person_who_is_asked_decides(home: Path, word: str, code: int) -> None:
    with asked(home) as person:
        person.press(word, ENTER)
        assert person.ends() == code
    assert greenroom(home, "show", "last").code == (2 if code == 0 else 0)
