"""What the source calls success: ten kinds of specialists, work side by side, hand-offs that arrive, few questions."""

from __future__ import annotations

from pathlib import Path

import pytest

from greenroom.core.base.records import Data
from greenroom.core.state.stage import Subtask
from greenroom.core.state.team_state import TeamState
from greenroom.teamwork.conflicts import collect_conflicts
from greenroom.testing.scripted import Cue
from tests.app.teams.play import STAGE, Gate, TeamPlay, call, done, make_plan, part, plays, reads, writes
from tests.app.teams.test_team_conflicts import answer, until
from tests.teamwork.test_handoffs import GOOD

READERS = {"architect": "design-handoff", "review": "review-feedback", "security": "security-report"}
WRITERS = {
    "code-writer": "code-handoff",
    "test-writer": "test-coverage-report",
    "refactor": "refactor-report",
    "debug": "debug-report",
    "optimizer": "optimization-report",
    "translator": "translation-review",
}
PATH = "shop/menu.py"
MENU = """import os

SIZES = {
    'small': 1,
}


def price(name):
    return SIZES[name] * 2


def last():
    return None
"""


def hand_off(protocol: str) -> Data:
    """Return a valid hand-off that asks for nothing."""
    found = GOOD[protocol]
    return {**found, "requires_changes": False} if "requires_changes" in found else found


def list_writers(state: TeamState) -> list[Subtask]:
    """Return the subtasks that write, while they are open."""
    found = state.stages[STAGE].subtasks if STAGE in state.stages else ()
    return [subtask for subtask in found if subtask.name.startswith("by-")]


@pytest.mark.req("RC-122", "RC-127")
@pytest.mark.usefixtures("shop")
async def test_ten_kinds_of_specialists_work_in_one_run_and_every_hand_off_is_read() -> None:
    cues: list[Cue] = []
    for name, protocol in READERS.items():
        cues += plays(f"{name}-1", done(f"{name} is done", handoff=hand_off(protocol)))
    for name, protocol in WRITERS.items():
        cues += writes(f"{name}-1", f"notes/{name}.txt", name, handoff=hand_off(protocol))
    cues += writes("documentation-1", "docs/new.md", "# New\n", handoff=hand_off("doc-review"))
    first = [part(name, name) for name in (*READERS, *WRITERS)]
    docs = part("documentation", "documentation", *(planned.id for planned in first))
    async with TeamPlay.open(*cues) as play:
        await play.start(make_plan(*first, docs, max_concurrent=9), splits=False)
        status = await play.end()
        assert status.state == "finished", status
        ends = await play.ends()
        assert [ends[planned.id] for planned in (*first, docs)] == ["finished"] * 10
        briefing = reads(play.asked("documentation-1")[0])
        arrived = [name for name in (*READERS.values(), *WRITERS.values()) if f'"protocol":"{name}"' in briefing]
        assert len(arrived) == 9


@pytest.mark.req("RC-124")
@pytest.mark.usefixtures("shop")
async def test_eight_specialists_ask_their_models_at_the_same_time() -> None:
    agents = [f"{kind}-{number}" for kind in ("code-writer", "refactor") for number in (1, 2, 3)]
    agents += ["translator-1", "translator-2"]
    cues = [cue for agent in agents for cue in plays(agent, done(agent, status="unchanged"))]
    gates = {(agent, 1): Gate() for agent in agents}
    async with TeamPlay.open(*cues, gates=gates) as play:
        await play.start(make_plan(*(part(f"work-{agent}", agent.rpartition("-")[0]) for agent in agents)))
        for gate in gates.values():  # the last one is asked while none of the others has an answer
            await gate.is_reached.wait()
        for gate in gates.values():
            gate.is_open.set()
        assert {name for name in await play.ends() if name.startswith("work-")} == {f"work-{name}" for name in agents}
        await play.end()


@pytest.mark.req("RC-125", "RC-136")
async def test_of_six_conflicts_in_one_file_a_person_is_asked_about_one(shop: Path) -> None:
    (shop / PATH).write_text(MENU)
    edits = {
        "code-writer-1": MENU.replace("import os\n", "import json\nimport os\n"),
        "code-writer-2": MENU.replace("import os\n", "import csv\nimport os\n"),
        "code-writer-3": MENU.replace("1,\n", "1,\n    'large': 3,\n"),
        "code-writer-4": MENU.replace("1,\n", "1,\n    'middle': 2,\n"),
        "refactor-1": f"{MENU}\n\ndef open_menu():\n    return os.getcwd()\n",
        "refactor-2": f"{MENU}\n\ndef close_menu():\n    return None\n",
        "refactor-3": f"{MENU}\n\ndef names():\n    return list(SIZES)\n",
        "translator-1": f"{MENU}\n\ndef label(name):\n    return name.title()\n",
        "translator-2": MENU.replace("* 2", "* 3"),
        "translator-3": MENU.replace("* 2", "* 4"),
    }
    cues: list[Cue] = []
    for agent, text in edits.items():
        report = done(agent, handoff=hand_off(WRITERS[agent.rpartition("-")[0]]))
        cues += plays(agent, call("read_code", file=PATH), call("rewrite", file=PATH, content=text), report)
    gates = {(agent, 3): Gate() for agent in edits}
    async with TeamPlay.open(*cues, gates=gates) as play:
        parts = [part(f"by-{agent}", agent.rpartition("-")[0]) for agent in edits]
        await play.start(make_plan(*parts, max_concurrent=10), splits=False)
        for gate in gates.values():
            await gate.is_reached.wait()
        for gate in gates.values():
            gate.is_open.set()
        waiting = len(edits) - 1
        await until(play, lambda state: sum(part.state == "finished" for part in list_writers(state)) == waiting)
        await answer(play, "left")
        status = await play.end()
        assert status.state == "finished", status
        found = collect_conflicts(await play.app.steps(play.team))
        assert [conflict.rung for conflict in found].count("person") == 1
        assert sum(conflict.rung == "structure" for conflict in found) >= 0.8 * len(found) >= 4
        merged = play.files()[PATH]
        for text in ("import json", "import csv", "'large': 3", "'middle': 2", "def open_menu", "def close_menu"):
            assert merged.count(text) == 1
        assert ("def names" in merged, "def label" in merged) == (True, True)
