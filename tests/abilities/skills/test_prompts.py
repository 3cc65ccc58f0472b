"""Prompts: sections in their order, in both languages, and a prefix that stays the same byte by byte."""

from itertools import pairwise
from pathlib import Path

import pytest
from jinja2 import Environment, meta

from greenroom.abilities.protocols.text_calls import PACK as FORMS
from greenroom.abilities.skills.planned.skill import PACK as PLANNED
from greenroom.abilities.skills.prompts.builder import (
    PACK,
    SECTION_TABLES,
    OtherAgent,
    PromptContext,
    render_addon,
    render_sections,
    render_system_prompt,
)
from greenroom.adapters.models.openai.request import RequestEncoder
from greenroom.core.base.errors import Bug
from greenroom.core.ports.model import ModelCard
from greenroom.core.ports.prompt_pack import PromptPack
from greenroom.core.state.spec import AgentSpec, TurnPolicy
from tests.abilities.skills.talks import BOB, Played, calls, in_order, says, team

TOLD = Path(__file__).parent / "told"
SPEC = AgentSpec(name="Ann", role="a coder", prompt="You write Python.", tools=("echo",))
SCENE = PromptContext(
    spec=SPEC, ends="finish", others=(OtherAgent(name="bob", description="reviews"),), project="Use tabs."
)


def variables(pack: PromptPack, language: str, name: str) -> set[str]:
    return meta.find_undeclared_variables(Environment().parse(pack.read_source(language, name)))


@pytest.mark.parametrize("pack", [PACK, PLANNED, FORMS], ids=["skills", "planned skills", "forms"])
def test_every_prompt_is_there_in_every_language_with_the_same_variables(pack: PromptPack) -> None:
    assert pack.list_languages() == ("en", "zh")
    assert pack.list_names("en") == pack.list_names("zh")
    for name in pack.list_names("en"):
        assert variables(pack, "en", name) == variables(pack, "zh", name), name


def test_a_language_that_is_not_there_is_english_and_a_prompt_that_is_not_there_a_bug() -> None:
    assert PACK.choose_language("zh-CN") == PACK.choose_language("zh_TW") == "zh"
    assert PACK.choose_language("fr") == PACK.choose_language("") == "en"
    with pytest.raises(Bug, match="no prompt 'nothing'"):
        PACK.render("en", "nothing", {})


@pytest.mark.req("AG-43")
@pytest.mark.parametrize(
    ("turn", "order"),
    [
        (TurnPolicy(), ["base", "role", "agents", "ending", "project"]),
        (TurnPolicy(protocols=("tool_call",)), ["base", "role", "agents", "ending", "project", "actions"]),
        (TurnPolicy(protocols=("xml_tool",)), ["base", "role", "project", "actions"]),
    ],
)
def test_the_sections_stand_in_the_order_of_their_table(turn: TurnPolicy, order: list[str]) -> None:
    scene = PromptContext(
        spec=AgentSpec(name="Ann", tools=("echo",), turn=turn),
        ends="finish",
        others=SCENE.others,
        project="Use tabs.",
        actions="HOW TO ACT",
    )
    assert [name for name, _ in render_sections(scene)] == order
    assert set(order) <= set(SECTION_TABLES[scene.profile])


def test_an_empty_section_is_left_out_and_who_only_talks_is_told_nothing_of_tools() -> None:
    scene = PromptContext(spec=AgentSpec(name="Ann", role="an assistant"), ends="text")
    assert render_system_prompt(scene) == "You are Ann, an assistant."
    assert "answer" in [
        name
        for name, _ in render_sections(PromptContext(spec=AgentSpec(name="A", tools=("x",), answer={}), ends="text"))
    ]


def test_what_an_agent_is_told() -> None:
    assert render_system_prompt(SCENE) == (TOLD / "told_en.md").read_text(encoding="utf-8").rstrip("\n")


def test_what_an_agent_is_told_in_chinese() -> None:
    told = render_system_prompt(
        PromptContext(spec=AgentSpec(name="小安", role="程序员", language="zh", tools=("x",)), ends="mark")
    )
    assert told == (TOLD / "told_zh.md").read_text(encoding="utf-8").rstrip("\n")


@pytest.mark.req("AG-44", "AG-184")
def test_what_is_told_anew_in_each_turn_is_only_for_those_who_act_in_text() -> None:
    jarvis = AgentSpec(name="Ann", tools=("save_memory",), turn=TurnPolicy(protocols=("tool_call",)))
    assert render_addon(SCENE) == ""
    told = render_addon(PromptContext(spec=jarvis, ends="mark", auto_complete=True))
    assert "One action per reply" in told
    assert "memory tools" in told
    assert "!!!COMPLETE!!!" in told
    assert "!!!COMPLETE!!!" not in render_addon(PromptContext(spec=jarvis, ends="mark", auto_complete=False))


async def test_the_requests_of_a_whole_run_share_their_beginning_byte_by_byte() -> None:
    turns = [calls("echo", f"c{number}", text="x" * number) for number in range(1, 12)]
    ann = AgentSpec(name="Ann", tools=("echo",), calls=("bob",))
    asks = calls("call_agent", "b", agent_name="bob", instruction="Look.")
    left = in_order(*turns, asks, says("Done."))
    model = Played(lambda request: says("Seen.") if request.purpose.agent == BOB else left(request))
    async with team(model, ann, others=[(BOB, AgentSpec(name="Bob"))], project="Use tabs.") as here:
        assert await here.ask("Go.") == "finished"
    encoding = RequestEncoder("fake", "m", ModelCard())
    bodies = [encoding.encode_request(one) for one in model.asked if one.purpose.agent != BOB]
    assert len(bodies) == 13
    for before, after in pairwise(bodies):
        shared = before[: before.rindex(b"]")]  # up to the end of its messages
        assert after.startswith(shared), "every prefix is one that the provider has seen"
