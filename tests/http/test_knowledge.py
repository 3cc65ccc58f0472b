"""Artifacts, memories, skills, agents, tools and costs over HTTP, of a real run."""

from __future__ import annotations

from pathlib import Path

import pytest

from greenroom.core.base.ids import MemoryId, TeamId
from greenroom.core.state.knowledge import Memory
from greenroom.testing.scripted import Cue
from tests.http.desk import call, enter_shop, open_desk

JSON = {"Content-Type": "application/json"}


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return enter_shop(tmp_path, monkeypatch)


async def test_a_question_has_no_worktree_and_its_artifact_and_cost_are_shown(
    shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agents = shop.parent / "config" / "greenroom" / "agents"
    agents.mkdir(parents=True)
    tools = "[create_artifact, update_artifact, ask_user, rewrite]"
    (agents / "scribe.md").write_text(f"---\nname: scribe\ndescription: Writes\ntools: {tools}\n---\nWrite.\n")
    (shop / "AGENTS.md").write_text("Be brief.\n")
    edit = {"search": "One.", "replace": "Two."}
    cues = [
        Cue(agent="scribe", turn=1, reply=call("create_artifact", id="report", content="# Report\n\nOne.\n")),
        Cue(agent="scribe", turn=2, reply=call("update_artifact", id="report", edits=[edit], reason="more")),
        Cue(agent="scribe", turn=3, reply=call("ask_user", question="Are two enough?")),
        Cue(agent="scribe", reply="Read the report."),
    ]
    async with open_desk(cues, monkeypatch) as desk:
        body = {"request": "what does the shop do?", "question": True, "agent": "scribe"}
        started = await desk.post("/runs", 201, **body)
        run = TeamId(started["id"])
        assert any("AGENTS.md" in note for note in started["notes"]), started
        item = await desk.ask(run)
        assert (item["kind"], item["question"]) == ("question", "Are two enough?")
        (artifact,) = (await desk.get(f"/runs/{run}/artifacts"))["items"]
        facts = {name: artifact[name] for name in ("id", "version", "by", "reason")}
        assert facts == {"id": "report", "version": 2, "by": "scribe", "reason": "more"}
        place = f"/runs/{run}/artifacts/{artifact['task']}/report"
        assert (await desk.get(place))["text"] == "# Report\n\nTwo.\n"
        assert (await desk.get(place, version=1))["text"] == "# Report\n\nOne.\n"
        assert "-One.\n+Two.\n" in (await desk.get(f"{place}/diff", **{"from": 1, "to": 2}))["text"]
        await desk.post(f"{place}/restore", version=1)
        newest = await desk.get(place)
        assert (newest["version"], newest["text"]) == (3, "# Report\n\nOne.\n")
        assert [entry["version"] for entry in newest["versions"]] == [3, 2, 1]
        head = (await desk.runtime.log.head(run)).version
        shown = [await desk.get(f"/runs/{run}/artifacts", at=at) for at in range(1, head + 1)]
        assert [len(page["items"]) for page in shown] == sorted(len(page["items"]) for page in shown)
        known = [page["items"][0]["version"] if page["items"] else 0 for page in shown]
        assert (known[0], known == sorted(known), set(known)) == (0, True, {0, 1, 2, 3})
        first = known.index(1) + 1
        assert (await desk.get(place, at=first))["version"] == 1
        for path in (f"{place}?version=2&at={first}", f"{place}/diff?from=1&to=2&at={first}", f"{place}?at={head + 1}"):
            assert (await desk.client.get(f"/api{path}")).status_code == 404, path
        costs = await desk.get(f"/runs/{run}/costs")
        assert [(row["name"], row["calls"], row["tokens"]) for row in costs["rows"]] == [("scribe", 3, 150)]
        assert costs["points"][-1]["tokens"] == {"scribe": 150}
        first = costs["points"][0]
        past = await desk.get(f"/runs/{run}/costs", at=(await desk.runtime.log.head(run)).version - 3)
        assert past["points"][0] == first
        assert costs["cost_limit"] == 5.0
        assert (await desk.get("/costs", by="run"))["rows"][0]["name"] == run
        refused = await desk.client.get(f"/api/runs/{run}/change")
        assert (refused.status_code, refused.json()["code"]) == (404, "no_such_change")
        offered = {tool.name for tool in desk.model.requests[-1].tools}
        assert not {"patch", "rewrite", "execute_script"} & offered


async def test_memories_are_found_changed_and_forgotten(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_desk([], monkeypatch) as desk:
        saved = Memory(
            memory_id=MemoryId("20261119_072947_388226"),
            type="project_long_term",
            content="Deploy on Mondays.",
            created_at=1,
            by="coder",
        )
        desk.context.app.memories().save(saved)
        (memory,) = (await desk.get("/memories", search="deploying"))["items"]
        assert (memory["text"], memory["scope"], memory["is_trusted"]) == (
            "Deploy on Mondays.",
            "project_long_term",
            True,
        )
        path = f"/api/memories/{memory['id']}"
        assert (await desk.client.put(path, json={"text": "Deploy on Fridays."})).status_code == 200
        (changed,) = (await desk.get("/memories"))["items"]
        assert changed["text"] == "Deploy on Fridays."
        assert changed["updated_at"] > 1
        assert (await desk.client.delete(path, headers=JSON)).status_code == 200
        assert (await desk.get("/memories"))["items"] == []
        assert (await desk.client.delete(path, headers=JSON)).status_code == 404


async def test_skills_agents_tools_and_performance_are_listed(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = shop / ".greenroom" / "skills" / "release"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\nname: release\ndescription: How to release\n---\nTag it.\n")
    async with open_desk([], monkeypatch) as desk:
        (skill,) = (await desk.get("/skills"))["items"]
        assert (skill["name"], skill["is_trusted"], skill["body"]) == ("release", False, "")
        assert "Tag it." in (await desk.get("/skills/release"))["body"]
        assert {"coder", "assistant"} <= {agent["id"] for agent in (await desk.get("/agents"))["items"]}
        tools = {tool["name"]: tool for tool in (await desk.get("/tools"))["items"]}
        assert (tools["patch"]["group"], tools["patch"]["effect"]) == ("edit", "keyed")
        page = await desk.get("/tools", limit=2)
        assert (len(page["items"]), page["next"]) == (2, "2")
        assert (await desk.get("/performance"))["items"] == []
