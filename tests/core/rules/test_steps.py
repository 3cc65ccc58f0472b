"""Queueing, changing and starting steps."""

import pytest

from greenroom.core.base.ids import AgentId, StageId, StepId, SubtaskId, TaskId, ThreadId
from greenroom.core.base.records import evolve
from greenroom.core.rules import intents as i
from greenroom.core.state.message import MessageSent
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.step import PreparedEffect, StepTerms, Work
from tests.core.house import ANN, BOB, BOSS, CY, HUE, PIA, S1, SYSTEM, T1, T2, House, plan, reply, skill, thread, tool

PURE = StepTerms(effect="pure")


def steps(*works: Work, agent: AgentId = ANN, task: TaskId | None = T1) -> i.QueueSteps:
    return i.QueueSteps(agent_id=agent, works=works, task_id=task)


@pytest.mark.req("MAS-79", "MAS-81", "MAS-82")
def test_a_queued_step_knows_its_place_in_the_house() -> None:
    house = House.furnished(stages=(plan(("one", ANN)),)).assign()
    house.do(i.QueueSteps(agent_id=ANN, works=(tool("shell", {"command": "ls"}),), task_id=T1, stage_id=S1), by=ANN)
    step = house.last(ANN)
    assert (step.task_id, step.stage_id, step.agent_id, step.step_id) == (T1, S1, ANN, "ann#2")
    assert (step.work.type, step.work.executor, step.state) == ("tool", "shell", "init")


def test_steps_of_a_step_stay_in_its_conversation_and_name_their_cause() -> None:
    house = House.furnished(stages=(plan(("one", ANN)),)).assign()
    house.run(ANN, steps(skill(), task=None))
    step = house.last(ANN)
    assert (step.thread_id, step.stage_id, step.subtask_id, step.cause) == (
        thread(ANN, "t1.s1.1"),
        S1,
        "t1.s1.1",
        "ann#1",
    )


def test_steps_can_name_another_conversation_or_task_of_the_same_agent() -> None:
    house = House.furnished().do(i.AddTask(name="side", intention="x", manager=BOSS, group=(ANN,)))
    house.queue(ANN).run(ANN, steps(skill(), task=T2))
    assert house.last(ANN).task_id == T2
    house.do(i.QueueSteps(agent_id=ANN, works=(skill(),), thread_id=thread(ANN, T2)), by=ANN)
    assert house.last(ANN).thread_id == thread(ANN, T2)


@pytest.mark.parametrize(
    ("wish", "by", "code"),
    [
        (steps(skill(), agent=AgentId("ghost")), "door", "unknown_agent"),
        (steps(skill()), BOB, "not_yours"),
        (steps(skill()), BOSS, "not_yours"),
        (steps(skill(), task=None), ANN, "no_task"),
        (steps(skill(), task=TaskId("t9")), ANN, "unknown_task"),
        (steps(skill(), task=T2), ANN, "not_in_group"),
        (i.QueueSteps(agent_id=ANN, works=(skill(),), thread_id=ThreadId("x")), ANN, "unknown_thread"),
        (i.QueueSteps(agent_id=ANN, works=(skill(),), thread_id=thread(BOB, T1)), ANN, "unknown_thread"),
        (i.QueueSteps(agent_id=ANN, works=(skill(),), task_id=T1, stage_id=StageId("t2.s1")), ANN, "unknown_stage"),
        (steps(tool("crawl")), ANN, "no_such_tool"),
        (steps(tool("shell")), CY, "not_yours"),
        (steps(skill("summary")), ANN, "summary_not_planned"),
        (steps(skill("tool_decision")), ANN, "tool_decision_not_planned"),
        (steps(skill("crochet")), ANN, "no_such_skill"),
    ],
)
def test_what_may_not_be_queued_is_refused(wish: i.QueueSteps, by: str, code: str) -> None:
    house = House.furnished().do(i.AddTask(name="side", intention="x", manager=BOSS)).queue(BOB)
    house.refused(code, wish, by=by)


