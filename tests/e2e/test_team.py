"""An organisation through its commands: founded, run, watched, stopped, killed, gone on with, waited for."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

import pytest

from tests.e2e.organised import GUIDE, TEA, Company, Line, new, office, step
from tests.e2e.terminal import Ended, greenroom
from tests.e2e.typing import CTRL_C
from tests.fake_openai import Answer


@pytest.mark.req("MAS-38")
def test_one_terminal_runs_it_with_a_picture_and_another_one_talks_to_it(tmp_path: Path) -> None:
    with office(tmp_path, Company(TEA), "ann") as tea, tea.sits("org", "start") as first:
        first.until("Ctrl-C stops it")
        first.until("manager")
        again = tea.types("org", "start", "tea")
        assert again.code == 3
        assert "runs already in" in again.err
        assert "greenroom inbox tea" in again.err
        said = tea.types("inbox", "--say", "A tea guide, please.", "--wait")
        assert (said.code, said.out) == (0, f"◆ Task t2 is over: finished. {GUIDE}\n")
        first.until("wu")
        first.until("task t2 finished")
        first.press(CTRL_C)
        first.until("Stopped. Continue with: greenroom org start tea")
        assert first.ends() == 130
    listed = tea.types("org", "list")
    assert "no process runs it" in listed.out


@pytest.mark.req("MAS-264", "MAS-260")
def test_all_four_types_of_states_come_as_json_and_show_no_key(tmp_path: Path) -> None:
    with office(tmp_path, Company(TEA), "ann") as tea:
        leak = f"My key is {tea.more['OPENAI_API_KEY']}."
        assert tea.types("inbox", "--say", leak).code == 0
        found = {}
        for kind in ("task", "stage", "agent", "step"):
            ended = tea.types("org", "status", "--type", kind, "--output-format", "json")
            assert ended.code == 0
            assert tea.more["OPENAI_API_KEY"] not in ended.out
            found[kind] = ended.json["states"]
        text = tea.types("org", "status", "--type", "agent")
        told = tea.types("send", "last", "Hello.")
        resumed = tea.types("resume", "last")
    assert {name: list(one) for name, one in found.items() if isinstance(one, dict)} == {
        "task": ["t1"],
        "stage": [],
        "agent": ["ann", "manager"],
        "step": ["ann#1", "manager#1"],
    }
    assert "My key is [secret]." in json.dumps(found["step"])
    assert "persistent_memory" in text.out
    assert (told.code, "greenroom inbox tea --say" in told.err) == (2, True)
    assert (resumed.code, "greenroom org start" in resumed.err) == (2, True)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("org", "start"), "There is no organisation here. Create one with `greenroom org new NAME`."),
        (("org", "start", "nope"), "There is no organisation 'nope' here."),
        (("org", "status"), "There is no organisation here."),
        (("org", "new", "a b"), "'a b' cannot be an organisation's name."),
        (("org", "new", "tea", "--language", "fr"), "Organisations do not support the language 'fr'."),
        (("org", "new", "tea", "--person", "a,b"), "'a,b' cannot be a person's name."),
        (("org", "new", "tea", "--person", ""), "'' cannot be a person's name."),
        (("org", "new", "tea", "--person", "manager"), "'manager' is a person and a manager."),
        (("org", "new", "tea", "--person", "Writer"), "'Writer' is a reserved name."),
        (("org", "new", "tea", "--person", "System"), "'System' is a reserved name."),
        (("org", "new", "tea", "--person", "ann", "--person", "ann"), "'ann' is named twice."),
        (("org", "new", "tea", "--person", "ann", "--person", "Ann"), "'ann' and 'Ann' look alike"),
        (("inbox", "--say", " "), "--say is empty."),
        (("inbox", "--say", "hi", "--to", " , "), "--to is empty."),
        (("inbox", "--to", "ann"), "--to needs a text."),
        (("inbox", "--list", "--wait"), "--list only shows the inbox."),
        (("inbox", "tea", "--say", "hi"), "There is no organisation 'tea' here."),
    ],
)
def test_bad_input_gets_a_sentence(tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    ended = greenroom(tmp_path / "home", *words, cwd=str(tmp_path))
    assert ended.code == 2
    assert said in " ".join(ended.err.split())


def test_a_file_with_mistakes_is_listed_with_what_is_wrong(tmp_path: Path) -> None:
    home, here, teams = tmp_path / "home", str(tmp_path), tmp_path / ".greenroom" / "teams"
    new(home, tmp_path, "--person", "ann")
    (teams / "coffee.toml").write_text("people = [")
    (teams / "my team.toml").write_text('people = ["ann"]\n')
    (teams / "folder.toml").mkdir()
    (teams / "gone.toml").symlink_to(tmp_path / "nowhere.toml")
    listed = greenroom(home, "org", "list", cwd=here)
    assert listed.code == 0
    rows = {line.split("  ")[0]: line for line in listed.out.splitlines()}
    assert "not started" in rows["tea"]
    for name in ("coffee", "folder", "gone", "my team"):
        assert "its file has mistakes" in rows[name]
        assert f"{name}.toml" in listed.err
    assert "coffee.toml is not TOML" in listed.err
    assert "'my team' cannot be an organisation's name. Rename the file" in listed.err
    found = greenroom(home, "org", "list", "--output-format", "json", cwd=here).json["teams"]
    assert isinstance(found, list)
    assert {one["name"]: one["stands"] for one in found}["coffee"] == "broken"
    assert "is not TOML" in {one["name"]: one["fault"] for one in found}["coffee"]


STAGE = {
    "task_id": "t2",
    "stage_id": "t2.s1",
    "stage_intention": "Write it",
    "agent_allocation": {"wu": "Write the guide"},
    "execution_state": "finished",
    "every_agent_state": {"wu": "finished"},
    "completion_summary": {"wu": GUIDE},
}
TASK = {
    "task_id": "t2",
    "task_name": "Tea guide",
    "task_intention": "A guide to green tea",
    "task_manager": "manager",
    "task_group": ["manager", "wu"],
    "communication_queue": [],
    "stage_list": [STAGE],
    "execution_state": "finished",
    "task_summary": GUIDE,
}
STEP = {
    "task_id": "t2",
    "stage_id": "t2.s1",
    "agent_id": "wu",
    "step_id": "wu#2",
    "step_intention": "to think",
    "type": "skill",
    "executor": "think",
    "execution_state": "finished",
    "text_content": "Write it.",
    "instruction_content": None,
}
PERSON: dict[str, object] = {
    "agent_id": "ann",
    "name": "ann",
    "role": "a person",
    "profile": "",
    "working_state": "idle",
    "llm_config": None,
    "human_config": None,
    "working_memory": {"t1": {}},
    "persistent_memory": "",
    "step_lock": [],
    "skills": [],
}
NOTES = [f"{name} step: finished." for name in ("Planning", "think", "Reflection", "summary")]


def without(state: dict[str, object], *names: str) -> dict[str, object]:
    return {name: value for name, value in state.items() if name not in names}


@pytest.mark.req("MAS-39", "MAS-40", "MAS-42", "MAS-43", "MAS-44", "MAS-45", "MAS-46", "MAS-47", "MAS-48", "MAS-50")
@pytest.mark.req("MAS-51", "MAS-52", "MAS-53", "MAS-54", "MAS-55", "MAS-56", "MAS-57", "MAS-58", "MAS-60", "MAS-61")
@pytest.mark.req("MAS-62", "MAS-72", "MAS-79", "MAS-80", "MAS-81", "MAS-82", "MAS-234", "MAS-236", "MAS-264", "MAS-20")
def test_every_state_is_shown_field_by_field_when_its_work_is_over(tmp_path: Path) -> None:
    with office(tmp_path, Company(TEA), "ann") as tea:
        assert tea.types("inbox", "--say", "A tea guide.", "--wait").code == 0
        words, states = ("org", "status", "--output-format", "json", "--type"), {}
        for kind in ("task", "stage", "agent", "step"):
            states[kind] = tea.types(*words, kind).json["states"]
    tasks, stages, agents, steps = (cast("dict[str, dict[str, object]]", found) for found in states.values())
    assert without(tasks["t2"], "shared_message_pool") == TASK
    noted = cast("list[dict[str, object]]", tasks["t2"]["shared_message_pool"])
    assert [note["content"] for note in noted if note["agent_id"] == "wu"] == NOTES
    assert stages == {"t2.s1": STAGE}
    assert without(steps["wu#2"], "execute_result") == STEP
    assert cast("dict[str, object]", steps["wu#2"]["execute_result"])["think"] == GUIDE
    assert without(agents["ann"], "agent_step", "tools", "conversation_pool") == PERSON
    kept, pool = (cast("dict[str, object]", agents["ann"][name]) for name in ("agent_step", "conversation_pool"))
    assert kept == {"agent_id": "ann", "todo_list": [], "step_list": [steps["ann#1"]]}
    assert (steps["ann#1"]["executor"], steps["manager#1"]["text_content"]) == (
        "send_message",
        "from: ann\nA tea guide.",
    )
    assert set(pool) == {"conversation_groups", "conversation_privates", "global_messages"}
    said = cast("dict[str, list[dict[str, object]]]", pool["conversation_privates"])["manager"]
    fields = {"stage_relative": "no_relative", "waiting": None, "return_waiting_id": None}
    assert [without(line, "timestamp") for line in said] == [
        {"sender_id": "ann", "content": "A tea guide.", "need_reply": True, **fields},
        {"sender_id": "manager", "content": GUIDE, "need_reply": False, **fields},
    ]


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
    with office(folder, Company(script), "ann", language=language) as tea:
        return tea.types("inbox", "--say", "A tea guide, please.", "--wait", *words)


@pytest.mark.parametrize(
    ("script", "language", "reason"),
    [
        (NONSENSE, "en", "manager failed: "),
        (SILENT, "en", "manager has nothing more to do and has not answered."),
        (FAILED, "en", "Task t2 (Tea guide) ended: failed."),
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
    with office(tmp_path, Company(TEA), "ann") as tea:
        assert tea.types("inbox", "--say", "A tea guide, please.").code == 0
        with tea.sits("org", "start", "--max-tokens", "10") as first:
            first.until(
                "tea is paused: its tokens are not enough for the next step (10 left). "
                "Raise the limit: greenroom org start tea --max-tokens"
            )
            assert first.ends() == 5


def test_a_stop_while_a_model_is_asked_ends_it_with_success(tmp_path: Path) -> None:
    with office(
        tmp_path, Answer(text="one two three four five six seven eight nine ten " * 20, pace=0.2), "ann"
    ) as tea:
        assert tea.types("inbox", "--say", "A tea guide, please.").code == 0
        with tea.sits("org", "start") as first:
            tea.server.wait_for(in_flight=1)
            assert tea.types("org", "stop").code == 0
            first.until("Stopped: stopped by a person.")
            assert first.ends() == 0
        shown = tea.types("org", "status", "--output-format", "json").json
    assert (shown["stands"], shown["owner"]) == ("paused", None), shown


LONG = Answer(text="one two three four five six seven eight nine ten " * 20, pace=0.2)


def test_an_agent_that_has_nothing_open_goes_for_good(tmp_path: Path) -> None:
    with office(tmp_path, Company(TEA), "ann", "ben") as tea:
        assert tea.types("inbox", "--as", "ann", "--say", "A guide.", "--wait").code == 0
    ended = tea.types("org", "dismiss", "wu")
    assert (ended.code, ended.out) == (0, "wu has left tea.\n")
    status = tea.types("org", "status", "--output-format", "json")
    assert status.json["agents"] == {"ann": "idle", "ben": "idle", "manager": "idle"}
    again = tea.types("org", "dismiss", "wu", "tea")
    assert (again.code, "There is no agent 'wu'. There are: ann, ben, manager." in again.err) == (2, True)


def test_who_is_at_work_or_has_a_part_stays_and_it_is_said_what_to_do_first(tmp_path: Path) -> None:
    company = Company(TEA)

    def serve(body: dict[str, object], number: int) -> Answer:
        told = company(body, number)
        return LONG if company.asked[-1][0] == "wu" else told

    with office(tmp_path, serve, "ann") as tea:
        said = tea.types("inbox", "--say", "A guide.", "--output-format", "json")
        with tea.sits("org", "start") as first:
            first.until("wu       a writer")
            tea.server.wait_for(in_flight=1)
            busy = tea.types("org", "dismiss", "wu")
            assert (busy.code, "'wu' runs step" in busy.err) == (2, True), busy.err
            assert tea.types("org", "stop").code == 0
            assert first.ends() == 0
        allotted = tea.types("org", "dismiss", "wu")
        assert (allotted.code, "'wu' has open subtasks." in allotted.err) == (2, True)
        assert tea.types("cancel", f"{said.json['team']}/t2").code == 0
        assert tea.types("org", "dismiss", "wu").code == 0
