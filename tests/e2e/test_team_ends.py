"""How waiting for an organisation ends: a code that a script can trust, and on stderr the reason."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from tests.e2e.organised import TEA, Company, Line, new, step
from tests.e2e.provider import provider, reached
from tests.e2e.terminal import Ended, greenroom
from tests.e2e.typing import Typing
from tests.fake_openai import Answer

Script = Mapping[tuple[str, str], Sequence[Line]]

NONSENSE: Script = {("manager", "planning"): ["no plan at all"]}
"""What the manager says can never be read."""

SILENT: Script = {
    ("manager", "planning"): [[step("think")]],
    ("manager", "think"): ["Hm."],
    ("manager", "reflection"): [[]],
}
"""The manager thinks about it, and that is all."""

FAILED: Script = {
    **TEA,
    ("manager", "task_manager"): [
        TEA["manager", "task_manager"][0],
        {"action": "finish_task", "task_id": "t2", "state": "failed", "summary": "There is no tea."},
    ],
}
"""The manager ends the task without success."""

LEFT: Script = {**TEA, ("manager", "planning"): [TEA["manager", "planning"][0], []]}
"""The manager begins a task, and does nothing more when its stage is over."""


def asked(folder: Path, script: Script, *words: str, language: str = "en") -> Ended:
    with provider(Company(script)) as server:
        more = reached(server)
        new(folder / "home", folder, "--person", "ann", "--language", language, **more)
        say = ("talk", "--say", "A tea guide, please.", "--wait", *words)
        return greenroom(folder / "home", *say, cwd=str(folder), **more)


@pytest.mark.parametrize(
    ("script", "language", "reason"),
    [
        (NONSENSE, "en", "manager could not do it: "),
        (SILENT, "en", "manager has nothing more to do, and has not answered."),
        (FAILED, "en", "Task t2 (Tea guide) is over: failed."),
        (LEFT, "zh", "任务t2（Tea guide）尚未结束，但没有人在处理。"),
    ],
)
def test_what_was_asked_for_and_not_done_is_no_success(
    tmp_path: Path, script: Script, language: str, reason: str
) -> None:
    ended = asked(tmp_path, script, language=language)
    assert ended.code == 1, ended.err
    assert reason in ended.err


def test_an_organisation_that_runs_into_its_limit_ends_with_that_code(tmp_path: Path) -> None:
    home, here = tmp_path / "home", str(tmp_path)
    with provider(Company(TEA)) as server:
        more = reached(server)
        new(home, tmp_path, "--person", "ann", **more)
        assert greenroom(home, "talk", "--say", "A tea guide, please.", cwd=here, **more).code == 0
        with Typing(home, "team", "start", "--max-tokens", "10", cwd=here, **more) as first:
            first.until(
                "tea does not work: its tokens do not suffice for the next step (10 left). "
                "Give it more: greenroom team start tea --max-tokens"
            )
            assert first.ends() == 5


def test_a_stop_while_a_model_is_asked_ends_it_with_success(tmp_path: Path) -> None:
    home, here = tmp_path / "home", str(tmp_path)
    with provider(Answer(text="one two three four five six seven eight nine ten " * 20, pace=0.2)) as server:
        more = reached(server)
        new(home, tmp_path, "--person", "ann", **more)
        assert greenroom(home, "talk", "--say", "A tea guide, please.", cwd=here, **more).code == 0
        with Typing(home, "team", "start", cwd=here, **more) as first:
            server.wait_for(in_flight=1)
            assert greenroom(home, "team", "stop", cwd=here, **more).code == 0
            first.until("Stopped: stopped by a person.")
            assert first.ends() == 0
        shown = greenroom(home, "team", "status", "--output-format", "json", cwd=here, **more).json
    assert (shown["stands"], shown["owner"]) == ("paused", None), shown
