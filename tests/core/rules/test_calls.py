"""Native calls: nothing comes between a reply and the results of its calls, and they go out together."""

from __future__ import annotations

import pytest

from greenroom.core.base.ids import AgentId, StepId, WaitingId
from greenroom.core.base.records import evolve
from greenroom.core.rules import intents as i
from greenroom.core.state.spec import Cooperation
from greenroom.core.state.step import Step, StepTerms, Work
from tests.core.house import ANN, BOB, BOSS, CY, HUE, PIA, S1, T1, T2, House, plan, question, reply, skill, thread, tool

ASKS = StepTerms(effect="effectful", verdict="ask", digest="d")
HERE = thread(ANN, T1)


def call(name: str = "shell", number: int = 1) -> Work:
    """A native call, as a reply of a model asks for it."""
    return evolve(tool(name, {}), call_id=f"call-{number}")


def calls(count: int) -> i.QueueSteps:
    """What a reply with so many calls asks for: the calls, then another turn."""
    works = (*(call(number=number) for number in range(count)), skill("converse", "go on"))
    return i.QueueSteps(agent_id=ANN, works=works, place="next")


def order(house: House) -> list[str]:
    """Let Ann do all she can; returns what she did, in order."""
    ran = []
    while house.next(ANN) is not None:
        ran.append(house.start(ANN).work.text_content.partition("\n")[0] or "call")
        house.finish(ANN)
    return ran


def test_what_jumped_the_queue_is_read_after_the_results_of_the_calls() -> None:
    house = House.furnished().queue(ANN)
    house.start(ANN)
    house.ask_agent(BOB, ANN)
    house.finish(ANN, calls(2))
    assert house.senders(ANN)[0] == "from: bob", "it stands before the calls"
    assert order(house) == ["call", "call", "from: bob", "go on"]


def test_what_jumps_the_queue_between_two_calls_waits_for_the_second() -> None:
    house = House.furnished().queue(ANN).run(ANN, calls(2)).run(ANN)
    house.ask_agent(BOB, ANN)
    assert order(house) == ["call", "from: bob", "go on"]


def test_an_interrupted_step_that_is_no_call_waits_for_calls_that_were_queued_meanwhile() -> None:
    house = House.furnished().queue(ANN, skill("converse", "first"))
    house.start(ANN)
    house.do(evolve(calls(1), place="last", task_id=T1)).release(ANN)
    assert order(house) == ["call", "first", "go on"]


def test_other_conversations_of_the_agent_go_on_while_a_call_waits_for_a_person() -> None:
    house = House.furnished().do(i.AddTask(name="side", intention="x", manager=BOSS, group=(ANN,)))
    house.queue(ANN).run(ANN, calls(2)).queue(ANN, skill("converse", "elsewhere"), task=T2)
    house.start(ANN, terms=ASKS)
    assert order(house) == ["elsewhere"]
    house.answer(ANN)
    assert house.start(ANN, terms=ASKS).state == "running"


def test_calls_run_in_their_order_also_when_the_first_waits_for_a_person() -> None:
    house = House.furnished().queue(ANN).run(ANN, calls(2))
    house.start(ANN, terms=ASKS)
    assert house.next(ANN) is None


def test_a_step_that_waits_for_a_person_does_not_hold_up_the_calls_behind_it() -> None:
    house = House.furnished().queue(ANN, skill("merge", "merge"))
    house.start(ANN, terms=ASKS)
    house.do(evolve(calls(1), place="last", task_id=T1))
    assert order(house) == ["call"], "go on waits for merge, and merge for a person"
    house.answer(ANN)
    assert order(house) == ["merge", "go on"]


def test_a_tool_without_an_instruction_does_not_hold_up_the_calls_behind_it() -> None:
    house = House.furnished().queue(ANN, tool("shell"), call())
    assert house.next(ANN) == "ann#2"


def test_a_call_without_arguments_needs_no_instruction() -> None:
    house = House.furnished().queue(ANN, evolve(call(), instruction_content=None))
    assert house.last(ANN).state == "init"
    house.do(i.ModifyStep(step_id=house.last(ANN).step_id, work=evolve(call(), instruction_content=None)), by=ANN)
    assert house.last(ANN).state == "init"


def test_a_call_that_waits_for_an_answer_does_not_keep_its_siblings_back() -> None:
    house = House.furnished().queue(ANN).run(ANN, calls(3))
    house.run(ANN, question(BOB)).run(ANN, question(CY))
    bob, cy = house.agent(ANN).step_lock
    assert house.start(ANN).work.call_id == "call-2", "both went out, and the third call runs"
    house.finish(ANN)
    assert house.next(ANN) is None, "they are awaited together"
    house.run(CY, reply(cy, ANN))
    assert house.next(ANN) is None
    house.run(BOB, reply(bob, ANN))
    assert order(house) == ["from: cy", "from: bob", "go on"]


