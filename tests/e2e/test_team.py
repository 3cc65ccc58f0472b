"""An organisation through its doors: founded, run, watched, stopped, killed and gone on with."""

import json
import signal
from pathlib import Path

import pytest

from tests.e2e.organised import GUIDE, TEA, Company, new
from tests.e2e.provider import provider, reached
from tests.e2e.terminal import greenroom
from tests.e2e.typing import CTRL_C, Typing

ZH = {
    **TEA,
    ("manager", "task_manager"): [
        TEA["manager", "task_manager"][0],
        {"action": "finish_task", "task_id": "t2", "state": "finished", "summary": "绿茶：80度，两分钟。"},
    ],
}


@pytest.mark.req("MAS-3", "MAS-8", "MAS-9", "MAS-12", "MAS-233", "MAS-250", "MAS-252")
@pytest.mark.parametrize(
    ("language", "lines", "base", "told"),
    [
        ("en", TEA, "MAS base task", f"◆ Task t2 is over: finished. {GUIDE}"),
        ("zh", ZH, "MAS基础任务进程", "◆ 任务t2已结束：已完成。绿茶：80度，两分钟。"),
    ],
)
def test_a_person_asks_the_manager_and_gets_the_result(
    tmp_path: Path, language: str, lines: dict[tuple[str, str], list[object]], base: str, told: str
) -> None:
    script = Company(lines)
    with provider(script) as server:
        more = reached(server)
        new(tmp_path / "home", tmp_path, "--person", "ann", "--language", language, **more)
        ended = greenroom(
            tmp_path / "home", "talk", "--say", "A tea guide, please.", "--wait", cwd=str(tmp_path), **more
        )
    assert (ended.code, ended.out.splitlines()) == (0, [told])
    assert [one for one in script.asked if one[0] == "wu"] == [
        ("wu", "planning"),
        ("wu", "think"),
        ("wu", "reflection"),
        ("wu", "summary"),
    ]
    shown = greenroom(
        tmp_path / "home", "team", "status", "--type", "task", "--output-format", "json", cwd=str(tmp_path)
    )
    states = shown.json["states"]
    assert isinstance(states, dict)
    assert [(one["task_name"], one["execution_state"]) for one in states.values()] == [
        (base, "running"),
        ("Tea guide", "finished"),
    ]


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


def test_stop_ends_the_one_that_runs_it_and_start_goes_on(tmp_path: Path) -> None:
    home, here = tmp_path / "home", str(tmp_path)
    with provider(Company(TEA)) as server:
        more = reached(server)
        new(home, tmp_path, "--person", "ann", **more)
        with Typing(home, "team", "start", cwd=here, **more) as first:
            first.until("Ctrl-C stops it")
            first.until("manager")
            stopped = greenroom(home, "team", "stop", cwd=here)
            assert (stopped.code, stopped.out) == (0, "tea is stopped.\n")
            first.until("Stopped: stopped by a person.")
            assert first.ends() == 0
        assert "stopped" in greenroom(home, "team", "list", cwd=here).out
        with Typing(home, "team", "start", cwd=here, **more) as second:
            second.until("Ctrl-C stops it")
            second.until("manager")
            second.press(CTRL_C)
            assert second.ends() == 130
        status = greenroom(home, "team", "status", "--output-format", "json", cwd=here).json
        assert (status["stands"], status["owner"], status["agents"]) == (
            "idle",
            None,
            {"ann": "idle", "manager": "idle"},
        )


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


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ('managers = ["nobody"]', "nobody is called 'nobody', so it cannot manage. Who can manage here: manager."),
        ('managers = ["writer"]', "the agent 'writer' is no manager. Write `manager: true` into its file."),
        ('blueprints = ["writr"]', "`blueprints` names 'writr', and nobody is called so. There are: analyst, "),
        ('blueprints = ["manager"]', "`blueprints` names 'manager', who manages: managers make no managers."),
        (
            '[person.ann]\ntools = ["read_cod"]',
            "`tools` of [person.ann] names 'read_cod'. There is no tool 'read_cod'. Did you mean 'read_code'?",
        ),
    ],
)
def test_a_name_that_means_nobody_here_is_a_mistake_in_the_file(tmp_path: Path, written: str, said: str) -> None:
    home, here, teams = tmp_path / "home", str(tmp_path), tmp_path / ".greenroom" / "teams"
    teams.mkdir(parents=True)
    (teams / "tea.toml").write_text(f'people = ["ann"]\n{written}\n')
    listed = greenroom(home, "team", "list", cwd=here)
    assert (listed.code, "its file has mistakes" in listed.out) == (0, True)
    assert said in " ".join(listed.err.split())
    with provider(Company(TEA)) as server:
        talked = greenroom(home, "talk", "--say", "Tea.", cwd=here, **reached(server))
    assert said in " ".join(talked.err.split())
    assert talked.code == (3 if written.startswith("managers") else 0)