def test_nothing_is_queued_when_one_of_several_steps_is_refused() -> None:
    house = House.furnished()
    house.refused("no_such_tool", steps(skill(), tool("crawl")), by=ANN)
    assert house.todo(ANN) == []


def test_an_agent_uses_its_own_tools_and_skills_and_those_everybody_has() -> None:
    house = House.furnished().do(steps(tool("patch", {}), skill("merge"), skill("planning")), by=ANN)
    assert house.todo(ANN) == ["patch", "merge", "planning"]


def test_only_reflection_schedules_a_summary() -> None:
    house = House.furnished().queue(PIA, skill("planning"), skill("reflection"))
    house.run(PIA, steps(skill("summary"), agent=PIA))
    assert house.todo(PIA) == ["reflection"]
    house.run(PIA, steps(skill("summary"), agent=PIA))
    assert house.todo(PIA)[-1] == "summary"


def test_a_person_may_queue_anything() -> None:
    house = House.furnished().do(steps(tool("crawl", {}), skill("summary"), agent=HUE), by=HUE)
    assert house.todo(HUE) == ["crawl", "summary"]


def test_nothing_is_queued_in_a_task_that_is_ending() -> None:
    house = House.furnished().queue(BOB)
    house.start(BOB)
    house.do(i.CancelTask(task_id=T1))
    house.refused("unknown_task", steps(skill()), by=ANN)


@pytest.mark.req("MAS-83", "MAS-84", "MAS-87")
def test_a_tool_step_is_pending_until_its_instruction_is_filled() -> None:
    house = House.furnished().queue(ANN, tool("shell"))
    assert house.last(ANN).state == "pending"
    assert house.next(ANN) is None
    house.do(i.ModifyStep(step_id=StepId("ann#1"), work=tool("shell", {"command": "ls"})), by=ANN)
    assert house.last(ANN).state == "init"
    assert house.last(ANN).work.instruction_content == {"command": "ls"}
    assert house.next(ANN) == "ann#1"


def test_what_has_the_last_word_on_work_is_done_by_the_house_and_never_called() -> None:
    pru, spec = AgentId("pru"), AgentSpec(name="Pru", tools=("shell",), proof="deliver")
    house = House.furnished().do(i.AddAgent(agent_id=pru, spec=spec)).do(i.AddParticipants(task_id=T1, agents=(pru,)))
    proves = tool("deliver", {"said": "Done."})
    house.do(steps(evolve(proves, call_id="c1"), agent=pru), by=pru)
    called = house.ended("pru#1")
    assert (called.state, "may not use the tool 'deliver'" in (called.error or "")) == ("failed", True)
    house.do(steps(proves, agent=pru), by=pru)
    assert house.todo(pru) == ["deliver"]


@pytest.mark.req("MAS-91")
def test_a_step_that_has_not_begun_is_changed_or_removed() -> None:
    house = House.furnished().queue(ANN, skill(), skill("merge"))
    house.do(i.ModifyStep(step_id=StepId("ann#1"), work=skill("reflection", "look back")), by=ANN)
    assert house.todo(ANN) == ["reflection", "merge"]
    house.do(i.ModifyStep(step_id=StepId("ann#1"), work=tool("shell")), by=ANN)
    assert house.state.steps[StepId("ann#1")].state == "pending"
    house.do(i.RemoveStep(step_id=StepId("ann#1")), by=ANN)
    assert house.todo(ANN) == ["merge"]
    assert house.ended("ann#1").state == "skipped"


@pytest.mark.parametrize(
    ("work", "code"),
    [
        (tool("crawl"), "no_such_tool"),
        (skill("summary"), "summary_not_planned"),
        (tool("merge"), "no_such_tool"),
    ],
)
def test_a_step_does_not_become_what_its_agent_may_not_do(work: Work, code: str) -> None:
    house = House.furnished().queue(ANN, skill("merge"))
    house.refused(code, i.ModifyStep(step_id=StepId("ann#1"), work=work), by=ANN)