def test_an_answer_that_comes_early_is_read_after_the_last_call() -> None:
    house = House.furnished().queue(ANN).run(ANN, calls(2)).run(ANN, question(BOB))
    house.run(BOB, reply(house.agent(ANN).step_lock[0], ANN))
    assert order(house) == ["call", "from: bob", "go on"]


def test_the_calls_of_an_answering_step_go_out_although_it_asked_somebody_in_the_same_reply() -> None:
    house = House.furnished()
    first = house.ask_agent(BOB, ANN)[0]
    house.run(ANN, question(CY), calls(1))
    assert house.start(ANN).work.call_id == "call-0"
    house.finish(ANN)
    assert house.next(ANN) is None, "the answer waits for what was asked before it"
    house.run(CY, reply(house.agent(ANN).step_lock[0], ANN))
    assert order(house) == ["from: cy", "go on"]
    assert house.released(first) == "unanswered"


def test_a_question_back_is_answered_although_calls_of_the_same_reply_were_open() -> None:
    """Without that, two agents would wait for each other: the call for the answer, the answer for the call."""
    house = House.furnished(waiting_timeout=None)
    first = house.ask_agent(BOB, ANN)[0]
    house.run(ANN, question(CY), calls(1))
    house.run(CY, question(ANN))
    house.run(ANN)
    back = house.agent(CY).step_lock[0]
    house.run(ANN, reply(back, CY)).run(CY).run(CY, reply(house.agent(ANN).step_lock[0], ANN))
    house.run(ANN).run(ANN, reply(first, BOB))
    assert not house.state.waits


@pytest.mark.parametrize(("agent", "name", "executor"), [(ANN, "shell", "converse"), (PIA, "crawl", "send_message")])
def test_a_tool_that_asked_somebody_for_an_answer_is_not_called_again_to_give_it(
    agent: AgentId, name: str, executor: str
) -> None:
    house = House.furnished()
    waiting = house.ask_agent(BOB, agent)[0]
    house.run(agent, i.QueueSteps(agent_id=agent, works=(call(name),)))
    house.run(agent, question(CY), effect="effectful")
    step = house.last(agent)
    assert (step.work.type, step.work.executor, step.work.call_id, step.answers) == ("skill", executor, None, waiting)
    assert waiting in step.work.text_content


def test_a_conversation_knows_its_open_calls_whatever_becomes_of_them() -> None:
    house = House.furnished().queue(ANN, call(number=1), call(number=2), call(number=3))

    def count() -> int:
        return house.state.threads[HERE].open_calls

    assert count() == 3
    house.run(ANN)
    assert count() == 2
    house.do(i.ModifyStep(step_id=house.agent(ANN).todo[0], work=tool("shell", {})), by=ANN)
    assert count() == 1
    house.do(i.ModifyStep(step_id=house.agent(ANN).todo[0], work=call()), by=ANN)
    assert count() == 2
    house.do(i.RemoveStep(step_id=house.agent(ANN).todo[0]), by=ANN)
    assert count() == 1
    house.start(ANN)
    house.do(i.PauseTask(task_id=T1, now=True)).release(ANN).do(i.ResumeTask(task_id=T1))
    assert count() == 1
    house.run(ANN)
    assert count() == 0


def test_a_call_of_a_foreign_tool_gets_its_result_like_any_other() -> None:
    works = (call("shell", 1), call("crawl", 2), call("shell", 3), skill("converse", "go on"))
    house = House.furnished().queue(ANN, skill("converse", "first"), skill("converse", "later"))
    house.run(ANN, i.QueueSteps(agent_id=ANN, works=works, place="next"))
    (refused,) = [one for one in house.archived(Step) if one.work.executor == "crawl"]
    assert (refused.state, refused.work.call_id) == ("failed", "call-2")
    assert "may not use the tool" in refused.error
    assert order(house) == ["call", "call", "go on", "later"]


