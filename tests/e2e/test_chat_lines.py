"""A chat without a terminal: line by line, for scripts and programs."""

import os
import signal
from pathlib import Path

import pytest

from tests.e2e.provider import PRICED, provider, reached, settings
from tests.e2e.terminal import Running, greenroom
from tests.e2e.test_chat import SLOW, echo
from tests.fake_openai import fault


def test_each_line_of_a_pipe_is_a_turn(tmp_path: Path) -> None:
    with provider(echo) as fake:
        ended = greenroom(tmp_path, "chat", "-q", stdin="One.\n\n\\\nTwo.\n/cost\nThree.", **reached(fake))
    assert (ended.code, ended.out) == (0, "<One.> #1\n<\nTwo.> #3\n<Three.> #5\n".replace("<\nTwo.>", "<Two.>"))
    assert ended.err == ""


def test_the_last_line_decides_the_code(tmp_path: Path) -> None:
    settings(tmp_path, PRICED)
    with provider([echo, fault("wrong_key"), echo, fault("bad_request")]) as fake:
        first = greenroom(tmp_path, "chat", stdin="One.\nTwo.\n", **reached(fake))
        assert (first.code, first.out) == (4, "<One.> #1\n")
        again = greenroom(tmp_path, "chat", "--resume", "last", stdin="Three.\nFour.\n", **reached(fake))
        assert (again.code, again.out) == (1, "<Three.> #4\n")
        assert greenroom(tmp_path, "chat", stdin="/nope\n", **reached(fake)).code == 2
        assert greenroom(tmp_path, "chat", "--max-cost", "0.0001", stdin="Five.\n", **reached(fake)).code == 5


def test_a_program_reads_turns(tmp_path: Path) -> None:
    settings(tmp_path, PRICED)
    with provider(echo) as fake:
        words = ("chat", "--output-format")
        one = greenroom(tmp_path, *words, "json", stdin="One.\nTwo.\n", **reached(fake)).json
        lines = greenroom(tmp_path, *words, "stream-json", stdin="One.\nTwo.\n", **reached(fake)).lines
    assert (one["status"], one["exit_code"], one["answer"], one["tokens"]) == ("answered", 0, "<Two.> #3", 2200)
    turns = [
        {"asked": text, "status": "answered", "answer": answer, "tokens": 1100, "cost": 0.002}
        for text, answer in (("One.", "<One.> #1"), ("Two.", "<Two.> #3"))
    ]
    assert one["turns"] == turns
    assert [line for line in lines if line["type"] == "turn"] == [{"type": "turn", **turn} for turn in turns]
    kinds = [line["type"] for line in lines]
    assert (kinds[0], kinds[-1]) == ("init", "result")
    assert kinds.index("StepEnded") < kinds.index("turn"), "first the facts"


def test_a_signal_ends_a_chat_of_lines_between_two_of_them(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "lines")
    lines = os.open(tmp_path / "lines", os.O_RDWR)
    os.write(lines, b"Count.\nMore.\n")
    shell = ("sh", "-c", f'exec "$@" < {tmp_path / "lines"}', "sh")
    with provider(SLOW) as fake, Running(tmp_path, "chat", through=shell, **reached(fake)) as chat:
        fake.wait_for(in_flight=1)
        chat.send(signal.SIGINT)
        ended = chat.end()
    os.close(lines)
    assert (ended.code, fake.asked) == (130, 1)
    assert "Stopped. Go on with: greenroom chat --resume " in ended.err


@pytest.mark.req("AG-42")
def test_without_a_last_chat_a_new_one_begins(tmp_path: Path) -> None:
    with provider(echo) as fake:
        ended = greenroom(tmp_path, "chat", "--resume", "last", stdin="Hello.\n", **reached(fake))
    assert (ended.code, ended.out) == (0, "<Hello.> #1\n")
    assert "There is no chat to go on with. This is a new one." in ended.err


def test_an_open_chat_is_not_opened_twice(tmp_path: Path) -> None:
    with provider(SLOW) as fake, Running(tmp_path, "chat", "Count.", **reached(fake)) as chat:
        fake.wait_for(in_flight=1)
        ended = greenroom(tmp_path, "chat", "--resume", "last", stdin="Hello?\n", **reached(fake))
        assert ended.code == 3
        assert "is open already" in ended.err
        assert "greenroom tell " in ended.err
        chat.send(signal.SIGINT)
        assert chat.end().code == 130