def test_what_somebody_else_queued_may_be_filled_in_by_its_agent() -> None:
    house = House.furnished().queue(ANN, tool("crawl"))
    house.do(i.ModifyStep(step_id=StepId("ann#1"), work=tool("crawl", {"url": "x"})), by=ANN)


def test_a_step_that_has_begun_is_neither_changed_nor_removed() -> None:
    house = House.furnished().queue(ANN)
    house.start(ANN)
    house.refused("step_begun", i.ModifyStep(step_id=StepId("ann#1"), work=skill()), by=ANN)
    house.refused("step_begun", i.RemoveStep(step_id=StepId("ann#1")), by=ANN)


def test_nobody_changes_somebody_elses_step_or_one_that_is_gone() -> None:
    house = House.furnished().queue(ANN)
    house.refused("not_yours", i.RemoveStep(step_id=StepId("ann#1")), by=BOB)
    house.refused("not_yours", i.ModifyStep(step_id=StepId("ann#1"), work=skill()), by=BOB)
    house.refused("unknown_step", i.RemoveStep(step_id=StepId("ann#9")), by=ANN)


def test_a_started_step_leaves_the_queue_and_no_second_one_starts() -> None:
    house = House.furnished().queue(ANN, skill(), skill())
    step = house.start(ANN)
    assert (step.state, step.attempt, house.agent(ANN).todo) == ("running", 1, ("ann#2",))
    house.refused("not_next", i.StartStep(step_id=StepId("ann#2"), terms=PURE, work=skill()), by=ANN)
    house.refused("not_next", i.StartStep(step_id=StepId("ann#1"), terms=PURE, work=skill()), by=ANN)


def test_only_the_next_step_starts_and_only_by_its_agent() -> None:
    house = House.furnished().queue(ANN, skill(), skill())
    house.refused("not_next", i.StartStep(step_id=StepId("ann#2"), terms=PURE, work=skill()), by=ANN)
    house.refused("not_yours", i.StartStep(step_id=StepId("ann#1"), terms=PURE, work=skill()), by=BOB)
    house.refused("unknown_step", i.StartStep(step_id=StepId("ann#9"), terms=PURE, work=skill()), by=ANN)


def test_an_effect_is_prepared_by_the_attempt_that_runs() -> None:
    house = House.furnished().queue(ANN)
    house.start(ANN, "keyed")
    first, second = PreparedEffect(kind="file", key="a", before="0", after="1"), PreparedEffect(kind="file", key="b")
    house.do(i.PrepareEffect(step_id=StepId("ann#1"), attempt=1, prepared=(first,)), by=ANN)
    house.do(i.PrepareEffect(step_id=StepId("ann#1"), attempt=1, prepared=(second,)), by=ANN)
    assert house.running(ANN).prepared == (first, second)
    house.refused("stale_attempt", i.PrepareEffect(step_id=StepId("ann#1"), attempt=2, prepared=()), by=ANN)
    house.refused("not_yours", i.PrepareEffect(step_id=StepId("ann#1"), attempt=1, prepared=()), by=BOB)
    house.refused("unknown_step", i.PrepareEffect(step_id=StepId("ann#9"), attempt=1, prepared=()), by=ANN)


def test_a_step_that_is_being_ended_prepares_nothing_more() -> None:
    house = House.furnished().queue(ANN)
    house.start(ANN, "keyed")
    house.do(i.CancelTask(task_id=T1))
    house.refused("stale_attempt", i.PrepareEffect(step_id=StepId("ann#1"), attempt=1, prepared=()), by=ANN)


def test_what_an_answering_step_queues_is_on_the_way_to_the_answer() -> None:
    house = House.furnished().queue(ANN, skill("merge"))
    waiting = house.ask_agent(BOB, ANN)[0]
    house.run(ANN, steps(tool("shell", {}), skill()))
    assert house.todo(ANN) == ["shell", "converse", "merge"]
    assert [house.state.steps[one].answers for one in house.agent(ANN).todo] == [waiting, waiting, None]
    house.run(ANN, effect="effectful")
    assert house.agent(BOB).step_lock == (waiting,)
    house.run(ANN, reply(waiting, BOB))
    assert house.released(waiting) == "reply"