@pytest.mark.parametrize("how", ["failed", "denied", "refused by a person", "cut off"])
def test_after_a_call_with_side_effects_that_did_not_work_the_others_of_the_reply_are_not_run(how: str) -> None:
    works = (call(number=1), call(number=2), call(number=3), skill("converse", "go on"))
    house = House.furnished().queue(ANN).run(ANN, i.QueueSteps(agent_id=ANN, works=works, place="next"))
    match how:
        case "failed":
            house.start(ANN, "effectful")
            house.finish(ANN, outcome="failed")
        case "denied":
            house.ask(
                i.StartStep(step_id=StepId("ann#2"), terms=StepTerms(effect="keyed", verdict="deny"), work=works[0]),
                ANN,
            )
        case "refused by a person":
            house.ask(i.StartStep(step_id=StepId("ann#2"), terms=ASKS, work=works[0]), ANN)
            house.answer(ANN, "denied")
        case _:
            house.start(ANN, "effectful")
            house.release(ANN)
    house.ask(i.StartStep(step_id=StepId("ann#3"), terms=StepTerms(effect="effectful"), work=works[1]), ANN)
    assert house.ended("ann#3").state == "skipped"
    assert "earlier call of the same reply" in house.ended("ann#3").error
    assert house.start(ANN).work.call_id == "call-3", "what changes nothing is run"


def test_a_failed_call_does_not_spoil_the_calls_of_the_next_reply() -> None:
    works = (call(number=1), skill("converse", "go on"))
    house = House.furnished().queue(ANN).run(ANN, i.QueueSteps(agent_id=ANN, works=works, place="next"))
    house.start(ANN, "effectful")
    house.finish(ANN, outcome="failed").run(ANN, calls(1))
    assert house.start(ANN, "effectful").work.call_id is not None


def ask(name: str, *others: str) -> tuple[i.SendMessage | i.QueueSteps, ...]:
    """What a reply asks for that calls other agents."""
    receivers = {"bob": BOB, "cy": CY}
    asked = [evolve(question(receivers[one]), call_id=f"to-{one}", delivery="call") for one in (name, *others)]
    works = [
        Work(type="tool", executor="shell", instruction_content={"agent": one}, call_id=f"to-{one}")
        for one in (name, *others)
    ]
    return (*asked, i.QueueSteps(agent_id=ANN, works=(*works, skill("converse", "go on")), place="next"))


def waiting(house: House, call: str) -> WaitingId:
    """The id that the callee returns."""
    return next(name for name, wait in house.state.waits.items() if wait.call_id == call)


def test_calls_go_out_together_and_their_answers_are_their_results() -> None:
    house = House.furnished().queue(ANN).run(ANN, *ask("bob", "cy"))
    assert house.next(ANN) is None, "both are awaited"
    house.run(CY, reply(waiting(house, "to-cy"), ANN))
    assert house.start(ANN).work.instruction_content == {"agent": "cy", "answer": "so"}
    house.finish(ANN)
    assert house.next(ANN) is None, "the next turn waits for the other one"
    house.run(BOB, reply(waiting(house, "to-bob"), ANN)).run(ANN)
    assert house.texts(ANN) == ["go on"], "no other step tells of the answers"
    assert house.next(ANN) is not None


def test_a_call_that_nobody_answers_gets_that_as_its_result() -> None:
    house = House.furnished().queue(ANN).run(ANN, *ask("bob")).do(i.RemoveAgent(agent_id=BOB))
    told = house.start(ANN).work.instruction_content or {}
    assert "will not answer: the agent was removed" in str(told["error"])
    assert house.finish(ANN).texts(ANN) == ["go on"]


def test_a_call_that_the_callee_ends_without_a_word_gets_that_as_its_result() -> None:
    house = House.furnished().queue(ANN).run(ANN, *ask("bob")).run(BOB)
    assert "without answering" in str((house.start(ANN).work.instruction_content or {})["error"])


def test_a_call_of_nobody_is_not_waited_for() -> None:
    message, queue = ask("bob")
    assert isinstance(message, i.SendMessage)
    house = House.furnished().queue(ANN).run(ANN, evolve(message, message=" "), queue)
    assert house.codes() == ["empty_message"]
    assert house.start(ANN).work.instruction_content == {"agent": "bob"}


@pytest.mark.parametrize("order", [("bob", "cy"), ("cy", "bob")])
def test_an_answer_in_another_conversation_fills_no_call_of_this_one(order: tuple[str, str]) -> None:
    house = House.furnished().queue(ANN).run(ANN, *ask(*order))
    house.do(i.SendMessage(task_id=T1, receiver=(ANN,), message="by the way"), by=BOB)
    assert house.next(ANN) is None
    assert all(wait.call_id for wait in house.state.waits.values())


def once_more(*works: Work) -> i.QueueSteps:
    """What a skill asks for that has to be asked again."""
    return i.QueueSteps(agent_id=PIA, works=works, place="next")


def planning() -> House:
    return House.furnished(stages=(plan(("one", PIA)),)).assign()


