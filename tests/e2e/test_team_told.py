"""What the model is told when an organisation works, seen where it arrives: at the provider."""

import json
import re
from collections.abc import Mapping, Sequence

import pytest

from tests.abilities.skills.planned.test_prompt import HEADINGS, WANTED
from tests.e2e.workday import CONTINUE, PLAN, workday

SECTION = re.compile(r"^# (.+)$", re.MULTILINE)
STEP = "当前需要执行的步骤 current_step"
TOOL_STEP = "生成实际工具调用指令的提示 tool_step"
HISTORY = "历史已执行步骤 history_step"
TOOL_HISTORY = "该工具历史的历史信息 tool_history"
MEMORY = "持续性记忆persistent_memory"


def sections(text: str) -> dict[str, str]:
    """What stands under each heading, in the order of the headings."""
    pieces = SECTION.split(text)
    return dict(zip(pieces[1::2], pieces[2::2], strict=True))


def told(who: str, skill: str) -> list[dict[str, str]]:
    """The sections of everything that somebody was told in a skill."""
    return [sections(text) for text in workday().told[who, skill]]


def done(history: str) -> list[Mapping[str, object]]:
    """The steps in a history."""
    return [json.loads(line) for line in history.splitlines() if line.startswith("{")]


@pytest.mark.req("MAS-117", "MAS-128", "MAS-133", "MAS-140", "MAS-143", "MAS-147", "MAS-149", "MAS-157", "MAS-161")
@pytest.mark.req("MAS-168", "MAS-172", "MAS-177", "MAS-184", "MAS-199", "MAS-204", "MAS-205", "MAS-208", "MAS-209")
def test_all_twelve_skills_are_told_their_sections_in_their_order_under_the_headings_of_the_source() -> None:
    assert {skill for _, skill in workday().told} == set(WANTED)
    for (who, skill), texts in workday().told.items():
        for text in texts:
            found = [HEADINGS["zh"][f"# {one}"] for one in sections(text)]
            assert found == WANTED[skill], f"{who} {skill}"


@pytest.mark.req("MAS-200", "MAS-201", "MAS-202", "MAS-206")
def test_an_agent_is_told_who_it_is_what_it_may_use_and_what_it_keeps() -> None:
    here = told("wu", "planning")[0]
    who, may = here["Agent角色"].split("## 角色可用技能与工具 available_skills_and_tools\n")
    assert who.startswith("\n\n## 你的角色信息 agent_role\n- agent_id：wu\n- 名称：reader\n- 角色：a reader\n")
    assert "\n- 简介：Reads and weighs.\n" in who
    skills, tools = may.removeprefix("### 可用技能skills\n").split("\n### 可用工具tools\n")
    named = re.findall(r"^- \*\*(\w+)\*\*: .", skills, re.MULTILINE)
    assert {"planning", "reflection", "think", "quick_think", "send_message"} <= set(named)
    assert not {"summary", "tool_decision", "task_manager"} & set(named), "what it may not plan"
    assert "- **turn_page**: Turn to a page of the book.\n- **weigh**: Weigh some tea.\n" in tools
    rules, kept = here[MEMORY].split("## 你已有的持续性记忆内容：\n")
    assert rules.startswith("\n\n## 持续性记忆使用规则说明：\n")
    assert kept.startswith("（空）")


@pytest.mark.req("MAS-68", "MAS-121")
def test_what_is_kept_is_told_in_every_later_step_with_a_lower_heading() -> None:
    kept = "### Ann\nLikes green tea.\n"
    assert [kept in one[MEMORY] for one in told("wu", "reflection")] == [True] * 3
    assert [kept in one[MEMORY] for one in told("wu", "planning")] == [False, True]
    assert not [one for one in told("xi", "reflection") if "Likes green tea." in one[MEMORY]], "it is wu's own"


@pytest.mark.req("MAS-146", "MAS-148", "MAS-150", "MAS-208")
def test_a_thought_and_a_message_know_what_was_done_and_a_quick_thought_does_not() -> None:
    guess = {"quick_think": "Seventy degrees, I guess."}
    for skill in ("think", "send_message"):
        steps = done(told("wu", skill)[0][HISTORY])
        assert [one["execute_result"] for one in steps if one["executor"] == "quick_think"] == [guess]
        assert {"page": 2} in [one.get("instruction_content") for one in steps]
    for text in workday().told["wu", "quick_think"]:
        assert "Seventy degrees" not in text
        assert "of the book." not in text.replace("Turn to a page of the book.", ""), "what the tool brought"


