"""`greenroom batch`: one subtask per item, several at once, each failure for itself, and a table of results."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from greenroom.app.runtime import Runtime
from greenroom.cli.commands.batch import name_items
from greenroom.core.base.ids import TeamId
from greenroom.core.state.events import Event
from greenroom.core.state.stage import SubtaskAssigned, SubtaskEnded
from greenroom.testing.scripted import Cue
from tests.cli.commands.conftest import Script
from tests.cli.commands.shop import call, done
from tests.cli.conftest import Type
from tests.e2e.jobs import exactly, git
from tests.tiers import has_bubblewrap

needs_sandbox = pytest.mark.skipif(not has_bubblewrap(), reason="bubblewrap is not installed")
JSON = ("--output-format", "json")
PARTS = ("shop/part0.py", "shop/part1.py", "shop/part2.py", "shop/part3.py")


@pytest.fixture(name="parts")
def _parts(shop: Path) -> Path:
    """The shop, with four more files and no tests that take time."""
    for path in PARTS:
        (shop / path).write_text("x = 1\n")
    git(shop, "add", "--all")
    git(shop, "commit", "--quiet", "--message=parts")
    return shop


def port(number: int, path: str) -> list[Cue]:
    """The replies of an agent that reads and writes its file."""
    name = f"refactor-{number}"
    return [
        Cue(agent=name, turn=1, reply=call("read_code", file=path)),
        Cue(agent=name, turn=2, reply=call("rewrite", file=path, content="x = 2\n")),
        Cue(agent=name, reply=done(f"ported {path}")),
    ]


def port_all() -> list[Cue]:
    return [cue for number, path in enumerate(PARTS, start=1) for cue in port(number, path)]


async def read_events(home: Path, team: str) -> Sequence[Event]:
    runtime = await Runtime.open(home, access="look")
    events = [logged.event async for logged in runtime.events(TeamId(team))]
    await runtime.close()
    return events


def list_subtasks(fields: dict[str, object]) -> dict[str, dict[str, object]]:
    found = fields["subtasks"]
    assert isinstance(found, list)
    return {str(row["title"]): row for row in found}


@needs_sandbox
@pytest.mark.req("RC-2", "RC-107", "RC-114")
def test_each_file_is_a_subtask_and_as_many_run_at_once_as_wanted(
    parts: Path, home: Path, greenroom: Type, script: Script
) -> None:
    script(port_all())
    before = exactly(parts)
    ended = greenroom("batch", "port to pathlib", "shop/part*.py", "--concurrency", "2", "--yes", *JSON)
    assert (ended.code, ended.json["verified"]) == (0, True), ended.err
    rows = list_subtasks(ended.json)
    assert {path: (rows[path]["state"], rows[path]["files"]) for path in PARTS} == {
        path: ("finished", [path]) for path in PARTS
    }
    assert (rows[PARTS[0]]["added"], rows[PARTS[0]]["removed"]) == (1, 1)
    assert exactly(parts) == before
    team, most, running = str(ended.json["team"]), 0, set[str]()
    for event in asyncio.run(read_events(home, team)):
        if isinstance(event, SubtaskAssigned) and event.agent_id.startswith("refactor-"):
            running.add(event.subtask_id)
        elif isinstance(event, SubtaskEnded):
            running.discard(event.subtask_id)
        most = max(most, len(running))
    assert most == 2
    assert greenroom("apply", "last").code == 0
    assert {(parts / path).read_text() for path in PARTS} == {"x = 2\n"}


@needs_sandbox
@pytest.mark.req("RC-114")
def test_one_failed_item_stops_no_other_and_the_exit_code_says_so(parts: Path, greenroom: Type, script: Script) -> None:
    failed = Cue(agent="refactor-2", reply=call("answer", status="failed", summary="It cannot be ported."))
    script([failed, *(cue for cue in port_all() if cue.agent != "refactor-2")])
    ended = greenroom("batch", "port to pathlib", *PARTS, "--yes", "--apply")
    assert ended.code == 1
    assert "4 items, agent refactor, at most 8 at once" in ended.err
    assert "Not finished (1): shop-part1-py. The verified change of the others is applied." in ended.err
    row = next(line for line in ended.err.splitlines() if line.startswith("✗  shop-part1-py"))
    assert "It cannot be ported." in row
    assert [(parts / path).read_text() for path in PARTS] == ["x = 2\n", "x = 1\n", "x = 2\n", "x = 2\n"]
    assert "team, 3 of 4 subtasks: port to pathlib" in greenroom("runs").out
    shown = greenroom("show", "last", *JSON)
    assert list_subtasks(shown.json)["shop/part1.py"]["attempt"] == 2
    assert "✗  shop-part1-py" in greenroom("show", "last").out
    events = greenroom("events", "last", "--output-format", "stream-json").lines
    calls = [event for event in events if event["type"] == "StepStarted" and event.get("subtask") == "shop-part0-py"]
    assert calls, "tool calls name their subtask"
    assert {event["subtask"] for event in events if event["type"] == "SubtaskRetried"} == {"shop-part1-py"}


def test_a_batch_that_waited_for_nobody_is_confirmed_first(parts: Path, greenroom: Type, script: Script) -> None:
    model = script(port_all())
    ended = greenroom("batch", "port to pathlib", "shop/part*.py")
    assert ended.code == 2
    assert model.requests == []
    assert "4 items" in ended.err


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("port", "no/*.py"), "No file that git tracks matches 'no/*.py'."),
        (("port", "secret.txt"), "No file that git tracks matches 'secret.txt'."),
        (("port", "../other"), "'../other' is outside the repository."),
        (("port", "/etc/passwd"), "'/etc/passwd' is outside the repository."),
        (("port",), "There are no items."),
        (("", "shop"), "There is no task."),
        (("port", "shop", "--agent", "refaktor"), "There is no specialist `refaktor`."),
        (("port", "--from", "no-such-file"), "no-such-file cannot be read: No such file or directory."),
        (("port", "--from", "empty.txt"), "There are no items."),
        (("port", "--from", "many.txt"), "There are 1,001 items, and a batch has at most 1,000."),
    ],
)
def test_what_cannot_be_a_batch_is_refused_in_a_sentence(
    parts: Path, greenroom: Type, script: Script, words: tuple[str, ...], why: str
) -> None:
    model = script([])
    (parts / "empty.txt").write_text("\n \n")
    (parts / "many.txt").write_text("\n".join(f"item {number}" for number in range(1001)))
    ended = greenroom("batch", *words, "--yes")
    assert (ended.code, model.requests) == (2, []), ended.err
    assert why in ended.err
    assert greenroom("runs", *JSON).json["tasks"] == []


@needs_sandbox
def test_items_come_from_lines_and_files_among_them_are_the_write_set(
    parts: Path, home: Path, greenroom: Type, script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(parts / "shop")
    (parts / "items.txt").write_text("part0.py\n\nthe button colours\npart0.py\n")
    script([*port(1, PARTS[0]), Cue(agent="refactor-2", reply=done("nothing to do"))])
    ended = greenroom("batch", "port", "--from", "../items.txt", "--yes", *JSON)
    rows = list_subtasks(ended.json)
    assert {"shop/part0.py", "the button colours"} < set(rows)
    assert len([row for row in rows.values() if str(row["agent"]).startswith("refactor")]) == 2
    shown = greenroom("show", "last", *JSON).json["tasks"]
    assert isinstance(shown, list)
    writes = {row["title"]: row.get("writes") for row in shown[0]["stages"][0]["subtasks"]}
    assert (writes["shop/part0.py"], writes["the button colours"]) == (["shop/part0.py"], None)


def test_each_item_has_a_name_of_its_own() -> None:
    items = ("a-3", "a", "A!", "verify", "按钮", "src/app/[id]/page.tsx", "x" * 40)
    assert [*name_items(items)] == ["a-3", "a", "a-4", "verify-4", "5", "src-app-id-page-tsx", "x" * 32]


@needs_sandbox
def test_a_batch_with_more_items_than_a_plan_may_have_gets_another_plan(
    parts: Path, greenroom: Type, script: Script, tmp_path: Path
) -> None:
    (parts / ".greenroom").mkdir()
    (parts / ".greenroom" / "config.toml").write_text("[team]\nmax_subtasks = 2\n")
    script(port_all())
    assert greenroom("batch", "port it", *PARTS, "--yes", "--max-tokens", "1", "--concurrency", "1").code == 5
    plan = tmp_path / "plan.toml"
    plan.write_text(greenroom("replan", "last", "--show").out.replace("tries = 2", "tries = 3"))
    ended = greenroom("replan", "last", "--file", str(plan))
    assert ended.code == 0, ended.err
