"""Portraits in MAS's own words."""

import json
from collections.abc import Sequence

import pytest

from greenroom.core.base.ids import AgentId, TaskId
from greenroom.core.rules import intents as i
from greenroom.core.state.knowledge import Note
from greenroom.core.state.mas_format import (
    MasData,
    collect_working_memory,
    format_agent,
    format_stage,
    format_step,
    format_task,
    to_json_value,
)
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.stage import Stage
from greenroom.core.state.step import Step
from greenroom.core.state.task import Task
from greenroom.core.state.team_state import TeamState
from tests.core.house import ANN, BOB, BOSS, CY, HUE, PIA, S1, T1, T2, House, plan, question, skill, tool


def house_at_work() -> House:
    house = House.furnished(stages=(plan(("one", ANN), ("two", BOB), ("three", ANN)), plan(("four", CY)))).assign()
    house.do(i.UpdateStageAgentCompletion(stage_id=S1, agent_id=BOB, completion_summary="half"), by=BOB)
    return house.do(i.PostNote(task_id=T1, content="note well", stage_id=S1), by=ANN)


def task_state(state: TeamState, name: TaskId, notes: Sequence[Note] = (), ended: Sequence[Stage] = ()) -> MasData:
    """An open task, with its stages."""
    task = state.tasks[name]
    return format_task(task, (*ended, *(state.stages[stage] for stage in task.stages)), notes)


@pytest.mark.req("MAS-43", "MAS-44", "MAS-45", "MAS-46", "MAS-47", "MAS-48", "MAS-50", "MAS-51", "MAS-52")
def test_a_task_in_mas_words() -> None:
    house = house_at_work()
    portrait = task_state(house.state, T1, notes=house.archived(Note))
    stages = portrait.pop("stage_list")
    assert isinstance(stages, list)
    assert [stage["stage_id"] for stage in stages] == ["t1.s1", "t1.s2"]
    assert portrait == {
        "task_id": "t1",
        "task_name": "job",
        "task_intention": "do the job",
        "task_manager": "boss",
        "task_group": ["boss", "ann", "bob", "cy", "pia", "hue"],
        "shared_message_pool": [{"agent_id": "ann", "role": "writer", "stage_id": "t1.s1", "content": "note well"}],
        "communication_queue": [],
        "execution_state": "running",
        "task_summary": "",
    }


@pytest.mark.req("MAS-42", "MAS-53", "MAS-54", "MAS-55", "MAS-56", "MAS-57", "MAS-58")
def test_a_stage_in_mas_words() -> None:
    assert format_stage(house_at_work().state.stages[S1]) == {
        "task_id": "t1",
        "stage_id": "t1.s1",
        "stage_intention": "a goal",
        "agent_allocation": {"ann": "do one\ndo three", "bob": "do two"},
        "execution_state": "running",
        "every_agent_state": {"ann": "working", "bob": "working"},
        "completion_summary": {"bob": "half"},
    }


@pytest.mark.req("MAS-60", "MAS-61", "MAS-62", "MAS-63", "MAS-64", "MAS-67", "MAS-69", "MAS-70", "MAS-71", "MAS-89")
def test_an_agent_in_mas_words() -> None:
    house = house_at_work()
    portrait = format_agent(house.state, ANN)
    steps = portrait.pop("agent_step")
    assert isinstance(steps, dict)
    assert (steps["agent_id"], steps["todo_list"]) == ("ann", ["ann#1", "ann#2"])
    assert [step["step_id"] for step in steps["step_list"]] == ["ann#1", "ann#2"]
    assert portrait == {
        "agent_id": "ann",
        "name": "Ann",
        "role": "writer",
        "profile": "writes",
        "working_state": "working",
        "llm_config": None,
        "human_config": None,
        "working_memory": {"t1": {"t1.s1": ["ann#1", "ann#2"]}},
        "persistent_memory": "",
        "step_lock": [],
        "tools": ["shell", "patch"],
        "skills": ["merge"],
        "conversation_pool": None,
    }


