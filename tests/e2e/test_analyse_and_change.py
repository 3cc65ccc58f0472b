"""Jarvis' own example, from the command line: analyse code, change a function, run the tests, sum up."""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import convert

from tests.e2e.provider import Beside, provider, reached, settings
from tests.e2e.terminal import Ended, greenroom
from tests.fake_openai import Answer
from tests.tiers import has_bubblewrap

Messages = list[dict[str, Any]]
SHOP = "def total(prices):\n    return sum(prices)\n"
TEST = "from shop import total\n\n\ndef test_total():\n    assert total([1, 2]) == 3\n"
AGENT = """---
design: jarvis
agent_type: code
need_summary: true
force_save_memory: true
use_tools: [read_code, list_files, search_files, patch, rewrite, execute_script, run_checks,
  save_memory, retrieve_memory]
---
Change as little as you can.
"""
PATCH = """<PATCH file="shop.py">
<SEARCH>return sum(prices)</SEARCH>
<REPLACE>return round(sum(prices), 2)</REPLACE>
</PATCH>"""
FACT = "Prices are rounded to cents in total()."
SAVE = f"""<TOOL_CALL>
{{"name": "save_memory", "arguments": {{"memories": [
  {{"content": "{FACT}", "tags": ["prices"], "memory_type": "project_long_term"}}
]}}}}
</TOOL_CALL>"""
TURNS = (
    'I read it first.\n<TOOL_CALL>\n{"name": "read_code", "arguments": {"file": "shop.py"}}\n</TOOL_CALL>',
    PATCH,
    '<TOOL_CALL>\n{"name": "run_checks", "arguments": {}}\n</TOOL_CALL>',
    "Done. !!!COMPLETE!!!",
)


def play(request: dict[str, object], _: int) -> Answer:
    """Choose tools by number, then act turn by turn, then write the summary."""
    messages = convert(request["messages"], Messages)
    if "Choose those that may be needed" in messages[-1]["content"]:
        return Answer(text="9" if "What is known" in str(messages) else "1, 4, 7, 8")
    if "What is known" in str(messages):
        asks = '<TOOL_CALL>\n{"name": "retrieve_memory", "arguments": {"words": "round cents"}}\n</TOOL_CALL>'
        return Answer(text=asks if FACT not in str(messages) else f"{FACT} !!!COMPLETE!!!")
    if "Save that with `save_memory`" in messages[-1]["content"]:
        return Answer(text=SAVE)
    if "The work is over" in messages[-1]["content"]:
        return Answer(text="`total` rounds to two digits; its test passes.")
    return Answer(text=TURNS[sum(message["role"] == "assistant" for message in messages)])


@pytest.fixture(name="fake")
def a_provider() -> Iterator[Beside]:
    with provider(play) as server:
        yield server


def texts(fake: Beside) -> list[list[str]]:
    """The contents of the messages of each request."""
    return [[str(message["content"]) for message in convert(each.body["messages"], Messages)] for each in fake.requests]


@pytest.mark.skipif(not has_bubblewrap(), reason="bubblewrap is not installed")
@pytest.mark.req("AG-1", "AG-2", "AG-4", "AG-6", "AG-7", "AG-8", "AG-10", "AG-11", "AG-12", "AG-14", "AG-153")
@pytest.mark.req("AG-52", "AG-154", "AG-155", "AG-156", "AG-180", "AG-183")
def test_a_function_is_read_patched_tested_and_summed_up(tmp_path: Path, fake: Beside) -> None:
    home, work = tmp_path / "home", tmp_path / "work"
    (work / ".greenroom" / "agents").mkdir(parents=True)
    (work / ".greenroom" / "agents" / "jarvis.md").write_text(AGENT)
    (work / "shop.py").write_text(SHOP)
    (work / "test_shop.py").write_text(TEST)
    settings(home, "[agents]\nfilter_tools_above = 4\n")
    for words in (
        ("init", "-qb", "main"),
        ("add", "-A"),
        ("config", "user.name", "a"),
        ("config", "user.email", "a@b"),
        ("commit", "-qm", "x"),
    ):
        subprocess.run(["git", *words], cwd=work, check=True)

    def call(*words: str) -> Ended:
        return greenroom(home, *words, cwd=str(work), GREENROOM_SANDBOX="auto", **reached(fake))

    assert call("trust", "--yes").code == 0
    run = call("run", "Analyse shop.py and make total() round to cents.", "--agent", "Jarvis", "--yes", "--apply")
    assert run.code == 0, run.err
    assert (work / "shop.py").read_text() == SHOP.replace("sum(prices)", "round(sum(prices), 2)")
    assert "`total` rounds to two digits; its test passes." in run.out
    assert "tools: 10/" in run.err
    assert f"memories: 0 of the project, 0 of yours · folder: {work}" in run.err
    assert "4 relevant tools selected of 9." in run.err
    assert "✓ Verified" in run.err
    assert "The run keeps" not in run.err, "they are saved with the change"
    first, *turns, saves, last = texts(fake)
    assert any("Saved in project_long_term" in text for text in last)
    assert "1. read_code:" in first[-1]
    system = turns[0][0]
    forms = system[system.index("Change as little as you can.") :]
    assert ("- `run_checks`:" in forms, "- `search_files`:" in forms) == (True, False), "the chosen tools only"
    assert "def total(prices)" in turns[1][-2]
    assert "1 pass" in turns[3][-2]
    assert saves[:-1] == [*turns[3], TURNS[3]], "memories and summary are asked for in the same conversation"
    assert last[: len(saves)] == saves
    second = call("run", "--question", "What is known of prices here?", "--agent", "Jarvis", "--yes")
    assert (second.code, FACT in second.out) == (0, True), second.err
    assert "memories: 1 of the project" in second.err
