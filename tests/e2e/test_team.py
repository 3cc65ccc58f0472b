"""An organisation through its doors: founded, run, watched, stopped, killed and gone on with."""

import json
import signal
from pathlib import Path
from typing import cast

import pytest

from tests.e2e.organised import GUIDE, TEA, Company, new
from tests.e2e.provider import provider, reached
from tests.e2e.terminal import greenroom
from tests.e2e.typing import CTRL_C, Typing


@pytest.mark.req("MAS-38")
def test_one_terminal_runs_it_with_a_picture_and_another_one_talks_to_it(tmp_path: Path) -> None:
    home, here = tmp_path / "home", str(tmp_path)
    with provider(Company(TEA)) as server:
        more = reached(server)
        new(home, tmp_path, "--person", "ann", **more)
        with Typing(home, "team", "start", cwd=here, **more) as first:
            first.until("Ctrl-C stops it")
            first.until("manager")
            again = greenroom(home, "team", "start", "tea", cwd=here, **more)
            assert again.code == 3
            assert "works already, in" in again.err
            assert "greenroom talk tea" in again.err
            said = greenroom(home, "talk", "--say", "A tea guide, please.", "--wait", cwd=here, **more)
            assert (said.code, said.out) == (0, f"◆ Task t2 is over: finished. {GUIDE}\n")
            first.until("wu")
            first.until("task t2 finished")
            first.press(CTRL_C)
            first.until("Stopped. Go on with: greenroom team start tea")
            assert first.ends() == 130
    listed = greenroom(home, "team", "list", cwd=here)
    assert "nobody runs it" in listed.out


def test_a_kill_loses_nothing_and_the_next_start_goes_on(tmp_path: Path) -> None:
    home, here = tmp_path / "home", str(tmp_path)
    script = Company(TEA)
    with provider(script) as server:
        more = reached(server)
        new(home, tmp_path, "--person", "ann", **more)
        assert greenroom(home, "talk", "--say", "A tea guide, please.", cwd=here, **more).code == 0
        with Typing(home, "team", "start", cwd=here, **more) as first:
            first.until("wu")
            first.send(signal.SIGKILL)
            first.process.wait(30)
        ended = greenroom(home, "talk", "--wait", cwd=here, stdin="/inbox\n", **more)
        pool = greenroom(home, "talk", "--inbox", "--output-format", "json", cwd=here, **more)
    assert ended.code == 0, ended.err
    found = pool.json["conversation_pool"]
    assert isinstance(found, dict)
    assert [one for one in found["global_messages"] if GUIDE in one] == [f"Task t2 is over: finished. {GUIDE}"]


@pytest.mark.req("MAS-264", "MAS-260")
def test_all_four_types_of_states_come_as_json_and_show_no_key(tmp_path: Path) -> None:
    home, here = tmp_path / "home", str(tmp_path)
    with provider(Company(TEA)) as server:
        more = reached(server)
        new(home, tmp_path, "--person", "ann", **more)
        leak = f"My key is {more['OPENAI_API_KEY']}."
        assert greenroom(home, "talk", "--say", leak, cwd=here, **more).code == 0
        found = {}
        for kind in ("task", "stage", "agent", "step"):
            ended = greenroom(home, "team", "status", "--type", kind, "--output-format", "json", cwd=here, **more)
            assert ended.code == 0
            assert more["OPENAI_API_KEY"] not in ended.out
            found[kind] = ended.json["states"]
        text = greenroom(home, "team", "status", "--type", "agent", cwd=here, **more)
        told = greenroom(home, "tell", "last", "Hello.", cwd=here, **more)
        resumed = greenroom(home, "resume", "last", cwd=here, **more)
    assert {name: list(one) for name, one in found.items() if isinstance(one, dict)} == {
        "task": ["t1"],
        "stage": [],
        "agent": ["ann", "manager"],
        "step": ["ann#1", "manager#1"],
    }
    assert "My key is [secret]." in json.dumps(found["step"])
    assert "persistent_memory" in text.out
    assert (told.code, "greenroom talk tea --say" in told.err) == (2, True)
    assert (resumed.code, "greenroom team start" in resumed.err) == (2, True)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("team", "start"), "There is no organisation here. `greenroom team new NAME` makes one."),
        (("team", "start", "nope"), "There is no organisation 'nope' here."),
        (("team", "status"), "There is no organisation here."),
        (("team", "new", "a b"), "'a b' cannot be an organisation's name."),
        (("team", "new", "tea", "--language", "fr"), "'fr' is no language that an organisation speaks."),
        (("team", "new", "tea", "--person", "a,b"), "'a,b' cannot be a person's name."),
        (("team", "new", "tea", "--person", ""), "'' cannot be a person's name."),
        (("team", "new", "tea", "--person", "manager"), "'manager' is a person and a manager."),
        (("team", "new", "tea", "--person", "Writer"), "'Writer' is what the house calls one of its own."),
        (("team", "new", "tea", "--person", "System"), "'System' is what the house calls one of its own."),
        (("team", "new", "tea", "--person", "ann", "--person", "ann"), "'ann' is named twice."),
        (("team", "new", "tea", "--person", "ann", "--person", "Ann"), "'ann' and 'Ann' could be taken for each"),
        (("talk", "--say", " "), "--say has nothing to say."),
        (("talk", "--say", "hi", "--to", " , "), "--to names nobody."),
        (("talk", "--to", "ann"), "--to says whom --say is for."),
        (("talk", "--inbox", "--wait"), "--inbox only looks."),
        (("talk", "tea", "--say", "hi"), "There is no organisation 'tea' here."),
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
    listed = greenroom(home, "team", "list", cwd=here)
    assert listed.code == 0
    rows = {line.split("  ")[0]: line for line in listed.out.splitlines()}
    assert "has not begun" in rows["tea"]
    for name in ("coffee", "folder", "gone", "my team"):
        assert "its file has mistakes" in rows[name]
        assert f"{name}.toml" in listed.err
    assert "coffee.toml is not TOML" in listed.err
    assert "'my team' cannot be an organisation's name. Rename the file" in listed.err
    found = greenroom(home, "team", "list", "--output-format", "json", cwd=here).json["teams"]
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
@pytest.mark.req("MAS-62", "MAS-72", "MAS-79", "MAS-80", "MAS-81", "MAS-82", "MAS-234", "MAS-236", "MAS-264")
def test_every_state_is_shown_field_by_field_when_its_work_is_over(tmp_path: Path) -> None:
    home, here = tmp_path / "home", str(tmp_path)
    with provider(Company(TEA)) as server:
        more = reached(server)
        new(home, tmp_path, "--person", "ann", **more)
        assert greenroom(home, "talk", "--say", "A tea guide.", "--wait", cwd=here, **more).code == 0
        words, states = ("team", "status", "--output-format", "json", "--type"), {}
        for kind in ("task", "stage", "agent", "step"):
            states[kind] = greenroom(home, *words, kind, cwd=here, **more).json["states"]
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
