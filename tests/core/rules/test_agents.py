"""Making agents, letting them go, taking part, remembering."""

import pytest

from greenroom.core.base.amounts import Limits
from greenroom.core.base.ids import AgentId, BudgetId, StageId, SubtaskId, TaskId
from greenroom.core.base.records import evolve
from greenroom.core.rules import intents as i
from greenroom.core.rules.agents import MAX_MEMORY_CHARS
from greenroom.core.state.mas_format import collect_working_memory
from greenroom.core.state.message import MessageSent
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.step import StepQueued, StepTerms
from greenroom.core.state.thread import Noticed
from tests.core.house import (
    ANN,
    BOB,
    BOSS,
    CY,
    DOOR,
    HUE,
    S1,
    SYSTEM,
    T1,
    T2,
    House,
    plan,
    skill,
    thread,
)

GUEST = AgentId("guest")
SPEC = AgentSpec(name="Guest")
HOUSE = AgentSpec(name="x", kind="system")
ZED, PERSON = AgentId("zed"), AgentSpec(name="Zed", kind="human")


@pytest.mark.req("MAS-33", "MAS-102")
def test_a_manager_makes_an_agent_and_it_lives_at_once() -> None:
    house = House.furnished()
    house.queue(BOSS).run(BOSS, i.AddAgent(agent_id=GUEST, spec=SPEC))
    assert house.agent(GUEST).spec == SPEC
    assert house.agent(GUEST).made_by == BOSS


def test_an_agent_is_made_from_a_blueprint_by_name() -> None:
    house = House.furnished().do(i.Declare(blueprints=(SPEC,)))
    house.do(i.AddAgent(agent_id=GUEST, blueprint="Guest"), by=BOSS)
    assert house.agent(GUEST).spec == SPEC
    house.refused("unknown_blueprint", i.AddAgent(agent_id=AgentId("other"), blueprint="Ghost"), by=BOSS)
    house.refused("unknown_blueprint", i.AddAgent(agent_id=AgentId("other")), by=BOSS)


@pytest.mark.parametrize(
    "spec",
    [AgentSpec(name="x", manager=True), AgentSpec(name="x", kind="human"), AgentSpec(name="x", kind="system")],
    ids=["manager", "person", "system"],
)
def test_only_a_person_makes_managers_people_and_parts_of_the_house(spec: AgentSpec) -> None:
    house = House.furnished()
    house.refused("not_manager", i.AddAgent(agent_id=GUEST, spec=spec), by=BOSS)
    house.do(i.AddAgent(agent_id=GUEST, spec=spec), by=HUE)


@pytest.mark.parametrize(
    "name",
    [
        *("", "a b", "a#1", "a@t1", "a>1", "a:b", "a!b", "a?b", "a/b", "a,b", "door", "system"),
        *("System", "DOOR", "ｄoor", "\ufe0f", "b\u043eb", "\u03b1nn"),
    ],
)
def test_an_id_that_other_ids_are_made_with_or_that_hides_what_it_is_is_refused(name: str) -> None:
    House.furnished().refused("bad_agent_id", i.AddAgent(agent_id=AgentId(name), spec=SPEC))


@pytest.mark.req("MAS-60")
@pytest.mark.parametrize("name", ["cy", "Cy", "CY", "ｃｙ", "cy\ufe0f"])
def test_an_id_that_is_another_one_or_can_be_taken_for_it_is_refused_also_when_that_one_is_gone(name: str) -> None:
    house = House.furnished()
    assert "'cy'" in house.refused("agent_exists", i.AddAgent(agent_id=AgentId(name), spec=SPEC)).why
    house.do(i.RemoveAgent(agent_id=CY)).refused("agent_exists", i.AddAgent(agent_id=AgentId(name), spec=SPEC))


