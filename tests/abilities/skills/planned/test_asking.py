"""How a skill calls the model: its reservation, its origins, and how to add a custom skill."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from greenroom.abilities.skills.planned.answer import drop_nulls, make_strict
from greenroom.abilities.skills.planned.skill import Skill
from greenroom.abilities.skills.planned.skills import PLANNED_SKILLS, build_planned_skills
from greenroom.app.text_reader import TextReader
from greenroom.core.base.records import Data
from greenroom.core.base.text import LabelledText
from greenroom.core.ports.model import ModelCard, ModelEvent, ModelRequest, ModelTextDelta, ToolSpec
from greenroom.core.rules.intents import CancelTask
from greenroom.core.state.step import StepStarted, Work
from tests.abilities.skills.planned.planners import (
    ANN,
    BOB,
    BOSS,
    DONE,
    NOTHING_MORE,
    T1,
    Script,
    house,
    lines,
    message,
    planner,
    said,
    step,
    tool,
)
from tests.abilities.skills.planned.rehearsal import rehearsed

QUICK = Work(type="skill", executor="quick_think", text_content="Fast.")
PLAN = said("planning", [step("quick_think")])
REST = lines(quick_think=[said("quick_think", "x")], reflection=[NOTHING_MORE], summary=[DONE])


async def test_more_is_reserved_than_the_prompt_has_bytes_in_every_step() -> None:
    long = said("think", "long " * 3000)
    told = lines(planning=[said("planning", [step("think", "goal " * 500)] * 8)], think=[long]) | REST
    async with house(told) as here:
        await here.stage("Think much.")
        started = {
            one.event.step_id: one.event
            async for one in here.runtime.events(here.team)
            if isinstance(one.event, StepStarted)
        }
        for request in here.model.asked:
            size = sum(len(one.content.encode()) for one in request.messages)
            reserved = started[request.purpose.step].reserved.tokens
            assert size + request.max_output <= reserved
        assert "left out" not in here.model.told("summary")


async def test_a_history_that_is_larger_than_the_window_is_cut_and_no_more_is_reserved() -> None:
    told = lines(planning=[said("planning", [step("think")] * 10)], think=[said("think", "long " * 3000)]) | REST
    async with house(told) as here:
        here.model.card = ModelCard(output=1000, window=20_000)
        await here.stage("Think much.")
        assert len(here.model.told("summary").encode()) < 40_000
        assert "Your goal: Think much." in here.model.told("summary")
        assert "characters…]" in here.model.told("summary")


async def test_the_cost_of_every_reply_is_counted_also_of_one_that_cannot_be_used() -> None:
    async with house(lines(planning=["No.", PLAN]) | REST) as here:
        await here.stage("Plan.")
        assert all(one.spent.money == 1 for one in await here.steps(ANN) if one.state in ("finished", "failed"))
        failed = (await here.steps(ANN))[0]
        assert (failed.result or {})["text"] == "No."


@pytest.mark.req("MAS-186", "MAS-198")
async def test_a_thirteenth_skill_is_a_record_with_its_prompt() -> None:
    sing = Skill(name="sing", tag="song", key="song", said="Sing", use_guide="Sing something.", skill_prompt="In tune.")
    told = lines(planning=[said("planning", [step("sing")])], sing=["<song>\nla la\n</song>"]) | REST
    async with house(told, more=[sing], specs={ANN: planner("ann", skills=("sing",))}) as here:
        assert await here.stage("Sing.") == "finished"
        assert (await here.result("sing"))["song"] == "la la"
        assert "- **sing**: Sing something." in here.model.told("planning")
        assert "In tune." in here.model.told("sing")
        assert "<song>\nyour text\n</song>" in here.model.told("sing")
        assert "Sing step: finished." in await here.notes()


@pytest.mark.req("MAS-27", "MAS-198")
def test_the_twelve_are_executors_by_name_that_describe_themselves() -> None:
    found = build_planned_skills(Script({}), reader=TextReader())
    assert [one.name for one in found] == [*(one.name for one in PLANNED_SKILLS), "compact"]
    assert {one.type for one in found} == {"skill"}
    assert all(one.description.endswith(".") for one in found)


async def test_a_tool_step_that_has_its_instruction_or_its_filler_gets_no_other() -> None:
    steps = [tool(instruction_content={"text": "here"}), step("instruction_generation"), tool()]
    told = lines(planning=[said("planning", steps)]) | REST
    told |= lines(instruction_generation=[said("instruction_generation", {"text": "there"})])
    async with house(told) as here:
        assert await here.stage("Call.") == "finished"
        assert (await here.did(ANN))[1:4] == ["echo", "instruction_generation", "echo"]
        assert [(one.result or {}).get("output") for one in await here.steps(ANN)][1:4] == ["here", None, "there"]


async def test_a_skill_that_was_called_a_tool_is_one_all_the_same() -> None:
    wrong = [{**step("quick_think"), "type": "tool"}, {**tool(), "type": "skill"}]
    told = lines(planning=[said("planning", wrong)]) | REST
    told |= lines(instruction_generation=[said("instruction_generation", {"text": "there"})])
    async with house(told) as here:
        assert await here.stage("Call.") == "finished"
        assert (await here.did(ANN))[1:4] == ["quick_think", "instruction_generation", "echo"]


async def test_outside_a_stage_a_reflection_that_adds_nothing_is_the_end() -> None:
    told = lines(reflection=[NOTHING_MORE], summary=[DONE])
    async with house(told) as here:
        await here.outside(Work(type="skill", executor="reflection"))
        assert await here.did(ANN) == ["reflection"]
        await here.outside(Work(type="skill", executor="summary"))
        assert (await here.result("summary"))["summary"] == "All is done."


async def test_an_instruction_for_nothing_changes_nothing() -> None:
    told = lines(instruction_generation=[said("instruction_generation", {"text": "x"})])
    async with house(told) as here:
        await here.outside(Work(type="skill", executor="instruction_generation"))
        assert (await here.result("instruction_generation"))["nothing_to_fill"] is True


@pytest.mark.req("MAS-142")
async def test_a_tool_that_the_house_does_not_describe_takes_any_object() -> None:
    told = lines(planning=[said("planning", [tool("odd")])]) | REST
    told |= lines(instruction_generation=[said("instruction_generation", {"any": "thing"})])
    async with house(told, specs={ANN: planner("ann", tools=("odd",))}) as here:
        await here.stage("Call.")
        odd = next(one for one in await here.steps(ANN) if one.work.executor == "odd")
        assert odd.work.instruction_content == {"any": "thing"}


async def test_two_of_one_name_are_told_apart_by_their_ids() -> None:
    told = lines(
        send_message=[said("send_message", message("Bob")), said("send_message", message("bob"))],
        bob_process_message=[said("process_message", "ok")],
    )
    async with house(told, specs={BOSS: planner("bob", manager=True)}) as here:
        await here.outside(Work(type="skill", executor="send_message"))
        assert "2 agents are called 'Bob'. Use an agent's id: boss (Bob)" in (await here.steps(ANN))[0].error
        assert await here.did(BOB) == ["process_message"]


@pytest.mark.req("MAS-154")
async def test_an_answer_to_somebody_else_leaves_the_one_who_waits_waiting() -> None:
    asks = said("send_message", message("ann", text="How many?", need_reply=True, waiting=True))
    told = lines(
        send_message=[said("send_message", message("kim", text="Bob asks.")), said("send_message", message("bob"))],
        bob_send_message=[asks],
        bob_process_message=[said("process_message", "ok")],
    )
    async with house(told) as here:
        await here.outside(Work(type="skill", executor="send_message"), agent=BOB)
        sent = [(one.receiver[0], one.return_waiting_id is not None) for one in await here.messages()]
        assert sent[:2] == [("ann", False), ("kim", False)]
        assert not (await here.state()).waits


async def test_what_the_project_and_a_server_say_is_labelled_once() -> None:
    server = ToolSpec(name="mcp__files__read", description="Reads.")
    model = Script(lines(quick_think=[said("quick_think", "x")]))
    project = LabelledText("Use tabs.", ("file:AGENTS.md",))
    skills = build_planned_skills(model, (server,), reader=TextReader(), project=project)
    ann = planner("ann", tools=("mcp__files__read",))
    async with house({}, specs={ANN: ann}, executors=skills) as here:
        await here.outside(QUICK, QUICK)
        first, second = await here.steps(ANN)
        assert first.origins == ("file:AGENTS.md", "description:files")
        assert second.origins == ()
        assert "Use tabs." in model.told("quick_think")


class Slow(Script):
    """A model that begins to answer and never ends."""

    def __init__(self) -> None:
        super().__init__({})
        self.begun = asyncio.Event()

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        yield ModelTextDelta(text="half")
        self.begun.set()
        await asyncio.Event().wait()


async def test_a_step_that_somebody_cancels_costs_what_it_read_and_leaves_nothing() -> None:
    model = Slow()
    async with house({}, executors=build_planned_skills(model, reader=TextReader())) as here:
        going = asyncio.create_task(here.outside(QUICK))
        await asyncio.wait_for(model.begun.wait(), 10)
        await here.runtime.ask(here.team, CancelTask(task_id=T1))
        await asyncio.wait_for(going, 10)
        (step_,) = await here.steps(ANN)
        assert (step_.state, step_.result) == ("cancelled", None)
        assert 0 < step_.spent.tokens < 8000


OPEN: list[tuple[Data, bool]] = [
    ({"type": "string", "minLength": 3}, False),
    ({"type": "object"}, False),
    ({"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": True}, False),
    ({"type": "object", "properties": {"a": {"type": "object"}}}, False),
    ({"type": "array"}, False),
    ({"anyOf": [{"type": "object"}]}, False),
    ({"type": "array", "items": {"type": "string"}}, True),
]


@pytest.mark.parametrize(("schema", "can"), OPEN, ids=[str(number) for number in range(len(OPEN))])
def test_what_cannot_be_said_strictly_is_asked_for_with_tags(schema: Data, can: bool) -> None:
    assert (make_strict(schema) is not None) is can


def test_a_strict_schema_wants_every_field_and_null_stands_for_none() -> None:
    text: Data = {"type": "string"}
    schema: Data = {"type": "object", "properties": {"a": text, "b": text}, "required": ["a"]}
    assert make_strict(schema) == {
        "type": "object",
        "properties": {"a": text, "b": {"anyOf": [text, {"type": "null"}]}},
        "required": ["a", "b"],
        "additionalProperties": False,
    }
    assert drop_nulls({"a": [{"b": None, "c": 1}], "d": None}) == {"a": [{"c": 1}]}


@pytest.mark.parametrize(
    ("reply", "why"),
    [("[]", "a JSON object with the field `answer`"), ("{", "Your reply cannot be used."), ('{"answer": 3}', "fit")],
)
async def test_a_structured_reply_that_cannot_be_used_is_asked_for_again(reply: str, why: str) -> None:
    good = '{"answer": "x", "persistent_memory": ""}'
    async with house(lines(quick_think=[reply, good]), strict=True) as here:
        await here.outside(QUICK)
        assert await here.did(ANN) == ["!quick_think", "quick_think"]
        assert why in here.model.told("quick_think", 1)


async def test_an_answer_of_nothing_is_none() -> None:
    async with house(lines(quick_think=["<quick_think>\n\n</quick_think>", said("quick_think", "x")])) as here:
        await here.outside(QUICK)
        assert (await here.steps(ANN))[0].error == "Your answer is empty."


async def test_a_model_with_structure_does_the_same_work() -> None:
    tags, json_ = await rehearsed("zh"), await rehearsed("zh", strict=True)
    first, second = ([(one.purpose.step, one.purpose.skill) for one in model.asked] for model in (tags, json_))
    assert first == second
