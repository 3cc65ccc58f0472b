"""When a conversation outside of stages is summed up, and what is never cut off by that."""

import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import pytest

from greenroom.abilities.skills.planned.compaction import (
    MAX_CONVERSATION_BYTES,
    PLAN_COMPACTION,
    compute_max_bytes,
    count_exchanges,
    find_work_start,
    plan_compaction,
)
from greenroom.abilities.skills.planned.prompt import render_history
from greenroom.abilities.skills.planned.skill import SkillContext
from greenroom.abilities.skills.planned.skills import MAX_EXCHANGES
from greenroom.abilities.tools.tool import wrap_long_tail
from greenroom.app.text_reader import TextReader
from greenroom.core.base.ids import MessageId, StageId, StepId, ThreadId
from greenroom.core.base.records import Data, evolve
from greenroom.core.ports.model import ModelRequest
from greenroom.core.rules.intents import SendMessage
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.step import Step, StepState, Work
from tests.abilities.skills.planned.digging import SPEC, Dig
from tests.abilities.skills.planned.planners import (
    ANN,
    BOB,
    KIM,
    NOTHING_MORE,
    T1,
    House,
    Line,
    house,
    lines,
    message,
    planner,
    said,
    step,
    tool,
)
from tests.abilities.skills.talks import ended_step

SUM: Sequence[Line] = ["They talked about tea."]


def one(
    number: int, executor: str, *, letter: bool = False, state: StepState = "finished", result: Data | None = None
) -> Step:
    work = Work(type="skill", executor=executor, text_content=f"text {number}")
    sender = MessageId(f"bob>{number}") if letter else None
    return ended_step(number, work, state=state, result=result, cause=StepId("ann#0"), message_id=sender)


def test_a_conversation_is_as_long_as_a_share_of_the_window_and_never_longer_than_is_worth_it() -> None:
    assert compute_max_bytes(1000) == 1200
    assert compute_max_bytes(1_000_000) == MAX_CONVERSATION_BYTES


def test_what_goes_on_begins_where_somebody_last_wanted_something() -> None:
    steps = [one(1, "planning", letter=True), one(2, "think"), one(3, "planning", letter=True), one(4, "think")]
    assert find_work_start(steps) == 2
    assert find_work_start(steps[1:2]) == 0
    assert find_work_start([]) == 0
    assert [PLAN_COMPACTION.limit_cut(steps, best) for best in (1, 2, 4)] == [1, 2, 2], (
        "and there is never cut behind that"
    )


def test_word_of_what_the_agent_has_asked_for_begins_nothing_unless_there_is_nothing_but_letters() -> None:
    heard = evolve(one(3, "process_message", letter=True), goes_on=True)
    assert find_work_start([one(1, "planning", letter=True), one(2, "send_message"), heard, one(4, "think")]) == 0
    assert find_work_start([one(1, "send_message", letter=True), one(2, "compact"), heard]) == 2
    assert find_work_start([one(1, "send_message"), one(2, "send_message")]) == 0


def test_answers_in_a_row_are_counted_across_what_was_summed_up() -> None:
    row = [one(number, "send_message") for number in range(1, 4)]
    assert count_exchanges(row) == 3
    assert count_exchanges([one(0, "think"), *row]) == 3
    assert count_exchanges([*row, one(9, "compact", result={"exchanges": 40})]) == 43
    assert count_exchanges([*row, one(9, "compact", result={"exchanges": 40}, state="failed")]) == 3
    assert count_exchanges([one(0, "think"), *row, one(9, "compact", result={"exchanges": 40})]) == 3
    assert count_exchanges([*row, one(9, "compact", result={"exchanges": 40})], 1) == 41


def test_what_sums_up_stands_first_and_is_never_left_out() -> None:
    old = one(1, "compact", result={"summary": "tea", "kept": ["from: kim\nSencha!"]})
    broken = one(2, "compact", state="failed")
    steps = [one(3, "think"), old, broken, *(one(number, "think", result={"x": "y" * 500}) for number in range(4, 90))]
    for room in (1_000_000, 6000):
        shown = render_history(steps, room)
        rows = [json.loads(line) for line in shown.splitlines() if line.startswith("{")]
        assert rows[0]["execute_result"] == {"summary": "tea", "kept": ["from: kim\nSencha!"]}
        assert [row["executor"] for row in rows].count("compact") == 1
        assert rows[-1]["step_id"] == "ann#89"
    assert len(render_history(steps, 6000).encode()) <= 6200


