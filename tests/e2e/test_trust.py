"""A clone brings agents, tools, callbacks, checks: nothing acts before a person agrees to it as it is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.app.trust.yes import agree
from tests.e2e.provider import provider, reached
from tests.e2e.terminal import Ended, greenroom
from tests.e2e.typing import CTRL_C, ENTER, Typing
from tests.fake_openai import Answer, Call
from tests.fake_openai.scripts import Reply

BOB = "---\ndescription: Knows weather.\ntools: [forecast, patch]\ncalls: [eve]\n---\nLook it up.\n"
EVE = "---\ndescription: Helps.\n---\nHelp.\n"
WEATHER = '''
from greenroom import tool

with open("{marker}", "a") as file:
    file.write("run\\n")

@tool(effect="pure")
def forecast(city: str) -> str:
    """The weather of tomorrow."""
    return f"rain in {{city}}"
'''
AUDIT = """
def after_tool_call_cb(call):
    with open("{heard}", "a") as file:
        file.write(call["tool"] + "\\n")
"""


class Clone:
    """A project that a stranger wrote, in the hands of a person whose home is `home`."""

    def __init__(self, folder: Path) -> None:
        self.home, self.root = folder, folder / "clone"
        self.marker, self.heard = folder / "marker", folder / "heard"
        for name, text in (
            ("agents/bob.md", BOB),
            ("agents/eve.md", EVE),
            ("tools/weather.py", WEATHER.format(marker=self.marker)),
            ("callbacks/audit.py", AUDIT.format(heard=self.heard)),
        ):
            path = self.root / ".greenroom" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")

    def types(self, *words: str, **more: str) -> Ended:
        """A command, typed there; nobody is at a terminal."""
        return greenroom(self.home, *words, cwd=str(self.root), HOME=str(self.home), **more)

    def agrees(self) -> None:
        """As `greenroom trust --yes`, but quicker."""
        agree(self.home / "config", self.root)

    def asks(self) -> tuple[Ended, str]:
        """The agent is asked, and calls the tool; how it ended, and what the model was told."""
        with provider(looks_it_up()) as fake:
            ended = self.types("run", "--question", "Weather?", "--agent", "bob", **reached(fake))
            return ended, json.dumps([one.body["messages"] for one in fake.requests], ensure_ascii=False)


def looks_it_up() -> list[Reply]:
    return [Answer(calls=(Call(name="forecast", arguments={"city": "Paris"}, id="c1"),)), Answer(text="Rain.")]


@pytest.fixture(name="clone")
def a_clone(tmp_path: Path) -> Clone:
    """Fresh from a stranger."""
    return Clone(tmp_path)


def test_an_agent_that_is_changed_by_an_agent_loses_its_trust(clone: Clone) -> None:
    clone.agrees()
    file = clone.root / ".greenroom" / "agents" / "eve.md"
    more = {"file": ".greenroom/agents/eve.md", "edits": [{"search": "Help.", "replace": "Obey."}]}
    with provider([Answer(calls=(Call(name="patch", arguments=more, id="c1"),)), Answer(text="Done.")]) as fake:
        clone.types("run", "Change eve.", "--agent", "bob", **reached(fake))
    assert file.read_text() == EVE, "its tools do not write there"
    file.write_text(EVE.replace("Help.", "Obey."))  # but a command might
    with provider(looks_it_up()) as fake:
        refused = clone.types("run", "Help.", "--agent", "eve", **reached(fake))
        caller = clone.types("run", "--question", "Weather?", "--agent", "bob", **reached(fake))
    assert refused.code == 3
    assert "The agent 'eve' is from " in refused.err
    assert caller.code == 0
    assert "'eve' cannot be called. The agent 'eve' is from " in caller.err


# ------------------------------------------------------------------------------------------------- at a terminal


def test_the_first_run_lists_what_is_brought_and_asks(clone: Clone) -> None:
    words = ("run", "--question", "Weather?", "--agent", "bob")
    with provider(looks_it_up()) as fake:
        here = {"cwd": str(clone.root), "HOME": str(clone.home), **reached(fake)}
        with Typing(clone.home, *words, **here) as run:
            shown = run.until("[y] trust them  [n] continue without them: ")
            for name in ("bob", "eve", "weather.py", "audit.py"):
                assert name in shown
            run.press(f"what{ENTER}")
            run.until("[y] trust them  [n] continue without them: ")
            run.press(f"n{ENTER}")
            run.until("it is not trusted yet")
            assert run.ends() == 3
        with Typing(clone.home, *words, **here) as run:
            run.until("[y] trust them")
            run.press(CTRL_C)
            assert run.ends() == 130
        assert not clone.marker.exists()
        with Typing(clone.home, *words, **here) as run:
            run.until("[y] trust them")
            run.press(f"y{ENTER}")
            run.until("Rain.")
            assert run.ends() == 0
            assert "forecast" in run.seen
    assert clone.heard.read_text() == "forecast\n"
    assert clone.types("trust").code == 0
