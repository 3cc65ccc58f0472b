"""Callbacks of one's own: from all places where they can lie, told of every call that is made."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.app.custom.bench import Place
from tests.app.custom.test_tools import WEATHER

AUDIT = """
import json
def after_tool_call_cb(call):
    with open({file!r}, "a") as file:
        file.write(json.dumps([{name!r}, call["tool"], call["state"], call["output"], call["error"]]) + "\\n")
"""


def heard(file: Path) -> list[list[str]]:
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


@pytest.fixture(name="log")
def a_log(place: Place, tmp_path: Path) -> Path:
    """Where callbacks of all kinds write what they hear."""
    file = tmp_path / "log"
    place.yours("tools/weather.py", WEATHER)
    place.yours("callbacks/a.py", AUDIT.format(file=str(file), name="own"))
    place.yours("callbacks/_b.py", "raise SystemExit")
    (tmp_path / "named").mkdir()
    (tmp_path / "named" / "a.py").write_text(AUDIT.format(file=str(file), name="named"))
    place.callbacks = (str(tmp_path / "named"),)
    place.project("callbacks/a.py", AUDIT.format(file=str(file), name="project"))
    return file


@pytest.mark.req("AG-138", "AG-146", "AG-190")
async def test_all_of_the_persons_callbacks_hear_of_a_call(place: Place, log: Path) -> None:
    await place.call("forecast", {"city": "Paris"})
    assert heard(log) == [[name, "forecast", "finished", "rain in Paris", ""] for name in ("own", "named")]


@pytest.mark.req("AG-138")
async def test_the_projects_callbacks_hear_of_it_only_when_somebody_agreed(place: Place, log: Path) -> None:
    assert "Callbacks of this project are not used until you trust them: a.py" in place.equipment().untrusted[0]
    place.agreed = {"a.py"}
    await place.call("forecast", {"city": "Paris"})
    assert [name for name, *_ in heard(log)] == ["own", "named", "project"]


@pytest.mark.req("AG-138", "AG-190")
async def test_calls_that_fail_are_heard_of_too(place: Place, log: Path) -> None:
    await place.call("forecast", {"city": "nowhere"})
    await place.call("breaks", {}, "yes")
    assert [(tool, state, error) for name, tool, state, _, error in heard(log) if name == "own"] == [
        ("forecast", "failed", "There is no such city."),
        ("breaks", "failed", "ValueError: broken"),
    ]