@pytest.mark.req("MAS-68")
def test_an_agent_is_shown_with_what_it_keeps_for_good() -> None:
    house = house_at_work().do(i.Remember(content="### Prices\nin euros"), by=ANN)
    assert format_agent(house.state, ANN)["persistent_memory"] == "### Prices\nin euros"


@pytest.mark.req("MAS-72")
def test_a_person_is_shown_with_what_was_said_to_them() -> None:
    pool: dict[str, object] = {"conversation_groups": (), "conversation_privates": {}, "global_messages": ("hello",)}
    found = format_agent(house_at_work().state, HUE, pool=pool)["conversation_pool"]
    assert found == {"conversation_groups": [], "conversation_privates": {}, "global_messages": ["hello"]}


@pytest.mark.req("MAS-79", "MAS-80", "MAS-81", "MAS-82", "MAS-83", "MAS-87", "MAS-88")
def test_a_step_in_mas_words() -> None:
    house = House.furnished(stages=(plan(("one", ANN)),)).queue(
        ANN, tool("shell", {"command": ["ls"]}, "look around", "see what is there"), stage=S1
    )
    house.queue(ANN, skill("merge", "put it together"))
    assert format_step(house.state.steps[house.agent(ANN).todo[0]]) == {
        "task_id": "t1",
        "stage_id": "t1.s1",
        "agent_id": "ann",
        "step_id": "ann#1",
        "step_intention": "look around",
        "type": "tool",
        "executor": "shell",
        "execution_state": "init",
        "text_content": "see what is there",
        "instruction_content": {"command": ["ls"]},
        "execute_result": None,
    }
    other = format_step(house.state.steps[house.agent(ANN).todo[1]])
    assert (other["stage_id"], other["text_content"], other["instruction_content"]) == (
        "no_relative",
        "put it together",
        None,
    )


@pytest.mark.req("MAS-89")
def test_what_is_over_is_portrayed_from_the_archive() -> None:
    house = house_at_work()
    house.start(ANN)
    house.finish(
        ANN, i.FinishSubtask(subtask_id=house.state.stages[S1].subtasks[0].subtask_id, stage_id=S1), result={"a": 1}
    )
    ended = house.archived(Step)
    assert format_step(ended[0])["execute_result"] == {"a": 1}
    steps = format_agent(house.state, ANN, ended=ended)["agent_step"]
    assert isinstance(steps, dict)
    assert [(step["step_id"], step["execution_state"]) for step in steps["step_list"]] == [
        ("ann#1", "finished"),
        ("ann#2", "init"),
    ]
    house.do(i.FinishStage(stage_id=S1))
    stages = task_state(house.state, T1, ended=house.archived(Stage))["stage_list"]
    assert isinstance(stages, list)
    assert [(stage["stage_id"], stage["execution_state"]) for stage in stages] == [
        ("t1.s1", "finished"),
        ("t1.s2", "init"),
    ]
    house.do(i.CancelTask(task_id=T1, why="enough"))
    (task,) = house.archived(Task)
    portrait = format_task(task, house.archived(Stage), ())
    assert (portrait["execution_state"], portrait["task_summary"]) == ("cancelled", "enough")


@pytest.mark.req("MAS-40")
def test_a_stage_points_to_agents_and_never_to_steps() -> None:
    house = house_at_work()
    assert "#" not in json.dumps(format_stage(house.state.stages[S1]))
    assert "#" not in json.dumps(task_state(house.state, T1))


@pytest.mark.req("MAS-39")
def test_the_same_work_is_seen_from_the_task_and_from_the_agents() -> None:
    house = house_at_work()
    state = house.state
    task = task_state(state, T1)
    stages = task["stage_list"]
    assert isinstance(stages, list)
    allotted = {agent: stage["stage_id"] for stage in reversed(stages) for agent in stage["agent_allocation"]}
    assert allotted == {ANN: S1, BOB: S1, CY: "t1.s2"}
    steps = [format_step(state.steps[name]) for name in sorted(state.steps)]
    seen = {(step["task_id"], step["stage_id"], step["agent_id"]) for step in steps}
    assert seen == {(T1, S1, ANN), (T1, S1, BOB)}, "a stage names agents, a step names its agent and its stage"
    for _, stage, agent in seen:
        assert stage in collect_working_memory(state, AgentId(str(agent)))[T1]


