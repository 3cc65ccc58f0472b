"""All states of an organisation, as `team status --type` shows them: field by field, in its work and after it."""

import re
from collections.abc import Mapping
from typing import cast

import pytest

from tests.e2e.workday import PLAN, RESULT, workday

STAGE = {"task_id": "t2", "execution_state": "init", "completion_summary": {}}
FIRST = {
    **STAGE,
    "stage_id": "t2.s1",
    "stage_intention": "Find out",
    "agent_allocation": {"wu": "Read the book"},
    "execution_state": "running",
    "every_agent_state": {"wu": "working"},
}
SECOND = {
    **STAGE,
    "stage_id": "t2.s2",
    "stage_intention": "Write",
    "agent_allocation": {"wu": "Write the text", "xi": "Find a title"},
    "every_agent_state": {"wu": "idle", "xi": "idle"},
}
TASK = {
    "task_id": "t2",
    "task_name": "Guide",
    "task_intention": "A guide to tea",
    "task_manager": "manager",
    "task_group": ["manager", "wu", "xi", "ann"],
    "communication_queue": [],
    "stage_list": [FIRST, SECOND],
    "execution_state": "running",
    "task_summary": "",
}
LOCK = "wu>5:ann"


def pool(task: Mapping[str, object]) -> list[Mapping[str, object]]:
    return cast("list[Mapping[str, object]]", task["shared_message_pool"])


def steps_of(agent: Mapping[str, object]) -> dict[str, Mapping[str, object]]:
    """The steps that stand in an agent's state."""
    kept = cast("Mapping[str, list[Mapping[str, object]]]", agent["agent_step"])
    return {str(one["step_id"]): one for one in kept["step_list"]}


def without(state: Mapping[str, object], *names: str) -> dict[str, object]:
    return {name: value for name, value in state.items() if name not in names}


def came_of(step: Mapping[str, object]) -> dict[str, object]:
    """The result of a step without what is kept of the model's reply."""
    result = cast("Mapping[str, object]", step["execute_result"] or {})
    return without(result, "text", "calls", "usage", "by")


@pytest.mark.req("MAS-39", "MAS-40", "MAS-42", "MAS-43", "MAS-44", "MAS-45", "MAS-46", "MAS-47", "MAS-50")
@pytest.mark.req("MAS-51", "MAS-52", "MAS-53", "MAS-54", "MAS-55", "MAS-56", "MAS-57", "MAS-58", "MAS-264")
def test_a_task_and_its_stages_are_shown_field_by_field_while_they_run() -> None:
    assert without(workday().waiting["task"]["t2"], "shared_message_pool") == TASK


@pytest.mark.req("MAS-8", "MAS-51", "MAS-52", "MAS-56", "MAS-57", "MAS-58", "MAS-122", "MAS-139", "MAS-167")
def test_when_all_is_over_it_says_what_finished_what_failed_and_why() -> None:
    over = workday().over
    finished, both = "finished", {"wu": "finished", "xi": "failed"}
    said = {"wu": "I know the tea."}
    why = cast("Mapping[str, str]", over["stage"]["t2.s2"]["completion_summary"])["xi"]
    assert why.startswith("我未能完成：")
    assert '"I will not look back." is not of type "array".' in why
    stages = [
        {**FIRST, "execution_state": finished, "every_agent_state": {"wu": finished}, "completion_summary": said},
        {
            **SECOND,
            "execution_state": "failed",
            "every_agent_state": both,
            "completion_summary": {**said, "xi": why},
        },
    ]
    ended = {**TASK, "execution_state": "failed", "task_summary": RESULT, "stage_list": stages}
    assert without(over["task"]["t2"], "shared_message_pool") == ended
    assert over["stage"] == {str(one["stage_id"]): one for one in stages}
    base = over["task"]["t1"]
    assert (base["task_name"], base["execution_state"]) == ("MAS基础任务进程", "running"), "that one never ends"


