"""A research run in a process of its own, which dies at a chosen commit of its log, or at any moment."""

from __future__ import annotations

import asyncio
import os
import random
from collections import Counter
from pathlib import Path
from typing import Final
from unittest.mock import patch

from greenroom.adapters.storage.sqlite import SqliteLog
from greenroom.app.artifacts import add_sources, list_versions, read_text
from greenroom.app.lookup import TaskReference
from greenroom.app.model_registry import ModelSession
from greenroom.app.runtime import Runtime
from greenroom.cli.app import run
from greenroom.core.base.ids import TeamId
from greenroom.core.ports.model import ModelRequest
from greenroom.core.state.step import Step
from greenroom.testing.scripted import Cue, ReplyMaker, ScriptedCall, ScriptedReply
from tests.app.teams.play import make_environment
from tests.cli.commands.shop import FakeSession
from tests.crash.lives import UNFINISHED, DyingLog, Moment, fork_server
from tests.site import Site, length

PAGES: Final = tuple(f"/bridge/{number}" for number in range(1, 7))
MOST: Final = 3
"""Maximum number of kills in one story."""

LONGEST: Final = 4.0
"""Seconds that a process may live at most; the whole run takes about as long."""


def _call(name: str, **arguments: object) -> ScriptedCall:
    return ScriptedCall(name=name, arguments=arguments)


def _crawl(request: ModelRequest) -> ScriptedCall | str:
    results = [message.content for message in request.messages if message.role == "tool"]
    asked = next(message.content for message in request.messages if message.role == "user")
    return results[-1] if results else _call("web_fetch", url=asked.rpartition("Read ")[2].split()[0])


def make_cues(base: str) -> tuple[Cue, ...]:
    """Return the replies, which depend on nothing that a process remembers."""
    reads = (_call("call_agent", agent_name="crawl_agent", instruction=f"Read {base}{path}") for path in PAGES)
    report = "".join(f"{length(number)}\n" for number in range(1, 7))
    source = {"claim": length(2), "url": f"{base}/bridge/2", "quote": length(2)}
    replies: tuple[ReplyMaker, ...] = (
        _call("create_artifact", id="task_plan", content="- [ ] read\n"),
        ScriptedReply(calls=tuple(reads)),
        _call("create_artifact", id="report", content=report),
        _call("cite", id="report", citations=[source]),
        "Done.",
    )
    lead = (Cue(agent="lead_agent", turn=turn, reply=reply) for turn, reply in enumerate(replies, start=1))
    return (Cue(answering=True, reply=_crawl), *lead)


def _main(folder: str, base: str, at: int, moment: Moment, words: tuple[str, ...], pace: float) -> None:
    os.environ |= make_environment(Path(folder))
    os.chdir(folder)
    DyingLog.at, DyingLog.moment = at, moment
    session = FakeSession(make_cues(base))
    session.model._pace = pace
    with (
        patch("greenroom.app.runtime.SqliteLog", DyingLog),
        patch.object(ModelSession, "get_model", lambda _, name: session.get_model(name)),
        patch.object(ModelSession, "resolve_alias", lambda _, name: session.resolve_alias(name)),
    ):
        os._exit(run(words))


class ResearchStory:
    """A research run that is killed and goes on until it has ended. No page that is in the log is asked for again."""

    def __init__(self, folder: Path, site: Site) -> None:
        self.kills, self._folder, self._site = 0, folder, site
        config = folder / "config" / "greenroom" / "config.toml"
        config.parent.mkdir(parents=True)
        config.write_text(site.settings)

    def live(self, *, at: int = 0, moment: Moment = "before", kill_after: float = 60, pace: float = 0.0) -> bool:
        """Run one process. Return whether it was killed. Otherwise it must have succeeded."""
        read = asyncio.run(self._list_read())
        before, words = Counter(self._site.asked), ("resume", "last") if read is not None else ("research", "How long?")
        process = fork_server().Process(
            target=_main, args=(str(self._folder), self._site.base, at, moment, words, pace)
        )
        process.start()
        process.join(kill_after)
        if process.exitcode is None:
            process.kill()
            process.join(10)
        code = UNFINISHED if process.exitcode is None else process.exitcode
        process.close()
        again = [path for path in read or () if self._site.asked[path] != before[path]]
        assert not again, f"asked for again: {again}"
        self.kills += code == -9
        assert code in (0, -9), f"it ended with {code}"
        return code == -9

    def tell(self, source: random.Random) -> None:
        """Kill the run at random moments, then let it end."""
        while self.live(kill_after=source.uniform(0.3, LONGEST) if self.kills < MOST else 60, pace=0.2):
            pass
        self.check()

    def check(self) -> None:
        """Look at the report of a run that has ended."""
        report = asyncio.run(self._read_report())
        assert all(length(number) in report for number in range(1, 7)), report
        assert f"{length(2)}[1]\n" in report
        assert "not found" not in report

    async def _open(self) -> tuple[Runtime, TeamId | None]:
        runtime = Runtime(await SqliteLog.open(self._folder / "home"))
        teams = [info for info in await runtime.log.streams() if info.head.version]
        return runtime, TeamId(teams[-1].stream) if teams else None

    async def _list_read(self) -> list[str] | None:
        """Return the paths of the pages that the log has; None if there is no run."""
        runtime, team = await self._open()
        try:
            steps = [step async for step in runtime.archive(team, "step")] if team else []
        finally:
            await runtime.close()
        fetched = (step for step in steps if isinstance(step, Step) and step.work.executor == "web_fetch")
        urls = [str((step.work.instruction_content or {})["url"]) for step in fetched if step.state == "finished"]
        return None if team is None else [url.removeprefix(self._site.base) for url in urls]

    async def _read_report(self) -> str:
        runtime, team = await self._open()
        try:
            assert team is not None
            newest = (await list_versions(runtime, TaskReference(team=team)))["report"][-1]
            return add_sources(newest, await read_text(runtime, newest))
        finally:
            await runtime.close()
