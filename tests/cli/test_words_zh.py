"""Events in Chinese: the same lines as in English, by the same agents and with the same marks."""

import pytest

from greenroom.app.runtime import Told
from greenroom.cli.render.team import TeamHistory
from greenroom.cli.render.words import STOPPED, Way, reason, say, still
from greenroom.core.base.ids import AgentId, BudgetId, StepId, TaskId, TimerId
from greenroom.core.state.agent import AgentRemoved
from greenroom.core.state.budget import LimitReached
from greenroom.core.state.events import Event
from greenroom.core.state.note import Value, ValueSet
from greenroom.core.state.task import TaskPaused, TaskResumed
from greenroom.core.state.team import OwnerChanged, TeamPaused, TeamResumed
from greenroom.core.state.timer import TimerFired
from greenroom.core.state.world import NOWHERE


def test_a_run_is_told_in_chinese_sentences(story: list[Told]) -> None:
    english, chinese = TeamHistory(), TeamHistory(language="zh")
    pairs = [(english.add(one).said, chinese.add(one).said) for one in story]
    assert all((one.who, one.mark, one.story) == (other.who, other.mark, other.story) for one, other in pairs)
    sentences = [f"{one.who} {one.mark} {one.text}" for _, one in pairs if one.story]
    for sentence in (
        "maya  加入，角色：lead",
        " ◆ 任务t1：A one-page guide to tea",
        " ◆ 阶段t1.s1开始：Draft（draft、glossary、review）",
        "ben  接受“draft”：Write the draft.",
        "ben → maya：Who reads it: people who are new to tea, or people who know it?（等待回复）",
        "iris ✎ 公告：House style: plain words, present tense, no mysteries.",
        "ben  write_file draft.md → draft.md written, 165 bytes",
        "iris ✓ “glossary”已完成：two terms explained",
        " ✓ 阶段t1.s1已完成",
        "maya ? 请求批准：Add this line to the ledger? published guide.md, 51 words",
    ):
        assert sentence in sentences
    told = {type(one.event).__name__ for one in story}
    same = {type(one.event).__name__ for one, (en, zh) in zip(story, pairs, strict=True) if zh.story and en == zh}
    assert same <= {"StepEnded"}, f"of {told}: what a tool says is the same in any language"


@pytest.mark.parametrize(
    ("event", "sentence"),
    [
        (OwnerChanged(at=1, epoch=2, owner="vm:77:ab"), "vm上的进程77接管了团队"),
        (TeamPaused(at=1, why=STOPPED), "团队已暂停：已被人停止"),
        (TaskPaused(at=1, task_id=TaskId("t1"), why="limit: team tokens"), "任务t1已暂停：剩余Token不足以进行下一步"),
        (TeamResumed(at=1), "团队继续"),
        (TaskResumed(at=1, task_id=TaskId("t1")), "任务t1继续"),
        (AgentRemoved(at=1, agent_id=AgentId("ben"), why="done"), "离开：done"),
        (
            LimitReached(at=1, budget_id=BudgetId("team"), limit="tokens", step_id=StepId("b#1")),
            "达到上限：team tokens",
        ),
        (TimerFired(at=1, timer_id=TimerId("x!wait")), "定时器x!wait到时"),
        (ValueSet(at=1, value=Value(task_id=TaskId("t1"), key="k", content="v", set_by="ben")), "公告：k = v"),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else "",
)
def test_what_is_rare_has_chinese_words_too(event: Event, sentence: str) -> None:
    assert say(NOWHERE, event, "zh").text == sentence
    assert say(NOWHERE, event).text != sentence


@pytest.mark.parametrize(
    ("why", "english", "chinese"),
    [
        ("limit: team money", "its money does not suffice for the next step", "剩余费用不足以进行下一步"),
        ("limit: t2 millis", "it has used up its working time", "工作时间已用完"),
        ("provider: The key is wrong.", "provider: The key is wrong", "模型服务: The key is wrong"),
        (STOPPED, "stopped by a person", "已被人停止"),
        ("lunch.", "lunch", "lunch"),
    ],
)
def test_why_it_stands_still_is_said_in_both_languages(why: str, english: str, chinese: str) -> None:
    assert (reason(why, "en"), reason(why, "zh")) == (english, chinese)


def test_what_has_used_up_its_means_is_given_more_and_all_else_is_resumed() -> None:
    way = Way(name="tea", start="start tea", path="/w/tea.toml", keys={"tokens": "tokens"})
    assert still("limit: team money", "en", way).endswith("Give it more: start tea --max-cost …")
    assert "`tokens` below [limits] in /w/tea.toml" in still("limit: team tokens", "en", way)
    assert "/w/tea.toml" not in still("limit: t2 tokens", "en", way), "what a task may spend is not said there"
    poor = Way(name="tea", start="start tea", keys={}, left={"money": "$0.57"})
    assert "does not suffice for the next step ($0.57 left). Give" in still("limit: team money", "en", poor)
    assert "剩余费用不足以进行下一步（剩余$0.57）。" in still("limit: team money", "zh", poor)
    assert "$0.57" not in still("limit: t2 money", "en", poor), "that is the team's"
    assert still("limit: team steps", "en", way).endswith("`/resume` lets it go on.")
    assert still("lunch", "zh", way) == "已暂停：lunch。输入 /resume 继续。"
