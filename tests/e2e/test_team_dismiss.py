"""Letting somebody of an organisation go: who is not needed goes for good, who is needed stays, and it is said why."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.organised import TEA, Company, new
from tests.e2e.provider import provider, reached
from tests.e2e.terminal import Ended, greenroom
from tests.e2e.typing import Typing
from tests.fake_openai import Answer

LONG = Answer(text="one two three four five six seven eight nine ten " * 20, pace=0.2)


@pytest.fixture(name="more")
def _more(tmp_path: Path) -> Iterator[dict[str, str]]:
    """An organisation in which wu has written a guide."""
    with provider(Company(TEA)) as server:
        more = reached(server)
        new(tmp_path / "home", tmp_path, "--person", "ann", "--person", "ben", **more)
        assert typed(tmp_path, "talk", "--as", "ann", "--say", "A guide.", "--wait", **more).code == 0
        yield more


def typed(folder: Path, *words: str, **more: str) -> Ended:
    return greenroom(folder / "home", *words, cwd=str(folder), **more)


def test_an_agent_that_has_nothing_open_goes_for_good(tmp_path: Path, more: dict[str, str]) -> None:
    ended = typed(tmp_path, "team", "dismiss", "wu", **more)
    assert (ended.code, ended.out) == (0, "wu has left tea.\n")
    status = typed(tmp_path, "team", "status", "--output-format", "json", **more)
    assert status.json["agents"] == {"ann": "idle", "ben": "idle", "manager": "idle"}
    again = typed(tmp_path, "team", "dismiss", "wu", "tea", **more)
    assert (again.code, "There is no agent 'wu'. There are: ann, ben, manager." in again.err) == (2, True)


def test_who_is_at_work_or_has_a_part_stays_and_it_is_said_what_to_do_first(tmp_path: Path) -> None:
    company = Company(TEA)

    def serve(body: dict[str, object], number: int) -> Answer:
        told = company(body, number)
        return LONG if company.asked[-1][0] == "wu" else told

    with provider(serve) as server:
        more = reached(server)
        new(tmp_path / "home", tmp_path, "--person", "ann", **more)
        said = typed(tmp_path, "talk", "--say", "A guide.", "--output-format", "json", **more)
        with Typing(tmp_path / "home", "team", "start", cwd=str(tmp_path), **more) as first:
            first.until("wu       a writer")
            server.wait_for(in_flight=1)
            busy = typed(tmp_path, "team", "dismiss", "wu", **more)
            assert (busy.code, "'wu' runs step" in busy.err) == (2, True), busy.err
            assert typed(tmp_path, "team", "stop", **more).code == 0
            assert first.ends() == 0
        allotted = typed(tmp_path, "team", "dismiss", "wu", **more)
        assert (allotted.code, "'wu' has open subtasks." in allotted.err) == (2, True)
        assert typed(tmp_path, "cancel", f"{said.json['team']}/t2", **more).code == 0
        assert typed(tmp_path, "team", "dismiss", "wu", **more).code == 0