def test_what_an_answering_step_queues_elsewhere_owes_nothing() -> None:
    house = House.furnished().do(i.AddTask(name="side", intention="x", manager=BOSS, group=(ANN,)))
    waiting = house.ask_agent(BOB, ANN)[0]
    house.run(ANN, steps(skill(), task=T2))
    assert house.last(ANN).answers is None
    assert house.released(waiting) == "unanswered"


@pytest.mark.req("MAS-232")
def test_a_long_tail_tool_gets_a_tool_decision_next_in_its_own_conversation() -> None:
    house = House.furnished(stages=(plan(("one", PIA)),)).assign()
    house.run(PIA, steps(tool("crawl", {}), skill("reflection"), agent=PIA, task=None))
    house.run(PIA, i.NeedToolDecision(agent_id=PIA, task_id=T1, stage_id=S1, tool_name="crawl"), effect="effectful")
    assert house.todo(PIA) == ["tool_decision", "reflection"]
    first = house.state.steps[house.agent(PIA).todo[0]]
    assert (first.thread_id, first.stage_id, first.work.text_content) == (thread(PIA, "t1.s1.1"), S1, "crawl")


@pytest.mark.req("MAS-104")
def test_the_wish_for_a_tool_decision_becomes_an_instruction_to_its_agent_that_adds_the_step() -> None:
    house = House.furnished(stages=(plan(("one", PIA)),)).assign()
    house.run(PIA, steps(tool("crawl", {}), agent=PIA, task=None))
    house.run(PIA, i.NeedToolDecision(agent_id=PIA, task_id=T1, stage_id=S1, tool_name="crawl"), effect="effectful")
    (sent,) = house.happened(MessageSent)
    message = sent.message
    assert (message.kind, message.task_id, message.receiver, message.stage_relative) == ("instruction", T1, (PIA,), S1)
    assert message.data == {"instruction": "add_tool_decision", "tool_name": "crawl"}
    step = house.state.steps[house.agent(PIA).todo[0]]
    assert (step.work.executor, step.message_id, step.cause) == ("tool_decision", message.message_id, "pia#2")


def test_a_tool_decision_is_on_the_way_to_the_answer_too() -> None:
    house = House.furnished()
    waiting = house.ask_agent(BOB, PIA)[0]
    house.run(PIA, steps(tool("crawl", {}), agent=PIA))
    house.run(PIA, i.NeedToolDecision(agent_id=PIA, task_id=T1, stage_id=None, tool_name="crawl"))
    assert house.last(PIA).answers == waiting


def test_the_house_may_ask_for_a_tool_decision_in_the_task() -> None:
    house = House.furnished()
    house.do(i.NeedToolDecision(agent_id=PIA, task_id=T1, stage_id=None, tool_name="crawl"), by="system")
    assert house.last(PIA).thread_id == thread(PIA, T1)


@pytest.mark.parametrize(
    ("wish", "by", "code"),
    [
        (i.NeedToolDecision(agent_id=PIA, task_id=T1, stage_id=None, tool_name="x"), PIA, "tool_decision_not_planned"),
        (i.NeedToolDecision(agent_id=PIA, task_id=T2, stage_id=None, tool_name="x"), "door", "not_in_group"),
        (i.NeedToolDecision(agent_id=PIA, task_id=TaskId("t9"), stage_id=None, tool_name="x"), "door", "unknown_task"),
        (i.NeedToolDecision(agent_id=PIA, task_id=T1, stage_id=StageId("x"), tool_name="x"), "door", "unknown_stage"),
    ],
)
def test_a_tool_decision_out_of_nowhere_is_refused(wish: i.NeedToolDecision, by: str, code: str) -> None:
    House.furnished().do(i.AddTask(name="side", intention="x", manager=BOSS)).refused(code, wish, by=by)


