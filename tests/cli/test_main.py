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


def test_a_shared_option_counts_before_and_after_the_command(greenroom: Type, tmp_path: Path) -> None:
    before = greenroom("--home", str(tmp_path / "a"), "--output-format", "json", "du").json
    after = greenroom("du", "--home", str(tmp_path / "b"), "--output-format", "json").json
    assert (before["home"], after["home"]) == (str(tmp_path / "a"), str(tmp_path / "b"))


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("runs", "--nonsense", "--output-format", "json"), "No such option: --nonsense"),
        (("--output-format=json", "dance"), "No such command 'dance'."),
        (("demo", "--pace", "-1", "--output-format", "json"), "Invalid value for '--pace'"),
        (("events", "last", "--after", "x", "--output-format", "json"), "Invalid value for '--after'"),
        (("show", "--output-format", "json"), "Missing argument 'ID'."),
        (("--output-format", "json"), "Missing command."),
        (("answer", "last", "yes", "--for", "life", "--output-format=json"), "Invalid value for '--for'"),
        (
            ("--output-format", "text", "fork", "last", "--at", "0", "--output-format", "json"),
            "Invalid value for '--at'",
        ),
        (("--output-format", "json", "--home", "", "runs"), "Invalid value for '--home': it is empty."),
        (("show", "nobody", "--output-format", "json"), "There is no team 'nobody'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_a_program_hears_of_wrong_words_as_a_result(greenroom: Type, words: tuple[str, ...], error: str) -> None:
    ended = greenroom(*words)
    assert ended.code == 2
    told = ended.json
    assert (told["type"], told["status"], told["exit_code"]) == ("result", "error", 2)
    assert str(told["error"]).startswith(error)
    assert told["hint"]
    assert told["code"] == ("no_teams" if "nobody" in words else "usage")
    assert error in ended.err or "Usage: greenroom" in ended.err, "people read the same on stderr"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("team", "start", "shop"), "`greenroom team` is now `greenroom org`."),
        (("talk", "--inbox"), "`greenroom talk` is now `greenroom inbox`."),
        (("--quiet", "tell", "last", "Hello."), "`greenroom tell` is now `greenroom send`."),
        (("tasks", "--help"), "`greenroom tasks` is now `greenroom runs`."),
        (("help", "tasks"), "`greenroom tasks` is now `greenroom runs`."),
    ],
    ids=" ".join,
)
def test_an_old_name_of_a_command_leads_to_the_new_one(greenroom: Type, words: tuple[str, ...], sentence: str) -> None:
    ended = greenroom(*words)
    assert (ended.code, ended.out, ended.err) == (2, "", f"Error: {sentence}\n")


def test_a_program_gets_the_new_name_of_a_command_as_json(greenroom: Type) -> None:
    ended = greenroom("tasks", "--output-format", "json")
    assert (ended.code, ended.json["error"]) == (2, "`greenroom tasks` is now `greenroom runs`.")


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
