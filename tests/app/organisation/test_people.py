"""People of an organisation: they act first, and what they did is a step of theirs."""

from collections.abc import Mapping

import pytest

from greenroom.adapters.storage.memory import MemoryLog
from greenroom.app.organisation import people
from greenroom.app.organisation.inbox import approval_of
from greenroom.app.organisation.people import HumanAgent, find_person, find_shared_task
from greenroom.app.organisation.phrases import BASE_TASK
from greenroom.app.runtime import Runtime
from greenroom.core.base.errors import RefusedError
from greenroom.core.base.ids import AgentId, ApprovalId, GroupId, StageId, StepId, SubtaskId, ThreadId
from greenroom.core.base.records import Data
from greenroom.core.rules.intents import (
    AddAgent,
    AddParticipants,
    AddTask,
    AnswerApproval,
    AssignSubtask,
    FinishTask,
    PauseTask,
    QueueSteps,
    ReportStage,
    ResumeTask,
    StagePlan,
    StartStage,
    SubtaskPlan,
)
from greenroom.core.state.message import Message, MessageSent
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.step import Step, StepEnded, StepState, Work
from tests.app.organisation.office import ANN, BEN, MANAGER, S1, T2, WU, Office, asking, office


async def said(house: Office) -> list[Message]:
    return [one async for one in house.runtime.archive(house.team, "message") if isinstance(one, Message)]


async def test_whatever_a_person_does_lets_go_on_what_a_provider_held_up_and_nothing_else() -> None:
    async with office() as house:
        await house.runtime.ask(house.team, AddTask(name="Cake", intention="Cake.", manager=MANAGER, group=(WU,)))
        await house.runtime.ask(house.team, PauseTask(task_id=BASE_TASK, why="provider: The key is wrong."))
        await house.runtime.ask(house.team, PauseTask(task_id=T2, why="limit: t2 money"))
        await house.ann.send("Tea.", MANAGER)
        tasks = (await house.state()).tasks
        assert (tasks[BASE_TASK].paused, tasks[T2].paused) == (None, "limit: t2 money")


