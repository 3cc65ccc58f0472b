"""A signal at any moment: the code that shells know, and not a word too many."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.e2e.terminal import PATIENCE, environment, greenroom
from tests.sampling import first

MOMENTS = ("greenroom.app.runtime", "typer.core", "msgspec", "greenroom.core.state.world", "rich.console")
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
runpy.run_module("greenroom.interfaces.cli", run_name="__main__")
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
    assert interrupted(home, "typer.core", number, "tasks") == (CODES[number], "", "")


@contextmanager
def asked(home: Path) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """A command that asks a person whether to go on: its process, and the person's end of its terminal."""
    master, slave = os.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "greenroom.interfaces.cli", "forget", "last"],
        env=environment(home),
        stdin=slave,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    with process:
        assert process.stderr is not None
        assert b"Delete team" in process.stderr.read(len("Delete team"))
        yield process, master
    os.close(slave)
    os.close(master)


def test_a_person_who_is_asked_can_leave(home: Path) -> None:
    """Ctrl-C at a question is an answer: on a terminal, where it is asked at all."""
    with asked(home) as (process, _):
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == 130
    assert greenroom(home, "show", "last").code == 0


@pytest.mark.parametrize(("word", "code"), [("y", 0), ("", 2)])
def test_a_person_who_is_asked_decides(home: Path, word: str, code: int) -> None:
    with asked(home) as (process, person):
        os.write(person, f"{word}\n".encode())
        assert process.wait(PATIENCE) == code
    assert greenroom(home, "show", "last").code == (2 if code == 0 else 0)
