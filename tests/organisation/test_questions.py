"""The eleven questions to the house, asked with the skill on the running house, in both languages."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from greenroom.abilities.skills.planned.skills import QUERIES
from greenroom.core.base.ids import AgentId, WaitingId
from greenroom.core.base.records import evolve
from greenroom.core.rules.intents import Query
from greenroom.core.state.message import Message, MessageSent, WaitReleased
from greenroom.core.state.spec import AgentSpec
from tests.abilities.skills.planned.planners import BOSS, KIM, Line, planner, said, step
from tests.organisation.crowd import Crowd, crowd

ADA, BEA = AgentId("ada"), AgentId("bea")

ASKED: dict[Query, tuple[tuple[str, ...], list[str]]] = {
    "managed_tasks": ((), ["None."]),
    "joined_tasks": ((), ["## t1 Work", "- state: running", "- goal: Work.", "### t1.s1", "- ada: ask (running)"]),
    "task": (("t1",), ["- manager: boss", "- group: boss, kim, bea, ada", "### t1.s1", "### t1.s2"]),
    "stage": (("t1.s2",), ["- state: init", "- goal: stage 2", "- bea: rest (init)"]),
    "blueprints": ((), ["- **cook** a cook: cooks"]),
    "all_agents": ((), ["- **boss** Boss, a worker"]),
    "team_agents": ((), ["**ada**", "**bea**", "**boss**", "**kim**", "**out**"]),
    "task_agents": (("t1",), ["- **kim** Kim\n", "- **bea**"]),
    "stage_agents": (("t1.s2",), ["- **bea** Bea, a worker"]),
    "agent_states": (("ada", "bea"), ["working_state: working", "tools: echo", "- **bea**", 'working memory: {"t1":']),
    "abilities": ((), ["- **planning** (skill): "]),
}
IN_CHINESE: dict[Query, list[str]] = {
    "task": ["- 管理者：boss", "- 任务群组：boss, kim, bea, ada", "### t1.s1", "### t1.s2"],
    "agent_states": ["working_state：working", "工具：echo", "- **bea**", '工作记忆：{"t1":'],
    "joined_tasks": ["## t1 Work", "- 状态：running", "- 目标：Work.", "### t1.s1", "- ada：ask（running）"],
}
ABSENT: dict[Query, str] = {"task_agents": "**out**", "stage_agents": "**ada**", "stage": "t1.s1", "task": "## t2"}


async def answered(here: Crowd) -> tuple[str, list[WaitingId]]:
    """What the asker reads in its next step, and what was locked and unlocked for it."""
    done = await here.steps(ADA)
    assert [one.work.executor for one in done[:3]] == ["planning", "ask_info", "process_message"], "it is read next"
    events = [told.event async for told in here.runtime.events(here.team)]
    locked = [it for one in events if isinstance(one, MessageSent) for it in one.message.waiting or ()]
    freed = [one.waiting_id for one in events if isinstance(one, WaitReleased) and one.why == "reply"]
    assert locked == freed, "it always locks and unlocks"
    return done[2].work.text_content, locked


def test_all_eleven_are_asked_here() -> None:
    assert tuple(ASKED) == QUERIES
    assert len(QUERIES) == 11


@pytest.mark.req("MAS-103", "MAS-105", "MAS-106", "MAS-107", "MAS-108", "MAS-109", "MAS-110", "MAS-111", "MAS-112")
@pytest.mark.req("MAS-113", "MAS-114", "MAS-115", "MAS-173", "MAS-174", "MAS-175", "MAS-176")
@pytest.mark.parametrize(
    ("query", "language"), [*((query, "en") for query in QUERIES), *((query, "zh") for query in IN_CHINESE)]
)
async def test_a_question_is_answered_in_the_next_step_in_the_askers_language(query: Query, language: str) -> None:
    about, there = ASKED[query]
    there = IN_CHINESE[query] if language == "zh" else there
    number = QUERIES.index(query) + 1
    lines: dict[tuple[str, str], Sequence[Line]] = {
        ("ada", "planning"): [said("planning", [step("ask_info")])],
        ("ada", "ask_info"): [said("ask_info", {"type": number, "about": list(about)})],
        ("ada", "process_message"): [said("process_message", "I see.")],
    }
    spec = evolve(planner("ada"), language=language)
    cook = AgentSpec(name="cook", role="a cook", profile="cooks", style="plan")
    async with crowd(lines, "bea", "out", specs={"ada": spec}, blueprints=[cook]) as here:
        await here.work({"ada": "ask"}, {"bea": "rest"}, group=["bea"])
        text, locked = await answered(here)
        assert [part for part in there if part not in text] == []
        assert ABSENT.get(query, "###### nothing") not in text
        answer: Message = next(one for one in await here.messages() if one.return_waiting_id is not None)
        assert (answer.task_id, answer.sender_id, answer.receiver) == ("t1", ADA, (ADA,))
        assert (answer.stage_relative, answer.need_reply, answer.waiting) == ("no_relative", False, None)
        assert [answer.return_waiting_id] == locked
        assert {BOSS, KIM} <= set((await here.world()).agents)


@pytest.mark.req("MAS-103")
@pytest.mark.parametrize(("query", "about"), [("task", "t9"), ("stage", "t9.s9"), ("agent_states", "eve")])
async def test_a_question_about_nothing_locks_nobody_and_the_asker_reads_why(query: Query, about: str) -> None:
    lines: dict[tuple[str, str], Sequence[Line]] = {
        ("ada", "planning"): [said("planning", [step("ask_info"), step("think")])],
        ("ada", "ask_info"): [said("ask_info", {"type": query, "about": [about]})],
        ("ada", "think"): [said("think", "x")],
    }
    async with crowd(lines, "ada") as here:
        await here.work({"ada": "ask"})
        assert (await here.did(ADA))[:3] == ["planning", "ask_info", "think"]
        assert f"AskInfo was refused. There is no open {query.removesuffix('_states')} {about!r}." in here.model.told(
            "think"
        )
        assert not (await here.world()).agents[ADA].step_lock
