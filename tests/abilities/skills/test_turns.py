"""A turn: what a reply means, when the work is over, and what happens at the limits."""

from __future__ import annotations

import pytest

from greenroom.abilities.skills.conversation import builtin_calls
from greenroom.abilities.skills.conversation.completion import (
    can_auto_complete,
    detect_completion,
    find_ending,
    strip_mark,
)
from greenroom.app.text_reader import TextReader
from greenroom.core.base.amounts import Limits
from greenroom.core.base.ids import TEAM_BUDGET
from greenroom.core.ports.executor import Outcome, StepContext
from greenroom.core.ports.model import Finished, ModelCard, ModelRequest, ModelTextDelta, ToolCall, Usage
from greenroom.core.rules.intents import Interrupt, QueueSteps, SetLimits
from greenroom.core.state.spec import AgentSpec, History, TurnPolicy
from greenroom.core.state.step import Step, StepTerms, StepType, Work
from greenroom.core.state.team_state import TeamState
from tests.abilities.skills.talks import ANN, BOB, T1, Answer, Played, calls, in_order, says, team

FINISH = AgentSpec(name="Ann", tools=("echo",), turn=TurnPolicy(ends="finish"))


@pytest.mark.req("AG-162", "AG-175", "AG-176")
@pytest.mark.parametrize("alone", [True, False])
@pytest.mark.parametrize("company", [True, False])
def test_who_may_end_a_task_by_itself(*, alone: bool, company: bool) -> None:
    assert can_auto_complete(None, non_interactive=alone, in_multi_agent=company) is (alone and not company)
    for explicit in (True, False):
        assert can_auto_complete(explicit, non_interactive=alone, in_multi_agent=company) is explicit


@pytest.mark.parametrize(
    ("protocols", "subtask", "expected"),
    [((), False, "text"), ((), True, "finish"), (("tool_call",), False, "mark"), (("xml_tool",), True, "text")],
)
def test_what_ends_work_fits_the_form_in_which_the_agent_acts(
    protocols: tuple[str, ...], subtask: bool, expected: str
) -> None:
    assert find_ending(AgentSpec(name="a", turn=TurnPolicy(protocols=protocols)), subtask=subtask) == expected


@pytest.mark.req("AG-36", "AG-37")
def test_a_mark_ends_work_only_where_the_agent_may_end_it() -> None:
    assert detect_completion("mark", "Done.\n!!!COMPLETE!!!", auto_complete=True, nudges=0) == "mark"
    assert detect_completion("mark", "Done.\n!!!COMPLETE!!!", auto_complete=False, nudges=0) == "held"
    assert detect_completion("mark", "Done.", auto_complete=True, nudges=0) is None
    assert detect_completion("mark", "Done.", auto_complete=True, nudges=5) == "silent"
    for mark in ("`!!!COMPLETE!!!`", "ot('!!!COMPLETE!!!')", 'ot("!!!COMPLETE!!!")'):
        assert strip_mark(f"Done.\n{mark}") == "Done."


async def test_work_that_ends_with_a_call_ends_with_its_summary_and_its_claims() -> None:
    ends = calls("finish", status="done", summary="All is there.", claims=["3 passed"])
    async with team(Played(in_order(says("I think so."), ends)), FINISH) as here:
        assert await here.ask() == "finished"
        assert await here.summary() == "All is there."
        (task,) = await here.runtime.ended_tasks(here.team)
    assert task.evidence == ("3 passed",)


async def test_text_without_a_call_gets_one_nudge_and_then_is_the_summary() -> None:
    model = Played(in_order(says("Done, I think."), says("Really done.")))
    async with team(model, FINISH) as here:
        assert await here.ask() == "finished"
        assert await here.summary() == "Really done."
        assert [(step.result or {}).get("over") for step in await here.steps()] == [None, "unproven"]
    assert len(model.asked) == 2
    assert "call `finish`" in model.asked[1].messages[-1].content


async def test_work_that_failed_says_so() -> None:
    async with team(Played(lambda _: calls("finish", status="failed", summary="No such file.")), FINISH) as here:
        assert await here.ask() == "failed"
        assert await here.summary() == "No such file."


