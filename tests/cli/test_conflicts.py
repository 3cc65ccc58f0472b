"""`greenroom conflicts`: what waits for a person is shown, chosen, edited, and goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from greenroom.cli.commands import conflicts
from greenroom.cli.context import Invocation
from greenroom.cli.render.questions import PersonLeft
from greenroom.core.base.ids import TeamId
from tests.app.teams.play import Gate, TeamPlay, make_environment, make_repository, reads
from tests.app.teams.test_team_conflicts import BOTH, FIRST, SECOND, ask, meet, propose, until, write_both
from tests.cli.conftest import Type

SCRIPT = (*write_both(), *propose(BOTH))


@pytest.fixture(name="team")
def _team(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TeamId:
    """A run whose conflict waits for a person, and which no process runs."""
    for name, value in make_environment(tmp_path).items():
        monkeypatch.setenv(name, value)
    assert home == tmp_path / "home"
    make_repository(tmp_path / "shop")
    monkeypatch.chdir(tmp_path / "shop")

    async def play() -> TeamId:
        gates = {("code-writer-1", 2): Gate(), ("code-writer-2", 2): Gate()}
        async with TeamPlay.open(*SCRIPT, gates=gates) as play:
            await meet(play, gates)
            await ask(play)
            return play.team

    return asyncio.run(play())


def end(state: str = "finished") -> dict[str, str]:
    """Let the run go on to its end. Return its files."""

    async def play() -> dict[str, str]:
        async with TeamPlay.open(*SCRIPT) as play:
            await play.runtime.start(play.team)
            assert (await play.end()).state == state
            return play.files()

    return asyncio.run(play())


@pytest.fixture(name="typed")
def _typed(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """What a person at a terminal types, line by line; then they leave. The questions follow in the list."""
    lines = list[str]()
    asked = list[str]()

    def ask_line(question: str) -> str:
        asked.append(question)
        if not lines:
            raise PersonLeft
        return f"{lines.pop(0)}\n"

    monkeypatch.setattr(Invocation, "is_attended", True)
    monkeypatch.setattr(conflicts, "ask_line", ask_line)
    yield lines
    assert not lines, asked


def set_editor(monkeypatch: pytest.MonkeyPatch, folder: Path, script: str) -> None:
    """Let $VISUAL run a shell script on the file."""
    editor = folder / "editor"
    editor.write_text(f"#!/bin/sh\n{script}\n")
    editor.chmod(0o755)
    monkeypatch.setenv("VISUAL", str(editor))


def test_a_program_reads_the_versions(team: TeamId, greenroom: Type) -> None:
    ended = greenroom("conflicts", "last", "--output-format", "json")
    assert (ended.code, ended.json["status"], ended.json["waiting"]) == (6, "waiting", 1)
    (found,) = cast("list[dict[str, object]]", ended.json["conflicts"])
    assert (found["type"], found["path"], found["state"]) == ("file-modification", "shop/tax.py", "proposed")
    assert (found["original"], found["versions"], found["result"]) == (None, [FIRST, SECOND], BOTH)
    assert ended.json["team"] == team


def test_a_person_without_a_terminal_reads_what_to_type(team: TeamId, greenroom: Type) -> None:
    ended = greenroom("conflicts", team)
    assert "shop/tax.py" in ended.out
    assert f"greenroom answer {team} left" in " ".join(ended.err.split())
    listed = greenroom("approvals", "list")
    assert "code-1 and code-2 changed shop/tax.py. A model proposes a merge." in " ".join(listed.out.split())
    assert "left   (or right, accept, back ADVICE, drop)" in listed.err
    assert greenroom("answer", team, "right").code == 0
    assert end() == {"shop/tax.py": SECOND}
    done = greenroom("conflicts", team)
    assert (done.code, "person" in done.out) == (0, True)
    assert "shop/tax.py: The result lacks: return price * 0.2\n" in done.out


def test_the_report_says_how_a_conflict_was_merged_and_what_was_lost(
    team: TeamId, greenroom: Type, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert greenroom("answer", team, "code-2").code == 0
    assert end() == {"shop/tax.py": SECOND}
    words = "shop/tax.py (code-writer-1, code-writer-2): merged, person. a person chose: right The result lacks: return"
    assert f"{words} price * 0.2\n" in greenroom("report", team).out
    assert "The result lacks: return price \\* 0.2\n" in greenroom("report", team, "--markdown").out
    monkeypatch.setenv("GREENROOM_LANGUAGE", "zh")
    assert "已合并, 人" in greenroom("report", team).out


def test_yes_accepts_and_what_is_not_possible_is_refused(team: TeamId, greenroom: Type) -> None:
    for words in ("no", "foo", '{"choices": {}}'):
        ended = greenroom("answer", team, words)
        assert ended.code == 2
        assert "is not possible for shop/tax.py." in ended.err
        assert "Answer left (code-1), right (code-2), back ADVICE, or drop." in " ".join(ended.err.split())
    assert greenroom("answer", team, "yes").code == 0
    assert end() == {"shop/tax.py": BOTH}


def test_what_is_dropped_is_left_out_and_the_score_counts_it(team: TeamId, greenroom: Type) -> None:
    waiting = greenroom("report", team).out
    assert "The run is not over: its change was not judged yet." in waiting
    assert greenroom("answer", team, "drop").code == 0
    end("failed")
    assert "left out" in greenroom("conflicts", team).out
    shown = greenroom("report", team).out
    assert "code-2 is missing: its work is not in the change" in shown
    found = cast("Any", greenroom("report", team, "--output-format", "json").json)
    assert (found["validation"]["valid"], found["validation"]["issues"][0]["code"]) == (False, "missing_work")
    assert found["validation"]["score_parts"]["errors"] < 0
    assert found["merged"]["files"]["shop/tax.py"]["subtasks"] == ["code-1"]


def test_three_panes_and_a_choice(team: TeamId, greenroom: Type, typed: list[str]) -> None:
    typed += ["nonsense", "l"]
    ended = greenroom("conflicts", team)
    assert ended.code == 0, ended.err
    header = next(line for line in ended.out.splitlines() if "left: code-1" in line)
    assert header.split() == ["left:", "code-1", "proposal", "right:", "code-2"]
    row = next(line for line in ended.out.splitlines() if line.count("return price") == 3)
    assert " ".join(row.split()) == "return price * 0.2 return price * 0.2 return price * 0.07"
    assert "Unknown answer." in ended.err
    assert f"greenroom resume {team}" in " ".join(ended.err.split())
    assert end() == {"shop/tax.py": FIRST}


def test_in_a_narrow_terminal_the_versions_are_one_below_the_other(
    team: TeamId, greenroom: Type, typed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    typed += [""]
    ended = greenroom("conflicts", team)
    assert ended.code == 6, "it still waits"
    names = [line for line in ended.out.splitlines() if line.startswith("---")]
    assert names == ["--- left: code-1", "--- proposal", "--- right: code-2"]


def test_a_person_edits_until_no_marker_is_left(
    team: TeamId, greenroom: Type, typed: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    twice = 'if [ -e "$0.once" ]; then printf "RATE = 1\\r\\n" > "$1"; else echo "<<<<<<< left" > "$1"; fi'
    set_editor(monkeypatch, tmp_path, f'{twice}\n: > "$0.once"')
    typed += ["e", ""]
    ended = greenroom("conflicts", team)
    assert ended.code == 0, ended.err
    assert "shop/tax.py still has conflict markers." in ended.err
    assert end() == {"shop/tax.py": "RATE = 1\n"}
    (found,) = cast(
        "list[dict[str, object]]", greenroom("conflicts", "last", "--output-format", "json").json["conflicts"]
    )
    assert (found["result"], found["why"]) == ("RATE = 1\r\n", "written by a person"), "the lines end as they did"


def test_a_file_that_is_unchanged_or_empty_is_asked_about_again(
    team: TeamId, greenroom: Type, typed: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    set_editor(monkeypatch, tmp_path, 'if [ -e "$0.once" ]; then : > "$1"; fi; : > "$0.once"')
    typed += ["e", "e", "l"]
    ended = greenroom("conflicts", team)
    assert ended.code == 0, ended.err
    assert "Nothing changed." in ended.err
    assert "shop/tax.py is empty" in ended.err
    assert end() == {"shop/tax.py": FIRST}


def test_a_person_who_leaves_while_markers_are_left_is_asked_later(
    team: TeamId, greenroom: Type, typed: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    set_editor(monkeypatch, tmp_path, 'echo "<<<<<<< left" > "$1"')
    typed += ["e"]
    ended = greenroom("conflicts", team)
    assert ended.code == 6, ended.err
    assert "Conflicts that wait for your answer: 1." in ended.err


def test_a_person_drops_the_work(team: TeamId, greenroom: Type, typed: list[str]) -> None:
    typed += ["d"]
    assert greenroom("conflicts", team).code == 0

    async def play() -> str:
        async with TeamPlay.open(*SCRIPT) as play:
            await play.runtime.start(play.team)
            assert (await play.end()).state == "failed"
            return (await play.subtasks())["code-2"].summary

    assert (
        asyncio.run(play()).partition("\n")[0]
        == "A person dropped it. Not merged: code-1 and code-2 changed shop/tax.py (code-writer-1, code-writer-2)."
    )


def test_a_person_sends_the_work_back(team: TeamId, greenroom: Type, typed: list[str]) -> None:
    typed += ["b Keep both."]
    assert greenroom("conflicts", team).code == 0

    async def play() -> None:
        async with TeamPlay.open(*SCRIPT) as play:
            await play.runtime.start(play.team)
            await until(play, lambda _: any("Keep both." in reads(sent) for sent in play.asked("code-writer-2")))

    asyncio.run(play())


def test_in_chinese(team: TeamId, greenroom: Type, typed: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GREENROOM_LANGUAGE", "zh")
    typed += ["a"]
    ended = greenroom("conflicts", team)
    assert ended.code == 0, ended.err
    assert "建议" in ended.out
    assert all(word in ended.out for word in ("左：code-1", "右：code-2", "子任务", "层级", "原因"))
    assert "模型" in ended.out
    assert end() == {"shop/tax.py": BOTH}


def test_a_run_without_conflicts(home: Path, greenroom: Type) -> None:
    assert not home.exists()
    assert greenroom("conflicts", "last").code == 2
