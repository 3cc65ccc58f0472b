"""A short team run in a process of its own, which dies at a chosen commit of its log, or at any moment."""

from __future__ import annotations

import asyncio
import json
import os
import random
import sys
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.queues import Queue
from pathlib import Path
from subprocess import PIPE, STDOUT, Popen, TimeoutExpired, run
from typing import NamedTuple
from unittest.mock import patch

from greenroom.cli.commands.demo import SETTINGS
from greenroom.core.ports.model import ModelRequest
from greenroom.core.state.step import StepEnded
from greenroom.teamwork.merge_queue import MergeTool
from greenroom.teamwork.plan import Plan
from greenroom.testing import demo_run, demo_team
from greenroom.testing.demo_run import fingerprint
from greenroom.testing.scripted import Cue, ScriptedCall
from tests.app.teams.play import (
    DISCOUNT,
    TAX,
    TESTS,
    TeamPlay,
    done,
    git,
    make_environment,
    make_plan,
    make_repository,
    part,
    reads,
    writes,
)
from tests.app.teams.test_merging import RIGHT, run_unasked, writer_that_mends
from tests.app.teams.test_review_loop import mends
from tests.crash.lives import UNFINISHED, DyingLog, Moment, fork_server

PLAN = make_plan(part("code-1"), part("code-2"), part("test", "test-writer", "code-1"))
CUES = (
    *writes("code-writer-1", "shop/tax.py", TAX),
    *writes("code-writer-2", "shop/discount.py", DISCOUNT),
    *writes("test-writer-1", "tests/test_tax.py", TESTS, handoff={"test_files": [], "tests_added": 1}),
)
REVIEWED = {"shop/tax.py": TAX}
REVIEW_PLAN = make_plan(part("code", writes=("shop/tax.py",)), part("review", "review", "code"))


def _review(request: ModelRequest) -> ScriptedCall:
    """Require a change of the first version, and accept the second."""
    if "Look at the change again" in reads(request):
        return done("good", handoff={"overall_score": 95, "requires_changes": False})
    place = {"path": "shop/tax.py", "line": 2}
    texts = {"severity": "major", "category": "style", "description": "wrong", "suggestion": "Multiply."}
    return done("bad", handoff={"overall_score": 5, "requires_changes": True, "issues": [{**texts, "location": place}]})


REVIEW_CUES = (*mends("code-writer-1", "shop/tax.py", "tax = None\n", TAX), Cue(agent="review-1", reply=_review))
MERGED = {"shop/cart.py": RIGHT, "shop/discount.py": DISCOUNT}
MERGE_PLAN = make_plan(part("code-1"), part("code-2"))
MERGE_CUES = (*writer_that_mends("code-writer-1"), *writes("code-writer-2", "shop/discount.py", DISCOUNT))
STORIES = {"team": (PLAN, CUES), "review": (REVIEW_PLAN, REVIEW_CUES), "merge": (MERGE_PLAN, MERGE_CUES)}
"""What a process plays: its plan and its replies, which depend on nothing that a process remembers."""

STORY_FILES = {
    "export.py": '''"""What the shop writes for others to read."""

import csv

from to_json import to_json
from to_xml import to_xml


def export(rows, out, kind="csv"):
    """Write the rows as CSV, or as this kind."""
    if kind == "json":
        return out.write(to_json(rows))
    if kind == "xml":
        return out.write(to_xml(rows))
    csv.writer(out).writerows(rows)
''',
    "README.md": f"{demo_run.README}- JSON\n- XML\n",
    "cells.py": demo_team.RENDER,
    "to_json.py": demo_team.JSON_CODE,
    "to_xml.py": demo_team.XML_CODE.replace("render(cell)", "render(cell, 2)").replace(
        "(rows):\n", f"(rows):\n{demo_team.DOCSTRING}\n"
    ),
    "tests/test_formats.py": demo_team.TESTS,
    "docs/formats.md": demo_team.DOCS,
}
"""What the team of the demo makes, in whatever lives: merged by structure, by the model, and mended by its writers."""

LONGEST = 9.0
"""Seconds that a command may live at most; the whole run takes about as long."""

MOST = 3
"""Maximum number of kills in one story."""

FILES = {"shop/tax.py": TAX, "shop/discount.py": DISCOUNT, "tests/test_tax.py": TESTS}


class Result(NamedTuple):
    """What a run has left: its files, its merges, steps that ended more than once, worktrees and the person's files."""

    files: dict[str, str]
    merges: int
    twice: tuple[str, ...]
    worktrees: set[str]
    fingerprint: str


def _move_into(folder: Path) -> None:
    os.environ |= {**make_environment(folder), "GREENROOM_SANDBOX": "off"}
    os.chdir(folder / "shop")


async def _life(at: int, moment: Moment, pace: float, story: str) -> str:
    DyingLog.at, DyingLog.moment = at, moment
    plan, cues = STORIES[story]
    targets = run_unasked if story == "merge" else MergeTool.targets
    with patch.object(MergeTool, "targets", targets):
        return await _play(plan, cues, pace)


async def _play(plan: Plan, cues: Sequence[Cue], pace: float) -> str:
    async with TeamPlay.open(*cues, pace=pace, store=DyingLog) as play:
        if not play.team or not (await play.runtime.state(play.team)).team.tasks_made:
            # The last process ended before the work was requested: nothing has been promised yet.
            if play.team:
                await play.runtime.log.forget(play.team)
            await play.create(plan)
        await play.runtime.start(play.team)
        return (await play.end()).state