def test_a_removed_agent_leaves_nothing_behind() -> None:
    house = House.furnished()
    waiting = house.ask_agent(ANN, CY)[0]
    house.queue(CY, skill(), skill())
    house.do(i.SetTimer(agent_id=CY, task_id=T1, name="tea", due=house.now + 5))
    house.do(i.SetLimits(budget_id=BudgetId("agent:cy"), limits=Limits(steps=9)))
    house.do(i.RemoveAgent(agent_id=CY))
    assert CY not in house.state.agents
    assert CY not in house.task().group
    assert house.released(waiting) == "agent_gone"
    assert not [timer for timer in house.state.timers.values() if timer.agent_id == CY]
    assert "agent:cy" not in house.state.budgets
    assert house.texts(ANN) == [f"cy will not answer: the agent was removed (message {waiting.split(':')[0]})."]


def test_a_removed_agent_is_not_told_that_its_own_waits_are_over() -> None:
    house = House.furnished()
    waiting = house.ask_agent(CY, ANN)[0]
    house.do(i.RemoveAgent(agent_id=CY))
    assert house.released(waiting) == "agent_gone"
    assert house.happened(StepQueued) == []


def test_letters_from_and_to_a_removed_agent_are_settled() -> None:
    house = House.furnished()
    house.do(
        i.SendMessage(task_id=T1, receiver=(HUE,), message="when?", need_reply=True),
        i.SendMessage(task_id=T1, receiver=(HUE, BOB), message="who?", need_reply=True, sender=ANN),
        by=SYSTEM,
    )
    house.queue(CY).run(CY, i.SendMessage(task_id=T1, receiver=(HUE,), message="why?", need_reply=True))
    assert len(house.state.mail) == 3
    house.do(i.RemoveAgent(agent_id=CY))
    assert {one.message for one in house.state.mail.values()} == {"when?", "who?"}
    house.do(i.RemoveAgent(agent_id=HUE))
    assert not house.state.mail


def test_a_step_that_waits_for_a_yes_is_asked_of_somebody_else_when_who_was_asked_leaves() -> None:
    house = House.furnished().do(i.AddAgent(agent_id=ZED, spec=PERSON)).queue(ANN)
    house.start(ANN, terms=StepTerms(effect="effectful", verdict="ask", question="may I?", digest="d"))
    house.do(i.RemoveAgent(agent_id=HUE))
    (letter,) = house.state.mail.values()
    assert (letter.receiver, letter.message, letter.data) == ((ZED,), "may I?", {"approval_id": "ann#1?1"})
    house.do(i.RemoveAgent(agent_id=ZED))
    assert not house.state.mail, "nobody is there to be asked"
    house.do(i.AddAgent(agent_id=GUEST, spec=PERSON))
    assert [one.receiver for one in house.state.mail.values()] == [(GUEST,)]
    house.answer(ANN, by=GUEST)
    assert not house.state.mail


def test_people_hear_that_what_they_wrote_to_who_leaves_is_not_read() -> None:
    house = House.furnished().queue(CY)
    for text, sender in (("which\ntea?", HUE), ("what?", ANN)):
        house.do(i.SendMessage(task_id=T1, receiver=(CY,), message=text, need_reply=True, sender=sender), by=SYSTEM)
    house.do(i.RemoveAgent(agent_id=CY))
    (told,) = [one.message for one in house.happened(MessageSent)]
    assert (told.sender_id, told.receiver, told.kind) == (CY, (HUE,), "instruction")
    assert told.message == "cy will not answer: the agent was removed. You wrote: which\ntea?"
    assert told.data == {"instruction": "remove_agent", "agent_id": CY, "about": "which\ntea?"}


