"""The plan as text: what is rendered can be read again, and every damage is a fault with its line."""

from __future__ import annotations

import json

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom.core.base.records import Data, encode, evolve
from greenroom.teamwork.plan import Plan, PlanFault, TeamSettings
from greenroom.teamwork.plan_text import PLAN_SCHEMA, parse_model_plan, parse_plan_text, render_plan_text
from greenroom.teamwork.planner import plan_by_rules, recommend
from tests.teamwork.plans import AGENTS, TEXT, plans

SETTINGS = TeamSettings(max_subtasks=20)
PLAN = plan_by_rules(
    'add "search"\n[[subtasks]]\nid = 1', ["feature-development"], recommend(["feature-development"]), SETTINGS
)
GOOD = render_plan_text(PLAN)


@given(plans())
def test_what_is_rendered_is_read_again_unchanged(plan: Plan) -> None:
    assert parse_plan_text(render_plan_text(plan), AGENTS, SETTINGS) == plan


def test_line_ends_and_marks_of_other_systems_are_read() -> None:
    assert parse_plan_text("\ufeff" + GOOD.replace("\n", "\r\n")) == evolve(PLAN, source="file")


LETTERS = st.sampled_from(['"', "'", "[", "]", "=", "\n", "\\", "#", '"""', "x", "9" * 5000, "\x00", "{", "1.5", "é"])


@given(plans(), st.data())
def test_a_damaged_text_is_a_plan_or_a_fault_with_a_line_of_the_text(plan: Plan, data: st.DataObject) -> None:
    text = render_plan_text(plan)
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(len(text), start + 30)))
    text = text[:start] + data.draw(LETTERS) + text[end:]
    result = parse_plan_text(text, AGENTS, SETTINGS)
    if isinstance(result, PlanFault):
        assert 1 <= result.line <= text.count("\n") + 1
        assert str(result).startswith(f"Line {result.line}: ")


@given(TEXT)
def test_any_text_is_a_fault_with_a_line(text: str) -> None:
    result = parse_plan_text(text, AGENTS, SETTINGS)
    assert isinstance(result, PlanFault)
    assert result.line >= 1


@pytest.mark.parametrize("text", ["a = " + "[" * 100_000, "x" * 500_000, "a = " + "9" * 10_000])
def test_an_absurd_text_is_a_fault(text: str) -> None:
    result = parse_plan_text(text, AGENTS, SETTINGS)
    assert isinstance(result, PlanFault)
    assert result.line == 1


@pytest.mark.parametrize(
    ("old", "new", "words", "nearest"),
    [
        ('agent = "test-writer"', 'agent = "test-writter"', "no specialist `test-writter`", "test-writer"),
        ('on_failure = "stop"', 'on_failure = "contine"', "`on_failure` does not know this word", "continue"),
        ('task_types = ["feature-development"]', 'task_types = ["testin"]', "does not know this word", "testing"),
        ('dependencies = ["architect"]', 'dependencies = ["architekt"]', "depends on `architekt`", "architect"),
        ('dependencies = ["architect"]', 'dependencies = ["review"]', "cycle: ", ""),
        ('writes = ["tests/**"]', 'writes = ["../x"]', "leaves the repository: `../x`", ""),
        ('writes = ["tests/**"]', "writes = 3", "`writes`: Expected `array`", ""),
        ("seconds = 150", 'seconds = "long"', "`seconds`: Expected `int`", ""),
        ("seconds = 150", "seconds = -1", "`seconds`: ", ""),
        ("seconds = 150", "secnds = 150", "no key `secnds`", "seconds"),
        ("phases = false", "phasse = false", "no key `phasse`", "phases"),
        ("phases = false", "phases = 0", "`phases`: Expected `bool`", ""),
        ("seconds = 150", "seconds = = 150", "cannot be read as TOML", ""),
    ],
)
def test_a_fault_names_the_line_and_the_nearest_word(old: str, new: str, words: str, nearest: str) -> None:
    assert old in GOOD
    text = GOOD.replace(old, new, 1)
    fault = parse_plan_text(text, AGENTS, SETTINGS)
    assert isinstance(fault, PlanFault)
    assert words in str(fault)
    assert fault.nearest == nearest
    named = text.splitlines()[fault.line - 1]
    assert named == new or (nearest == "" and named.startswith("dependencies"))


def test_a_missing_id_names_the_line_of_its_subtask() -> None:
    text = GOOD.replace('id = "doc"\n', "")
    fault = parse_plan_text(text, AGENTS, SETTINGS)
    assert isinstance(fault, PlanFault)
    assert "missing required field `id`" in str(fault)
    assert text.splitlines()[fault.line] == 'agent = "documentation"'


def test_a_subtask_that_is_no_table_is_a_fault() -> None:
    for text in ("subtasks = 1\n", "subtasks = [1]\n", "subtasks = [\n {}]", "subtasks.id = 1\n"):
        fault = parse_plan_text('request = "x"\n' + text, AGENTS, SETTINGS)
        assert isinstance(fault, PlanFault)
        assert fault.line == 2


@given(plans())
def test_the_answer_of_a_model_is_read_as_the_same_plan(plan: Plan) -> None:
    answer = {"task_types": list(plan.task_types), "subtasks": json.loads(encode(plan))["subtasks"]}
    jsonschema_rs.validate(dict(PLAN_SCHEMA), answer)
    assert parse_model_plan(answer, plan.request) == Plan(
        request=plan.request, task_types=plan.task_types, subtasks=plan.subtasks, source="model"
    )


def test_a_wrong_answer_of_a_model_is_a_fault() -> None:
    answers: list[Data] = [{"subtasks": [{"id": "a"}]}, {"subtasks": "none"}, {"task_types": ["x"]}, {"tasks": []}]
    for answer in answers:
        assert isinstance(parse_model_plan(answer, "x"), PlanFault)
