"""`greenroom.MultiAgent`: the agents of a program that pass a task on."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from greenroom import Greenroom, MultiAgent, WorldFault
from greenroom.testing.scripted import Cue, ScriptedModel, use_models

ANN = {"name": "ann", "description": "Leads.", "system_prompt": "You lead.", "in_multi_agent": True}
BOB = {"name": "bob", "system_prompt": "You help.", "use_tools": ["read_code"], "summary_on_send": False}
MESSAGE = "<SEND_MESSAGE>\nto: {to}\ncontent: |2\n  Paint it.\n</SEND_MESSAGE>"
CUES = (
    Cue(agent="ann", skill="converse", reply=MESSAGE.format(to="bob")),
    Cue(skill="handoff_summary", reply="A plan."),
    Cue(agent="bob", reply="It is red."),
)


@pytest.mark.req("MA-61", "MA-39", "MA-44", "MA-76", "MA-1", "MA-2", "MA-60", "MA-34", "MA-65")
async def test_a_team_of_a_program_passes_a_task_on_and_the_last_text_is_the_answer(tmp_path: Path) -> None:
    team, model = MultiAgent([BOB, ANN], "ann", "Be brief."), ScriptedModel(CUES)
    assert list(team.agents_config_map) == ["ann", "bob"]
    async with Greenroom(in_memory=True, models=model, workspace=tmp_path) as greenroom:
        result = await team.run("Make it red.", greenroom=greenroom)
    assert result.output == "It is red."
    prompts = {str(request.purpose.agent): request.messages[0].content for request in model.requests}
    assert "Be brief.\n\nYou help." in prompts["bob"]
    assert "execute_script" in prompts["ann"]
    assert "execute_script" not in prompts["bob"]


def test_a_team_works_without_await(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with use_models(ScriptedModel(CUES)):
        assert MultiAgent([ANN, BOB], "ann").run_sync("Make it red.").output == "It is red."


@pytest.mark.req("MA-61", "MA-62", "MA-70", "MA-69")
@pytest.mark.parametrize(
    ("items", "main", "said"),
    [
        ([{"system_prompt": "x"}], "ann", "agents_config[0]: `name` is missing."),
        ([ANN, BOB, ANN], "ann", "agents_config[2]: 'ann' can be taken for the agent 'ann'. Rename one."),
        ([ANN, BOB], "bib", "There is no agent 'bib' to be the main one. Did you mean `bob`?"),
        ([ANN, {**BOB, "sumary_prompt": "x"}], "ann", "agents_config[1]: `sumary_prompt` is not a key of an agent."),
    ],
)
def test_a_mistake_is_named_with_its_place(items: list[Mapping[str, object]], main: str, said: str) -> None:
    with pytest.raises(WorldFault) as fault:
        MultiAgent(items, main)
    assert said in str(fault.value)