def _main(folder: str, at: int, moment: Moment, pace: float, story: str) -> None:
    _move_into(Path(folder))
    word = asyncio.run(_life(at, moment, pace, story))
    os._exit(0 if word == "finished" else UNFINISHED)


def live(
    folder: Path,
    *,
    at: int = 0,
    moment: Moment = "before",
    pace: float = 0.0,
    kill_after: float | None = None,
    story: str = "team",
) -> int:
    """Run one process. Return its exit code, negative for a signal."""
    if not (folder / "shop").exists():
        make_repository(folder / "shop")
    process = fork_server().Process(target=_main, args=(str(folder), at, moment, pace, story))
    process.start()
    process.join(kill_after if kill_after is not None else 90)
    if process.exitcode is None:
        process.kill()
        process.join(10)
    code = process.exitcode
    process.close()
    return UNFINISHED if code is None else code


async def _look() -> Result:
    async with TeamPlay.open() as play:
        ended = Counter(event.step_id for event in await play.events(StepEnded))
        return Result(
            files=play.files(),
            merges=len(git(play.root, "log", "--merges", "--format=%H", play.ref()).split()),
            twice=tuple(name for name, count in ended.items() if count > 1),
            worktrees={name.split("+")[1] for name in play.worktrees()},
            fingerprint=fingerprint(play.root),
        )


def _look_in(folder: str, results: Queue[Result]) -> None:
    _move_into(Path(folder))
    results.put(asyncio.run(_look()))


def look(folder: Path) -> Result:
    """Look at a run that has ended, in a process of its own."""
    context = fork_server()
    results: Queue[Result] = context.Queue()
    process = context.Process(target=_look_in, args=(str(folder), results))
    process.start()
    found = results.get(timeout=60)
    process.join(10)
    return found


class TeamStory:
    """The team run of the demo by its real commands, killed at random moments until it reaches its end."""

    def __init__(self, folder: Path, source: random.Random) -> None:
        self.root, self.kills, self._source = folder / "shop", 0, source
        self._environment = {**demo_run.command_environment(), **make_environment(folder)}
        self._cache = folder / "cache"
        demo_run.make_repository(self.root)
        self.before = fingerprint(self.root)

    def tell(self) -> None:
        """Play the run to its end, apply it and undo it."""
        with serve_team(self.root) as address:
            config = Path(self._environment["XDG_CONFIG_HOME"]) / "greenroom"
            config.mkdir(parents=True)
            (config / "config.toml").write_text(SETTINGS.format(address=address, language="en"))
            words = demo_team.STORY.words
            while self._is_killed(*words):
                has_task = "t1" in self.type("runs", "--output-format", "json")
                words = ("resume", "last", "--non-interactive") if has_task else words
        self._look()
        self.type("apply", "last")
        subjects = git(self.root, "log", "--format=%s", "HEAD").splitlines()
        assert len(subjects) == demo_team.STORY.commits + 1, subjects
        for name, text in STORY_FILES.items():
            assert (self.root / name).read_text() == text, name
        self.type("undo", "last")
        assert fingerprint(self.root) == self.before

    def _look(self) -> None:
        """Look at the tree, the merges and the worktrees."""
        assert fingerprint(self.root) == self.before, "a run touched the person's files"
        (ref,) = git(self.root, "for-each-ref", "--format=%(refname)", "refs/greenroom/*/main").splitlines()
        changed = git(self.root, "diff", "--name-only", "HEAD", ref).splitlines()
        assert sorted(changed) == sorted(("notes.txt", *demo_team.STORY.files))
        assert (
            len(git(self.root, "log", "--first-parent", "--merges", "--format=%H", ref).splitlines())
            == demo_team.STORY.commits
        )
        listed = json.loads(self.type("workspaces", "list", "--output-format", "json"))["workspaces"]
        assert [space["orphan"] for space in listed] == [""] * len(listed)
        there = {str(path / "tree") for path in self._cache.glob("greenroom/worktrees/*/trees/*")}
        assert there == {space["folder"] for space in listed}, "a worktree is left that is not listed"

    def _is_killed(self, *words: str) -> bool:
        """Run one process. Return whether it was killed. Otherwise it must have succeeded."""
        patience = self._source.uniform(0.5, LONGEST) if self.kills < MOST else 100
        with Popen(
            (sys.executable, "-m", "greenroom.cli", *words),
            cwd=self.root,
            env=self._environment,
            stdout=PIPE,
            stderr=STDOUT,
        ) as process:
            try:
                out, _ = process.communicate(timeout=patience)
            except TimeoutExpired:
                assert self.kills < MOST, "a run did not end"
                process.kill()
                self.kills += 1
                return True
        assert process.returncode == 0, out.decode()
        return False

    def type(self, *words: str) -> str:
        """Run a command to its end and return its output."""
        command = (sys.executable, "-m", "greenroom.cli", *words)
        return run(command, cwd=self.root, env=self._environment, check=True, stdout=PIPE, text=True).stdout


@contextmanager
def serve_team(root: Path) -> Iterator[str]:
    """Serve the script of the demo's team in a thread. Return its address."""
    loop, script = asyncio.new_event_loop(), demo_team.TeamProvider(0.1, root)
    script.half_done.set()
    server = loop.run_until_complete(asyncio.start_server(script.answer, "127.0.0.1", 0))
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        server.close()
        loop.close()