NOTED = "Planning quick_think instruction_generation Tool_Decision instruction_generation Tool_Decision"
NOTED += " instruction_generation Tool_Decision think instruction_generation Tool_Decision Send_Message"


@pytest.mark.req("MAS-22", "MAS-48", "MAS-98", "MAS-119", "MAS-123", "MAS-124")
def test_the_shared_pool_has_a_note_of_every_skill_in_the_words_of_the_source() -> None:
    mine = [one for one in pool(workday().waiting["task"]["t2"]) if one["agent_id"] == "wu"]
    wanted = [f"执行{one.replace('_D', ' D').replace('_M', ' M')}步骤:finished，" for one in NOTED.split()]
    head = {"agent_id": "wu", "role": "a reader", "stage_id": "t2.s1"}
    assert mine == [{**head, "content": one} for one in wanted]
    theirs = [one for one in pool(workday().over["task"]["t2"]) if one["agent_id"] == "xi"]
    assert theirs[-1] == {
        "agent_id": "xi",
        "role": "撰稿人",
        "stage_id": "t2.s2",
        "content": "执行Reflection步骤:failed，",
    }
    assert [one["execution_state"] for one in workday().steps("xi", "reflection")] == ["failed"] * 3


@pytest.mark.req("MAS-60", "MAS-61", "MAS-62", "MAS-63", "MAS-64", "MAS-65", "MAS-67", "MAS-70", "MAS-71", "MAS-74")
@pytest.mark.req("MAS-153", "MAS-267", "MAS-268", "MAS-269", "MAS-272")
def test_who_asked_two_and_has_one_answer_still_waits_and_does_nothing() -> None:
    agent = workday().waiting["agent"]["wu"]
    assert without(agent, "agent_step") == {
        "agent_id": "wu",
        "name": "reader",
        "role": "a reader",
        "profile": "Reads and weighs.",
        "working_state": "waiting",
        "llm_config": {"model": "openai:gpt-5.5"},
        "human_config": None,
        "working_memory": {"t2": {"t2.s1": ["wu#20", "wu#11", "wu#12", "wu#13"]}},
        "persistent_memory": "",
        "step_lock": [LOCK],
        "tools": ["turn_page", "weigh", "read_output"],
        "skills": ["think", "quick_think"],
        "conversation_pool": None,
    }
    (answer,) = [one for one in steps_of(workday().waiting["agent"]["xi"]).values() if one["stage_id"] == "t2.s1"]
    assert "<return_waiting_id>wu>5:xi</return_waiting_id>" in str(answer["text_content"])
    assert (answer["executor"], answer["execution_state"]) == ("send_message", "finished"), "the first answer is there"
    assert workday().waiting["agent"]["xi"]["step_lock"] == [], "who never asked waits for nobody"


@pytest.mark.req("MAS-83", "MAS-84", "MAS-89", "MAS-211", "MAS-271")
def test_what_is_still_to_do_stands_in_its_order_and_a_tool_without_its_instruction_is_pending() -> None:
    agent = workday().waiting["agent"]["wu"]
    kept = cast("Mapping[str, object]", agent["agent_step"])
    assert (kept["agent_id"], kept["todo_list"]) == ("wu", ["wu#20", "wu#11", "wu#12", "wu#13"])
    steps = steps_of(agent)
    assert [(steps[name]["executor"], steps[name]["execution_state"]) for name in ("wu#20", "wu#11", "wu#12")] == [
        ("process_message", "init"),
        ("instruction_generation", "init"),
        ("weigh", "pending"),
    ]
    assert steps["wu#12"]["instruction_content"] is None
    assert [one["execution_state"] for one in steps.values()][:12] == ["finished"] * 12, "what is done is kept"