def test_an_agent_can_be_another_one_from_its_next_step_on() -> None:
    house = House.furnished().queue(ANN)
    old = house.agent(ANN).spec
    new = evolve(old, tools=(), llm_config={"model": "x:y"})
    house.do(i.ChangeAgent(agent_id=ANN, spec=new))
    assert house.agent(ANN).spec == new
    assert house.todo(ANN) != [], "what it has to do stays"
    house.refused("not_yours", i.ChangeAgent(agent_id=ANN, spec=evolve(new, tools=("shell",))), by=ANN)
    house.refused("not_yours", i.ChangeAgent(agent_id=ANN, spec=evolve(new, tools=("shell",))), by=BOSS)
    house.refused("unknown_agent", i.ChangeAgent(agent_id=GUEST, spec=new))
    house.refused("another_kind", i.ChangeAgent(agent_id=ANN, spec=evolve(new, kind="human")))


def test_who_is_needed_is_not_removed() -> None:
    house = House.furnished(stages=(plan(("one", ANN)),))
    house.refused("not_manager", i.RemoveAgent(agent_id=ANN), by=BOB)
    house.refused("unknown_agent", i.RemoveAgent(agent_id=GUEST))
    house.refused("agent_manages", i.RemoveAgent(agent_id=BOSS))
    house.refused("agent_allotted", i.RemoveAgent(agent_id=ANN))
    house.queue(BOB).start(BOB)
    house.refused("agent_busy", i.RemoveAgent(agent_id=BOB))


@pytest.mark.parametrize(("name", "spec"), [(HUE, None), (GUEST, AgentSpec(name="x", manager=True)), (GUEST, HOUSE)])
def test_a_model_removes_no_people_no_managers_and_nothing_of_the_house_and_is_told_so(
    name: AgentId, spec: AgentSpec | None
) -> None:
    house = House.furnished()
    if spec is not None:
        house.do(i.AddAgent(agent_id=name, spec=spec))
    house.refused("not_yours_to_remove", i.RemoveAgent(agent_id=name), by=BOSS)
    house.queue(BOSS).run(BOSS, i.RemoveAgent(agent_id=name))
    assert name in house.state.agents
    (told,) = house.happened(Noticed)
    assert told.code == "not_yours_to_remove"
    assert f"'boss' may not remove {name!r}" in told.text
    assert "Ask a person" in told.text
    house.do(i.RemoveAgent(agent_id=CY), by=BOSS)
    house.do(i.RemoveAgent(agent_id=name), by=HUE if spec is not None else DOOR)
    assert name not in house.state.agents


def test_who_has_done_its_subtask_may_go_before_the_stage_is_over() -> None:
    house = House.furnished(stages=(plan(("one", ANN), ("two", BOB)),)).assign()
    house.run(ANN, i.FinishSubtask(subtask_id=SubtaskId("t1.s1.1"), stage_id=S1))
    house.do(i.RemoveAgent(agent_id=ANN)).do(i.FinishStage(stage_id=S1))
    assert house.task().stages == ()


def test_a_stage_cannot_be_planned_for_somebody_who_is_gone() -> None:
    house = House.furnished().do(i.RemoveAgent(agent_id=CY))
    task = i.AddTask(name="more", intention="more", manager=BOSS, stages=(plan(("one", CY)),))
    house.refused("unknown_agent", task)


@pytest.mark.req("MAS-47", "MAS-102")
def test_the_manager_adds_agents_to_the_group_once() -> None:
    house = House.furnished().do(i.AddTask(name="more", intention="more", manager=BOSS))
    house.do(i.AddParticipants(task_id=T2, agents=(ANN, ANN, BOSS)), by=BOSS)
    assert house.task(T2).group == (BOSS, ANN)
    assert T2 in collect_working_memory(house.state, ANN)


def test_nobody_else_adds_agents_to_a_group() -> None:
    house = House.furnished()
    house.refused("not_manager", i.AddParticipants(task_id=T1, agents=(ANN,)), by=ANN)
    house.refused("unknown_task", i.AddParticipants(task_id=T2, agents=(ANN,)))
    house.refused("unknown_agent", i.AddParticipants(task_id=T1, agents=(GUEST,)), by=BOSS)