@pytest.mark.req("AF-9", "AF-51")
async def test_at_its_limit_an_agent_has_one_last_turn_without_tools() -> None:
    spec = AgentSpec(name="Ann", tools=("echo",), turn=TurnPolicy(rounds=2))
    model = Played(lambda request: says("So far.") if request.tool_choice == "none" else calls("echo", text="x"))
    async with team(model, spec) as here:
        assert await here.ask() == "finished"
        assert await here.summary() == "So far."
    assert [one.tool_choice for one in model.asked] == ["auto", "auto", "none"]
    assert model.asked[0].tools == model.asked[-1].tools, "the prefix stays the same"
    assert "2 times" in model.asked[-1].messages[-1].content


async def test_a_new_question_begins_with_new_rounds() -> None:
    spec = AgentSpec(name="Ann", tools=("echo",), turn=TurnPolicy(rounds=1))
    model = Played(in_order(calls("echo", text="x"), says("A."), calls("echo", text="y"), says("B.")))
    async with team(model, spec, solo=False) as here:
        await here.ask("One?")
        await here.ask("Two?")
    assert [one.tool_choice for one in model.asked] == ["auto", "none", "auto", "none"]


@pytest.mark.req("AG-166", "AG-11")
async def test_work_that_is_to_be_summed_up_ends_with_the_summary() -> None:
    spec = AgentSpec(name="Ann", history=History(need_summary=True, summary_prompt="In one line, please."))
    model = Played(lambda request: says("One line.") if request.purpose.skill == "summarize" else says("Long story."))
    async with team(model, spec) as here:
        assert await here.ask() == "finished"
        assert await here.summary() == "One line."
    assert model.asked[-1].messages[-1].content == "In one line, please."
    assert model.asked[-1].messages[-2].content == "Long story."


# ---------------------------------------------------------------------------------------------- typed answers


NUMBER = {"type": "object", "properties": {"n": {"type": "integer", "maximum": 9}}, "required": ["n"]}
TOO_MUCH = "70 is greater than the maximum of 9"


async def test_an_answer_that_fits_ends_the_work() -> None:
    spec = AgentSpec(name="Ann", answer=NUMBER)
    async with team(Played(in_order(calls("answer", n=70), calls("answer", n=7))), spec, reader=TextReader()) as here:
        assert await here.ask() == "finished"
        assert await here.summary() == '{"n":7}'


async def test_what_does_not_fit_comes_back_with_the_reason_and_not_for_ever() -> None:
    spec = AgentSpec(name="Ann", answer=NUMBER, turn=TurnPolicy(repairs=1))
    model = Played(lambda _: calls("answer", n=70))
    async with team(model, spec, reader=TextReader()) as here:
        assert await here.ask() == "failed"
        assert TOO_MUCH in await here.summary()
    assert len(model.asked) == 2
    assert "Not taken: " in model.asked[1].messages[-1].content
    assert TOO_MUCH in model.asked[1].messages[-1].content


async def test_an_answer_that_is_no_object_is_given_as_a_value_and_in_text_as_json() -> None:
    spec = AgentSpec(name="Ann", answer={"type": "integer"})
    model = Played(in_order(says("seven"), says("```json\n7\n```")))
    async with team(model, spec, reader=TextReader()) as here:
        assert await here.ask() == "finished"
        assert await here.summary() == "7"
    assert model.asked[0].tools[0].parameters["properties"] == {"value": {"type": "integer"}}
    async with team(Played(lambda _: calls("answer", value=3)), spec, reader=TextReader()) as here:
        assert await here.ask() == "finished"
        assert await here.summary() == "3"


# ---------------------------------------------------------------------------------------------- calling others


def desk(request: ModelRequest) -> Answer:
    """Ann asks Bob two things at once; Bob says what he was asked."""
    if request.purpose.agent == BOB:
        return says(f"Bob on: {request.messages[-1].content.splitlines()[1]}")
    if any(one.role == "tool" for one in request.messages):
        return says(" / ".join(one.content for one in request.messages if one.role == "tool"))
    return (
        ToolCall(call_id="a", name="call_agent", arguments={"agent_name": "bob", "instruction": "tea"}),
        ToolCall(call_id="b", name="call_agent", arguments={"agent_name": "bob", "instruction": "milk"}),
        ToolCall(call_id="c", name="echo", arguments={"text": "me"}),
        Usage(output=3),
        Finished(reason="calls"),
    )


