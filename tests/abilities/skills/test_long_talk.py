"""A conversation far longer than any window: it goes on, and what was asked for in it still holds."""

from itertools import pairwise

import pytest

from greenroom.core.ports.model import ModelRequest
from greenroom.core.state.spec import AgentSpec
from tests.abilities.skills.talks import Answer, Played, calls, says, team

WINDOW = 32_768
PAGE = "The quick brown fox jumps over the lazy dog, and the log says so. " * 60
"""About a thousand tokens."""

RULES = ("Always answer in rhyme.", "Correction: never mention foxes.", "From now on, be brief.")


def played(request: ModelRequest) -> Answer:
    """Reads a page with a tool, then answers with another one."""
    if request.purpose.skill == "compact":
        return says("What was said, in short.")
    if request.messages[-1].role == "tool":
        return says(PAGE)
    return calls("echo", f"call-{request.purpose.turn}", text=PAGE)


async def talked(tokens: int) -> tuple[int, list[ModelRequest]]:
    """Talk until so many tokens were said; how often it was summed up, and all requests."""
    model = Played(played, window=WINDOW)
    spec = AgentSpec(name="Ann", role="assistant", tools=("echo",))
    said = asked = 0
    rules = {0: RULES[0], tokens // 3: RULES[1], tokens // 2: RULES[2]}
    async with team(model, spec, solo=False) as here:
        while said < tokens:
            due = next((one for one in sorted(rules) if one <= said), None)
            text = rules.pop(due) if due is not None else f"Question {asked}: {PAGE}"
            await here.ask(text)
            asked += 1
            said += (len(text) + 2 * len(PAGE)) // 4
        summed = (await here.did()).count("compact")
    return summed, model.asked


def judge(summed: int, requests: list[ModelRequest], least: int) -> None:
    assert summed >= least
    talks = [one for one in requests if one.purpose.skill == "converse"]
    sizes = [sum(len(message.content.encode()) for message in one.messages) // 4 for one in talks]
    assert max(sizes) < WINDOW, "no request outgrows the window"
    last = "\n".join(message.content for message in talks[-1].messages)
    assert all(rule in last for rule in RULES), "instructions and corrections survive word for word"
    breaks = 0
    for before, after in pairwise(talks):
        breaks += after.messages[: len(before.messages)] != before.messages
    assert breaks == summed, "between two summaries every request begins as the one before it"


# Reaches no line that other tests do not, and to be measured takes it twice as long.
@pytest.mark.no_cover
async def test_a_talk_of_two_million_tokens_goes_on() -> None:
    judge(*await talked(2_000_000), least=60)
