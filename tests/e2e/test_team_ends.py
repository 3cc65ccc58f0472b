"""How waiting for an organisation ends: a code that a script can trust, and on stderr the reason."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from tests.e2e.organised import GUIDE, TEA, Company, Line, new, step, writes
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
        (NONSENSE, "zh", "manager未能完成："),
        (SILENT, "en", "manager has nothing more to do, and has not answered."),
        (SILENT, "zh", "manager已没有要做的事，但没有答复。"),
        (FAILED, "en", "Task t2 (Tea guide) is over: failed."),
        (FAILED, "zh", "任务t2（Tea guide）已结束：失败。"),
        (LEFT, "en", "Task t2 (Tea guide) is not over, and nobody has anything to do in it. Ask manager to go on"),
        (LEFT, "zh", "任务t2（Tea guide）尚未结束，但没有人在处理。"),
    ],
)
def test_what_was_asked_for_and_not_done_is_no_success(
    tmp_path: Path, script: Script, language: str, reason: str
) -> None:
    ended = asked(tmp_path, script, language=language)
    assert ended.code == 1, ended.err
    assert reason in ended.err


@pytest.mark.parametrize("words", [(), ("--say", "A tea guide, please.", "--to", "@manager")], ids=["piped", "named"])
def test_a_manager_who_says_nothing_is_no_success_however_it_was_asked(tmp_path: Path, words: Sequence[str]) -> None:
    with provider(Company(SILENT)) as server:
        more = reached(server)
        new(tmp_path / "home", tmp_path, "--person", "ann", **more)
        piped = None if words else "A tea guide, please.\n"
        ended = greenroom(tmp_path / "home", "talk", *words, "--wait", stdin=piped, cwd=str(tmp_path), **more)
    assert (ended.code, "manager has nothing more to do, and has not answered." in ended.err) == (1, True)


def test_a_reply_that_is_mended_is_no_failure(tmp_path: Path) -> None:
    ended = asked(tmp_path, {**TEA, ("manager", "planning"): ["no plan at all", *TEA["manager", "planning"]]})
    assert (ended.code, ended.out) == (0, f"◆ Task t2 is over: finished. {GUIDE}\n")


def test_a_program_reads_the_reason_too(tmp_path: Path) -> None:
    found = asked(tmp_path, FAILED, "--output-format", "json").json
    assert (found["status"], found["exit_code"]) == ("failed", 1)
    assert found["why"] == "Task t2 (Tea guide) is over: failed."


@pytest.mark.prove
def test_waiting_for_what_is_stopped_says_so_and_how_to_start_it(tmp_path: Path) -> None:
    home, here = tmp_path / "home", str(tmp_path)
    with provider(Company(TEA)) as server:
        more = reached(server)
        new(home, tmp_path, "--person", "ann", **more)
        assert greenroom(home, "talk", "--say", "A tea guide, please.", cwd=here, **more).code == 0
        assert greenroom(home, "team", "stop", cwd=here, **more).code == 0
        waited = greenroom(home, "talk", "--say", "And now?", "--wait", cwd=here, **more)
        assert waited.code == 6
        assert "tea does not work: stopped by a person. Let it work: greenroom team start tea" in waited.err
        again = greenroom(home, "talk", "--wait", cwd=here, stdin="/resume\n", **more)
        assert again.code == 0, again.err
        assert GUIDE in again.out


def test_what_a_person_says_next_asks_a_provider_again_that_was_in_the_way(tmp_path: Path) -> None:
    home, here = tmp_path / "home", str(tmp_path)
    obliging: Script = {
        ("manager", "planning"): [[step("send_message", "Tell ann.")]],
        ("manager", "send_message"): [writes("ann", "I will.")],
        ("manager", "reflection"): [[]],
    }
    with provider(Company(obliging)) as server:
        new(home, tmp_path, "--person", "ann", **reached(server))
        wrong = reached(server, "sk-wrong-0123456789")
        assert greenroom(home, "talk", "--say", "A tea guide.", "--wait", cwd=here, **wrong).code == 4
        asked = len(server.requests)
        assert greenroom(home, "talk", "--say", "And soon.", "--wait", cwd=here, **wrong).code == 4
        assert len(server.requests) > asked, "a fault that nobody has looked for again may be gone"
        right = greenroom(home, "talk", "--say", "Please.", "--wait", cwd=here, **reached(server))
    assert right.code == 0, right.err
    assert "It stands still" not in right.err
    assert right.out.count("I will.") == 3, "nothing that was asked for meanwhile is lost"


def test_in_the_room_the_same_fault_is_said_again_after_each_thing_that_is_said(tmp_path: Path) -> None:
    home, fault = tmp_path / "home", "It stands still: provider: "
    with provider(Company(TEA)) as server:
        new(home, tmp_path, "--person", "ann", **reached(server))
        with Typing(home, "talk", cwd=str(tmp_path), **reached(server, "sk-wrong-0123456789")) as room:
            for line in ("A tea guide.", "Please."):
                room.says(line)
                room.until(fault)


def test_waiting_for_somebody_else_says_for_whom(tmp_path: Path) -> None:
    home, here = tmp_path / "home", str(tmp_path)
    asks: Script = {
        ("manager", "planning"): [[step("send_message", "Ask ben.")]],
        ("manager", "send_message"): [writes("ben", "Green or black?", waiting=True)],
    }
    with provider(Company(asks)) as server:
        more = reached(server)
        new(home, tmp_path, "--person", "ann", "--person", "ben", **more)
        ended = greenroom(home, "talk", "--as", "ann", "--say", "Tea.", "--wait", cwd=here, **more)
    assert ended.code == 6
    assert "It waits for answers of: ben (1)." in ended.err


def test_whoever_asked_hears_why_it_could_not_be_done_and_nobody_else(tmp_path: Path) -> None:
    home, here = tmp_path / "home", str(tmp_path)
    fails: Script = {
        ("manager", "planning"): [[step("task_manager")]],
        ("manager", "task_manager"): [{"action": "finish_task", "task_id": "t9"}],
        ("manager", "reflection"): [[]],
    }
    with provider(Company(fails)) as server:
        more = reached(server)
        new(home, tmp_path, "--person", "ann", "--person", "ben", **more)
        ended = greenroom(home, "talk", "--as", "ben", "--say", "Ben alone.", "--wait", cwd=here, **more)
        hers = greenroom(home, "talk", "--as", "ann", "--inbox", "--output-format", "json", cwd=here, **more).json
    assert ended.code == 1
    assert "I could not do this: Ben alone." in ended.out
    assert "The model's answer could not be used, 3 times. It was told:" in " ".join(ended.out.split())
    assert "Ben alone." not in str(hers)


@pytest.mark.prove
def test_an_agent_with_the_name_of_a_person_who_comes_later_keeps_nobody_else_out(tmp_path: Path) -> None:
    home, here = tmp_path / "home", str(tmp_path)
    made: Script = {
        ("manager", "planning"): [[step("agent_manager", "Make eve."), step("send_message", "Tell ann.")]],
        ("manager", "agent_manager"): [{"action": "init_new_agent", "agent_id": "eve", "blueprint": "writer"}],
        ("manager", "send_message"): [writes("ann", "Eve is there.")],
        ("manager", "reflection"): [[]],
    }
    with provider(Company(made)) as server:
        more = reached(server)
        new(home, tmp_path, "--person", "ann", **more)
        assert greenroom(home, "talk", "--say", "Make eve.", "--wait", cwd=here, **more).code == 0
        charter = tmp_path / ".greenroom" / "teams" / "tea.toml"
        charter.write_text(charter.read_text().replace('people = ["ann"]', 'people = ["ann", "eve", "kim"]'))
        said = greenroom(home, "talk", "--as", "ann", "--say", "Again.", "--wait", cwd=here, **more)
        assert said.code == 0, said.err
        assert "'eve' cannot join: an agent of tea is called 'eve'. Write another name for them into" in said.err
        assert "Eve is there." in said.out
        assert greenroom(home, "talk", "--as", "kim", "--inbox", cwd=here, **more).code == 0
        who = greenroom(home, "talk", "--as", "eve", "--inbox", cwd=here, **more)
    assert (who.code, "Nobody here is called 'eve'. There are: ann, kim." in who.err) == (2, True)


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


def test_a_limit_of_the_charter_is_said_to_be_there_and_resuming_promises_nothing(tmp_path: Path) -> None:
    home, here, charter = tmp_path / "home", str(tmp_path), tmp_path / ".greenroom" / "teams" / "tea.toml"
    with provider(Company(TEA)) as server:
        more = reached(server)
        new(home, tmp_path, "--person", "ann", **more)
        charter.write_text(f"{charter.read_text()}\n[limits]\ntokens = 10\n")
        said = f"step (10 left). Its file allows no more: `tokens` below [limits] in {charter}. Write more"
        asked = greenroom(home, "talk", "--say", "A tea guide, please.", "--wait", cwd=here, **more)
        assert (asked.code, said in " ".join(asked.err.split())) == (5, True), asked.err
        again = greenroom(home, "talk", "--wait", cwd=here, stdin="/resume\n", **more)
        assert again.code == 5
        assert "It goes on as far as its limits let it." in again.err
        assert said in " ".join(again.err.split())
        charter.write_text(charter.read_text().replace("tokens = 10", "tokens = 900_000"))
        started = greenroom(home, "talk", "--wait", cwd=here, stdin="/resume\n", **more)
    assert (started.code, GUIDE in started.out) == (0, True), started.err


def test_what_is_started_from_elsewhere_is_given_more_and_called_by_its_id(tmp_path: Path) -> None:
    home, here, elsewhere = tmp_path / "home", tmp_path / "project", str(tmp_path)
    here.mkdir()
    with provider(Company(TEA)) as server:
        more = reached(server)
        new(home, here, "--person", "ann", **more)
        said = ("talk", "--say", "A tea guide, please.", "--output-format", "json")
        team = str(greenroom(home, *said, cwd=str(here), **more).json["team"])
        with Typing(home, "team", "start", team, "--max-tokens", "10", cwd=elsewhere, **more) as first:
            first.until(f"Give it more: greenroom team start {team} --max-tokens")
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


@pytest.mark.prove
def test_a_stop_of_what_is_stopped_begins_nothing_where_it_still_runs(tmp_path: Path) -> None:
    home, here = tmp_path / "home", str(tmp_path)
    with provider(Answer(text="one two three four five six seven eight nine ten " * 20, pace=0.2)) as server:
        more = reached(server)
        new(home, tmp_path, "--person", "ann", **more)
        with Typing(home, "talk", cwd=here, **more) as ann:
            ann.until("it works as long as you are here")
            ann.says("A tea guide, please.")
            server.wait_for(in_flight=1)
            for _ in range(3):
                assert greenroom(home, "team", "stop", cwd=here, **more).code == 0
        told = greenroom(home, "events", "last", "--output-format", "stream-json", cwd=here, **more)
    types = [str(one["type"]) for one in told.lines]
    since = types[types.index("TeamPaused") :]
    assert since.count("TeamPaused") == 3
    assert not {"StepStarted", "TeamResumed"} & {*since}, since