@pytest.mark.req("AF-46", "AF-78")
async def test_sub_agent_calls_go_out_together_and_each_call_has_exactly_one_result() -> None:
    ann = AgentSpec(name="Ann", tools=("echo",), calls=("bob",))
    model = Played(desk)
    async with team(model, ann, others=[(BOB, AgentSpec(name="Bob", description="knows drinks"))]) as here:
        assert await here.ask() == "finished"
        assert sorted((await here.summary()).split(" / ")) == ["Bob on: milk", "Bob on: tea", "me"]
    results = [one.call_id for one in model.asked[-1].messages if one.role == "tool"]
    assert sorted(map(str, results)) == ["a", "b", "c"]
    assert "`bob`: knows drinks" in model.asked[0].messages[0].content


@pytest.mark.parametrize("name", ["eve", "ann"], ids=["a stranger", "itself"])
async def test_whom_nobody_may_call_is_not_called(name: str) -> None:
    ann = AgentSpec(name="Ann", calls=("ann", "Ann", "bob"))
    model = Played(in_order(calls("call_agent", agent_name=name, instruction="x"), says("Then not.")))
    async with team(model, ann, others=[(BOB, AgentSpec(name="Bob"))]) as here:
        assert await here.ask() == "finished"
    assert model.asked[1].messages[-1].content == f"Not called: there is no {name!r} here. You can call: bob."


async def test_an_interrupted_turn_leaves_a_conversation_that_goes_on() -> None:
    ann = AgentSpec(name="Ann", tools=("echo",))
    model = Played(in_order(calls("echo", text="x"), says("Well.")))
    async with team(model, ann, solo=False) as here:
        await here.ask()
        (thread,) = (await here.runtime.state(here.team)).threads
        await here.runtime.ask(here.team, Interrupt(thread_id=thread))
        assert await here.ask("Something else?") == "idle"
    assert model.asked[-1].messages[-1].content == "Something else?"
    assert ANN in thread
    assert T1 in thread


ANSWERS_NUMBER = AgentSpec(name="Ann", tools=("echo",), answer={"type": "integer"})
MARKED = "Done.\n!!!COMPLETE!!!"


def several(*found: tuple[str, dict[str, object]]) -> Answer:
    made = [ToolCall(call_id=f"c{place}", name=name, arguments=given) for place, (name, given) in enumerate(found)]
    return (*made, Usage(output=2, money=1), Finished(reason="calls"))


DONE: tuple[str, dict[str, object]] = ("finish", {"status": "done", "summary": "I wrote it."})


@pytest.mark.parametrize("places", [(0, 1), (1, 0), (1, 0, 1)], ids=["before", "behind", "between"])
async def test_calls_beside_an_end_are_run_and_their_results_are_read_first(places: tuple[int, ...]) -> None:
    both: tuple[tuple[str, dict[str, object]], ...] = (DONE, ("echo", {"text": "written"}))
    model = Played(in_order(several(*(both[place] for place in places)), several(DONE)))
    async with team(model, FINISH) as here:
        assert await here.ask() == "finished"
        assert await here.did() == ["converse", *["echo"] * places.count(1), "converse"]
    told = {one.content for one in model.asked[1].messages if one.role == "tool"}
    assert told == {
        "written",
        "Not yet: first read what comes of your other calls. Then end your work, in a turn of its own.",
    }


async def test_of_two_ends_the_first_counts_and_the_other_is_told_so() -> None:
    model = Played(lambda _: several(("answer", {"value": 1}), ("answer", {"value": 2})))
    async with team(model, ANSWERS_NUMBER, reader=TextReader()) as here:
        assert await here.ask() == "finished"
        assert await here.summary() == "1"
        (step,) = await here.steps()
    kept = (step.result or {})["calls"]
    assert isinstance(kept, list)
    assert [one["told"][:9] for one in kept] == ["Taken.", "Not taken"]


@pytest.mark.parametrize("name", ["finish", "send_message", "post_note", "answer", "call_agent"])
async def test_a_call_of_the_house_that_was_not_offered_does_nothing(name: str) -> None:
    model = Played(
        in_order(several((name, {"status": "done", "message": "x", "receiver": ["ann"]})), says("So be it."))
    )
    async with team(model, solo=False) as here:
        assert await here.ask() == "idle", "a chat is not over because a model says so"
        assert await here.did() == ["converse", "converse"]
    assert model.asked[1].messages[-1].content == f"Not called: you have no {name}. You have: echo."