def test_a_skill_may_not_ask_for_a_tool_decision_nor_a_tool_for_somebody_elses() -> None:
    house = House.furnished().queue(ANN, skill(), tool("shell", {}))
    wish = i.NeedToolDecision(agent_id=ANN, task_id=T1, stage_id=None, tool_name="shell")
    house.run(ANN, wish)
    assert house.codes() == ["tool_decision_not_planned"]
    house.run(ANN, i.NeedToolDecision(agent_id=PIA, task_id=T1, stage_id=None, tool_name="shell"))
    assert house.codes() == ["tool_decision_not_planned"]


def test_a_persons_tool_step_may_send_somebody_else_to_decide() -> None:
    house = House.furnished().queue(HUE, tool("crawl", {}))
    house.run(HUE, i.NeedToolDecision(agent_id=PIA, task_id=T1, stage_id=None, tool_name="crawl"))
    assert house.todo(PIA) == ["tool_decision"]
    assert house.last(PIA).thread_id == thread(PIA, T1)


def test_terms_that_were_made_for_other_work_start_nothing() -> None:
    house = House.furnished().queue(ANN, tool("shell", {"command": "ls"}))
    harmless = i.StartStep(step_id=StepId("ann#1"), terms=PURE, work=tool("shell", {"command": "ls"}))
    house.do(i.ModifyStep(step_id=StepId("ann#1"), work=tool("shell", {"command": "rm -rf /"})), by=ANN)
    house.refused("other_work", harmless, by=ANN)
    assert house.agent(ANN).running is None


# ---------------------------------------------------------------------------------------------- what plans may hold


@pytest.mark.req("MAS-18", "MAS-130")
def test_a_plan_that_forgot_to_look_back_gets_a_reflection_and_one_that_did_not_gets_no_second() -> None:
    house = House.furnished(stages=(plan(("one", PIA)),)).assign()
    house.run(PIA, steps(skill("send_message"), agent=PIA, task=None))
    assert house.todo(PIA) == ["send_message", "reflection"]
    other = House.furnished(stages=(plan(("one", PIA)),)).assign()
    other.run(PIA, steps(skill("reflection"), skill("send_message"), agent=PIA, task=None))
    assert other.todo(PIA) == ["reflection", "send_message"]


def test_an_empty_plan_and_what_is_queued_by_other_steps_get_none() -> None:
    house = House.furnished(stages=(plan(("one", PIA)),)).assign()
    house.run(PIA, steps(agent=PIA, task=None))
    assert house.todo(PIA) == []
    house.queue(PIA, skill("process_message")).run(PIA, steps(skill("send_message"), agent=PIA, task=None))
    assert house.todo(PIA) == ["send_message"]


@pytest.mark.req("MAS-163", "MAS-169")
def test_only_a_manager_has_the_skills_of_managers_and_it_has_them_always() -> None:
    lead, clerk = AgentId("lead"), AgentId("clerk")
    house = House.furnished()
    house.do(i.AddAgent(agent_id=lead, spec=AgentSpec(name="Lead", style="plan", manager=True)))
    house.do(i.AddAgent(agent_id=clerk, spec=AgentSpec(name="Clerk", style="plan", skills=("task_manager",))))
    house.do(i.AddParticipants(task_id=T1, agents=(lead, clerk)))
    wants = (skill("task_manager"), skill("agent_manager"), skill("ask_info"))
    house.queue(lead, skill("process_message")).run(lead, steps(*wants, agent=lead, task=None))
    assert house.todo(lead) == ["task_manager", "agent_manager", "ask_info"]
    house.queue(clerk, skill("process_message")).run(clerk, steps(wants[0], agent=clerk, task=None))
    assert house.codes() == ["not_manager"]
    house.refused("no_such_skill", steps(wants[2], agent=clerk), by=clerk)


# ---------------------------------------------------------------------------------------------- system agents