def small(here: House, window: int = 6000) -> None:
    """From now on its model reads so many tokens."""
    here.model.card = type(here.model.card)(output=1000, window=window)


async def talk(here: House, times: int, text: str = "Tell me about tea. ") -> None:
    """Kim wants something again and again."""
    await here.outside(agent=BOB)
    for number in range(times):
        asked = SendMessage(
            task_id=T1, receiver=(ANN,), message=f"{number}: {text * 10}", need_reply=True, sender=KIM, kind="request"
        )
        await here.runtime.ask(here.team, asked)
        await here.runtime.wait(here.team, T1)


PLAN = said("planning", [step("think")])
WORDS = {"planning": [PLAN], "think": [said("think", "Tea is good. " * 20)], "reflection": [NOTHING_MORE]}


async def test_a_talk_that_has_become_too_long_is_summed_up_and_the_next_step_reads_the_sum() -> None:
    async with house(lines(**WORDS, compact=SUM)) as here:
        small(here)
        await talk(here, 20)
        done = await here.did(ANN)
        assert done.count("compact") >= 2
        assert "!compact" not in done
        prompt = here.model.told("reflection", -1)
        assert "They talked about tea." in prompt
        assert "from: kim\\n0: Tell me" in prompt, "what people said stays as they said it"
        assert (await here.state()).threads[ThreadId("ann@t1")].size < 1.5 * compute_max_bytes(6000)
        assert all(
            one.purpose.skill != "compact" or "Tea is good." in one.messages[0].content for one in here.model.asked
        )


async def test_a_sum_that_fails_is_not_tried_at_every_step_and_the_work_goes_on() -> None:
    async with house(lines(**WORDS)) as here:  # there is no line for it
        small(here)
        await talk(here, 12)
        done = await here.did(ANN)
        assert 1 <= done.count("!compact") <= len(done) // 8
        assert done[-1] == "reflection"


async def test_what_goes_on_is_not_summed_up_however_long_it_is() -> None:
    plans = [said("planning", [step("think")] * number) for number in (1, 40)]
    async with house(lines(**{**WORDS, "planning": plans}, compact=SUM)) as here:
        small(here)
        await talk(here, 2)
        assert (await here.state()).threads[ThreadId("ann@t1")].size > compute_max_bytes(6000)
        assert "compact" not in " ".join(await here.did(ANN))


async def test_an_answer_in_the_middle_of_a_plan_is_no_place_to_cut_it() -> None:
    plan = [*[step("think")] * 30, step("ask_info"), *[step("think")] * 3]
    told_ = lines(
        **{**WORDS, "planning": [PLAN, said("planning", plan)]},
        ask_info=[said("ask_info", {"type": "5", "about": []})],
        process_message=[said("process_message", "I see.")],
        compact=SUM,
    )
    async with house(told_) as here:
        small(here)
        await talk(here, 2)
        done = await here.did(ANN)
        assert done[-6:] == ["ask_info", "process_message", "think", "think", "think", "reflection"]
        assert "compact" not in " ".join(done)


async def test_only_what_stands_outside_of_stages_is_summed_up() -> None:
    async with house(lines(**WORDS)) as here:
        await talk(here, 6)
        state, done = await here.state(), await here.steps(ANN)
        home = state.threads[ThreadId("ann@t1")]
        moment = SkillContext(
            state=state,
            step=next(found for found in reversed(done) if found.work.executor == "planning"),
            agent=state.agents[ANN],
            history=done,
            tools={},
            skills={},
            reader=TextReader(),
        )
        (queued,) = plan_compaction(moment, 3000)
        assert [one.executor for one in queued.works] == ["compact"]
        staged = state.threads.set(home.thread_id, evolve(home, stage_id=StageId("t1.s1")))
        assert plan_compaction(replace(moment, state=evolve(state, threads=staged)), 3000) == ()
        assert plan_compaction(moment, 200_000) == ()
        for place, waits in ((home.thread_id, True), (ThreadId("ann@t2"), False)):
            used = evolve(one(99, "dig"), thread_id=place, work=Work(type="tool", executor="dig"), state="init")
            agents = state.agents.set(ANN, evolve(state.agents[ANN], todo=(used.step_id,)))
            using = evolve(state, agents=agents, steps=state.steps.set(used.step_id, used))
            assert (plan_compaction(replace(moment, state=using), 3000) == ()) is waits, (
                "a tool in use here, or elsewhere"
            )


