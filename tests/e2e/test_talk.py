"""An organisation and its people: at a terminal, behind --say, in a pipe; letters, duties, JSON, keys."""

import signal
import subprocess
from pathlib import Path

import pytest

from tests.e2e.organised import GUIDE, TEA, Company, Line, Office, office, step, writes
from tests.e2e.provider import KEY, settings
from tests.e2e.terminal import GREENROOM, PATIENCE, Ended, environment
from tests.e2e.typing import CTRL_D
from tests.sampling import first


@pytest.mark.req("MAS-38", "MAS-252")
def test_at_a_terminal_it_runs_as_long_as_somebody_is_there_and_tells_what_comes(tmp_path: Path) -> None:
    with office(tmp_path, Company(TEA), "ann") as tea, tea.sits("inbox") as ann:
        ann.until("you are ann · it runs while you are here")
        ann.until("Nothing waits for you.")
        ann.says("A tea guide, please.")
        ann.until("→ manager")
        ann.until(f"Task t2 is over: finished. {GUIDE}")
        ann.says("/wat")
        ann.until("There is no command /wat.")
        ann.says("/who")
        ann.until("wu  a writer · has nothing to do")
        ann.says("/history manager")
        ann.until("ann: A tea guide, please.")
        ann.until("›")
        ann.press(CTRL_D)
        ann.until("Come back with: greenroom inbox tea")
        assert ann.ends() == 0


STAGE: dict[tuple[str, str], list[Line]] = {
    ("manager", "planning"): [
        [step("task_manager", "Begin the task.")],
        [step("task_manager", "Finish the task.")],
    ],
    ("manager", "task_manager"): [
        {
            "action": "add_task",
            "task_name": "Tasting",
            "task_intention": "Know the tea",
            "task_group": ["ann"],
            "stages": [{"stage_intention": "Taste it", "agent_allocation": {"ann": "Say how it tastes"}}],
        },
        {"action": "finish_task", "task_id": "t2", "state": "finished", "summary": "It is mild."},
    ],
    ("manager", "reflection"): [[]],
}
"""A person has a part in a stage."""


@pytest.mark.req("MAS-244", "MAS-248", "MAS-235")
def test_a_person_has_a_duty_uses_a_tool_for_it_and_reports(tmp_path: Path) -> None:
    (tmp_path / "tea.txt").write_text("sencha\n")
    with office(tmp_path, Company(STAGE), "ann") as tea:
        asked = tea.types("inbox", "--say", "Let us taste.", "--wait")
        assert asked.code == 6
        assert "1  manager · your part of t2.s1" in asked.out
        lines = '/tool read_code in t2.s1 {"file": "tea.txt"}\n/done 1 It is mild.\n'
        done = tea.types("inbox", "--wait", stdin=lines)
        assert done.code == 0, done.err
        assert "sencha" in done.out
        assert "Task t2 is over: finished. It is mild." in done.out
        shown = tea.types("org", "status", "--type", "step", "--output-format", "json")
    states = shown.json["states"]
    assert isinstance(states, dict)
    mine = [one for one in states.values() if one["agent_id"] == "ann"]
    assert [(one["executor"], one["stage_id"], one["execution_state"]) for one in mine] == [
        ("send_message", "no_relative", "finished"),
        ("read_code", "t2.s1", "finished"),
        ("summary", "t2.s1", "finished"),
    ]


APPROVED: dict[tuple[str, str], list[Line]] = {
    ("manager", "planning"): [
        [step("agent_manager"), step("task_manager")],
        [step("task_manager")],
    ],
    ("manager", "agent_manager"): [{"action": "init_new_agent", "agent_id": "eva", "blueprint": "engineer"}],
    ("manager", "task_manager"): [
        {
            "action": "add_task",
            "task_name": "A file",
            "task_intention": "made.txt is there",
            "task_group": ["eva"],
            "stages": [{"stage_intention": "Make it", "agent_allocation": {"eva": "Make made.txt"}}],
        },
        {"action": "finish_task", "task_id": "t2", "state": "finished", "summary": "It is there."},
    ],
    ("manager", "reflection"): [[]],
    ("eva", "planning"): [[{**step("execute_script", "Make made.txt."), "type": "tool"}]],
    ("eva", "instruction_generation"): [{"script": "echo tea > made.txt"}],
    ("eva", "reflection"): [[]],
    ("eva", "summary"): [{"completion_summary": "It is there.", "state": "finished"}],
}
"""An agent wants to run a command that a person has to agree to."""