@pytest.mark.req("MAS-76", "MAS-77", "MAS-229", "MAS-230", "MAS-270")
def test_when_all_is_over_nobody_waits_and_only_the_base_task_is_in_anybodys_memory() -> None:
    agents = workday().over["agent"]
    assert {name: (one["step_lock"], one["working_memory"]) for name, one in agents.items()} == {
        "ann": ([], {"t1": {}}),
        "manager": ([], {"t1": {}}),
        "wu": ([], {}),
        "xi": ([], {}),
    }
    assert agents["wu"]["persistent_memory"] == "### Ann\nLikes green tea."
    assert not [one for one in agents.values() if cast("Mapping[str, object]", one["agent_step"])["todo_list"]]


@pytest.mark.req("MAS-79", "MAS-80", "MAS-81", "MAS-82", "MAS-85", "MAS-86", "MAS-88")
def test_a_step_is_shown_field_by_field_with_the_tools_own_result() -> None:
    where = {"task_id": "t2", "stage_id": "t2.s1", "agent_id": "wu", "execution_state": "finished"}
    steps = workday().over["step"]
    assert without(steps["wu#2"], "execute_result") == {
        **where,
        "step_id": "wu#2",
        "step_intention": "to quick_think",
        "type": "skill",
        "executor": "quick_think",
        "text_content": "Guess.",
        "instruction_content": None,
    }
    assert steps["wu#4"] == {
        **where,
        "step_id": "wu#4",
        "step_intention": "to turn_page",
        "type": "tool",
        "executor": "turn_page",
        "text_content": "Read the first pages.",
        "instruction_content": {"page": 1},
        "execute_result": {"output": "This is page 1 of the book."},
    }


LETTER = {"sender_id": "wu", "task_id": "t2", "receiver": ["xi", "ann"], "message": "Green or black?"}
KEYS: dict[tuple[str, str], dict[str, object]] = {
    ("wu", "planning"): {"planned_step": PLAN},
    ("wu", "reflection"): {"reflection_step": [{**PLAN[0], "text_content": "Once more."}]},
    ("wu", "summary"): {"summary": "I know the tea.", "state": "finished"},
    ("wu", "instruction_generation"): {"instruction_generation": {"page": 1}},
    ("wu", "think"): {"think": "Eighty degrees, says the book."},
    ("wu", "quick_think"): {"quick_think": "Seventy degrees, I guess."},
    ("wu", "send_message"): {
        "send_message": {
            **LETTER,
            "stage_relative": "t2.s1",
            "need_reply": True,
            "waiting": True,
            "return_waiting_id": None,
        }
    },
    ("wu", "process_message"): {"process_message": "Xi likes black tea."},
    ("manager", "ask_info"): {
        "ask_instruction": {"type": "blueprints", "about": [], "sender_id": "manager", "sender_task_id": "t1"}
    },
    ("wu", "tool_decision"): {
        "tool_decision": {
            "tool_name": "turn_page",
            "decision": "continue",
            "direction": "Turn to the second page.",
        }
    },
}
"""What the first step of a skill came to."""


@pytest.mark.req("MAS-120", "MAS-129", "MAS-135", "MAS-144", "MAS-151", "MAS-152", "MAS-162", "MAS-173", "MAS-210")
@pytest.mark.parametrize(("who", "skill"), KEYS, ids=[one[1] for one in KEYS])
def test_a_skill_keeps_what_it_came_to_under_its_own_key(who: str, skill: str) -> None:
    assert came_of(workday().steps(who, skill)[0]) == KEYS[who, skill]