async def test_nothing_is_summed_up_in_a_stage_nor_where_it_is_short() -> None:
    plan = said("planning", [step("think")] * 30)
    told_ = lines(planning=[plan], think=WORDS["think"], reflection=[NOTHING_MORE], compact=SUM)
    summary = said("summary", {"completion_summary": "Done.", "state": "finished"})
    async with house({**told_, ("ann", "summary"): [summary]}) as here:
        small(here, 2000)
        await here.stage("Think.", agents=(ANN,))
        assert "compact" not in await here.did(ANN)
    async with house(lines(**WORDS, compact=SUM)) as here:
        await talk(here, 5)
        assert "compact" not in await here.did(ANN)


async def test_calls_of_a_tool_that_is_in_use_are_never_torn_apart() -> None:
    seen: list[str] = []

    def decides(request: ModelRequest) -> str:
        seen.append("\n".join(one.content for one in request.messages))
        decision = "continue" if len(seen) % 4 else "end"
        return said("tool_decision", {"decision": decision, "direction": "Deeper."})

    told_ = lines(
        planning=[said("planning", [tool("dig", "For gold.")])],
        instruction_generation=[said("instruction_generation", {"where": "here"})],
        tool_decision=[decides],
        reflection=[NOTHING_MORE],
        compact=SUM,
    )
    spec: AgentSpec = planner("ann", tools=("dig",))
    async with house(told_, specs={ANN: spec}, executors=[wrap_long_tail(Dig())], tools=[SPEC]) as here:
        small(here, 3000)
        await talk(here, 12)
        done = await here.did(ANN)
        assert "compact" in done
        around = {pair for pair in pairwise(done) if "compact" in pair}
        assert not [pair for pair in around if set(pair) & {"dig", "tool_decision"}]
        assert all("For gold." in one for one in seen), "each decision knows what the tool was first used for"


async def test_what_no_window_can_hold_is_not_sent_and_whoever_wrote_it_is_told() -> None:
    async with house(lines(**WORDS, compact=SUM)) as here:
        small(here, 8000)
        await talk(here, 1, "x" * 20_000)
        assert await here.did(ANN) == ["!planning"]
        assert not here.model.asked
        (failed,) = await here.steps(ANN)
        assert "fake:script reads 8,000 at once. Say it in less, or in parts" in failed.error
        assert failed.spent.money == 0
        told_ = (await here.messages())[-1]
        assert (told_.receiver, failed.error in told_.message) == ((KIM,), True)
        await talk(here, 1)
        assert (await here.did(ANN))[-1] == "reflection", "and it goes on with what is said in less"


@pytest.mark.parametrize("window", [3000, 200_000])
async def test_two_who_always_ask_back_are_brought_to_an_end_however_often_it_is_summed_up(window: int) -> None:
    asks = message("ann", text="Why? " * 30, need_reply=True)
    told_ = lines(
        send_message=[said("send_message", {**asks, "receiver": ["bob"]})],
        bob_send_message=[said("send_message", asks)],
        process_message=[said("process_message", "I see.")],
        bob_process_message=[said("process_message", "I see.")],
        compact=SUM,
        bob_compact=SUM,
    )
    async with house(told_) as here:
        small(here, window)
        await here.outside(Work(type="skill", executor="send_message", text_content="Ask Bob."))
        sent = await here.messages()
        assert MAX_EXCHANGES < len(sent) < 3 * MAX_EXCHANGES
        assert not sent[-1].need_reply
        counts = [(await here.did(one)).count("send_message") for one in (ANN, BOB)]
        assert max(counts) == MAX_EXCHANGES + 1
        assert ("compact" in await here.did()) == (window == 3000)


@pytest.mark.parametrize("sum_", ["茶" * 20_000, "tea " * 20_000], ids=["zh", "en"])
async def test_a_sum_that_is_too_long_itself_is_cut_so_that_it_does_not_fill_the_window_again(sum_: str) -> None:
    async with house(lines(**WORDS, compact=[sum_])) as here:
        small(here)
        await talk(here, 20)
        made = [one for one in await here.steps(ANN) if one.work.executor == "compact"]
        assert len(made) >= 2
        assert all(
            len(str((one.result or {})["summary"]).encode()) <= compute_max_bytes(6000) // 4 + 100 for one in made
        )
        assert (await here.state()).threads[ThreadId("ann@t1")].size < 1.5 * compute_max_bytes(6000)
        assert not (await here.state()).threads[ThreadId("ann@t1")].notices, "nothing was refused"