def test_a_step_that_needs_a_yes_waits_for_any_of_the_people(tmp_path: Path) -> None:
    settings(tmp_path / "home", "execute_tool_confirm = true\n")
    with office(tmp_path, Company(APPROVED), "ann", "ben") as tea:
        asked = tea.types("inbox", "--as", "ben", "--say", "Make made.txt.", "--wait")
        assert asked.code == 6, asked.err
        assert "/yes 1 or /no 1 WHY" in asked.out
        wrong = tea.types("inbox", "--as", "ben", stdin="/answer 1 perhaps\n")
        assert wrong.code == 2
        assert "Unknown answer." in wrong.err
        agreed = tea.types("inbox", "--as", "ben", "--wait", stdin="/yes\n")
        assert agreed.code == 0, agreed.err
        assert "Task t2 is over: finished. It is there." in agreed.out
    assert (tmp_path / "made.txt").read_text() == "tea\n"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("/answer 7 x", "There is no message 7 for ann. There are: none."),
        ("/group us: x", "There is no group 'us'."),
        ("/tool rm {}", "ann may not use the tool 'rm'."),
        ("/yes", "No step waits for approval."),
        ("/history Manager", "There is no agent 'Manager'. Did you mean 'manager'?"),
        ("/inbx", "There is no command /inbx. Did you mean /inbox?"),
    ],
)
def test_what_cannot_be_done_gets_a_sentence_and_a_code(tmp_path: Path, line: str, said: str) -> None:
    with office(tmp_path, Company({}), "ann") as tea:
        ended = tea.types("inbox", stdin=f"{line}\n")
        heard = tea.types("inbox", stdin="/history manager\n")
    assert ended.code == 2
    assert said in " ".join(ended.err.split())
    assert "There are no messages between you and manager yet." in heard.err, "it was sent to nobody"


def test_a_room_takes_over_from_one_that_is_killed_and_says_when_all_is_over(tmp_path: Path) -> None:
    with office(tmp_path, Company(TEA), "ann", "ben") as tea, tea.sits("inbox", "--as", "ann") as ann:
        ann.until("it runs while you are here")
        with tea.sits("inbox", "--as", "ben", columns="60") as ben:
            ben.until("it runs in another terminal")
            ann.says("/tell ben: Tea?")
            ben.until("Tea?")
            ann.send(signal.SIGKILL)
            ann.process.wait(30)
            ben.says("A tea guide, please.")
            ben.until("Task t2 is over: finished.")
            teams = tea.types("org", "list", "--output-format", "json").json["teams"]
            assert isinstance(teams, list)
            assert tea.types("cancel", teams[0]["team"]).code == 0
            ben.says("And now?")
            ben.until("tea has ended. `greenroom show")
            ben.until("›")
            ben.press(CTRL_D)
            assert ben.ends() == 0


ASKING: dict[tuple[str, str], list[Line]] = {
    ("manager", "planning"): [[step("send_message", "Ask ann.")], []],
    ("manager", "send_message"): [writes("ann", f"Is {KEY} yours?\nSay so.", waiting=True)],
    ("manager", "process_message"): ["Good."],
    ("manager", "reflection"): [[]],
}
"""The manager asks back, and shows a key."""