async def test_who_may_not_end_by_itself_is_not_asked_for_ever() -> None:
    spec = AgentSpec(name="Ann", turn=TurnPolicy(protocols=("tool_call",), auto_complete=False))
    model = Played(lambda _: says(MARKED))
    async with team(model, spec, reader=TextReader()) as here:
        assert await here.ask() == "failed"
        assert "may not end its task by itself" in await here.summary()
    assert len(model.asked) == 1


@pytest.mark.req("AG-162")
@pytest.mark.parametrize(
    ("own_word", "company", "ends"),
    [(None, False, True), (None, True, False), (True, True, True), (False, False, False)],
)
async def test_whether_a_mark_ends_work_is_decided_by_the_agent_and_its_company(
    own_word: bool | None, company: bool, ends: bool
) -> None:
    spec = AgentSpec(name="Ann", turn=TurnPolicy(protocols=("tool_call",), auto_complete=own_word))
    others = [(BOB, AgentSpec(name="Bob"))] if company else []
    model = Played(lambda _: says(MARKED))
    async with team(model, spec, others=others, reader=TextReader(), solo=not company) as here:
        assert (await here.ask() == "finished") is ends


@pytest.mark.parametrize("last", [calls("echo", text="more"), says("")], ids=["acts again", "says nothing"])
async def test_who_answers_nothing_at_the_limit_has_failed_and_it_says_why(last: Answer) -> None:
    spec = AgentSpec(name="Ann", tools=("echo",), turn=TurnPolicy(rounds=2))
    model = Played(in_order(calls("echo", text="1"), calls("echo", text="2"), last))
    async with team(model, spec) as here:
        assert await here.ask() == "failed"
        assert await here.summary() == "It has acted as often as it may, and did not end its work."
        assert (await here.did()).count("echo") == 2


async def test_a_model_that_knows_no_calls_acts_in_text() -> None:
    call = '<TOOL_CALL>\n{"name": "echo", "arguments": {"text": "hello"}}\n</TOOL_CALL>'
    model = Played(in_order(says(call), says("It said hello.")))
    model.card = ModelCard(output=1000, tools=False)
    async with team(model, reader=TextReader()) as here:
        assert await here.ask() == "finished"
        assert await here.did() == ["converse", "echo", "converse"]
        assert await here.summary() == "It said hello."
    assert model.asked[0].tools == ()
    assert "TOOL_CALL" in model.asked[0].messages[0].content


async def test_a_model_that_knows_no_calls_is_told_the_shape_of_its_answer() -> None:
    model = Played(lambda _: says("7"))
    model.card = ModelCard(output=1000, tools=False)
    async with team(model, AgentSpec(name="Ann", answer={"type": "integer"}), reader=TextReader()) as here:
        assert await here.ask() == "finished"
        assert await here.summary() == "7"
    told = model.asked[0].messages[0].content
    assert '{"type":"integer"}' in told
    assert "the call `answer`" not in told


async def test_a_reply_that_a_filter_stops_runs_nothing() -> None:
    stopped = (ToolCall(call_id="c1", name="echo", arguments={"text": "x"}), Finished(reason="filter"))
    model = Played(in_order(stopped, says("Fine.")))
    async with team(model) as here:
        assert await here.ask() == "finished"
        assert await here.did() == ["converse", "converse"]


async def test_a_message_that_no_window_holds_is_refused_before_it_is_sent() -> None:
    model = Played(lambda _: says("Never."), window=1000)
    async with team(model, solo=False) as here:
        await here.ask("word " * 5_000)
        (step,) = await here.steps()
    assert model.asked == []
    assert "fake:m reads 1,000 at once" in step.error


async def test_what_a_request_may_cost_is_reserved_with_all_that_was_said() -> None:
    model = Played(lambda _: (ModelTextDelta(text="x" * 3_000), Usage(output=1, money=1), Finished()))
    async with team(model, solo=False) as here:
        await here.ask("Hi.")
        await here.runtime.ask(here.team, SetLimits(budget_id=TEAM_BUDGET, limits=Limits(tokens=6_000)))
        await here.ask("Again.")
        assert (await here.runtime.status(here.team, T1)).state == "limit", "the answer is told again, and counts"
    assert len(model.asked) == 1