def test_a_group_that_is_dissolving_takes_nobody_in() -> None:
    house = House.furnished().queue(ANN)
    house.start(ANN)
    house.do(i.CancelTask(task_id=T1))
    house.refused("unknown_task", i.AddParticipants(task_id=T1, agents=(BOB,)))


@pytest.mark.req("MAS-67")
def test_working_memory_gains_a_task_or_stage_and_loses_nothing() -> None:
    house = House.furnished(stages=(plan(("one", ANN)),)).queue(BOB)
    house.do(i.UpdateWorkingMemory(agent_id=BOB, task_id=T1, stage_id=S1), by=BOB)
    house.do(i.UpdateWorkingMemory(agent_id=BOB, task_id=T1), by=BOSS)
    assert collect_working_memory(house.state, BOB) == {T1: {S1: [], "no_relative": ["bob#1"]}}


def test_working_memory_is_changed_by_oneself_or_a_manager_and_for_open_work_only() -> None:
    house = House.furnished().do(i.AddTask(name="more", intention="more", manager=BOSS))
    house.refused("not_manager", i.UpdateWorkingMemory(agent_id=BOB, task_id=T1), by=ANN)
    house.refused("unknown_agent", i.UpdateWorkingMemory(agent_id=GUEST, task_id=T1), by=BOSS)
    house.refused("unknown_task", i.UpdateWorkingMemory(agent_id=ANN, task_id=TaskId("t9")), by=ANN)
    house.refused("unknown_stage", i.UpdateWorkingMemory(agent_id=ANN, task_id=T1, stage_id=StageId("x")), by=ANN)
    house.refused("not_in_group", i.UpdateWorkingMemory(agent_id=ANN, task_id=T2), by=ANN)


@pytest.mark.req("MAS-76", "MAS-229")
def test_a_finished_stage_is_forgotten_by_everybody_with_its_steps() -> None:
    house = House.furnished(stages=(plan(("one", ANN)), plan(("two", ANN)))).assign()
    house.do(i.UpdateWorkingMemory(agent_id=BOB, task_id=T1, stage_id=S1), by=BOB).queue(ANN)
    assert collect_working_memory(house.state, ANN) == {T1: {S1: ["ann#1"], "no_relative": ["ann#2"]}}
    house.do(i.FinishStage(stage_id=S1), by=BOSS)
    assert collect_working_memory(house.state, ANN) == {T1: {"no_relative": ["ann#2"]}}
    assert collect_working_memory(house.state, BOB) == {T1: {}}


@pytest.mark.req("MAS-77", "MAS-230")
def test_a_finished_task_is_forgotten_by_everybody_with_its_steps() -> None:
    house = House.furnished(stages=(plan(("one", ANN)),)).assign().queue(ANN)
    house.do(i.FinishTask(task_id=T1), by=BOSS)
    assert all(collect_working_memory(house.state, name) == {} for name in house.state.agents)
    assert not house.state.steps


def test_a_stage_enters_the_memory_of_its_members_when_it_starts() -> None:
    house = House.furnished(stages=(plan(("one", ANN)),))
    assert collect_working_memory(house.state, ANN) == {T1: {}}
    house.do(i.StartStage(stage_id=S1), by=BOSS)
    assert collect_working_memory(house.state, ANN) == {T1: {S1: []}}
    assert collect_working_memory(house.state, BOB) == {T1: {}}


def test_a_removed_agent_takes_nothing_with_it_that_belongs_to_others() -> None:
    house = House.furnished().do(i.AddTask(name="more", intention="more", manager=BOSS, group=(ANN,)))
    house.do(i.SetTimer(agent_id=ANN, task_id=T1, name="tea", due=house.now + 5))
    waiting = house.ask_agent(ANN, BOB)[0]
    house.do(i.RemoveAgent(agent_id=CY))
    assert house.task(T2).group == (BOSS, ANN)
    assert set(house.state.waits) == {waiting}
    assert len(house.state.timers) == 2


# ---------------------------------------------------------------------------------------------- keeping for good