async def test_that_others_have_let_it_go_on_meanwhile_is_no_fault_of_whoever_said_something(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with office() as house:
        monkeypatch.setattr(people, "resume_after_provider_fault", lambda _: (ResumeTask(task_id=BASE_TASK),))
        await house.ann.send("Tea.", MANAGER)
        assert [one.message for one in await said(house)] == ["Tea."]


def by_hand(work: Work, state: StepState, result: Data | None, error: str = "") -> Step:
    """A step of a person's own team, in which they have called a tool."""
    return Step(
        step_id=StepId("you#1"),
        agent_id=AgentId("you"),
        thread_id=ThreadId("you@t1"),
        task_id=BASE_TASK,
        stage_id=None,
        subtask_id=None,
        work=work,
        queued_at=0,
        state=state,
        result=result,
        error=error,
    )


@pytest.mark.req("MAS-235", "MAS-253", "MAS-239")
async def test_a_request_is_sent_first_and_then_written_down() -> None:
    async with office() as house:
        await house.ann.ask("Make tea.", MANAGER)
        (message,) = await said(house)
        assert (message.sender_id, message.receiver, message.kind) == (ANN, (MANAGER,), "request")
        state = await house.state()
        assert [step.work.executor for step in state.steps_of(MANAGER)] == ["planning"]
        (step,) = await house.steps(ANN)
        assert (step.state, step.work.executor, step.work.text_content) == ("finished", "send_message", "Make tea.")
        events = [told.event async for told in house.runtime.events(house.team)]
        sent = next(place for place, one in enumerate(events) if isinstance(one, MessageSent))
        kept = next(place for place, one in enumerate(events) if isinstance(one, StepEnded))
        assert sent < kept, "a person acts first"
        assert (step.result or {})["send_message"] == {
            "receiver": ["manager"],
            "message": "Make tea.",
            "need_reply": True,
            "return_waiting_id": None,
            "group": None,
        }


@pytest.mark.req("MAS-233")
async def test_a_person_is_an_agent_like_any_other_and_has_a_task_group_and_steps() -> None:
    async with office() as house:
        await house.writes(ANN, "Good morning.")
        await house.ann.send("Good morning.", MANAGER)
        state = await house.state()
        assert {ANN, BEN, MANAGER} <= set(state.tasks[BASE_TASK].group)
        assert state.agents[ANN].spec.kind == "human"
        assert not list(state.steps_of(ANN)), "nothing is queued for a person"
        sent = [one.message_id for one in await said(house)]
        assert sent == ["manager>1", "ann>1"], "both are messages of one kind, with ids of one form"


@pytest.mark.req("MAS-254")
async def test_what_is_said_to_several_is_sent_one_by_one() -> None:
    async with office() as house:
        await house.ann.send("Tea is ready.", MANAGER, BEN)
        assert [one.receiver for one in await said(house)] == [(MANAGER,), (BEN,)]
        assert len(await house.steps(ANN)) == 2


@pytest.mark.req("MAS-253", "MAS-245")
async def test_an_answer_returns_the_id_that_is_waited_for_and_sets_the_waiter_free() -> None:
    async with office() as house:
        await house.writes(ANN, "Green or black?", waiting=True)
        (letter,) = await house.ann.inbox()
        assert (letter.number, letter.kind, letter.waiting) == (1, "question", "manager>1:ann")
        assert (await house.state()).agents[MANAGER].step_lock == (letter.waiting,)
        await house.ann.answer(letter, "Green.")
        assert (await house.state()).agents[MANAGER].step_lock == ()
        assert (await said(house))[-1].return_waiting_id == letter.waiting
        assert await house.ann.inbox() == ()
        (step,) = await house.steps(ANN)
        told = (step.result or {})["send_message"]
        assert isinstance(told, Mapping)
        assert told["return_waiting_id"] == letter.waiting


async def test_numbers_of_letters_never_change_and_mean_the_same_to_everybody() -> None:
    async with office() as house:
        await house.writes(ANN, "One?", waiting=True)
        await house.writes(BEN, "Two?", waiting=True)
        await house.ann.answer(await house.ann.find_message(1), "Yes.")
        assert [one.number for one in await house.ben.inbox()] == [2]
        with pytest.raises(RefusedError, match="There is no message 2 for ann"):
            await house.ann.find_message(2)


async def test_an_inbox_is_what_is_open_and_nobody_reads_all_that_was_ever_said_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with office() as house:
        for number in range(1, 30):
            await house.writes(ANN, f"{number}?", waiting=True)
            await house.ann.answer(await house.ann.find_message(number), "Yes.")
        await house.writes(ANN, "And now?", need_reply=True)
        monkeypatch.delattr(Runtime, "archive")
        monkeypatch.delattr(MemoryLog, "read_archive")
        assert [(one.number, one.message.message) for one in await house.ann.inbox()] == [(30, "And now?")]
        assert (await house.ann.find_message(30)).kind == "question"


@pytest.mark.req("MAS-248", "MAS-249")
async def test_a_duty_is_done_with_a_report_and_the_stage_knows_it() -> None:
    async with office() as house:
        await house.allot(ANN, BEN)
        state = await house.state()
        assert not list(state.steps_of(ANN)), "a person is given no planning step"
        assert [duty.stage_id for duty in state.agents[ANN].duties if duty.task_id == T2] == [None, S1]
        (letter,) = await house.ann.inbox()
        assert letter.kind == "duty"
        await house.ann.finish(letter, "It is mild.")
        stage = (await house.state()).stages[S1]
        assert [(one.state, one.summary) for one in stage.subtasks] == [("finished", "It is mild."), ("running", "")]
        (step,) = await house.steps(ANN)
        assert (step.stage_id, step.work.executor, (step.result or {})["summary"]) == (S1, "summary", "It is mild.")
        (other,) = await house.ben.inbox()
        await house.ben.finish(other, "No cup.", failed=True)
        assert (await house.state()).stages[S1].subtasks[1].state == "failed"


async def test_each_letter_has_its_own_verb() -> None:
    async with office() as house:
        await house.allot(ANN)
        await house.writes(ANN, "Green?", waiting=True)
        duty, question = await house.ann.inbox()
        with pytest.raises(RefusedError, match=r"Message 1 is not a question. Do it, and report"):
            await house.ann.answer(duty, "Yes.")
        with pytest.raises(RefusedError, match=r"Message 2 is not a duty. Answer it with a text"):
            await house.ann.finish(question, "Done.")
        with pytest.raises(RefusedError, match="needs no approval"):
            await house.ann.decide(question, AnswerApproval(approval_id=ApprovalId("x"), answer="approved"))


async def test_a_person_who_manages_is_asked_how_to_go_on_and_ends_the_stage() -> None:
    async with office() as house:
        plan = StagePlan(intention="Taste it", subtasks=(SubtaskPlan(name="ben", duty="Taste", agent=BEN),))
        mine = AddTask(name="Tasting", intention="Know the tea", manager=ANN, stages=(plan,), driver="manager")
        assign = AssignSubtask(stage_id=S1, subtask_id=SubtaskId("t2.s1.1"))
        await house.runtime.ask(house.team, mine, StartStage(stage_id=S1), assign)
        (duty,) = await house.ben.inbox()
        await house.ben.finish(duty, "Mild.")
        await house.runtime.ask(house.team, ReportStage(stage_id=S1))
        (letter,) = await house.ann.inbox()
        assert (letter.kind, letter.stage) == ("stage", S1)
        assert "decide how to continue" in (await house.ann.pool()).global_messages[-1]
        await house.ann.finish(letter, "Good.")
        assert S1 not in (await house.state()).stages
        assert [one.stage_id for one in await house.steps(ANN)] == [None], (
            "the stage is over, and what was done is kept"
        )


async def test_a_step_that_waits_is_decided_by_a_person_and_that_is_their_step() -> None:
    tool = asking()
    async with office(executors=(tool,)) as house:
        work = Work(type="tool", executor="asking", instruction_content={})
        spec = AgentSpec(name="eva", style="plan", tools=("asking",))
        await house.runtime.ask(
            house.team,
            AddAgent(agent_id=AgentId("eva"), spec=spec),
            AddParticipants(task_id=BASE_TASK, agents=(AgentId("eva"),)),
            QueueSteps(agent_id=AgentId("eva"), works=(work,), task_id=BASE_TASK),
        )
        await house.runtime.start(house.team)
        await house.runtime.wait(house.team, BASE_TASK)
        (letter,) = await house.ben.inbox()
        assert (letter.kind, letter.message.receiver) == ("approval", (ANN,)), "ann is asked, and ben may say so too"
        assert "waits for your approval" in (await house.ann.pool()).global_messages[-1]
        answer = AnswerApproval(approval_id=approval_of(letter.message), answer="approved")
        await house.ben.decide(letter, answer)
        await house.runtime.wait(house.team, BASE_TASK)
        assert tool.runs == 1
        (step,) = await house.steps(BEN)
        assert (step.result or {})["approval"] == {"answer": "approved", "scope": "once", "reason": ""}


@pytest.mark.req("MAS-237", "MAS-238", "MAS-240", "MAS-243")
async def test_a_group_is_of_people_and_a_model_hears_only_what_names_it() -> None:
    async with office() as house:
        with pytest.raises(RefusedError, match="only people can join"):
            await house.ann.form_group(GroupId("us"), MANAGER)
        await house.ann.form_group(GroupId("us"), BEN)
        await house.ann.send_to_group(GroupId("us"), "Between us.")
        assert not list((await house.state()).steps_of(MANAGER))
        await house.ben.send_to_group(GroupId("us"), "And you, manager?", MANAGER)
        assert [one.work.executor for one in (await house.state()).steps_of(MANAGER)] == ["process_message"]
        (group,) = (await house.ann.pool()).conversation_groups
        assert (group.group_id, group.participants) == ("us", (ANN, BEN))
        assert [(one.sender_id, one.content) for one in group.messages] == [
            (ANN, "Between us."),
            (BEN, "And you, manager?"),
        ]
        assert (await house.ben.pool()).conversation_groups == (group,)
        with pytest.raises(RefusedError, match=r"There is no group 'them'. There are: us"):
            await house.ann.send_to_group(GroupId("them"), "Hello?")


async def test_a_group_is_formed_again_by_those_who_take_part_and_by_nobody_else() -> None:
    async with office() as house:
        joe = AgentId("joe")
        added = AddAgent(agent_id=joe, spec=AgentSpec(name="joe", kind="human"))
        await house.runtime.ask(house.team, added, AddParticipants(task_id=BASE_TASK, agents=(joe,)))
        await house.ann.form_group(GroupId("us"), BEN)
        with pytest.raises(RefusedError, match=r"'us' is a group of other people: ann, ben"):
            await HumanAgent(house.runtime, house.team, joe).form_group(GroupId("us"), ANN)
        await house.ben.form_group(GroupId("us"), joe)
        assert (await house.state()).groups[GroupId("us")].participants == (BEN, joe)


@pytest.mark.parametrize("language", ["en", "zh"])
async def test_what_cannot_be_done_in_groups_is_said_in_the_persons_language(language: str) -> None:
    async with office(language=language) as house:
        joe = AgentId("joe")
        spec = AgentSpec(name="joe", kind="human", language=language)
        await house.runtime.ask(house.team, AddAgent(agent_id=joe, spec=spec))
        await house.ann.form_group(GroupId("us"), BEN)
        us, others = GroupId("us"), HumanAgent(house.runtime, house.team, joe)
        tried = {
            "only people|只能由人": house.ann.form_group(GroupId("them"), WU),
            "two people|两个人": house.ann.form_group(GroupId("them"), ANN),
            "cannot be a group|不能用作群组": house.ann.form_group(GroupId("a#b"), BEN),
            "Did you mean 'ben'|您是指'ben'": house.ann.form_group(GroupId("them"), AgentId("Ben")),
            "There are: ann|现有：ann": house.ann.send_to_group(us, "Hello?", AgentId("bob")),
            "You are not in|您不在群组": others.send_to_group(us, "Hello?"),
        }
        for words, doing in tried.items():
            with pytest.raises(RefusedError, match=words.split("|")[language == "zh"]):
                await doing


@pytest.mark.req("MAS-244")
async def test_a_tool_used_by_hand_is_a_step_bound_to_a_stage() -> None:
    async with office() as house:
        await house.allot(ANN)
        await house.ann.check_permission("read_code", S1)
        work = Work(type="tool", executor="read_code", instruction_content={"file": "tea.md"})
        call = by_hand(work, "finished", {"output": "leaves", "whole": "leaves and more"})
        await house.ann.record_tool_call(call, stage=S1)
        (step,) = await house.steps(ANN)
        assert (step.work.type, step.work.executor, step.stage_id) == ("tool", "read_code", S1)
        assert (step.result, step.work.instruction_content) == ({"output": "leaves"}, {"file": "tea.md"})


async def test_what_a_person_may_not_use_is_refused_before_anything_is_done() -> None:
    async with office() as house:
        with pytest.raises(RefusedError, match=r"ann may not use the tool 'rm'. You may use: read_code"):
            await house.ann.check_permission("rm")
        with pytest.raises(RefusedError, match=r"There is no open stage 't9.s1'"):
            await house.ann.check_permission("read_code", StageId("t9.s1"))


@pytest.mark.req("MAS-6")
async def test_somebody_without_a_task_is_met_in_the_base_task_and_others_where_they_work() -> None:
    async with office() as house:
        assert find_shared_task(await house.state(), ANN, WU).task_id == BASE_TASK
        await house.ann.send("Hello.", WU)
        assert WU in (await house.state()).tasks[BASE_TASK].group
        await house.allot(BEN)
        assert {BASE_TASK, T2} == {one.task_id for one in (await house.state()).tasks.values() if BEN in one.group}
        await house.ann.send("How is it?", BEN, stage=S1)
        assert ANN in (await house.state()).tasks[T2].group, "who writes about a stage belongs to its task"
        with pytest.raises(RefusedError, match="There is no agent 'nobody'"):
            await house.ann.send("?", AgentId("nobody"))
        with pytest.raises(RefusedError, match="has no open stage"):
            await house.ann.send("?", WU, stage=S1)


@pytest.mark.req("MAS-250", "MAS-251")
async def test_what_was_done_in_a_task_that_is_over_is_written_down_in_the_base_task() -> None:
    async with office() as house:
        await house.allot(ANN)
        (letter,) = await house.ann.inbox()
        assert any(duty.task_id == T2 for duty in (await house.state()).agents[ANN].duties)
        await house.runtime.ask(house.team, FinishTask(task_id=T2, summary="Enough."))
        assert not any(duty.task_id == T2 for duty in (await house.state()).agents[ANN].duties)
        with pytest.raises(RefusedError):
            await house.ann.finish(letter, "Late.")
        work = Work(type="tool", executor="read_code", instruction_content={})
        call = by_hand(work, "failed", None, "no such file")
        await house.ann.record_tool_call(call, stage=S1)
        (step,) = await house.steps(ANN)
        assert (step.task_id, step.stage_id, step.state, step.error) == (BASE_TASK, None, "failed", "no such file")


async def test_a_person_is_named_or_the_only_one() -> None:
    async with office() as house:
        state = await house.state()
        assert find_person(state, "ben") == BEN
        with pytest.raises(RefusedError, match=r"There is no person 'eve' here. There are: ann, ben"):
            find_person(state, "eve")
        with pytest.raises(RefusedError, match=r"The organisation has 2 people. Say who you are with --as"):
            find_person(state, "")
