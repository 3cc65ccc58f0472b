"""`greenroom compare` and `greenroom run --candidates`: which of several changes to take, and why."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from greenroom.core.ports.model import ModelRequest
from greenroom.testing.scripted import Cue, ScriptedCall
from tests.cli.commands.conftest import Script
from tests.cli.commands.shop import DISCOUNT, REQUEST, TAX, call, done, team_cues
from tests.cli.conftest import Type
from tests.e2e.jobs import exactly, git
from tests.e2e.terminal import Ended
from tests.tiers import has_bubblewrap

pytestmark = pytest.mark.skipif(not has_bubblewrap(), reason="bubblewrap is not installed")
JSON = ("--output-format", "json")
LONG = TAX + "\n\ndef half(x):\n    return x / 2\n"
BROKEN = "def test_tax():\n    assert False\n"


class Candidates:
    """The replies of single agents: the first run that asks writes the first file, and so on."""

    def __init__(self, *files: tuple[str, str]) -> None:
        self._files, self._teams = files, list[str]()

    def write(self, request: ModelRequest) -> ScriptedCall:
        team = request.purpose.team
        self._teams += [] if team in self._teams else [team]
        file, content = self._files[self._teams.index(team) % len(self._files)]
        return call("rewrite", file=file, content=content)

    @property
    def cues(self) -> list[Cue]:
        return [Cue(turn=1, reply=self.write), Cue(reply=call("finish", summary="written"))]


def rows_of(ended: Ended) -> Sequence[Mapping[str, Any]]:
    return cast("Sequence[Mapping[str, Any]]", ended.json["candidates"])


@pytest.mark.req("RC-16", "RC-25")
def test_candidates_run_side_by_side_and_the_best_is_named_with_the_reason(
    shop: Path, greenroom: Type, script: Script
) -> None:
    script(Candidates(("shop/tax.py", LONG), ("shop/tax.py", TAX), ("tests/test_tax.py", BROKEN)).cues)
    before = exactly(shop)
    ended = greenroom("run", "--candidates", "3", "--yes", "--max-cost", "2", "add tax", *JSON)
    assert (ended.code, ended.json["status"]) == (0, "finished"), ended.err
    assert "3 candidates" in ended.err
    assert "each at most $2" in ended.err
    assert "together at most $6" in ended.err
    best, second, third = rows_of(ended)
    assert [row["verdict"] for row in (best, second, third)] == ["verified", "verified", "failed"]
    assert (best["added"], second["added"], third["new_failures"]) == (2, 6, 1)
    assert ended.json["best"] == best["team"]
    assert second["why"] == f"{best['team']} changes 2 lines, {second['team']} changes 6."
    assert third["why"] == f"{best['team']}: verified; {third['team']}: failed."
    assert (ended.json["same_request"], ended.json["same_base"]) == (True, True)
    assert "These runs" not in ended.err
    assert f"Apply it: greenroom apply {best['team']}" in ended.err
    assert f"greenroom discard {third['team']}" in ended.err
    assert exactly(shop) == before
    assert len({row["team"] for row in (best, second, third)}) == 3
    again = greenroom("compare", third["team"], second["team"], best["team"])
    assert again.code == 0
    assert f"Take {best['team']}: it is verified." in again.out
    assert third["why"] in again.out
    assert [line.split()[1] for line in again.out.splitlines()[1:4]] == [best["team"], second["team"], third["team"]]


@pytest.mark.parametrize("options", [("--apply",), pytest.param(("--branch", "taken"), marks=pytest.mark.prove)])
def test_only_a_verified_winner_is_applied(shop: Path, greenroom: Type, script: Script, options: Sequence[str]) -> None:
    script(Candidates(("tests/test_tax.py", BROKEN), ("shop/tax.py", TAX)).cues)
    ended = greenroom("run", "--candidates", "2", "--non-interactive", *options, "add tax", *JSON)
    assert ended.code == 0, ended.err
    assert cast("Mapping[str, Any]", ended.json["taken"])["status"] in ("applied", "branched")
    tip = "taken" if "taken" in options else "HEAD"
    assert "shop/tax.py" in git(shop, "show", "--name-only", "--format=", tip)
    assert "Apply it" not in ended.err


def test_if_none_is_verified_none_is_applied(shop: Path, greenroom: Type, script: Script) -> None:
    script(Candidates(("tests/test_tax.py", BROKEN)).cues)
    before = exactly(shop)
    ended = greenroom("run", "--candidates", "2", "--non-interactive", "--apply", "add tax")
    assert ended.code == 1, ended.err
    assert "Take none as it is" in ended.out
    assert "Not applied: the change is not verified." in ended.err
    assert "are equal in everything that counts" in ended.out
    assert exactly(shop) == before


def test_teams_are_candidates_too_and_their_reviews_count(shop: Path, greenroom: Type, script: Script) -> None:
    scores = dict[str, int]()

    def review(request: ModelRequest) -> ScriptedCall:
        score = scores.setdefault(request.purpose.team, 60 + 20 * len(scores))
        return done("good", handoff={"overall_score": score, "issues": [], "requires_changes": False})

    script([*(cue for cue in team_cues() if cue.agent != "review-1"), Cue(agent="review-1", reply=review)])
    ended = greenroom("run", "--team", "--candidates", "2", "--yes", REQUEST, *JSON)
    assert ended.code == 0, ended.err
    best, other = rows_of(ended)
    assert (best["review_score"], other["review_score"]) == (80, 60)
    assert other["why"] == f"The review gives 80/100 to {best['team']} and 60/100 to {other['team']}."
    shown = greenroom("compare", str(best["team"]), str(other["team"]))
    assert "80/100" in shown.out


def test_runs_of_different_requests_are_compared_with_a_warning(shop: Path, greenroom: Type, script: Script) -> None:
    script(Candidates(("shop/tax.py", TAX), ("shop/discount.py", DISCOUNT)).cues)
    teams = [str(greenroom("run", "--non-interactive", text, *JSON).json["team"]) for text in ("add tax", "add more")]
    ended = greenroom("compare", *teams, *JSON)
    assert (ended.code, ended.json["same_request"], ended.json["same_base"]) == (0, False, True)
    assert "! These runs had different requests." in ended.err


def test_fewer_than_two_runs_or_an_unfinished_one_are_refused(shop: Path, greenroom: Type, script: Script) -> None:
    script([Cue(reply=call("ask_user", question="Which?"))])
    waiting = str(greenroom("run", "add tax", *JSON).json["team"])
    script(Candidates(("shop/tax.py", TAX)).cues)
    over = str(greenroom("run", "--non-interactive", "add tax", *JSON).json["team"])
    for words in ((), (over,), (over, over)):
        ended = greenroom("compare", *words)
        assert ended.code == 2
        assert "Name at least two runs to compare" in ended.err
    ended = greenroom("compare", over, waiting)
    assert ended.code == 2
    assert f"Run {waiting} is not over yet, so it cannot be compared." in ended.err


def test_a_candidate_that_waits_is_not_compared_and_can_be_resumed(shop: Path, greenroom: Type, script: Script) -> None:
    teams = list[str]()

    def reply(request: ModelRequest) -> ScriptedCall:
        teams.extend([] if request.purpose.team in teams else [request.purpose.team])
        if teams.index(request.purpose.team) == 0:
            return call("ask_user", question="Which?")
        return call("rewrite", file="shop/tax.py", content=TAX)

    script([Cue(turn=1, reply=reply), Cue(reply=call("finish", summary="written"))])
    ended = greenroom("run", "--candidates", "2", "add tax", *JSON)
    assert (ended.code, ended.json["best"]) == (0, teams[1]), ended.err
    assert ended.json["unfinished"] == [{"team": teams[0], "state": "waiting"}]
    assert f"Continue with: greenroom resume {teams[0]}" in ended.err


def test_if_all_candidates_wait_none_is_compared(shop: Path, greenroom: Type, script: Script) -> None:
    script([Cue(reply=call("ask_user", question="Which?"))])
    ended = greenroom("run", "--candidates", "2", "--apply", "add tax", *JSON)
    assert (ended.code, ended.json["status"]) == (6, "waiting"), ended.err
    assert [row["state"] for row in cast("list[dict[str, str]]", ended.json["unfinished"])] == ["waiting", "waiting"]


def test_ctrl_c_pauses_all_candidates_and_each_can_be_resumed(shop: Path, greenroom: Type, script: Script) -> None:
    teams = list[str]()

    def stop(request: ModelRequest) -> ScriptedCall:
        teams.append(request.purpose.team)
        if len(teams) == 2:
            os.kill(os.getpid(), signal.SIGINT)
        return call("rewrite", file="shop/tax.py", content=TAX)

    script([Cue(turn=1, reply=stop), Cue(reply=call("finish", summary="written"))])
    ended = greenroom("run", "--candidates", "2", "--non-interactive", "add tax", *JSON)
    assert (ended.code, ended.json["status"]) == (130, "stopped"), ended.err
    assert {row["team"] for row in rows_of(ended)} == {*teams}
    script(Candidates(("shop/tax.py", TAX)).cues)
    for team in teams:
        assert f"greenroom resume {team}" in ended.err
        assert greenroom("resume", team, "--non-interactive").code == 0
    assert greenroom("compare", *teams).code == 0


@pytest.mark.parametrize("word", ["--question", "--in-place", "--no-tools"])
def test_candidates_need_changes_to_compare(shop: Path, greenroom: Type, word: str) -> None:
    ended = greenroom("run", "--candidates", "2", word, "add tax")
    assert ended.code == 2
    assert "--candidates compares changes" in ended.err


@pytest.mark.parametrize("count", ["1", "9"])
def test_there_are_two_to_eight_candidates(shop: Path, greenroom: Type, count: str) -> None:
    assert greenroom("run", "--candidates", count, "add tax").code == 2


def test_the_comparison_is_chinese_for_a_chinese_reader(
    shop: Path, greenroom: Type, script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GREENROOM_LANGUAGE", "zh")
    script(Candidates(("shop/tax.py", TAX), ("shop/tax.py", LONG)).cues)
    ended = greenroom("run", "--candidates", "2", "--non-interactive", "添加税额")
    assert ended.code == 0, ended.err
    assert "2个候选" in ended.err
    assert "它已验证" in ended.out
    assert "改动2行" in ended.out