@pytest.mark.req("MAS-163", "MAS-164", "MAS-169", "MAS-170")
def test_what_a_manager_orders_is_kept_with_who_ordered_it_and_is_done() -> None:
    (first, second) = (came_of(one)["agent_instruction"] for one in workday().steps("manager", "agent_manager"))
    for made, name, blueprint in ((first, "wu", "reader"), (second, "xi", "writer")):
        told = cast("Mapping[str, object]", made)
        assert (told["action"], told["agent_id"], told["blueprint"]) == ("init_new_agent", name, blueprint)
        assert told["issuer"] == "manager"
        assert workday().over["agent"][name]["name"] == blueprint
    done = [one for one in workday().steps("manager", "task_manager") if one["execution_state"] == "finished"]
    orders = [came_of(one)["task_instruction"] for one in done]
    given = [cast("Mapping[str, object]", one) for one in orders]
    assert [one["action"] for one in given] == ["add_task", "finish_stage", "finish_stage", "finish_task"]
    assert {one["agent_id"] for one in given} == {"manager"}


@pytest.mark.req("MAS-92", "MAS-179", "MAS-180", "MAS-182", "MAS-188", "MAS-211", "MAS-232")
def test_a_decision_follows_every_call_and_to_go_on_comes_before_what_was_planned() -> None:
    did = [str(one["executor"]) for one in steps_of(workday().over["agent"]["wu"]).values()]
    call, other = (["instruction_generation", one, "tool_decision"] for one in ("turn_page", "weigh"))
    before = ["planning", "quick_think", *call, *call, *other, "think", *call, "send_message"]
    assert did[: len(before)] == before
    after = ["process_message", "process_message", *other, "reflection", "quick_think", "reflection", "summary"]
    assert did[len(before) : len(before) + len(after)] == after


@pytest.mark.req("MAS-154", "MAS-234", "MAS-224", "MAS-225", "MAS-227", "MAS-273")
def test_a_question_becomes_a_step_that_answers_it_with_its_id_and_an_answer_one_that_reads_it() -> None:
    day = workday()
    asked = next(one for one in day.steps("wu", "send_message") if "<return_waiting_id>" in str(one["text_content"]))
    lock = str(cast("Mapping[str, object]", came_of(asked)["send_message"])["return_waiting_id"])
    assert re.fullmatch(r"xi>\d+:wu", lock)
    assert asked["step_intention"] == "A message from xi is in text_content."
    assert "How hot?" in str(asked["text_content"])
    assert f"<return_waiting_id>{lock}</return_waiting_id>" in str(asked["text_content"])
    read = [one for one in day.steps("xi", "process_message") if "Eighty." in str(one["text_content"])]
    assert [one["step_intention"] for one in read] == ["A message from wu is in text_content."]
    answer = came_of(day.steps("ann", "send_message")[1])["send_message"]
    assert cast("Mapping[str, object]", answer)["return_waiting_id"] == LOCK, "a person's answer has it too"


@pytest.mark.req("MAS-72", "MAS-236", "MAS-241", "MAS-242", "MAS-245")
def test_what_a_person_was_asked_and_has_answered_is_in_their_pool_field_by_field() -> None:
    pools = [
        cast("Mapping[str, object]", one["agent"]["ann"]["conversation_pool"])
        for one in (workday().waiting, workday().over)
    ]
    asked, over = (
        cast("Mapping[str, list[Mapping[str, object]]]", one["conversation_privates"])["wu"] for one in pools
    )
    for one in over:
        assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", str(one["timestamp"]))
    question = {"sender_id": "wu", "content": "Green or black?", "stage_relative": "t2.s1", "need_reply": True}
    answer = {"sender_id": "ann", "content": "Green.", "stage_relative": "t2.s1", "need_reply": False}
    assert [without(one, "timestamp") for one in over] == [
        {**question, "waiting": LOCK, "return_waiting_id": None},
        {**answer, "waiting": None, "return_waiting_id": LOCK},
    ]
    assert len(asked) == 1, "it was not answered then"
    assert set(pools[0]) == {"conversation_groups", "conversation_privates", "global_messages"}
    notices = cast("list[str]", pools[0]["global_messages"])
    assert "来自Agent[<agent_id>wu</agent_id>]的消息需要您回复。" in notices
    assert [one for one in notices if LOCK in one], "that somebody waits, and with which id"