@pytest.mark.req("MAS-131")
def test_a_plan_that_is_made_again_is_no_plan_yet_and_gets_no_look_back() -> None:
    house = planning()
    house.run(PIA, once_more(house.state.steps[house.agent(PIA).todo[0]].work))
    assert house.todo(PIA) == ["planning"]


@pytest.mark.parametrize("name", ["summary", "tool_decision"])
def test_what_nobody_may_plan_may_be_tried_again_by_itself_and_not_by_another_step(name: str) -> None:
    house = planning().run(PIA)
    house.queue(PIA, skill(name, "as it was")).run(PIA, once_more(skill(name, "as it was")))
    assert house.todo(PIA) == [name]
    house.run(PIA, once_more(skill(name, "something else")))
    assert house.codes() == [f"{name}_not_planned"]


def test_a_message_that_is_read_again_still_holds_its_stage_up() -> None:
    house = planning().run(PIA)
    house.do(i.SendMessage(task_id=T1, receiver=(PIA,), message="hello", stage_relative=S1), by=BOB)
    first = house.state.steps[house.agent(PIA).todo[0]]
    house.run(PIA, once_more(first.work))
    assert house.last(PIA).message_id == first.message_id == "bob>1"


def test_on_the_way_to_an_answer_it_goes_before_what_was_planned_behind_it() -> None:
    house = House.furnished()
    waiting = house.ask_agent(BOB, PIA)[0]
    fills = skill("instruction_generation")
    house.run(PIA, i.QueueSteps(agent_id=PIA, works=(fills, tool("crawl"), skill("send_message"))))
    house.run(PIA, once_more(fills))
    assert house.todo(PIA) == ["instruction_generation", "crawl", "send_message"]
    assert {house.state.steps[name].answers for name in house.agent(PIA).todo} == {waiting}


def test_a_tool_decision_comes_before_the_rest_of_the_plan_where_somebody_waits() -> None:
    house = House.furnished()
    house.ask_agent(BOB, PIA)
    house.run(PIA, i.QueueSteps(agent_id=PIA, works=(tool("crawl", {}), skill("send_message"))))
    house.run(PIA, i.NeedToolDecision(agent_id=PIA, task_id=T1, stage_id=None, tool_name="crawl"))
    assert house.todo(PIA) == ["tool_decision", "send_message"]


def test_where_nothing_of_the_way_is_left_it_goes_where_all_go_that_jump() -> None:
    house = House.furnished()
    house.ask_agent(BOB, PIA)
    house.do(i.SendMessage(task_id=T1, receiver=(PIA,), message="And?", need_reply=True), by=HUE)
    house.run(PIA, once_more(skill("send_message", house.texts(PIA)[0])))
    assert [house.state.steps[name].answers is None for name in house.agent(PIA).todo] == [True, False]


def asked_at_once(count: int, *, at_once: int | None) -> House:
    """Return a house in which Ann asks Bob so many things in one reply. Bob can do `at_once` of them."""
    house = House.furnished()
    if at_once is not None:
        spec = evolve(house.agent(BOB).spec, cooperation=Cooperation(concurrency=at_once))
        house.do(i.ChangeAgent(agent_id=BOB, spec=spec))
    asked = [evolve(question(BOB), call_id=f"c{number}", delivery="call") for number in range(count)]
    return house.queue(ANN).run(ANN, *asked)


def test_an_agent_that_can_do_several_things_at_once_gets_copies() -> None:
    house = asked_at_once(4, at_once=3)
    names = [name for name in house.state.agents if name.startswith("bob")]
    assert sorted(names) == ["bob", "bob-2", "bob-3"]
    assert [len(house.todo(AgentId(name))) for name in sorted(names)] == [2, 1, 1]
    assert {house.agent(AgentId(name)).spec for name in names} == {house.agent(BOB).spec}
    assert set(names) <= set(house.task().group)


def test_a_copy_that_is_free_again_is_called_before_another_one_is_added() -> None:
    house = asked_at_once(2, at_once=5)
    for waiting, wait in tuple(house.state.waits.items()):
        house.run(wait.on, reply(waiting, ANN))
    house.queue(ANN).run(ANN, evolve(question(BOB), call_id="c9", delivery="call"))
    assert sorted(name for name in house.state.agents if name.startswith("bob")) == ["bob", "bob-2"]


@pytest.mark.parametrize("at_once", [None, 1])
def test_an_agent_that_does_one_thing_at_a_time_has_no_copies(at_once: int | None) -> None:
    house = asked_at_once(2, at_once=at_once)
    assert [name for name in house.state.agents if name.startswith("bob")] == ["bob"]
    assert len(house.todo(BOB)) == 2
