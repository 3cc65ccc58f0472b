"""A run that uses every skill at least once, to compare the prompts."""

from __future__ import annotations

import json

from greenroom.abilities.tools.tool import wrap_long_tail
from greenroom.app.text_reader import TextReader
from greenroom.core.ports.model import ModelRequest
from greenroom.core.ports.reply_reader import ReplyProblem
from greenroom.core.state.step import Work
from tests.abilities.skills.planned.digging import SPEC, Dig
from tests.abilities.skills.planned.planners import (
    ANN,
    BOB,
    BOSS,
    DONE,
    NOTHING_MORE,
    TAGS,
    Script,
    house,
    lines,
    message,
    planner,
    said,
    step,
    tool,
)

TEXTS = ("think", "quick_think", "process_message")
PLAN = [step("think"), step("quick_think"), tool("dig", "Find gold."), step("send_message"), step("ask_info")]
TASK = {"action": "add_task", "task_name": "Poem", "task_intention": "A poem."}
AGENT = {"action": "init_new_agent", "agent_id": "eve", "role": "poet"}
SAID: dict[str, tuple[object, ...]] = {
    "planning": (PLAN,),
    "think": ("It is deep.",),
    "quick_think": ("Quick.",),
    "instruction_generation": ({"where": "here"},),
    "tool_decision": (
        {"decision": "continue", "direction": "Left of it."},
        {"decision": "end", "direction": "Nothing there."},
    ),
    "send_message": (message("bob", text="I dig."),),
    "ask_info": ({"type": "6", "about": []},),
    "process_message": ("I see.",),
    "task_manager": (TASK,),
    "agent_manager": (AGENT,),
}


_PLAYED: dict[tuple[str, bool], Script] = {}


async def rehearsed(language: str, *, strict: bool = False) -> Script:
    """Play the run and return the script with all requests. With `strict` the model answers in JSON."""
    if (language, strict) not in _PLAYED:
        _PLAYED[language, strict] = await _played(language, strict=strict)
    return _PLAYED[language, strict]


async def _played(language: str, *, strict: bool) -> Script:
    specs = {
        ANN: planner("ann", language=language, tools=("dig",), profile="digs", prompt="You dig carefully."),
        BOSS: planner("boss", language=language, manager=True),
        BOB: planner("bob", language=language),
    }
    told = lines(reflection=[NOTHING_MORE], summary=[DONE], bob_process_message=[said("process_message", "ok")])
    for name, values in SAID.items():
        key = ("boss" if name in ("task_manager", "agent_manager") else "ann", name)
        told[key] = [said(name, one, memory="Kim likes gold." if name == "planning" else "") for one in values]
    if strict:
        told = {key: [structured(key[1], str(one)) for one in some] for key, some in told.items()}
    async with house(told, specs=specs, strict=strict, executors=[wrap_long_tail(Dig())], tools=[SPEC]) as here:
        await here.outside(Work(type="skill", executor="task_manager", intention="Begin."), agent=BOSS)
        await here.outside(Work(type="skill", executor="agent_manager", intention="Make a poet."), agent=BOSS)
        managed = [one for one in here.model.asked if one.purpose.agent == BOSS]
    async with house(told, specs=specs, strict=strict, executors=[wrap_long_tail(Dig())], tools=[SPEC]) as there:
        assert await there.stage("Find gold.") == "finished"
        there.model.asked += managed
        return there.model


def structured(skill: str, text: str) -> str:
    """Return the same answer as plain JSON."""
    blocks = TextReader().read_blocks(text, {TAGS[skill]: "text", "persistent_memory": "text"})
    assert not isinstance(blocks, ReplyProblem)
    (body,) = blocks[TAGS[skill]]
    value = body if skill in TEXTS else json.loads(body)
    return json.dumps({"answer": value, "persistent_memory": "".join(blocks["persistent_memory"])})


def last(model: Script, skill: str) -> ModelRequest:
    """Return the last request of this skill, which has a history. Bob's requests do not count."""
    found = [one for one in model.asked if one.purpose.skill == skill and one.purpose.agent != BOB]
    return found[-1]
