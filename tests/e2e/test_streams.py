"""Stdout and stderr that are full, closed, or read by nobody: the work is done all the same, and nothing bursts."""

import array
import fcntl
import os
import subprocess
import termios
from pathlib import Path

import pytest

from tests.e2e.terminal import GREENROOM, PATIENCE, environment, greenroom

FULL = Path("/dev/full")
pytestmark = pytest.mark.skipif(not FULL.exists(), reason="this system has no /dev/full")


def shell(home: Path, line: str, **more: str) -> subprocess.CompletedProcess[str]:
    """Type a line in which $G is the command."""
    return subprocess.run(
        ["sh", "-c", line],
        env={**environment(home, **more), "G": " ".join(GREENROOM)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


@pytest.mark.parametrize("how", ["2>/dev/full", "2>&-", "-v 2>/dev/full"])
def test_progress_that_cannot_be_written_does_not_end_the_work(tmp_path: Path, how: str) -> None:
    done = shell(tmp_path, f"$G demo --team --pace 0 {how}")
    assert done.returncode == 0
    assert done.stdout.startswith("# Tea\n")
    assert "finished" in greenroom(tmp_path, "tasks").out


def test_progress_that_nobody_reads_any_more_does_not_end_the_work(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [*GREENROOM, "demo", "--team", "--pace", "0.05"],
        env=environment(tmp_path),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stderr is not None
        assert process.stdout is not None
        process.stderr.readline()
        process.stderr.close()
        assert process.stdout.read().startswith("# Tea\n")
        assert process.wait(PATIENCE) == 0


def waiting(reader: int) -> int:
    """How many bytes are in a pipe."""
    found = array.array("i", [0])
    fcntl.ioctl(reader, termios.FIONREAD, found)
    return found[0]


def test_progress_on_a_stream_that_does_not_wait_is_written_all_the_same(tmp_path: Path) -> None:
    """Some parents set a pipe that we share to non-blocking, and read it slowly."""
    reader, writer = os.pipe()
    room = fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
    os.set_blocking(writer, False)
    with subprocess.Popen(
        [*GREENROOM, "demo", "--team", "--pace", "0", "-v"],
        env=environment(tmp_path),
        stdout=subprocess.DEVNULL,
        stderr=writer,
    ) as process:
        os.close(writer)
        told = b""
        while waiting(reader) < room - 200:
            assert process.poll() is None
        while data := os.read(reader, 512):
            told += data
        assert process.wait(PATIENCE) == 0
    os.close(reader)
    assert len(told) > 2 * room
    assert b"Try next:" in told


@pytest.mark.parametrize("words", ["show nobody", "tasks --nonsense", "--home '' tasks"])
def test_an_error_that_cannot_be_said_still_has_its_code(home: Path, words: str) -> None:
    assert shell(home, f"$G {words} 2>/dev/full").returncode == 2


@pytest.mark.parametrize(
    "words",
    [
        "tasks",
        "show last",
        "events last",
        "events last --output-format json",
        "du --output-format stream-json",
        "doctor",
    ],
)
def test_an_answer_that_cannot_be_written_is_an_error(home: Path, words: str) -> None:
    done = shell(home, f"$G {words} >/dev/full")
    assert done.returncode == 3
    assert done.stderr.count("Error: The answer cannot be written to stdout (No space left on device).") == 1
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


@pytest.mark.parametrize("words", ["--help", "--version", "show --help", "--output-format json dance"])
def test_help_that_cannot_be_written_is_an_error(tmp_path: Path, words: str) -> None:
    done = shell(tmp_path, f"$G {words} >/dev/full")
    assert done.returncode == 3
    assert "Error: The answer cannot be written to stdout" in done.stderr
    assert "Traceback" not in done.stderr


def test_what_was_done_is_done_when_its_answer_cannot_be_written(tmp_path: Path) -> None:
    done = shell(tmp_path, "$G demo --team --pace 0 >/dev/full")
    assert done.returncode == 3
    assert "✓ finished" in done.stderr
    assert "Error: The answer cannot be written to stdout" in done.stderr
    assert greenroom(tmp_path, "show", "last").code == 0
    assert "finished" in greenroom(tmp_path, "tasks").out


def test_nothing_at_all_can_be_said(home: Path) -> None:
    assert shell(home, "$G tasks >/dev/full 2>/dev/full").returncode == 3


@pytest.mark.parametrize("how", [">&-", "<&-", ">&- 2>&- <&-"])
@pytest.mark.parametrize("words", ["tasks", "show last --output-format json", "forget last", "--help", "doctor"])
def test_a_closed_stream_is_no_error(home: Path, words: str, how: str) -> None:
    done = shell(home, f"$G {words} {how}")
    assert done.returncode == (2 if words == "forget last" else 0)
    assert "Traceback" not in done.stderr
    assert "bug" not in done.stderr


def test_a_reader_that_wants_one_line_gets_it(home: Path) -> None:
    for words in ("events last", "events last --output-format stream-json", "replay last", "tasks", "--help"):
        done = shell(home, f"$G {words} | head -n 1")
        said = [one for one in done.stderr.replace(VIEW, "").splitlines() if one and not one.startswith(AT_ANY)]
        assert (done.returncode, said) == (0, []), words
        assert done.stdout.count("\n") == 1


AT_ANY = "What was true at any version: "
"""Said at the end by who was through before the reader was."""

VIEW = "A view of the log: nothing is run again and no model is asked.\n"