@pytest.mark.req("MAS-68", "MAS-121")
def test_what_an_agent_keeps_for_good_only_grows_a_line_below_the_other_and_outlives_its_tasks() -> None:
    house = House.furnished()
    house.queue(CY).run(CY, i.Remember(content="### Ports\nIt is 80.\n"), i.Remember(content="Ann is quick."))
    assert house.agent(CY).memory == "### Ports\nIt is 80.\nAnn is quick."
    house.do(i.FinishTask(task_id=T1))
    assert house.agent(CY).memory == "### Ports\nIt is 80.\nAnn is quick."


@pytest.mark.req("MAS-68")
@pytest.mark.parametrize(
    "heading", ["# High", "## High", "text\n  ## High", "#", "x\u2028# High", "x\x85## High", "High\n===", "High\r-"]
)
def test_a_heading_in_it_is_of_the_third_level_or_lower(heading: str) -> None:
    house = House.furnished().do(i.Remember(content="### Low\n#hashtag"), by=CY)
    house.refused("high_heading", i.Remember(content=heading), by=CY)


@pytest.mark.req("MAS-68")
@pytest.mark.parametrize("line", ["---", "===\nmore", " - "])
def test_what_is_remembered_makes_no_heading_of_what_was_remembered_before(line: str) -> None:
    house = (
        House.furnished().do(i.Remember(content=line), by=BOB).do(i.Remember(content="### Low\nKim likes tea."), by=CY)
    )
    house.refused("high_heading", i.Remember(content=line), by=CY)


def test_it_is_an_agents_own_and_neither_empty_nor_endless() -> None:
    house = House.furnished()
    house.refused("not_an_agent", i.Remember(content="x"))
    house.refused("empty_memory", i.Remember(content=" \n"), by=CY)
    house.do(i.Remember(content="x" * (MAX_MEMORY_CHARS - 1)), by=CY)
    house.refused("memory_full", i.Remember(content="xx"), by=CY)


def test_what_was_read_when_something_was_kept_goes_with_the_agent_everywhere() -> None:
    house = House.furnished().queue(CY)
    house.start(CY, terms=StepTerms(effect="pure", origins=("web:example.org",)))
    house.finish(CY, i.Remember(content="It says so."))
    assert house.agent(CY).origins == ("web:example.org",)
    house.do(i.AddTask(name="other", intention="x", manager=BOSS, group=(CY,))).queue(CY, task=T2)
    assert house.state.threads[thread(CY, "t2")].origins == ("web:example.org",)


# ---------------------------------------------------------------------------------------------- giving


@pytest.mark.req("MAS-170")
def test_a_model_gives_an_agent_that_it_describes_only_what_it_has_itself() -> None:
    house = House.furnished()
    lead = AgentId("lead")
    house.do(i.AddAgent(agent_id=lead, spec=AgentSpec(name="Lead", manager=True, tools=("shell",), calls=("ann",))))
    house.do(i.Declare(blueprints=(AgentSpec(name="Crawler", tools=("crawl",)),)))
    house.do(i.AddAgent(agent_id=AgentId("one"), spec=evolve(SPEC, tools=("shell",), calls=("ann",))), by=lead)
    refused = house.refused(
        "not_yours_to_give", i.AddAgent(agent_id=GUEST, spec=evolve(SPEC, tools=("crawl",))), by=lead
    )
    assert "may not give crawl" in str(refused)
    assert "Crawler" in str(refused)
    house.refused("not_yours_to_give", i.AddAgent(agent_id=GUEST, spec=evolve(SPEC, groups=("edit",))), by=lead)
    house.refused("not_yours_to_give", i.AddAgent(agent_id=GUEST, spec=evolve(SPEC, proof="deliver")), by=lead)
    house.do(i.AddAgent(agent_id=AgentId("two"), blueprint="Crawler"), by=lead)
    house.do(i.AddAgent(agent_id=AgentId("three"), spec=evolve(SPEC, tools=("crawl",))), by=HUE)
