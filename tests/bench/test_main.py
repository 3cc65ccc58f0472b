"""The dispatcher of `./go bench`."""

import json
from types import SimpleNamespace
from typing import cast

import pytest

from bench import __main__ as bench


async def slowly() -> bench.Figures:
    return {"speed": 7.0}


def fake(**parts: object) -> bench.Bench:
    return cast(bench.Bench, SimpleNamespace(GOALS={"speed": (">=", 5.0), "cost": ("<=", 1.0)}, **parts))


@pytest.fixture
def sample(monkeypatch: pytest.MonkeyPatch) -> None:
    def run() -> bench.Figures:
        print("noise on the way")
        return {"speed": 7.5, "cost": 2.0, "free": 1.0}

    monkeypatch.setattr(bench, "known", lambda: ["sample"])
    monkeypatch.setattr(bench, "load", lambda name: fake(run=run))


def test_plain_and_async_measurements_run() -> None:
    assert bench.measure(fake(run=slowly)) == {"speed": 7.0}
    assert bench.measure(fake(run=lambda: {"speed": 1.0})) == {"speed": 1.0}


@pytest.mark.usefixtures("sample")
def test_json_is_one_object_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    assert bench.main(["sample", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"speed": 7.5, "cost": 2.0, "free": 1.0}


@pytest.mark.usefixtures("sample")
def test_the_table_says_which_goals_are_met(capsys: pytest.CaptureFixture[str]) -> None:
    assert bench.main(["sample"]) == 0
    rows = [line.split("│")[1:-1] for line in capsys.readouterr().out.splitlines() if line.startswith("│")]
    assert [[cell.strip() for cell in row] for row in rows] == [
        ["speed", "7.5", ">= 5", "yes"],
        ["cost", "2", "<= 1", "no"],
        ["free", "1", "", ""],
    ]


@pytest.mark.usefixtures("sample")
@pytest.mark.parametrize("arguments", [[], ["other"], ["sample", "other"]])
def test_an_unknown_name_lists_the_known(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert bench.main(arguments) == 2
    assert "known: sample" in capsys.readouterr().err


def test_known_names_are_files_that_can_be_loaded() -> None:
    for name in bench.known():
        assert bench.load(name).GOALS is not None
