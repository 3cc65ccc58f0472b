"""An organisation at the command: asked, asks back over a restart, delivers; the same in Chinese."""

import signal
from pathlib import Path

import pytest

from tests.acceptance.company import GUIDE, Company
from tests.acceptance.kit import JSON, PRICES, USAGE, WAITING, Desk, fields, rows, serve_model, wait_until


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_person_is_asked_back_and_gets_the_result(tmp_path: Path, language: str) -> None:
    desk, script = Desk(tmp_path, f'language = "{language}"\n{PRICES}'), Company()
    with serve_model(script) as server:
        new = desk.type("org", "new", "tea", "--person", "ann", "--language", language, **server.reach)
        assert new.code == 0, new.err
        asked = desk.type("inbox", "--say", "A tea guide, please.", "--wait", **server.reach)
        assert asked.code == WAITING
        assert "Which one?" in asked.out, "the message of the agent"
        assert not [who for who, _ in script.asked if who == "wu"]
        inbox = desk.type("inbox", "--list", *JSON, **server.reach)
        (letter,) = rows(inbox.json["letters"])
        assert (inbox.code, letter["number"], letter["message"]) == (0, 1, "Which one?")
        assert desk.type("inbox", "--as", "bob", "--say", "x", **server.reach).code == USAGE
        ended = desk.type("inbox", "--wait", stdin="/answer 1 Sencha.\n", **server.reach)
        assert (ended.code, GUIDE in ended.out) == (0, True), ended.err
    states = fields(desk.type("org", "status", "--type", "task", *JSON).json["states"])
    assert [fields(state)["execution_state"] for state in states.values()] == ["running", "finished"]
    agents = fields(desk.type("org", "status", "--type", "agent", *JSON).json["states"])
    assert set(agents) == {"ann", "manager", "wu"}
    assert fields(fields(states["t2"]))["task_name"] == "Tea guide"


def test_an_organisation_runs_in_one_terminal_and_is_stopped_from_another(tmp_path: Path) -> None:
    desk = Desk(tmp_path, PRICES)
    with serve_model(Company()) as server:
        assert desk.type("org", "new", "tea", "--person", "ann", **server.reach).code == 0
        process = desk.start("org", "start", "tea", **server.reach)

        def is_running() -> bool:
            listed = rows(desk.type("org", "list", *JSON).json["teams"])
            return any(row.get("owner") for row in listed)

        wait_until(is_running)
        assert desk.type("org", "start", "tea", **server.reach).code == 3
        assert desk.type("org", "stop", "tea").code == 0
        assert process.end().code in (0, 128 + signal.SIGTERM, 128 + signal.SIGINT)
        assert not is_running()