def from_shell(tea: Office, line: str) -> Ended:
    """As a shell does it that turns streams around."""
    done = subprocess.run(
        ["/bin/sh", "-c", f'exec "$@" {line}', "sh", *GREENROOM, "inbox"],
        env=environment(tea.home, **tea.more),
        cwd=tea.folder,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    return Ended(done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize("form", first("text", "json", "stream-json"))
def test_a_key_that_somebody_was_sent_is_shown_nowhere(tmp_path: Path, form: str) -> None:
    with office(tmp_path, Company(ASKING), "ann") as tea:
        told = [
            tea.types("inbox", "--say", "Tea.", "--wait", "--output-format", form),
            tea.types("inbox", "--list", "--output-format", form),
            tea.types("inbox", "--output-format", form, stdin="/inbox\n/history manager\n/notices\n"),
            tea.types("inbox", "--say", f"/to {KEY}: x", "--output-format", form),
        ]
        with tea.sits("inbox", columns="60") as ann:
            ann.until("Is secret-withheld-by-greenroom yours?")
            ann.until("›")
            seen = ann.seen
    assert KEY not in "\n".join((*(f"{one.out}\n{one.err}" for one in told), seen))
    for one in told[:3]:
        assert "Is secret-withheld-by-greenroom yours?" in one.out


@pytest.mark.parametrize("form", ["json", "stream-json"])
def test_whatever_is_shown_to_people_is_told_to_programs(tmp_path: Path, form: str) -> None:
    (tmp_path / "tea.txt").write_text("sencha\n")
    with office(tmp_path, Company(TEA), "ann", "ben") as tea:
        lines = "/who\n/tasks\n/help\n/tell ben: Tea!\n/history ben\n/notices\n/inbox\n"
        lines += '/tool read_code {"file": "tea.txt"}\n/wat\n'
        ended = tea.types("inbox", "--as", "ann", "--output-format", form, stdin=lines)
    found = ended.lines[-1]
    if form == "stream-json":
        kinds = {"agent": "agents", "task": "tasks", "command": "commands", "said": "history", "done": "done"}
        kinds |= {"tool_call": "tool_calls", "refused": "refused"}
        assert not set(kinds.values()) & set(found)
        found = {many: [one for one in ended.lines if one["type"] == kind] for kind, many in kinds.items()}
        found |= {"notices": [], "letters": []}
    shown = {name: found[name] for name in ("notices", "letters")}
    assert shown == {"notices": [], "letters": []}
    agents, tasks, commands = (_all(found, name) for name in ("agents", "tasks", "commands"))
    assert [(one["agent"], one["you"], one["kind"]) for one in agents] == [
        ("ann", True, "human"),
        ("ben", False, "human"),
        ("manager", False, "llm"),
    ]
    assert [(one["task"], one["manager"], one["stages"]) for one in tasks] == [("t1", "manager", [])]
    assert {"command": "answer", "takes": "N TEXT", "about": "answer message N"}.items() <= commands[0].items()
    (said,) = _all(found, "history")
    assert (said["with"], said["from"], said["message"]) == ("ben", "ann", "Tea!")
    (done,) = _all(found, "done")
    assert (done["what"], done["to"]) == ("sent", "ben")
    (call,) = _all(found, "tool_calls")
    assert (call["tool"], call["state"], call["stage"]) == ("read_code", "finished", None)
    assert "sencha" in str(call["output"])
    (refused,) = _all(found, "refused")
    assert str(refused["error"]).startswith("There is no command /wat.")


def _all(found: dict[str, object], name: str) -> list[dict[str, object]]:
    told = found[name]
    assert isinstance(told, list)
    return told


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (b"x" * 1_100_000, "Line 2 of stdin is longer than 1 MB. Split it."),
        (b'"""\nDo not delete this:\n\xff\n/tell ben: No.\n"""', "Line 4 of stdin is not UTF-8 text."),
    ],
    ids=["long", "no text"],
)
def test_at_a_line_that_cannot_be_read_it_ends_and_those_before_it_are_done(
    tmp_path: Path, bad: bytes, said: str
) -> None:
    file = tmp_path / "lines"
    file.write_bytes(b"\n".join((b"/tell ben: One.", bad, b"/tell ben: Two.")))
    with office(tmp_path, Company({}), "ann", "ben") as tea:
        ended = from_shell(tea, f"--as ann < {file}")
        heard = tea.types("inbox", "--as", "ben", "--say", "/history ann").out
    assert (ended.code, said in ended.err) == (2, True), ended.err
    assert [line.partition("ann: ")[2] for line in heard.splitlines()] == ["One."]
