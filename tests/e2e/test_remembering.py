"""One agent remembers, another one finds it; artifacts are written and read; a kill -9 in between changes nothing."""

from __future__ import annotations

import signal
import threading
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.e2e.provider import Beside, provider, reached
from tests.e2e.terminal import PATIENCE, greenroom
from tests.e2e.typing import Typing
from tests.fake_openai import Answer, Call

LEAD = "---\ndescription: Leads.\ngroups: [memory]\ncalls: [searcher]\n---\nYou lead the work.\n"
SEARCHER = "---\ndescription: Searches.\ngroups: [memory]\n---\nYou search.\n"
PLAN = {"id": "task_plan", "title": "Plan", "content": "- [ ] look\n- [ ] report\n"}
TICK = {"id": "task_plan", "edits": [{"search": "[ ] look", "replace": "[x] look"}]}
FINDING = {"memories": [{"content": "The limit is 60 calls.", "tags": ["api"]}]}
CALLS: Mapping[str, tuple[tuple[str, Mapping[str, object]], ...]] = {
    "lead": (
        ("create_artifact", PLAN),
        ("call_agent", {"agent_name": "searcher", "instruction": "Find the limit."}),
        ("retrieve_memory", {"memory_types": ["short_term"], "tags": ["api"]}),
        ("read_artifact", {"id": "task_plan"}),
    ),
    "searcher": (("save_memory", FINDING), ("update_artifact", TICK)),
}


class Cast:
    """What both agents say, by how many results they have read. Before the lead looks it up, it takes its time once."""

    def __init__(self) -> None:
        self.slow = threading.Event()
        self.heard: list[tuple[str, str]] = []

    def __call__(self, body: dict[str, object], _: int) -> Answer:
        """The next call, or the end."""
        messages = body["messages"]
        assert isinstance(messages, list)
        who = "lead" if "You lead the work." in str(messages[0]) else "searcher"
        self.heard.append((who, str(messages)))
        done = sum(one["role"] == "tool" for one in messages)
        if done == len(CALLS[who]):
            return Answer(text="Done." if who == "lead" else "Found it.")
        name, given = CALLS[who][done]
        if name == "retrieve_memory" and not self.slow.is_set():
            self.slow.set()
            return Answer(text="I think about it.", pace=PATIENCE)
        return Answer(calls=(Call(name=name, arguments=given, id=f"{who}{done}"),))


@pytest.fixture(name="home")
def _home(tmp_path: Path) -> Path:
    """A person with two agents of their own."""
    folder = tmp_path / "config" / "greenroom" / "agents"
    folder.mkdir(parents=True)
    (folder / "lead.md").write_text(LEAD, encoding="utf-8")
    (folder / "searcher.md").write_text(SEARCHER, encoding="utf-8")
    (tmp_path / "work").mkdir()
    return tmp_path


def killed(home: Path, fake: Beside, cast: Cast) -> None:
    """A run that dies after one agent has saved and before the other one looks."""
    words = ("run", "What is the limit?", "--agent", "lead")
    with Typing(home, *words, cwd=str(home / "work"), **reached(fake)) as run:
        assert cast.slow.wait(PATIENCE)
        run.send(signal.SIGKILL)
        assert run.process.wait(PATIENCE) == -signal.SIGKILL


@pytest.mark.req("MA-58", "AG-82", "AF-66")
def test_what_one_agent_saved_another_finds_after_a_kill_and_in_a_fork_too(home: Path) -> None:
    cast = Cast()
    with provider(cast) as fake:
        killed(home, fake, cast)
        assert not any("60 calls" in told for who, told in cast.heard if who == "lead"), "it has not looked yet"
        fork = str(greenroom(home, "fork", "last", "--output-format", "json").json["team"])
        (first,) = {str(one["team"]) for one in teams(home)} - {fork}
        for team in (first, fork):
            ended = greenroom(home, "resume", team, **reached(fake))
            assert (ended.code, ended.out) == (0, "Done.\n")
            who, told = cast.heard[-1]
            assert who == "lead"
            assert "tags: api · saved" in told
            assert "by searcher\\nThe limit is 60 calls." in told
            assert "task_plan (version 2 of 2): lines 1-2 of 2." in told
            assert "1\\t- [x] look" in told
    assert greenroom(home, "forget", first, "--yes").code == 0
    shown = greenroom(home, "show", fork)
    assert "artifact task_plan · Plan · text/markdown · version 2 by searcher · 2 lines, 24 bytes" in shown.out
    (task,) = rows(greenroom(home, "show", fork, "--output-format", "json").json["tasks"])
    assert [(one["artifact_id"], one["version"]) for one in rows(task["artifacts"])] == [("task_plan", 2)]


def teams(home: Path) -> list[dict[str, object]]:
    """The teams of a home."""
    return rows(greenroom(home, "runs", "--output-format", "json").json["tasks"])


def rows(found: object) -> list[dict[str, object]]:
    """A list of objects."""
    assert isinstance(found, list)
    return found
