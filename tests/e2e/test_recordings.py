"""Recordings through the real door: made, played without a key, and what is said when they do not fit."""

import stat
from pathlib import Path

import pytest

from tests.e2e.provider import KEY, provider, reached
from tests.e2e.terminal import greenroom
from tests.fake_openai import Answer


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recording of one question."""
    place = tmp_path_factory.mktemp("recorded")
    with provider(Answer(text="Blue.")) as fake:
        words = ("ask", "-q", "Which colour?", "--record", str(place / "a.jsonl"))
        assert greenroom(place / "home", *words, **reached(fake)).out == "Blue.\n"
    return place / "a.jsonl"


def test_a_recording_is_for_its_owner_only_and_holds_no_key(recording: Path) -> None:
    assert stat.S_IMODE(recording.stat().st_mode) == 0o600
    assert KEY not in recording.read_text()


def test_another_question_fails_with_the_difference(tmp_path: Path, recording: Path) -> None:
    ended = greenroom(tmp_path, "ask", "Which size?", "--replay", str(recording))
    assert (ended.code, ended.out) == (1, "")
    for line in ("-  Which colour?", "+  Which size?", "has no response to", "Not used: 1 answer in"):
        assert line in ended.err


def test_an_existing_file_is_never_overwritten(tmp_path: Path, recording: Path) -> None:
    before = recording.read_bytes()
    ended = greenroom(tmp_path, "ask", "hi", "--record", str(recording), OPENAI_API_KEY=KEY)
    assert ended.code == 3
    assert "already exists. Record to another file, or delete it first." in ended.err
    assert recording.read_bytes() == before
