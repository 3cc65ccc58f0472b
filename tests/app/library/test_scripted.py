"""The scripted model as users test their own agents with it."""

from __future__ import annotations

import pytest

from greenroom import Agent, Failed, Greenroom, ModelFault, ModelRequest, ProviderFault, WorldFault, tool
from greenroom.testing.scripted import Cue, ScriptedCall, ScriptedModel, ScriptedReply, forbid_requests, use_models


@tool(effect="pure")
def population(city: str) -> int:
    """How many people live in a city."""
    return {"Paris": 2_100_000}[city]


guide = Agent("guide", tools=[population], model="openai:gpt-5")


async def test_replies_are_given_in_order_and_requests_are_kept() -> None:
    def answer(request: ModelRequest) -> str:
        return f"{request.messages[-1].content} people."

    model = ScriptedModel([ScriptedCall(name="population", arguments={"city": "Paris"}), answer])
    async with Greenroom(in_memory=True) as greenroom:
        with use_models(model):
            assert (await greenroom.run(guide, "Paris?")).output == "2100000 people."
    assert next(tool.name for tool in model.requests[0].tools) == "population"


async def test_failures_and_several_calls_can_be_scripted() -> None:
    calls = tuple(ScriptedCall(name="population", arguments={"city": city}) for city in ("Paris", "Ur"))
    model = ScriptedModel([Failed(kind="auth", why="The key is wrong."), ScriptedReply(calls=calls), "Done."])
    async with Greenroom(in_memory=True) as greenroom:
        agent = Agent("guide", tools=[population], model=model)
        with pytest.raises(ProviderFault, match="The key is wrong") as raised:
            await greenroom.run(agent, "Well?")
        assert (await greenroom.resume(agent, raised.value.run_id)).output == "Done."
    results = [message.content for message in model.requests[-1].messages if message.role == "tool"]
    assert results[0] == "2100000"
    assert "Ur" in results[1]


async def test_a_script_that_is_over_says_so() -> None:
    async with Greenroom(in_memory=True) as greenroom:
        with pytest.raises(ModelFault, match="The script has no reply for 'guide'"):
            await greenroom.run(Agent("guide", model=ScriptedModel([])), "Well?")


async def test_cues_serve_several_agents() -> None:
    model = ScriptedModel(
        [Cue(agent="clerk", answering=True, reply="Here."), ScriptedCall(name="clerk", arguments={"q": "?"}), "Done."]
    )
    clerk = Agent("clerk", model=model)
    async with Greenroom(in_memory=True) as greenroom:
        assert (await greenroom.run(Agent("lead", agents=[clerk], model=model), "Well?")).output == "Done."


@pytest.mark.parametrize("agent", [guide, Agent("guide")])
async def test_no_real_model_is_asked_where_that_is_forbidden(agent: Agent[str]) -> None:
    with forbid_requests():
        async with Greenroom(in_memory=True) as greenroom:
            with pytest.raises(WorldFault, match="forbids requests to real models"):
                await greenroom.run(agent, "Well?")
            assert (await greenroom.run(Agent("other", model=ScriptedModel(["Yes."])), "Well?")).output == "Yes."


async def test_scripted_models_are_used_where_real_ones_are_forbidden() -> None:
    with forbid_requests(), use_models(ScriptedModel(["Yes."])):
        async with Greenroom(in_memory=True) as greenroom:
            assert (await greenroom.run(guide, "Well?")).output == "Yes."


async def test_each_script_answers_the_runs_that_start_inside_it() -> None:
    agent, first = Agent("guide"), ScriptedModel(["One.", "Never."])
    async with Greenroom(in_memory=True) as greenroom:
        with use_models(first):
            assert (await greenroom.run(agent, "Well?")).output == "One."
        with use_models(ScriptedModel(["Two.", "Three."])):
            assert (await greenroom.run(agent, "Well?")).output == "Two."
            async with greenroom.chat(agent) as conversation:
                assert (await conversation.send("Well?")).output == "Three."
        with forbid_requests(), pytest.raises(WorldFault, match="forbids requests"):
            await greenroom.run(agent, "Well?")
    assert len(first.requests) == 1