async def test_a_call_that_nobody_can_read_is_told_why_and_where() -> None:
    broken = (ToolCall(call_id="c1", name="echo", arguments={}, unread='{"text": "x"'), Finished(reason="calls"))
    model = Played(in_order(broken, says("So.")))
    async with team(model, reader=TextReader()) as here:
        await here.ask()
    told = model.asked[1].messages[-1].content
    assert told.startswith("Not run: its arguments are not a JSON object (")
    assert told.endswith("). Make the call again.")


class Proof:
    """A tool that has the last word: it believes nothing the first time."""

    type: StepType = "tool"
    name: str = "proof"
    description: str = "Looks whether it is true."

    def __init__(self) -> None:
        self.said: list[str] = []

    def terms(self, _: TeamState, __: Step) -> StepTerms:
        return StepTerms(effect="pure")

    async def run(self, context: StepContext) -> Outcome:
        """Say what is missing, or end the work."""
        self.said.append(str((context.step.work.instruction_content or {})["said"]))
        if len(self.said) > 1:
            return Outcome(
                result={"output": "true"}, intents=(builtin_calls.build_finish(context.step, "Proven.", failed=False),)
            )
        again = QueueSteps(agent_id=ANN, works=(Work(type="skill", executor="converse"),), place="next")
        return Outcome(result={"output": "A test fails."}, intents=(again,))


@pytest.mark.parametrize("how", ["in words", "by a call"])
async def test_what_an_agent_says_of_its_work_is_a_claim_until_it_is_proven(how: str) -> None:
    turn = TurnPolicy(ends="finish") if how == "by a call" else TurnPolicy()
    done = calls("finish", status="finished", summary="Done.") if how == "by a call" else says("Done.")
    spec, proof = AgentSpec(name="Ann", tools=("echo",), proof="proof", turn=turn), Proof()
    model = Played(lambda _: done)
    async with team(model, spec, tools=[proof]) as here:
        assert await here.ask() == "finished"
        assert await here.summary() == "Proven."
    assert proof.said == ["Done.", "Done."]
    assert "A test fails." in model.asked[1].messages[-1].content
    assert model.asked[1].messages[-1].role == "user", "nobody has called it, so it is no result of a call"


async def test_what_it_names_with_the_call_is_given_to_the_proof_as_data() -> None:
    spec, proof = AgentSpec(name="Ann", tools=("echo",), proof="proof", turn=TurnPolicy(ends="finish")), Proof()
    done = calls("finish", status="done", summary="It is parsed.", files=["a.py"], tests=["test_a.py"])
    async with team(Played(lambda _: done), spec, tools=[proof]) as here:
        assert await here.ask() == "finished"
        given = [step.work.instruction_content for step in await here.steps() if step.work.executor == "proof"]
    assert proof.said[0] == "It is parsed."
    assert given[0] == {"said": "It is parsed.", "files": ["a.py"], "tests": ["test_a.py"]}


async def test_what_sums_up_the_work_is_judged_because_nothing_is_said_after_the_verdict() -> None:
    spec, proof = AgentSpec(name="Ann", proof="proof", history=History(need_summary=True)), Proof()
    model = Played(lambda request: says("In short.") if request.purpose.skill == "summarize" else says("Long story."))
    async with team(model, spec, tools=[proof]) as here:
        assert await here.ask() == "finished"
        assert await here.summary() == "Proven."
    assert proof.said == ["In short.", "In short."]
    assert [one.purpose.skill for one in model.asked] == ["converse", "summarize", "converse", "summarize"]
    assert "A test fails." in model.asked[2].messages[-1].content, "it hears what is missing, as everybody does"


async def test_work_that_failed_is_not_proven() -> None:
    spec, proof = (
        AgentSpec(name="Ann", tools=("echo",), proof="proof", turn=TurnPolicy(rounds=1, ends="finish")),
        Proof(),
    )
    async with team(Played(lambda _: calls("echo", text="x")), spec, tools=[proof]) as here:
        assert await here.ask() == "failed"
    assert proof.said == []
