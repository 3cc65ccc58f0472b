"""Arguments that do not exist: the error names the public class and the right argument."""

from collections.abc import Callable
from typing import Any, cast

import pytest

from greenroom import Agent, Greenroom, GreenroomError, ModelFault, OutputError, WorldFault
from tests.abilities.skills.talks import Played, says


@pytest.mark.parametrize(
    ("old", "new"),
    [("prompt", "instructions"), ("repairs", "output_retries"), ("rounds", "max_turns"), ("groups", "toolsets")],
)
def test_an_old_argument_of_an_agent_names_the_new_one(old: str, new: str) -> None:
    make_agent: Callable[..., object] = Agent
    with pytest.raises(TypeError, match=rf"^Agent\(\) has no argument `{old}`\. Use `{new}`\.$"):
        make_agent("a", **{old: 1})


def test_an_old_argument_of_a_greenroom_names_the_new_one() -> None:
    make_greenroom: Callable[..., object] = Greenroom
    list_runs: Callable[..., object] = Greenroom(in_memory=True).runs
    with pytest.raises(TypeError, match=r"^Greenroom\(\) has no argument `memory`\. Use `in_memory`\.$"):
        make_greenroom(memory=True)
    with pytest.raises(TypeError, match=r"^Greenroom.runs\(\) has no argument `most`\. Use `limit`\.$"):
        list_runs(most=1)


def test_a_misspelt_argument_names_the_nearest_one() -> None:
    make_agent: Callable[..., object] = Agent
    with pytest.raises(TypeError, match=r"Did you mean `instructions`\?"):
        make_agent("a", instrutions="Be brief.")


async def test_a_misspelt_argument_of_a_run_names_the_nearest_one() -> None:
    why = r"^Greenroom\.run\(\) has no argument `contxt`\. Did you mean `context`\?$"
    wrong, agent = cast("Any", {"contxt": 3}), Agent("guide")
    async with Greenroom(in_memory=True) as greenroom:
        for run in (greenroom.run, greenroom.resume):
            with pytest.raises(TypeError, match=why):
                await run(agent, "x", **wrong)
        with pytest.raises(TypeError, match=why):
            await agent.run("x", greenroom=greenroom, **wrong)
        with pytest.raises(TypeError, match=why):
            greenroom.start(agent, "x", **wrong)
        with pytest.raises(TypeError, match=why):
            await anext(greenroom.stream(agent, "x", **wrong))
        with pytest.raises(TypeError, match=why.replace("run", "chat")):
            greenroom.chat(agent, **wrong)
        unknown = r"There are: `resume`, `approve`, `context`, `attachments`, `limits`"
        with pytest.raises(TypeError, match=unknown):
            await greenroom.run(agent, "x", **cast("Any", {"zzz": 3}))


def test_an_output_error_is_a_model_fault() -> None:
    assert issubclass(OutputError, ModelFault)
    assert issubclass(ModelFault, GreenroomError)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Greenroom(max_cost=-1), "-1 is not a valid max_cost. It must be a number of dollars"),
        (lambda: Greenroom(max_tokens=-5), "-5 is not a valid max_tokens."),
        (lambda: Greenroom(max_time=-5), "-5 is not a valid max_time."),
        (lambda: Greenroom(limits=cast("Any", 3)), "3 is not a valid limits. It must be a Limits object."),
        (lambda: Greenroom(models=cast("Any", 3)), "3 is not a valid models."),
        (lambda: Greenroom(approve=cast("Any", 3)), "3 is not a valid approve. It must be a function."),
        (lambda: Agent("x", model=cast("Any", None)), "None is not a valid model. It must be a name like"),
        (lambda: Agent("x", tools=[cast("Any", 3)]), "3 is not a valid tool. It must be a function"),
        (lambda: Agent("x", agents=[cast("Any", "y")]), "'y' is not a valid agent. It must be an Agent."),
    ],
)
def test_an_argument_of_the_wrong_kind_is_refused_by_its_own_name(make: Callable[[], object], said: str) -> None:
    with pytest.raises(WorldFault) as fault:
        make()
    assert said in str(fault.value)


async def test_an_agent_to_call_without_a_usable_model_is_refused_before_the_run(
    caplog: pytest.LogCaptureFixture,
) -> None:
    lead = Agent("lead", model=Played(lambda _: says("Done.")), agents=[Agent("other", model="gpt-5")])
    async with Greenroom(in_memory=True) as greenroom:
        with pytest.raises(WorldFault, match="'gpt-5' has no provider"):
            await greenroom.run(lead, "Go.")
        async with greenroom.chat(Agent("x", model="gpt-5")) as conversation:
            with pytest.raises(WorldFault, match="'gpt-5' has no provider"):
                await conversation.send("Go.")
        assert not await greenroom.runs()
    assert not caplog.records
