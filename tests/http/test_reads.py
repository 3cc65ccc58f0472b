"""Reads of a run, now and at any version of its past."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path
from typing import cast
from urllib.parse import quote

import pytest

from greenroom.core.base.ids import AgentId, TaskId
from greenroom.core.ports.model import Usage
from greenroom.core.state.mas_format import format_agent, format_step
from greenroom.core.state.step import Step
from greenroom.http.event_hub import EventHub, Subscription
from greenroom.testing.harness import Harness, harness
from greenroom.testing.scripted import ScriptedModel
from greenroom.testing.tools import CountWords
from tests.app.team import call, finishes, says, spec, stage
from tests.http.conftest import Site, open_site
from tests.http.test_event_hub import read_rows

Rows = list[dict[str, object]]


class Asker:
    """Asks the server of a finished run of two agents."""

    def __init__(self, site: Site, house: Harness) -> None:
        self.site = site
        self.house = house
        self.run = f"/api/runs/{house.team}"

    async def get(self, path: str, status: int = 200) -> dict[str, object]:
        answer = await self.site.client.get(path, headers=self.site.token)
        assert answer.status_code == status, answer.text
        return cast("dict[str, object]", answer.json())

    async def items(self, path: str) -> Rows:
        return cast("Rows", (await self.get(f"{self.run}{path}"))["items"])


@pytest.fixture
async def asker(tmp_path: Path) -> AsyncIterator[Asker]:
    cues = [says("ann", 1, call("count_words", text="a b c"), text="I count."), finishes("ann", 2), finishes("bob")]
    async with harness([spec("ann", "count_words"), spec("bob")], cues, executors=[CountWords()]) as house:
        await house.do(stage("ann", "bob", chain=True))
        async with open_site(tmp_path, house.runtime) as site:
            yield Asker(site, house)


async def test_a_run_is_shown_with_its_figures(asker: Asker) -> None:
    shown = await asker.get(asker.run)
    head = (await asker.house.runtime.log.head(asker.house.team)).version
    assert (shown["id"], shown["title"], shown["state"]) == (asker.house.team, "task", "finished")
    assert (shown["at"], shown["head"], shown["request"]) == (head, head, "task")
    listed = cast("Rows", (await asker.get("/api/runs"))["items"])
    assert {name: shown[name] for name in listed[0]} == listed[0]
    assert (await asker.get("/api/runs?search=nothing"))["items"] == []
    other = await asker.house.runtime.create("newer", [(AgentId("ann"), spec("ann"))])
    newest = cast("Rows", (await asker.get("/api/runs?limit=1"))["items"])
    found = cast("Rows", (await asker.get("/api/runs?limit=1&search=TASK"))["items"])
    assert ([row["id"] for row in newest], [row["id"] for row in found]) == ([other], [asker.house.team])
    assert cast("Rows", (await asker.get("/api/runs?limit=1&state=finished"))["items"]) == found


@pytest.mark.req("MAS-264")
async def test_every_version_shows_the_state_of_then(asker: Asker) -> None:
    head = (await asker.house.runtime.log.head(asker.house.team)).version
    for at in range(1, head + 1):
        state = await asker.house.runtime.state(asker.house.team, at)
        states = await asker.get(f"/api/states?type=step&run={asker.house.team}&at={at}")
        assert {name for name in states if name in state.steps} == set(state.steps)
        for name, step in state.steps.items():
            assert states[name] == format_step(step)
        agents = await asker.items(f"/agents?at={at}")
        assert {row["id"]: row["state"] for row in agents} == {
            name: agent.working_state for name, agent in state.agents.items()
        }
        shown = await asker.get(f"{asker.run}?at={at}")
        assert (shown["at"], shown["head"]) == (at, head)
    for bad, status in ((head + 1, 404), (0, 422), ("x", 422), (2**53, 404)):
        await asker.get(f"{asker.run}?at={bad}", status)


@pytest.mark.req("MAS-264", "MAS-265", "MAS-266", "MAS-260")
async def test_states_have_the_shape_of_mas(asker: Asker) -> None:
    team, state = asker.house.team, await asker.house.state()
    agents = await asker.get(f"/api/states?type=agent&run={team}")
    ended = [step for step in await asker.house.read_archive("step") if isinstance(step, Step)]
    assert set(agents) == set(state.agents)
    ann = cast("dict[str, dict[str, Rows]]", agents["ann"])
    assert [step["step_id"] for step in ann["agent_step"]["step_list"]] == [
        step.step_id for step in ended if step.agent_id == "ann"
    ]
    assert {**ann, "agent_step": None} == {
        **format_agent(state, next(name for name in state.agents if name == "ann")),
        "agent_step": None,
    }
    tasks, stages = await asker.get("/api/states?type=task"), await asker.get("/api/states?type=stage")
    (task,) = cast("list[dict[str, object]]", list(tasks.values()))
    assert (task["task_id"], task["execution_state"]) == (TaskId("t1"), "finished")
    assert [row["stage_id"] for row in cast("Rows", task["stage_list"])] == list(stages)
    await asker.get("/api/states?type=nothing", 422)
    pages, next_ = dict[str, object](), "0"
    while next_:
        address = f"/api/states?type=step&limit=2&cursor={next_}"
        answer = await asker.site.client.get(address, headers=asker.site.token)
        assert len(answer.json()) <= 2
        pages |= answer.json()
        next_ = answer.headers.get("next-cursor", "")
    assert pages == await asker.get("/api/states?type=step")


@pytest.mark.req("MAS-259")
async def test_every_change_of_the_four_kinds_of_state_reaches_a_watcher(asker: Asker) -> None:
    team = asker.house.team
    head = (await asker.house.runtime.log.head(team)).version
    hub = cast("EventHub", asker.site.app.state.context.hub)
    async with aclosing(hub.watch(Subscription(runs={team: 0}))) as stream:
        told = {row["version"]: row["type"] for row in await read_rows(stream, head)}
    for kind, ends in (("task", "TaskEnded"), ("stage", "StageEnded"), ("agent", "StepEnded"), ("step", "StepEnded")):
        address = f"/api/states?type={kind}&run={team}&at="
        states = [await asker.get(f"{address}{at}") for at in range(1, head + 1)]
        changed = [at for at in range(2, head + 1) if states[at - 1] != states[at - 2]]
        assert ends in {told[at] for at in changed}


async def test_events_come_in_pages_both_ways(asker: Asker) -> None:
    head = (await asker.house.runtime.log.head(asker.house.team)).version
    forward, cursor = Rows(), 0
    while True:
        page = await asker.get(f"{asker.run}/events?after={cursor}&limit=7")
        forward += cast("Rows", page["items"])
        if page["next"] is None:
            break
        cursor = int(str(page["next"]))
    assert [row["version"] for row in forward] == list(range(1, head + 1))
    backward, before = Rows(), head + 1
    while True:
        page = await asker.get(f"{asker.run}/events?before={before}&limit=5")
        backward[:0] = cast("Rows", page["items"])
        if page["next"] is None:
            break
        before = int(str(page["next"]))
    assert backward == forward
    steps = await asker.items("/events?type=StepStarted,StepEnded&agent=ann")
    assert {row["type"] for row in steps} == {"StepStarted", "StepEnded"}
    assert {row["agent"] for row in steps} == {"ann"}
    assert [row["text"] for row in await asker.items("/events?search=count_words&type=StepStarted")] == [
        "count_words a b c"
    ]
    assert {row["subtask"] for row in await asker.items("/events?subtask=bob")} == {"bob"}


async def test_the_plan_says_what_waits_for_what(asker: Asker) -> None:
    plan = await asker.get(f"{asker.run}/plan?at=1")
    assert plan["stages"] == []
    head = (await asker.house.runtime.log.head(asker.house.team)).version
    waits = set[str]()
    for at in range(1, head + 1):
        for shown in cast("list[dict[str, Rows]]", (await asker.get(f"{asker.run}/plan?at={at}"))["stages"]):
            waits |= {str(subtask["waits_for"]) for subtask in shown["subtasks"]}
    assert waits == {"", "ann"}
    (last,) = cast("list[dict[str, Rows]]", (await asker.get(f"{asker.run}/plan"))["stages"])
    assert [subtask["state"] for subtask in last["subtasks"]] == ["finished", "finished"]
    assert all(subtask["is_critical"] for subtask in last["subtasks"])


async def test_what_is_spent_is_shown_per_subtask_and_agent_at_every_version(asker: Asker) -> None:
    head = (await asker.house.runtime.log.head(asker.house.team)).version
    costs = cast("Rows", (await asker.get(f"{asker.run}/costs?by=agent"))["rows"])
    spent = {row["name"]: (row["cost"], row["tokens"]) for row in costs}
    assert spent == {"ann": (0, 100), "bob": (0, 50)}  # a script costs nothing, and that is known
    assert {row["id"]: (row["cost"], row["tokens"]) for row in await asker.items("/agents") if row["tokens"]} == spent
    (last,) = cast("list[dict[str, Rows]]", (await asker.get(f"{asker.run}/plan"))["stages"])
    assert {row["agent"]: (row["cost"], row["tokens"]) for row in last["subtasks"]} == spent
    assert (await asker.get(asker.run))["cost"] == 0
    tokens = list[int]()
    for at in range(1, head + 1):
        shown = cast("list[dict[str, Rows]]", (await asker.get(f"{asker.run}/plan?at={at}"))["stages"])
        tokens.append(sum(cast("int", row["tokens"]) for stage in shown for row in stage["subtasks"]))
    assert (tokens, set(tokens)) == (sorted(tokens), {0, 50, 100, 150})


async def test_an_unknown_price_is_no_price(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ScriptedModel, "price", lambda *_: None)
    monkeypatch.setattr("greenroom.testing.scripted.Usage", lambda output, money: Usage(output=output + money))
    async with harness([spec("ann")], [finishes("ann")]) as house:
        await house.do(stage("ann"))
        async with open_site(tmp_path, house.runtime) as site:
            asker = Asker(site, house)
            agents = {row["id"]: (row["cost"], row["tokens"]) for row in await asker.items("/agents")}
            assert (agents["ann"], agents["lead"]) == ((None, 50), (0, 0))
            assert (await asker.get(asker.run))["cost"] is None
            steps = await asker.items("/agents/ann/steps")
            assert [step["cost"] for step in steps if step["executor"] == "converse"] == [None]


async def test_an_agent_shows_its_steps_newest_first(asker: Asker) -> None:
    steps = await asker.items("/agents/ann/steps")
    assert [step["executor"] for step in steps][-1] == "converse"
    times = [cast("int", step["ended_at"]) for step in steps]
    assert times == sorted(times, reverse=True)
    one, rest = (
        await asker.get(f"{asker.run}/agents/ann/steps?limit=1"),
        await asker.items("/agents/ann/steps?limit=500"),
    )
    following = await asker.items(f"/agents/ann/steps?limit=500&cursor={one['next']}")
    assert cast("Rows", one["items"]) + following == rest
    shown = await asker.get(f"{asker.run}/agents/ann")
    assert (shown["steps"], shown["state"], shown["tools"]) == (len(steps), "idle", ["count_words"])
    await asker.get(f"{asker.run}/agents/nobody", 404)


@pytest.mark.req("AF-36")
async def test_a_step_shows_its_exact_call_and_its_reply(asker: Asker) -> None:
    steps = await asker.items("/agents/ann/steps")
    tool = next(step for step in steps if step["executor"] == "count_words")
    shown = await asker.get(f"{asker.run}/steps/{quote(str(tool['id']), safe='')}")
    assert (shown["instruction"], shown["result"]) == ({"text": "a b c"}, {"output": 3})
    first = await asker.get(f"{asker.run}/steps/{quote(str(steps[-1]['id']), safe='')}")
    assert (first["reply"], first["state"]) == ("I count.", "finished")
    second = await asker.get(f"{asker.run}/steps/{quote(str(steps[-3]['id']), safe='')}")
    for shown, number in ((first, 0), (second, 1)):
        prompt = cast("list[dict[str, str]]", shown["prompt"])
        sent = asker.house.model.requests[number].messages
        assert [row["role"] for row in prompt] == [message.role for message in sent]
        said = [message.content for message in sent]
        assert all(
            text.startswith(content) for text, content in zip([row["text"] for row in prompt], said, strict=True)
        )
    assert cast("list[dict[str, str]]", second["prompt"])[-2]["text"] == 'I count.\ncount_words {"text":"a b c"}'
    assert cast("list[dict[str, str]]", second["prompt"])[-1]["role"] == "tool"
    running = next(row for row in await asker.items("/events?type=StepStarted&agent=ann"))
    then = await asker.get(f"{asker.run}/steps/{quote(str(running['step']), safe='')}?at={running['version']}")
    assert (then["state"], then["reply"]) == ("running", "")
    for unknown in ("ann#999", "ann", "x#1", "ann#-1", "ann#²"):
        await asker.get(f"{asker.run}/steps/{quote(unknown, safe='')}", 404)


async def test_messages_timeline_and_bars(asker: Asker) -> None:
    head = (await asker.house.runtime.log.head(asker.house.team)).version
    messages = await asker.items("/messages")
    archived = await asker.house.read_archive("message")
    assert [row["id"] for row in messages] == [getattr(message, "message_id", "") for message in archived]
    timeline = await asker.get(f"{asker.run}/timeline?buckets=20")
    buckets = cast("list[dict[str, int]]", timeline["buckets"])
    assert sum(bucket["events"] for bucket in buckets) == head
    assert buckets[-1]["version"] == head
    ended = await asker.items("/events?type=TaskEnded")
    for at, expected in ((head, ended), (cast("int", ended[0]["version"]) - 1, [])):
        marks = cast("Rows", (await asker.get(f"{asker.run}/timeline?at={at}"))["marks"])
        assert [(mark["kind"], mark["version"]) for mark in marks] == [("verdict", row["version"]) for row in expected]
    lanes = {
        str(lane["agent"]): cast("Rows", lane["bars"])
        for lane in cast("Rows", (await asker.get(f"{asker.run}/gantt"))["lanes"])
    }
    assert sum(cast("int", bar["steps"]) for bar in lanes["ann"] if bar["kind"] in ("model", "tool")) == len(
        await asker.items("/agents/ann/steps")
    )
    (plan,) = cast("list[dict[str, Rows]]", (await asker.get(f"{asker.run}/plan"))["stages"])
    subtasks = {row["agent"]: row["id"] for row in plan["subtasks"]}
    assert {agent: {bar["subtask"] for bar in lanes[agent]} for agent in ("ann", "bob")} == {
        agent: {subtask} for agent, subtask in subtasks.items()
    }
    assert await asker.items("/board") == []


async def test_an_unknown_run_and_bad_cursors_are_refused(asker: Asker) -> None:
    for path in ("", "/plan", "/events", "/agents", "/messages", "/gantt", "/timeline"):
        await asker.get(f"/api/runs/nothing{path}", 404)
    for path in ("/agents?cursor=x", "/messages?cursor=-1", "/agents/ann/steps?cursor=99999999999999999999"):
        await asker.get(f"{asker.run}{path}", 422)
    head = (await asker.house.runtime.log.head(asker.house.team)).version
    for path in ("/plan?at=", "/events?at=", "/timeline?at=", "/gantt?at=", "/events?before=1"):
        assert (await asker.get(f"{asker.run}{path}{head + 1}", 404))["code"] == "no_such_version"
    assert f"1 to {head}, not {head + 1}." in str((await asker.get(f"{asker.run}?at={head + 1}", 404))["message"])
    wrong = await asker.get(f"{asker.run}?at=abc", 422)
    assert str(wrong["message"]).startswith("'at' is not valid: it is not a whole number.")
    blank = {"request": " \n"}
    for body in (blank, {"request": "count", "model": "nix"}, {"request": "count", "model": "nix:nix"}):
        answer = await asker.site.client.post("/api/runs", headers=asker.site.token, json=body)
        assert answer.status_code == 422
        assert ("greenroom models" in answer.json()["hint"]) is (body is not blank)
    fork = await asker.site.client.post(f"{asker.run}/fork", headers=asker.site.token, json={"version": 1})
    assert (fork.status_code, fork.json()["message"]) == (404, "No step had ended at version 1.")
    then = await asker.items(f"/events?at={head - 2}")
    assert [row["version"] for row in then][-1] == head - 2
    for path in ("/agents?limit=501", "/agents?limit=0", "/timeline?buckets=0", "/events?after=-1"):
        await asker.get(f"{asker.run}{path}", 422)
