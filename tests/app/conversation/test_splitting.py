"""An agent file with `plan: true`: a task is split, and copies of the agent work on the parts, one after the other."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from greenroom import Agent, Greenroom, Limits, ModelRequest, RefusedError, tool
from greenroom.app.agents.specs import parse_spec
from greenroom.app.conversation.start import select_participants
from greenroom.app.settings.schema import AgentDefaults
from greenroom.core.ports.model import Failed
from greenroom.testing.scripted import Cue, ScriptedCall, ScriptedModel, ScriptItem

PLAN = '<PLAN>\n- "Read the parser."\n- name: Change it\n  task: accept comments\n- "Run the tests."\n</PLAN>'
WHOLE = "<PLAN>[]</PLAN>"


@tool(effect="pure")
def look(path: str) -> str:
    """Look at a file."""
    return f"{path}: nothing new"


def write_agent(folder: Path, *keys: str) -> Agent[str]:
    path = folder / "ann.md"
    path.write_text("\n".join(["---", "name: ann", "tools: [look]", *keys, "---", "Do it."]), encoding="utf-8")
    return Agent.from_file(path, tools=[look])


def script(plan: str, part: ScriptItem | Callable[[ModelRequest], ScriptItem], **more: str) -> ScriptedModel:
    """Plan like this, answer each part so, and end with `All done.`."""
    inner = more.get("inner", WHOLE)
    return ScriptedModel(
        [
            Cue(skill="plan_task", agent="ann", reply=lambda request: summary_or(plan, request)),
            Cue(skill="plan_task", answering=True, reply=lambda request: summary_or(inner, request)),
            Cue(skill="converse", answering=True, reply=part),
            Cue(skill="converse", agent="ann", reply="All done."),
        ]
    )


def summary_or(plan: str, request: ModelRequest) -> str:
    return "It went well." if "were split" in text_of(request) or "was split" in text_of(request) else plan


def text_of(request: ModelRequest) -> str:
    return "\n".join(message.content for message in request.messages)


def asked(model: ScriptedModel, skill: str, agent: str = "ann") -> list[ModelRequest]:
    return [each for each in model.requests if (each.purpose.skill, each.purpose.agent) == (skill, agent)]


async def run(agent: Agent[str], model: ScriptedModel, text: str = "Teach the parser comments.") -> str:
    async with Greenroom(in_memory=True, models=model) as greenroom:
        return (await greenroom.run(agent, text)).text


@pytest.mark.req("AG-5", "AG-107", "AG-109", "AG-110", "AG-111", "AG-112", "AG-177", "AG-192")
async def test_parts_run_one_after_the_other_and_the_agent_reads_plan_results_and_summary(tmp_path: Path) -> None:
    model = script(PLAN, lambda request: f"Answer {len(asked(model, 'converse', 'ann.1'))}.")
    assert await run(write_agent(tmp_path, "plan: true"), model) == "All done."
    skills = [(each.purpose.agent, each.purpose.skill) for each in model.requests]
    # A copy asks whether to split its part, too.
    part = [("ann.1", "plan_task"), ("ann.1", "converse")]
    assert skills == [("ann", "plan_task"), *part, *part, *part, ("ann", "plan_task"), ("ann", "converse")]
    second = text_of(asked(model, "converse", "ann.1")[1])
    assert "part 2 of 3" in second
    assert "Change it: accept comments" in second
    assert "Answer 1." in second, "the second copy knows the first result"
    assert "Answer 1." not in text_of(asked(model, "converse", "ann.1")[0])
    last = asked(model, "converse")[0].messages
    assert last[-1].content == "Teach the parser comments."
    assert "<PLAN>\n- Read the parser.\n- Change it: accept comments\n- Run the tests.\n</PLAN>" in last[-2].content
    assert all(f"Answer {number}." in last[-2].content.split("<SUB_TASK_RESULTS>")[1] for number in (1, 2, 3))
    assert "<RESULT_SUMMARY>\nIt went well.\n</RESULT_SUMMARY>" in last[-2].content


@pytest.mark.req("AG-107", "AG-114")
@pytest.mark.parametrize(
    "reply",
    [
        WHOLE,
        "I would not split this.",
        "<PLAN>\n- 'only one'\n</PLAN>",
        "<PLAN>\n- &a x\n- *a\n</PLAN>",
        "<PLAN>\n- Teach the parser comments.\n- Test it.\n</PLAN>",
        "<PLAN>\n- 1\n</PLAN>\n<PLAN>\n- 2\n</PLAN>",
    ],
)
async def test_a_task_that_stays_whole_is_done_as_without_a_plan(tmp_path: Path, reply: str) -> None:
    model = script(reply, "never asked")
    assert await run(write_agent(tmp_path, "plan: true"), model) == "All done."
    assert [message.content for message in asked(model, "converse")[0].messages[1:]] == ["Teach the parser comments."]
    assert not asked(model, "converse", "ann.1")


async def test_without_the_key_no_plan_is_asked_for(tmp_path: Path) -> None:
    model = script(PLAN, "never asked")
    assert await run(write_agent(tmp_path), model) == "All done."
    assert not asked(model, "plan_task")


@pytest.mark.req("AG-108", "AG-110", "AG-178", "AG-179")
@pytest.mark.parametrize(("depth", "copies"), [(1, {"ann", "ann.1"}), (2, {"ann", "ann.1", "ann.2"})])
async def test_copies_split_their_parts_down_to_the_greatest_depth(
    tmp_path: Path, depth: int, copies: set[str]
) -> None:
    two = "<PLAN>\n- one\n- two\n</PLAN>"
    model = script(two, "Part done.", inner=two)
    keys = ("plan: true", f"plan_max_depth: {depth}") if depth != 2 else ("plan: true",)  # 2 is the default
    assert await run(write_agent(tmp_path, *keys), model) == "All done."
    assert {each.purpose.agent for each in model.requests} == copies
    deepest = f"ann.{depth}"
    assert len(asked(model, "converse", deepest)) == 2**depth
    assert not asked(model, "plan_task", deepest), "the deepest copies work, and do not split"
    assert all("Part done." in text_of(each) for each in asked(model, "converse", "ann"))


@pytest.mark.req("AG-115")
async def test_a_plan_with_too_many_parts_is_joined_at_its_end(tmp_path: Path) -> None:
    many = "<PLAN>" + str([f"step {number}" for number in range(1, 6)]).replace("'", '"') + "</PLAN>"
    model = script(many, "Part done.")
    agent = write_agent(tmp_path, "plan: true", "plan_max_steps: 3", "plan_max_depth: 1")
    assert await run(agent, model) == "All done."
    parts = [text_of(each).split("Your part:\n")[1] for each in asked(model, "converse", "ann.1")]
    assert [part.split("\n<return")[0] for part in parts] == ["step 1", "step 2", "step 3\nstep 4\nstep 5"]


@pytest.mark.req("AG-113")
async def test_a_part_that_fails_is_recorded_and_the_others_go_on(tmp_path: Path) -> None:
    def answer(request: ModelRequest) -> ScriptItem:
        return Failed(kind="filter", why="No.") if "part 1 of" in text_of(request) else "Fine."

    model = script("<PLAN>\n- one\n- two\n</PLAN>", answer)
    agent = write_agent(tmp_path, "plan: true", "plan_max_depth: 1")
    assert await run(agent, model) == "All done."
    told = asked(model, "converse")[0].messages[-2].content
    first, second = told.split("<SUB_TASK_RESULTS>")[1].split("2. two")
    assert "failed:\n```\nann.1 handled the message without answering it" in first
    assert "done:\n```\nFine." in second


@pytest.mark.req("AG-110")
async def test_a_copy_has_the_same_rights_and_no_more_and_asks_no_person(tmp_path: Path) -> None:
    def answer(request: ModelRequest) -> ScriptItem:
        assert {"look"} <= {each.name for each in request.tools}
        assert {each.name for each in request.tools}.isdisjoint({"ask_user", "finish", "send_message", "call_agent"})
        called = any(message.role == "tool" for message in request.messages)
        return "Seen." if called else ScriptedCall(name="look", arguments={"path": "a.py"})

    model = script("<PLAN>\n- one\n- two\n</PLAN>", answer)
    assert await run(write_agent(tmp_path, "plan: true", "plan_max_depth: 1"), model) == "All done."
    assert asked(model, "converse")[0].tools == asked(model, "converse", "ann.1")[0].tools


async def test_copies_spend_from_the_budget_of_the_run(tmp_path: Path) -> None:
    model = script("<PLAN>\n- one\n- two\n</PLAN>", "Part done.")
    agent = write_agent(tmp_path, "plan: true", "plan_max_depth: 1")
    async with Greenroom(in_memory=True, models=model, limits=Limits(tokens=60_000)) as greenroom:
        with pytest.raises(RefusedError, match="reached a limit"):
            await greenroom.run(agent, "x" * 20_000)
    assert len(model.requests) < 5


@pytest.mark.req("AG-153", "AG-177", "AG-178")
@pytest.mark.parametrize(
    ("keys", "copies"), [({}, 1), ({"plan": False}, 0), ({"plan": True}, 1), ({"plan": True, "plan_max_depth": 3}, 3)]
)
def test_the_settings_say_whether_agents_split_tasks_whose_files_do_not(keys: dict[str, object], copies: int) -> None:
    spec, defaults = parse_spec({"name": "ann", **keys}), AgentDefaults(plan=True, plan_max_depth=1)
    participants = select_participants(spec, {}, str, defaults=defaults)
    assert [name for name, _ in participants.with_copies[1:]] == [f"ann.{depth + 1}" for depth in range(copies)]
    assert len(select_participants(spec, {}, str, tools=False, defaults=defaults).with_copies) == 1 + copies * bool(
        keys
    )
