"""An organisation at work, with the kit of the house: from what a person wants to what they get."""

import json
from pathlib import Path

import pytest

from greenroom.app.organisation.inbox import STATE_TYPES, read_states, serialise_states
from greenroom.core.base.errors import RefusedError
from greenroom.core.base.ids import AgentId
from greenroom.core.state.agent import AgentAdded
from greenroom.core.state.message import Message
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.stage import Stage, StageEnded, StageStarted
from greenroom.core.state.step import Step, StepEnded, StepStarted
from greenroom.core.state.task import TaskCreated
from greenroom.core.sync.bus import CommitNotice
from tests.abilities.skills.planned.planners import DONE, NOTHING_MORE, Line, message, said, step
from tests.app.organisation.company import Company, company

MANAGER, WU = AgentId("manager"), AgentId("wu")
KEY = "sk-0123456789abcdef"


def manages(**fields: object) -> str:
    return said("task_manager", fields)


def makes(name: str, blueprint: str = "writer") -> str:
    return said("agent_manager", {"action": "init_new_agent", "agent_id": name, "blueprint": blueprint})


def stage(goal: str, **duties: str) -> dict[str, object]:
    return {"stage_intention": goal, "agent_allocation": duties}


TWO_STAGES: dict[tuple[str, str], list[Line]] = {
    ("manager", "planning"): [
        said("planning", [step("agent_manager"), step("agent_manager"), step("task_manager")]),
        said("planning", [step("task_manager"), step("task_manager")]),
        said("planning", [step("task_manager"), step("task_manager"), step("send_message")]),
    ],
    ("manager", "agent_manager"): [makes("wu"), makes("xi", "reviewer")],
    ("manager", "task_manager"): [
        manages(
            action="add_task",
            task_name="Tea guide",
            task_intention="A guide",
            task_group=["wu", "xi"],
            stages=[stage("Write", wu="Write it", xi="Think of a title")],
        ),
        manages(action="finish_stage", stage_id="t2.s1", state="finished", summary="Written."),
        manages(action="add_stage", task_id="t2", stages=[stage("Review", xi="Review it")]),
        manages(action="finish_stage", stage_id="t2.s2", state="finished", summary="Reviewed."),
        manages(action="finish_task", task_id="t2", state="finished", summary="The guide: 80 degrees."),
    ],
    ("manager", "reflection"): [NOTHING_MORE],
    **{
        (who, skill): [line]
        for who in ("wu", "xi")
        for skill, line in (
            ("planning", said("planning", [step("think"), step("quick_think")])),
            ("think", said("think", "80 degrees")),
            ("quick_think", said("quick_think", "Two minutes")),
            ("reflection", NOTHING_MORE),
            ("summary", DONE),
        )
    },
}


async def stages(house: Company) -> list[Stage]:
    return [one async for one in house.runtime.archive(house.team, "stage") if isinstance(one, Stage)]


async def steps(house: Company, agent: AgentId) -> list[Step]:
    found = [one async for one in house.runtime.archive(house.team, "step")]
    return [one for one in found if isinstance(one, Step) and one.agent_id == agent]


async def messages(house: Company) -> list[str]:
    return [one.message async for one in house.runtime.archive(house.team, "message") if isinstance(one, Message)]


@pytest.mark.req("MAS-3", "MAS-10", "MAS-11", "MAS-12", "MAS-13", "MAS-15", "MAS-17", "MAS-19")
async def test_a_request_becomes_a_task_with_stages_that_are_adjusted_on_the_way(tmp_path: Path) -> None:
    async with company(tmp_path, TWO_STAGES) as house:
        await house.ann.ask("A tea guide, please.", MANAGER)
        assert await house.rested() == "idle"
        events = [told.event async for told in house.runtime.events(house.team)]
        made = [type(one) for one in events if isinstance(one, AgentAdded | TaskCreated)]
        assert made[-3:] == [AgentAdded, AgentAdded, TaskCreated], "first the agents are there, then the task"
        over = await stages(house)
        assert [(one.intention, one.state, [it.agent_id for it in one.members]) for one in over] == [
            ("Write", "finished", ["wu", "xi"]),
            ("Review", "finished", ["xi"]),
        ]
        (task,) = await house.runtime.ended_tasks(house.team)
        assert (task.manager, task.summary, task.stages_made) == ("manager", "The guide: 80 degrees.", 2)
        done = await steps(house, WU)
        assert [one.work.executor for one in done] == ["planning", "think", "quick_think", "reflection", "summary"]
        assert all(one.work.intention and one.stage_id == "t2.s1" for one in done)


@pytest.mark.req("MAS-14", "MAS-16")
async def test_stages_run_one_after_the_other_and_an_agent_does_one_step_at_a_time(tmp_path: Path) -> None:
    async with company(tmp_path, TWO_STAGES) as house:
        most: list[int] = []

        def look(commit: CommitNotice) -> None:
            active = [one for one in commit.world.stages.values() if one.state == "running"]
            most.append(max(len([one for one in active if one.task_id == task]) for task in commit.world.tasks))

        (await house.runtime.start(house.team)).listen(look)
        await house.ann.ask("A tea guide, please.", MANAGER)
        await house.rested()
        assert max(most) == 1
        events = [told.event async for told in house.runtime.events(house.team)]
        order = [one.stage_id for one in events if isinstance(one, StageStarted | StageEnded)]
        assert order == ["t2.s1", "t2.s1", "t2.s2", "t2.s2"]
        running: dict[str, str] = {}
        for one in events:
            if isinstance(one, StepStarted):
                agent = one.step_id.partition("#")[0]
                assert agent not in running, "it had another one"
                running[agent] = one.step_id
            elif isinstance(one, StepEnded):
                running.pop(one.step_id.partition("#")[0], None)


