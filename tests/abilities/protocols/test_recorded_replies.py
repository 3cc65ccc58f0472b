"""Replies of a small real model to the instructions of the protocols, as it wrote them (`tests.live.recording`).

Hardly any is well formed. None may run what was not asked for, and none may vanish: the model hears what is wrong, or
its text is its answer.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from greenroom import Agent, AgentSpec, Greenroom, GreenroomError, TurnPolicy, tool
from greenroom.abilities.protocols.parse_result import BlockCall, BlockRejection, MultiBlockPolicy, NoBlock
from greenroom.abilities.protocols.text_calls import read
from tests.abilities.protocols.house import AGENTS, ALL, PURE, TOOLS
from tests.abilities.skills.talks import Played, in_order, says

RECORDED: list[Mapping[str, Any]] = [
    json.loads(line) for line in Path(__file__).with_name("small_model.jsonl").read_text("utf-8").splitlines()
]
"""`call` is the only call that may come of a reply; null if there is none."""

TAGS_OF = {
    "tool_call": ("TOOL_CALL",),
    "xml_tool": ("tool_call",),
    "send_message": ("SEND_MESSAGE",),
    "patch": ("PATCH", "DIFF", "SEARCH", "SEARCH_START", "SEARCH_END", "REPLACE"),
    "rewrite": ("REWRITE",),
}

IN_TEXT = [reply for reply in RECORDED if reply["protocol"] in ALL]


def name_of(reply: Mapping[str, Any]) -> str:
    return f"{reply['protocol']}-{RECORDED.index(reply)}"


@pytest.mark.parametrize("policy", ["reject", "first"])
@pytest.mark.parametrize("ended", [True, False, None])
@pytest.mark.parametrize("reply", IN_TEXT, ids=name_of)
def test_a_malformed_reply_runs_nothing_and_is_not_lost(
    reply: Mapping[str, Any], ended: bool | None, policy: MultiBlockPolicy
) -> None:
    text = reply["text"]
    result = read(text, [reply["protocol"]], tools=TOOLS, agents=AGENTS, pure=PURE, policy=policy, ended=ended)
    match result:
        case BlockCall(call=call):
            assert {"name": call.name, "arguments": call.arguments} == reply["call"]
        case BlockRejection(why=why):
            assert why.strip(), "the model hears why"
        case NoBlock(hint=hint):
            is_tagged = any(f"<{tag}>" in text for tag in TAGS_OF[reply["protocol"]])
            assert bool(hint) == is_tagged, "the model hears that its block was not run"


@pytest.mark.parametrize("reply", IN_TEXT, ids=name_of)
def test_a_correction_that_is_offered_can_be_sent_as_it_is(reply: Mapping[str, Any]) -> None:
    result = read(reply["text"], [reply["protocol"]], tools=TOOLS, agents=AGENTS, pure=PURE, ended=reply["ended"])
    if isinstance(result, BlockRejection) and result.repaired:
        again = read(result.repaired, [reply["protocol"]], tools=TOOLS, agents=AGENTS, pure=PURE, ended=True)
        assert isinstance(again, BlockCall)


@pytest.mark.parametrize("reply", RECORDED, ids=name_of)
async def test_an_agent_that_gets_such_a_reply_does_only_what_it_says(reply: Mapping[str, Any]) -> None:
    done: list[dict[str, Any]] = []

    @tool(effect="pure")
    def look(path: str) -> str:
        """Look at a file."""
        done.append({"name": "look", "arguments": {"path": path}})
        return "x = 1"

    @tool
    def save(path: str, text: str) -> str:
        """Save a text."""
        done.append({"name": "save", "arguments": {"path": path, "text": text}})
        return "saved"

    protocols = () if reply["protocol"] == "native" else (reply["protocol"],)
    model = Played(in_order(says(reply["text"]), says("I stop here. !!!COMPLETE!!!")))
    agent = Agent(
        "ann", model=model, tools=[look, save], spec=AgentSpec(name="ann", turn=TurnPolicy(protocols=protocols))
    )
    answer = ""
    async with Greenroom(in_memory=True) as greenroom:
        try:
            answer = (await greenroom.run(agent, reply["request"], approve=lambda _: True)).output
        except GreenroomError as error:
            answer = str(error)
    assert done in ([], [reply["call"]]), "it runs what was asked for, or nothing"
    heard = [message.content for message in model.asked[-1].messages]
    assert reply["text"].strip() in answer or any(reply["text"].strip() in text for text in heard), "nothing is lost"