@pytest.mark.req("MAS-94")
def test_all_tasks_are_found_by_their_id_until_they_are_over() -> None:
    house = house_at_work()
    house.do(i.AddTask(name="more", intention="do more", manager=BOSS, group=(ANN,)))
    portraits = {name: task_state(house.state, name) for name in house.state.tasks}
    assert {name: (task["task_id"], task["task_name"]) for name, task in portraits.items()} == {
        T1: (T1, "job"),
        T2: (T2, "more"),
    }
    house.do(i.CancelTask(task_id=T2))
    assert set(house.state.tasks) == {T1}
    assert [task.task_id for task in house.archived(Task)] == [T2]


@pytest.mark.req("MAS-65", "MAS-66")
def test_configurations_are_shown_without_their_secrets() -> None:
    house = House.furnished()
    llm = {
        "model": "x:y",
        "api_key": "sk-1",
        "max_tokens": 9,
        "nested": {"Secret": {"a": 1}, "list": [{"token": "t"}, "ok"]},
    }
    house.do(i.AddAgent(agent_id=AgentId("new"), spec=AgentSpec(name="New", llm_config=llm)))
    house.do(
        i.AddAgent(
            agent_id=AgentId("her"),
            spec=AgentSpec(name="Her", kind="human", human_config={"account": "her", "password": "1234", "pin": None}),
        )
    )
    assert format_agent(house.state, AgentId("new"))["llm_config"] == {
        "model": "x:y",
        "api_key": "***",
        "max_tokens": 9,
        "nested": {"Secret": "***", "list": [{"token": "***"}, "ok"]},
    }
    assert format_agent(house.state, AgentId("her"))["human_config"] == {
        "account": "her",
        "password": "***",
        "pin": None,
    }


@pytest.mark.req("MAS-67", "MAS-74")
def test_working_memory_holds_unfinished_work_by_task_and_stage() -> None:
    house = house_at_work().queue(ANN, skill("merge"))
    assert collect_working_memory(house.state, ANN) == {T1: {S1: ["ann#1", "ann#2"], "no_relative": ["ann#3"]}}
    house.run(ANN)
    assert collect_working_memory(house.state, ANN) == {T1: {S1: ["ann#2"], "no_relative": ["ann#3"]}}
    assert collect_working_memory(house.state, PIA) == {T1: {}}


def test_a_stage_that_is_over_is_forgotten_although_a_step_of_it_is_still_dying() -> None:
    house = house_at_work()
    house.start(ANN)
    house.do(i.FinishStage(stage_id=S1))
    assert collect_working_memory(house.state, ANN) == {T1: {}}


def test_every_portrait_is_json() -> None:
    house = house_at_work().queue(BOB).run(BOB, question(HUE))
    house.run(
        ANN,
        i.QueueSteps(agent_id=ANN, works=(tool("patch"),)),
        i.SendMessage(task_id=T1, receiver=(BOSS,), message="x"),
    )
    state = house.state
    for portrait in (
        task_state(state, T1, notes=house.archived(Note)),
        *(format_agent(state, name, ended=house.archived(Step)) for name in state.agents),
        *(format_step(state.steps[name]) for name in state.steps),
    ):
        assert json.loads(json.dumps(portrait)) == portrait


def test_what_json_cannot_hold_becomes_a_placeholder() -> None:
    odd = {1: (1.5, float("inf"), float("nan")), "bytes": b"x", "set": {1}, "deep": [{"more": object()}], "yes": True}
    assert to_json_value(odd) == {
        "1": [1.5, "inf", "nan"],
        "bytes": "<bytes>",
        "set": "<set>",
        "deep": [{"more": "<object>"}],
        "yes": True,
    }
