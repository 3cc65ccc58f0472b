"""Promises of the kernel at the command: caps, recordings, and room that is given back."""

import stat
from pathlib import Path

from tests.acceptance.kit import (
    JSON,
    KEY,
    LIMIT,
    PRICES,
    Answer,
    Desk,
    Turns,
    call,
    rows,
    say,
    serve_model,
)

COSTLY = {"prompt_tokens": 1000, "completion_tokens": 1000, "total_tokens": 2000}
"""A tenth of a cent for what was sent, and one for the answer."""

LOOK = Answer(calls=call("read_code", 1, file="app.txt").calls, usage=COSTLY)


def test_money_is_capped_before_it_is_spent(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with serve_model(say("Dear.")) as server:
        ended = desk.type("ask", "Who?", "--max-cost", "0.0001", *JSON, **server.reach)
    assert (ended.code, server.asked) == (LIMIT, 0)


def test_a_cap_is_never_exceeded_and_more_can_be_allowed(tmp_path: Path) -> None:
    desk, cap = Desk(tmp_path, PRICES), 0.15
    looks = [
        Answer(calls=call("read_code", number, file="app.txt", start_line=number).calls, usage=COSTLY)
        for number in range(1, 40)
    ]
    with serve_model(Turns(*looks)) as server:
        words = ("run", "Look.", "--question", "--max-cost", str(cap), *JSON)
        ended = desk.type(*words, **server.reach)
        assert ended.code == LIMIT, ended.err
        asked = server.asked
        assert 0 < asked < len(looks)
        cost = float(str(desk.type("cost", "last", *JSON).json["cost"]))
        assert cost <= cap
        assert abs(cost - asked * 0.011) < 0.001, "what was paid is what was asked for"
        more = desk.type("resume", "last", "--max-cost", "0.18", *JSON, **server.reach)
    assert more.code == LIMIT
    assert asked < server.asked
    assert cost < float(str(desk.type("cost", "last", *JSON).json["cost"])) <= 0.18


def test_tokens_are_capped_too(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with serve_model(say("Blue.")) as server:
        little = desk.type("ask", "Which?", "--max-tokens", "10", **server.reach)
        assert (little.code, server.asked) == (LIMIT, 0)
        assert desk.type("resume", "last", "--max-tokens", "100k", **server.reach).out == "Blue.\n"


def test_a_recording_is_replayed_without_a_model(tmp_path: Path) -> None:
    desk, file = Desk(tmp_path, PRICES), tmp_path / "a.jsonl"
    words = ("run", "Which colour?", "--question", "-q")
    with serve_model(Turns(LOOK, say("Blue."))) as server:
        assert desk.type(*words, "--record", str(file), **server.reach).out == "Blue.\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert KEY not in file.read_text()
    again = desk.type(*words, "--replay", str(file))
    assert (again.code, again.out) == (0, "Blue.\n")
    other = desk.type("run", "Which size?", "--question", "-q", "--replay", str(file))
    assert (other.code, other.out) == (1, "")


def test_room_is_counted_given_back_and_a_run_forgotten_only_when_asked(tmp_path: Path) -> None:
    desk = Desk(tmp_path, PRICES)
    with serve_model(say("Blue.")) as server:
        for _ in range(2):
            assert desk.type("ask", "Which?", **server.reach).code == 0
    teams = [str(row["team"]) for row in rows(desk.type("du", *JSON).json["teams"])]
    assert len(teams) == 2
    assert desk.type("forget", teams[0], *JSON).code == 2
    assert desk.type("show", teams[0]).code == 0
    assert desk.type("forget", teams[0], "--yes").code == 0
    assert desk.type("show", teams[0]).code == 2
    assert desk.type("gc", *JSON).code == 0
    left = rows(desk.type("du", *JSON).json["teams"])
    assert [row["team"] for row in left] == [teams[1]]
    assert desk.type("show", teams[1]).code == 0
    assert desk.type("doctor").code == 0
