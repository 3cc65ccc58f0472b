"""`force_save_memory`: once, before the end of a task, an agent is asked what is worth remembering."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.jobs import SETTINGS, Workshop, call, turns
from tests.e2e.provider import provider, reached
from tests.fake_openai import Answer, Fault, fault

AGENT = "---\ndescription: Works.\n{keys}\n---\nDo what you are asked.\n"
FACT = {"content": "Paint is in app.txt.", "tags": ["paint"], "memory_type": "global_long_term"}
ASKED = "look back at this conversation: what took effort"


def staffed(folder: Path, keys: str, own: str = SETTINGS) -> Workshop:
    shop = Workshop(folder, own, **{".greenroom/agents/keeper.md": AGENT.format(keys=keys)})
    shop.trusts()
    return shop


@pytest.mark.req("AG-73", "AG-76", "AG-77", "AG-79", "AG-80", "AG-171", "AG-183")
def test_each_task_ends_with_one_question_and_what_is_saved_comes_back_in_the_next(tmp_path: Path) -> None:
    shop = staffed(tmp_path, "groups: [read, edit, memory]", f"{SETTINGS}[agents]\nforce_save_memory = true\n")
    replies = [turns("good, red", 1), Answer(text="It is red."), call("save_memory", 2, memories=[FACT])]
    with provider(replies) as fake:
        ended = shop.types("run", "Paint it.", "--agent", "keeper", **reached(fake))
        bodies = [seen.raw.decode() for seen in fake.requests]
    assert (ended.code, ended.out) == (0, "It is red.\n"), ended.err
    assert [ASKED in body for body in bodies] == [False, False, True]
    assert "Paint is in app.txt." in shop.types("memory", "list", "--type", "global").out
    with provider([Answer(text="It is in app.txt."), Answer(text="Nothing to save.")]) as fake:
        ended = shop.types("run", "Where is it?", "--agent", "keeper", "--question", **reached(fake))
        first, last = (seen.raw.decode() for seen in fake.requests)
    assert (ended.code, ended.out) == (0, "It is in app.txt.\n"), ended.err
    assert "Tags so far: paint (1)" in first
    assert ASKED in last


@pytest.mark.req("AG-78", "AG-81")
@pytest.mark.parametrize(
    ("keys", "replies", "asked"),
    [
        ("tools: [read_code]\nforce_save_memory: true", [Answer(text="Done.")], 0),
        ("groups: [memory]\nforce_save_memory: false", [Answer(text="Done.")], 0),
        ("groups: [memory]\nforce_save_memory: true", [Answer(text="Done."), fault("bad_request")], 1),
        (
            "groups: [memory]\nforce_save_memory: true",
            [Answer(text="Done."), call("save_memory", 1, memories=[{"content": " "}])],
            1,
        ),
        (
            "groups: [memory]\nforce_save_memory: true\nprotocols: [tool_call]\nends: text",
            [
                Answer(text="Done."),
                Answer(text="<TOOL_CALL>\nname: save_memory\narguments:\n  memories:\n    - content: x\n</TOOL_CALL>"),
            ],
            1,
        ),
    ],
)
def test_without_the_tool_it_is_not_asked_and_no_failure_costs_the_answer(
    tmp_path: Path, keys: str, replies: list[Answer | Fault], asked: int
) -> None:
    shop = staffed(tmp_path, keys)
    with provider(replies) as fake:
        ended = shop.types("run", "Do it.", "--agent", "keeper", "--in-place", **reached(fake))
        assert sum(ASKED in seen.raw.decode() for seen in fake.requests) == asked
    assert (ended.code, ended.out) == (0, "Done.\n"), ended.err


def test_a_finish_call_waits_for_the_question_too(tmp_path: Path) -> None:
    shop = staffed(tmp_path, "groups: [read, memory]\nforce_save_memory: true\nends: finish")
    replies = [call("finish", 1, status="done", summary="All read."), call("save_memory", 2, memories=[FACT])]
    with provider(replies) as fake:
        ended = shop.types("run", "Read it.", "--agent", "keeper", "--in-place", **reached(fake))
    assert (ended.code, ended.out) == (0, "All read.\n"), ended.err
    assert "Paint is in app.txt." in shop.types("memory", "list").out
