"""Stdout and stderr that are full, closed, or read by nobody: the work is done all the same, and nothing bursts."""

import subprocess
from pathlib import Path

import pytest

from tests.e2e.terminal import GREENROOM, PATIENCE, environment, greenroom
from tests.sampling import first

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


@pytest.mark.parametrize("how", first("-v 2>/dev/full", "2>/dev/full", "2>&-"))
def test_progress_that_cannot_be_written_does_not_end_the_work(tmp_path: Path, how: str) -> None:
    done = shell(tmp_path, f"$G demo --org --pace 0 {how}")
    assert done.returncode == 0
    assert done.stdout.startswith("# Tea\n")
    assert "finished" in greenroom(tmp_path, "runs").out


@pytest.mark.parametrize("words", first("show nobody", "tasks --nonsense", "--home '' tasks"))
def test_an_error_that_cannot_be_said_still_has_its_code(home: Path, words: str) -> None:
    assert shell(home, f"$G {words} 2>/dev/full").returncode == 2


@pytest.mark.parametrize(
    "words",
    first("runs", "show last", "events last", "events last --output-format json", "du --output-format stream-json"),
)
def test_an_answer_that_cannot_be_written_is_an_error(home: Path, words: str) -> None:
    done = shell(home, f"$G {words} >/dev/full")
    assert done.returncode == 3
    assert done.stderr.count("Error: Cannot write to stdout (No space left on device).") == 1
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


@pytest.mark.parametrize("how", first(">&- 2>&- <&-", ">&-", "<&-"))
@pytest.mark.parametrize("words", ["show last --output-format json", "forget last", "--help"])
def test_a_closed_stream_is_no_error(home: Path, words: str, how: str) -> None:
    done = shell(home, f"$G {words} {how}")
    assert done.returncode == (2 if words == "forget last" else 0)
    assert "Traceback" not in done.stderr
    assert "bug" not in done.stderr
