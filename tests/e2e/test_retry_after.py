"""A provider that says when to ask again is not asked before: not by the next process, and not by another run."""

import re
import signal
from pathlib import Path

import pytest

from tests.e2e.provider import QUICK, provider, reached, settings
from tests.e2e.terminal import Running, greenroom
from tests.fake_openai import Answer, fault

WAIT_S = 4


@pytest.mark.parametrize("form", ["rate_seconds", "rate_date", "rate_ms", "unavailable"])
def test_a_long_wait_is_told_with_its_time_and_no_process_asks_before(tmp_path: Path, form: str) -> None:
    settings(tmp_path, QUICK)
    with provider([fault(form, wait=600), Answer(text="Late.")]) as fake:
        first = greenroom(tmp_path, "ask", "Why?", **reached(fake))
        for words in (("resume", "last"), ("ask", "Why now?")):
            ended = greenroom(tmp_path, *words, **reached(fake))
            assert ended.code == first.code == 4
            until = re.search(r"asked to wait until (\d\d:\d\d:\d\d)", ended.err)
            assert until is not None
            assert until[0] in first.err
        assert len(fake.requests) == 1
        other = greenroom(tmp_path, "ask", "-m", "openai:gpt-5-mini", "Why?", **reached(fake))
    assert (other.code, other.out) == (0, "Late.\n"), "another model is not held back"


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
@pytest.mark.parametrize("form", ["rate_seconds", "rate_date"])
def test_a_process_that_ends_while_it_waits_leaves_the_time_to_the_next(
    tmp_path: Path, form: str, number: signal.Signals
) -> None:
    settings(tmp_path, QUICK)
    with provider([fault(form, wait=WAIT_S), Answer(text="Late.")]) as fake:
        with Running(tmp_path, "ask", "Why?", **reached(fake)) as first:
            first.until("retrying")
            first.send(number)
            first.end()
        ended = greenroom(tmp_path, "resume", "last", **reached(fake))
        refused, answered = fake.requests
    assert (ended.code, ended.out) == (0, "Late.\n")
    assert "asked to wait until" in ended.err
    # A date has whole seconds, so it is up to a second earlier than the wait.
    assert answered.at - refused.at >= WAIT_S - (form == "rate_date")