QUEUE = AgentId("queue")
ONE = SubtaskId("t1.s1.1")
SERVICE = AgentSpec(name="queue", kind="system", tools=("merge",))


def served(*, joins: bool = True, tries: int = 1) -> House:
    """A team with a system agent that offers `merge`, while Ann works on the subtask `one`."""
    stage = plan(("one", ANN), ("two", BOB))
    one, two = stage.subtasks
    house = House.furnished(stages=(evolve(stage, subtasks=(evolve(one, tries=tries), two)),))
    house.do(i.AddAgent(agent_id=QUEUE, spec=SERVICE))
    if joins:
        house.do(i.AddParticipants(task_id=T1, agents=(QUEUE,)))
    return house.assign()


def asks(work: Work, agent: AgentId = QUEUE, task: TaskId | None = None) -> i.QueueSteps:
    return steps(work, agent=agent, task=task)


def test_a_step_queues_what_a_system_agent_offers_and_it_belongs_to_the_subtask() -> None:
    house = served().run(ANN, asks(tool("merge", {"round": 1})))
    step = house.last(QUEUE)
    assert (step.thread_id, step.subtask_id, step.stage_id, step.cause) == (thread(QUEUE, ONE), ONE, S1, "ann#1")
    house.run(QUEUE, asks(skill(text="mend it"), ANN))
    step = house.last(ANN)
    assert (step.thread_id, step.subtask_id, step.work.text_content) == (thread(ANN, ONE), ONE, "mend it")
    house.run(ANN, asks(tool("merge", {"round": 2})))
    house.run(QUEUE, asks(skill(text="propose"), CY))
    assert (house.last(CY).thread_id, house.last(CY).subtask_id) == (thread(CY, ONE), ONE)
    house.run(CY, asks(tool("merge", {"round": 2}), task=T1))
    assert house.last(QUEUE).thread_id == thread(QUEUE, ONE)
    house.run(QUEUE, asks(tool("merge", {"round": 2})))
    assert house.last(QUEUE).thread_id == thread(QUEUE, ONE)


@pytest.mark.parametrize(
    ("intent", "code"),
    [
        (asks(tool("deliver", {})), "not_yours"),
        (asks(skill("merge")), "not_yours"),
        (i.QueueSteps(agent_id=QUEUE, works=(tool("merge", {}),), thread_id=thread(QUEUE, "t1")), "not_yours"),
        (asks(tool("merge", {}), task=T2), "not_yours"),
        (asks(tool("shell", {}), BOB), "not_yours"),
    ],
)
def test_nothing_else_is_queued_for_another_agent(intent: i.QueueSteps, code: str) -> None:
    house = served().run(ANN, intent)
    assert house.codes() == [code]
    house.refused("not_yours", asks(tool("merge", {}), task=T1), by=ANN)


def test_a_system_agent_outside_the_group_is_not_asked() -> None:
    house = served(joins=False).run(ANN, asks(tool("merge", {})))
    assert house.codes() == ["not_in_group"]


def test_a_step_outside_a_subtask_asks_a_system_agent_in_the_task() -> None:
    house = served().queue(CY).run(CY, asks(tool("merge", {}), task=T1))
    assert (house.last(QUEUE).thread_id, house.last(QUEUE).subtask_id) == (thread(QUEUE, T1), None)


def test_a_subtask_that_is_tried_again_or_cancelled_stops_the_steps_of_all_agents_in_it() -> None:
    failed = i.FinishSubtask(subtask_id=ONE, stage_id=S1, state="failed")
    house = served(tries=2).run(ANN, asks(tool("merge", {}))).do(failed, by=SYSTEM)
    assert house.todo(QUEUE) == []
    house = served().run(ANN, asks(tool("merge", {})))
    house.do(evolve(failed, state="cancelled"), by=BOSS)
    assert house.todo(QUEUE) == []
    house = served().run(ANN, asks(tool("merge", {})))
    house.start(QUEUE)
    house.do(evolve(failed, state="cancelled"), by=BOSS)
    assert house.running(QUEUE).state == "cancelling"
