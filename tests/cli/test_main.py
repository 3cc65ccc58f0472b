import json
import sys
from pathlib import Path

import pytest

from greenroom.cli import app
from greenroom.cli.app import COMMANDS, LazyCommand, load_command
from tests.cli.conftest import Type


def test_every_entry_of_the_table_has_its_command() -> None:
    for entry in COMMANDS:
        assert load_command(entry).__doc__
        assert LazyCommand(entry).load().name == entry.name.split()[-1]


@pytest.mark.parametrize("entry", COMMANDS, ids=lambda entry: entry.name)
def test_every_command_explains_itself(greenroom: Type, entry: object) -> None:
    name = getattr(entry, "name", "")
    ended = greenroom(*name.split(), "--help")
    assert ended.code == 0
    assert ended.out.startswith(f"Usage: greenroom {name}")
    for option in ("--home", "--output-format", "--quiet", "--verbose"):
        assert option in ended.out
    assert " <" not in ended.out, "types of Python are nothing to whoever reads it"


def test_the_exit_codes_of_a_run_are_a_list(greenroom: Type) -> None:
    told = greenroom("run", "--help").out
    _, _, codes = told.partition("\n\n  Exit codes:\n")
    listed, _, arguments = codes.partition("\n\n")
    assert [line[:7].strip() for line in listed.splitlines() if line[4] != " "] == list("01234567")
    assert arguments.startswith("Arguments:\n  TEXT  What to do;")


def test_without_words_the_help_is_shown(greenroom: Type) -> None:
    ended = greenroom()
    assert ended.code == 2
    assert "Exit codes:" in ended.err


def test_a_shared_option_counts_before_and_after_the_command(greenroom: Type, tmp_path: Path) -> None:
    before = greenroom("--home", str(tmp_path / "a"), "--output-format", "json", "du").json
    after = greenroom("du", "--home", str(tmp_path / "b"), "--output-format", "json").json
    assert (before["home"], after["home"]) == (str(tmp_path / "a"), str(tmp_path / "b"))


@pytest.mark.parametrize(
    "words",
    [
        ("runs", "--output-format", "xml"),
        ("demo", "--pace", "-1"),
        ("fork", "last", "--at", "0"),
        ("events", "last", "--after", "x"),
        ("answer", "last", "yes", "--for", "life"),
        ("show",),
        ("--nonsense",),
    ],
    ids=" ".join,
)
def test_wrong_words_are_a_matter_of_usage(greenroom: Type, words: tuple[str, ...]) -> None:
    ended = greenroom(*words)
    assert ended.code == 2
    assert "Error: " in ended.err


def test_windows_is_sent_to_wsl(greenroom: Type, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "is_windows", lambda: True)
    ended = greenroom("doctor")
    assert ended.code == 3
    assert "use WSL2" in ended.err
    assert greenroom("--help").code == 0


def test_a_bug_is_one_sentence_and_with_v_a_traceback(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: object) -> int:
        raise ZeroDivisionError("by zero")

    monkeypatch.setattr(app, "run", broken)
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    for words, traceback in ((["greenroom"], False), (["greenroom", "-v"], True)):
        monkeypatch.setattr(sys, "argv", words)
        with pytest.raises(ZeroDivisionError) as caught:
            app.start()
        sys.excepthook(caught.type, caught.value, caught.tb)
        told = capsys.readouterr().err
        assert "Internal error: ZeroDivisionError: by zero. This is a bug" in told
        assert ("Traceback" in told) is traceback


def test_a_program_hears_of_a_bug_as_a_result(
    greenroom: Type, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: object) -> int:
        raise ZeroDivisionError("by zero")

    monkeypatch.setattr("greenroom.cli.commands.runs.runs", broken)
    with pytest.raises(ZeroDivisionError):
        greenroom("runs", "--output-format", "json")
    told = json.loads(capsys.readouterr().out)
    assert (told["type"], told["status"], told["exit_code"]) == ("result", "error", 1)
    assert "ZeroDivisionError: by zero. This is a bug" in told["error"]