@pytest.mark.req("MAS-7", "MAS-20", "MAS-22", "MAS-23", "MAS-250")
async def test_the_board_has_notes_that_are_pushed_to_nobody_and_the_group_is_dissolved_at_the_end(
    tmp_path: Path,
) -> None:
    async with company(tmp_path, TWO_STAGES) as house:
        await house.ann.ask("A tea guide, please.", MANAGER)
        await house.rested()
        tasks = await read_states(house.runtime, house.team, "task")
        pool = tasks["t2"]["shared_message_pool"]
        assert isinstance(pool, list)
        notes = [(one["agent_id"], one["stage_id"], one["content"]) for one in pool]
        assert ("wu", "t2.s1", "summary step: finished.") in notes
        assert not any("step: finished" in text for text in await messages(house))
        told = " ".join(one.content for request in house.model.asked for one in request.messages)
        assert "quick_think step: finished" not in told, "nobody is told of a note who did not ask"
        assert tasks["t2"]["communication_queue"] == []
        world = await house.world()
        assert "t2" not in world.tasks
        assert not any(duty.task_id == "t2" for one in world.agents.values() for duty in one.duties)
        assert "Task t2 is over: finished. The guide: 80 degrees." in (await house.ann.pool()).global_messages


@pytest.mark.req("MAS-24", "MAS-25", "MAS-26", "MAS-239")
async def test_a_dialogue_is_a_chain_of_messages_that_a_process_message_closes(tmp_path: Path) -> None:
    lines: dict[tuple[str, str], list[Line]] = {
        ("manager", "planning"): [said("planning", [step("send_message", "Ask ann which tea.")])],
        ("manager", "send_message"): [
            said("send_message", message("ann", text="Green or black?", need_reply=True, waiting=True)),
        ],
        ("manager", "process_message"): [said("process_message", "She likes green tea.")],
        ("manager", "reflection"): [NOTHING_MORE],
    }
    async with company(tmp_path, lines) as house:
        await house.ann.ask("Tea, please.", MANAGER)
        assert await house.rested() == "waiting"
        (letter,) = await house.ann.inbox()
        world = await house.world()
        assert world.agents[MANAGER].working_state == "waiting"
        assert [one.work.executor for one in world.steps_of(MANAGER)] == ["reflection"], "it does no step until then"
        await house.ann.answer(letter, "Green.")
        assert await house.rested() == "idle"
        done = await steps(house, MANAGER)
        assert [one.work.executor for one in done] == ["planning", "send_message", "process_message", "reflection"]
        assert "Green." in done[2].work.text_content


@pytest.mark.req("MAS-39", "MAS-40", "MAS-264")
async def test_all_states_are_there_by_type_and_id_open_and_over(tmp_path: Path) -> None:
    async with company(tmp_path, TWO_STAGES) as house:
        await house.ann.ask("A tea guide, please.", MANAGER)
        await house.rested()
        await house.runtime.stop(house.team)
        found = {kind: await read_states(house.runtime, house.team, kind) for kind in STATE_TYPES}
        assert list(found["task"]) == ["t1", "t2"]
        assert [found["task"][name]["execution_state"] for name in ("t1", "t2")] == ["running", "finished"]
        assert list(found["stage"]) == ["t2.s1", "t2.s2"]
        assert found["stage"]["t2.s1"]["every_agent_state"] == {"wu": "finished", "xi": "finished"}
        assert not any("step" in key for one in found["stage"].values() for key in one), "a stage knows no steps"
        assert set(found["agent"]) == {"manager", "wu", "xi", "ann", "ben"}
        pool = found["agent"]["ann"]["conversation_pool"]
        assert isinstance(pool, dict)
        assert list(pool["conversation_privates"]) == ["manager"]
        assert found["agent"]["wu"]["conversation_pool"] is None
        assert {one["stage_id"] for one in found["step"].values() if one["agent_id"] == "wu"} == {"t2.s1"}
        assert json.loads(json.dumps(found)) == found
        with pytest.raises(RefusedError, match=r"no states of type 'cup'. There are: task, stage, agent, step"):
            await read_states(house.runtime, house.team, "cup")


@pytest.mark.req("MAS-260")
def test_what_json_cannot_hold_is_a_placeholder_and_what_is_secret_is_not_there() -> None:
    deep: dict[str, dict[str, object]] = {
        "t1": {"a": [float("nan"), {"b": object()}], "c": "the key sk-0123456789abcdef is", "d": (1, None)}
    }
    safe = serialise_states(deep, ["sk-0123456789abcdef"])
    assert json.loads(json.dumps(safe)) == {
        "t1": {"a": ["nan", {"b": "<object>"}], "c": "the key [secret] is", "d": [1, None]}
    }


async def test_managers_make_agents_of_what_the_charter_names_and_of_nobody_who_manages(tmp_path: Path) -> None:
    others = {
        "poet": AgentSpec(name="poet", role="a poet", style="plan"),
        "boss": AgentSpec(name="boss", style="plan", manager=True),
    }
    async with company(tmp_path, {}, others=others) as house:
        names = set((await house.world()).blueprints)
        assert names == {"researcher", "writer", "analyst", "engineer", "reviewer", "poet"}
        assert (await house.world()).blueprints["poet"].llm_config == {"model": "fake:script"}
    async with company(tmp_path, {}, others=others, wanted=("poet", "ghost")) as house:
        assert set((await house.world()).blueprints) == {"poet"}
