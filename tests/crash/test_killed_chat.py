"""A chat killed with -9 at random moments: whatever happens, a strict provider takes the conversation."""

from __future__ import annotations

import asyncio
import random
import tempfile
from pathlib import Path

import pytest

from greenroom.adapters.storage.sqlite import SqliteLog
from greenroom.app.runtime import Runtime
from greenroom.core.base.ids import TeamId
from greenroom.core.state.step import Step
from tests.crash.chat import ANN, QUESTIONS, chat_life, script
from tests.crash.lives import fork_server
from tests.fake_openai.server import FakeOpenAI

LONGEST = 1.0


def lived(home: Path, url: str, patience: float | None) -> int:
    """One life; its exit code, negative for the signal that ended it."""
    process = fork_server().Process(target=chat_life, args=(str(home), url))
    process.start()
    process.join(60 if patience is None else patience)
    if process.exitcode is None:
        process.kill()
        process.join(10)
        assert patience is not None, "a life did not end within a minute"
    code = process.exitcode
    process.close()
    assert code is not None
    return code


async def killed_until_done(home: Path, source: random.Random, most: int) -> int:
    """Kill it, again and again, until all is answered; how often it was killed."""
    kills = 0
    async with FakeOpenAI(script, strict=True, latency=0.005) as server:
        while True:
            patience = source.uniform(0.2, LONGEST) if kills < most else None
            code = await asyncio.to_thread(lived, home, server.base_url, patience)
            assert server.refused == [], "the conversation was no longer valid"
            if code == 0:
                return kills
            assert code == -9, f"a life ended with {code}"
            kills += 1


async def judged(home: Path) -> None:
    """Each question has its answer, and no effect happened twice."""
    log = await SqliteLog.open(home)
    runtime = Runtime(log)
    team = TeamId((await log.streams())[0].stream)
    steps = [one async for one in runtime.archive(team, "step") if isinstance(one, Step)]
    answers = [
        one for one in steps if one.agent_id == ANN and str((one.result or {}).get("text", "")).startswith("Answer")
    ]
    await runtime.close()
    assert len(answers) == QUESTIONS
    notes = (home / "notes.txt").read_text(encoding="utf-8").split()
    assert len(notes) == len(set(notes)), "a note was written twice"


async def test_a_killed_chat_goes_on_and_stays_valid(tmp_path: Path) -> None:
    await killed_until_done(tmp_path, random.Random(0), most=4)
    await judged(tmp_path)


@pytest.mark.prove
@pytest.mark.timeout(3000)
async def test_a_chat_killed_a_hundred_times_stays_valid() -> None:
    source, kills, runs = random.Random(100), 0, 0
    while kills < 100:
        with tempfile.TemporaryDirectory(prefix="greenroom-chat-") as name:
            kills += await killed_until_done(Path(name), source, most=12)
            await judged(Path(name))
        runs += 1
    print(f"\n{kills} kills in {runs} chats, 0 refused requests")