@pytest.mark.req("MAS-134", "MAS-141", "MAS-228")
def test_who_looks_back_or_sums_up_reads_the_goals_in_the_first_planning_step() -> None:
    goals = ["Stage goal: Find out\nYour goal: Read the book", "Stage goal: Write\nYour goal: Write the text"]
    for skill, turns in {"reflection": [0, 2], "summary": [0, 1]}.items():
        first = [done(told("wu", skill)[turn][HISTORY])[0] for turn in turns]
        assert [(one["executor"], one["text_content"]) for one in first] == [("planning", one) for one in goals]


@pytest.mark.req("MAS-87", "MAS-142", "MAS-185")
def test_an_instruction_is_written_for_the_tool_step_behind_it_by_the_rules_of_that_tool() -> None:
    wanted = [
        ("turn_page", "Read the first pages.", "Turn to a page of the book.", {"page": 1}),
        ("turn_page", CONTINUE["direction"], "Turn to a page of the book.", {"page": 2}),
        ("weigh", "Weigh a spoon of tea.", "Weigh some tea.", {"grams": 3}),
        ("turn_page", "Read the last page.", "Turn to a page of the book.", {"page": 99}),
        ("weigh", "Weigh a cup of tea.", "Weigh some tea.", {"grams": 5}),
    ]
    steps = [one for one in workday().over["step"].values() if one["type"] == "tool"]
    assert [(one["executor"], one["text_content"], one["instruction_content"]) for one in steps] == [
        (tool, goal, instruction) for tool, goal, _, instruction in wanted
    ]
    for here, (tool, goal, rules, instruction) in zip(told("wu", "instruction_generation"), wanted, strict=True):
        for part in (f"`{tool}`", f"\n{goal}\n", f"\n{rules}\n", f'"required":["{next(iter(instruction))}"]'):
            assert part in here[TOOL_STEP]


CHAINS = [
    ("Read the first pages.", ["page 1"]),
    ("Read the first pages.", ["page 1", "continue", "page 2"]),
    ("Weigh a spoon of tea.", ["3 grams"]),
    ("Read the last page.", ["page 99"]),
    ("Weigh a cup of tea.", ["5 grams"]),
]
"""What a decision is made by: why the tool was begun with, and what came of it and was decided since."""


@pytest.mark.req("MAS-104", "MAS-178", "MAS-184", "MAS-212", "MAS-213", "MAS-215", "MAS-216", "MAS-217", "MAS-218")
def test_of_two_tools_in_turn_a_decision_is_told_its_own_newest_chain_from_its_first_goal_on() -> None:
    for here, (goal, rows) in zip(told("wu", "tool_decision"), CHAINS, strict=True):
        text = here[TOOL_HISTORY]
        assert [one["text_content"] for one in PLAN if f"\n{one['text_content']}\n" in text] == [goal]
        assert _rows(done(text)) == rows


def _rows(steps: Sequence[Mapping[str, object]]) -> list[str]:
    """What came of each call, and what was decided."""
    return [re.findall(r"page \d+|\d+ grams|continue|end", str({**one, "instruction_content": ""}))[0] for one in steps]


@pytest.mark.req("MAS-119", "MAS-151", "MAS-167")
def test_who_names_somebody_or_a_stage_that_is_not_there_is_told_so_and_does_it_again() -> None:
    missing = {
        ("xi", "send_message"): "There is no 'nobody' here. Use an agent's id: ",
        ("manager", "task_manager"): "There is no open stage 't9.s9'. Open stages: t2.s1, t2.s2.",
    }
    for (who, skill), why in missing.items():
        assert [why in one[STEP] for one in told(who, skill)].count(True) == 1
        states = [one["execution_state"] for one in workday().steps(who, skill)]
        assert states.count("failed") == 1
        assert states[states.index("failed") + 1] == "finished", "at once, and right"


@pytest.mark.req("MAS-15", "MAS-167")
def test_a_manager_reads_how_everybodys_part_of_a_stage_ended_and_why_one_failed() -> None:
    plans = [one[STEP] for one in told("manager", "planning")]
    assert "\n- wu, wu: finished.\n```\nI know the tea.\n```\n" in plans[1]
    assert "\nStage t2.s2 (Write) has nothing left to do:\n" in plans[2]
    assert "\n- xi, xi: failed.\n```\n我未能完成：" in plans[2]
    assert '"I will not look back." is not of type "array".' in plans[2]
