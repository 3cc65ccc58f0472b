"""One agent remembers, another one finds it; artifacts are written and read; a kill -9 in between changes nothing."""

from __future__ import annotations

import signal
import threading
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.e2e.jobs import SETTINGS, Workshop, call, turns
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


@pytest.mark.req("MA-58", "AF-66")
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


KEEPER = "---\ndescription: Works.\ngroups: [read, edit, memory]\n---\nDo what you are asked.\n"
LEARNED = {"content": "Paint is in app.txt.", "tags": ["paint"], "memory_type": "project_long_term"}


def memories(shop: Workshop) -> list[Path]:
    return sorted((shop.repo / ".greenroom" / "memory").glob("*.json"))


@pytest.mark.req("AG-83", "AG-183")
def test_what_a_run_learns_is_saved_when_it_is_applied_found_by_the_next_and_taken_back(tmp_path: Path) -> None:
    shop = Workshop(tmp_path, SETTINGS, **{".greenroom/agents/keeper.md": KEEPER})
    shop.trusts()
    replies = [call("save_memory", 1, memories=[LEARNED]), turns("good, red", 2), Answer(text="It is red.")]
    told = shop.runs(replies, "Paint it.", "--agent", "keeper")
    assert (told.code, memories(shop)) == (0, []), told.err
    assert "The run keeps 1 memory for the project." in told.err
    applied = shop.types("apply", "last")
    assert (applied.code, len(memories(shop))) == (0, 1), applied.err
    assert "Saved 1 memory in the memory of the project." in applied.out
    assert not shop.types("apply", "last").out.count("Saved")
    replies = [call("retrieve_memory", 1, words="where is paint"), Answer(text="In app.txt.")]
    with provider(replies) as fake:
        found = shop.types("run", "Where is it?", "--agent", "keeper", "--question", **reached(fake))
        assert "Paint is in app.txt." in fake.requests[-1].raw.decode(), found.err
    first = str(rows(shop.types("runs", "--output-format", "json").json["tasks"])[-1]["team"])
    assert "Removed 1 memory" in shop.types("undo", first).out
    assert (memories(shop), shop.reads()) == ([], "good\n")


def test_a_run_that_only_learned_something_can_be_applied_and_undone(tmp_path: Path) -> None:
    shop = Workshop(tmp_path, SETTINGS, **{".greenroom/agents/keeper.md": KEEPER})
    shop.trusts()
    told = shop.runs(
        [call("save_memory", 1, memories=[LEARNED]), Answer(text="Noted.")], "Look.", "--agent", "keeper", "--question"
    )
    assert told.code == 0, told.err
    assert (shop.types("apply", "last").code, len(memories(shop))) == (0, 1)
    assert (shop.types("undo", "last").code, len(memories(shop))) == (0, 0)
