"""`greenroom demo`: a job from the request to the undo, played by real commands in a real repository.

Only the model is scripted. Each line of the story is looked up in the files, in git and in the log; the first that does
not hold ends it.
"""

from __future__ import annotations

import asyncio
import time
from typing import Final

from greenroom.core.base.errors import GreenroomError, Refused, Rejected
from greenroom.interfaces.cli.asked.orders import Demo
from greenroom.interfaces.cli.asked.pace import demo_pace
from greenroom.interfaces.cli.exits import Exit
from greenroom.interfaces.cli.runs.session import Desk
from greenroom.interfaces.cli.runs.story.scenes import LINES, Play, Scene
from greenroom.interfaces.cli.runs.story.stage import Stage, set_up
from greenroom.interfaces.cli.runs.story.telling import Line, Telling, Times, fitting, to_type, verdict
from greenroom.testing.fake_openai import FakeOpenAI
from greenroom.testing.story import shop
from greenroom.testing.story.facts import Fact
from greenroom.testing.story.script import Coder

FIRST_LINE: Final = (
    "The model is scripted: no key, no network. Everything else is real: git, files, tests, walls, kill -9."
)
NO_PYTEST: Final = "There is no pytest beside Greenroom here: Python's own unittest runs the tests."


async def demo(desk: Desk, order: Demo) -> Exit:
    """Make the repository, play the story in it, and say what held."""
    if desk.setup.home is not None:
        why = "The demo has a home of its own, beside the repository that it makes."
        raise Refused(Rejected(code="own_home", why=why, hint="Leave --home out; --in FOLDER says where both are."))
    telling, coder, pace = Telling(desk), Coder(), demo_pace()
    telling.open(FIRST_LINE, style="bold")
    async with FakeOpenAI(coder, latency=pace, keep=False) as model:
        began = time.monotonic()
        stage = set_up(order.folder, model.base_url)
        desk.out.begin(
            command="demo", scripted=True, folder=str(stage.folder), home=str(stage.home), sandbox=stage.tier
        )
        telling.open(f"It happens in {stage.folder}, which stays.")
        if not shop.wants_pytest(stage.shop):
            telling.open(NO_PYTEST)
        try:
            async with Play(stage, coder, telling) as play:
                lines = await _played(play, telling, pace)
        except asyncio.CancelledError:
            telling.open(f"Stopped; nothing of it runs any more. {stage.folder} stays as it is.", style="bold")
            raise
        return _told(desk, stage, lines, await _times(play, began, pace * len(lines)), play.place)


async def _played(play: Play, telling: Telling, pace: float) -> list[Line]:
    """All lines, or those up to the first that did not hold."""
    lines: list[Line] = []
    for number, (title, scene) in enumerate(LINES, start=1):
        telling.begin(number, title)
        found = await _found(play, scene)
        line = Line(number=number, title=title, commands=tuple(telling.typed), facts=found)
        lines.append(line)
        telling.end(line)
        if not line.held:
            break
        await asyncio.sleep(pace)
    return lines


async def _found(play: Play, scene: Scene) -> tuple[Fact, ...]:
    """What is true after a scene; one that could not be played does not hold, and says why."""
    try:
        return tuple(await scene(play))
    except (GreenroomError, OSError) as error:
        return (Fact(held=False, text=str(error) or "it took too long"),)


async def _times(play: Play, began: float, pauses: float) -> Times:
    whole = round((time.monotonic() - began) * 1000)
    try:
        log = await play.log()
    except (GreenroomError, OSError):
        return Times(whole=whole, checks=0, waits=round(pauses * 1000))
    waits = log.millis(checks=False) + round(pauses * 1000)
    return Times(whole=whole, checks=log.millis(checks=True), waits=waits)


def _told(desk: Desk, stage: Stage, lines: list[Line], times: Times, place: str) -> Exit:
    """How it ended, on stdout: that is what was asked for."""
    held = len(lines) == len(LINES) and all(one.held for one in lines)
    ends, typed = [*verdict(lines, len(LINES), times)], [*to_type(stage, place)]
    if desk.out.live:
        desk.progress.note("")
    width = desk.out.console.width if desk.out.live else 0
    desk.out.write("\n".join((*fitting(ends, width), "", "Look for yourself:", *(f"  {one}" for one in typed))) + "\n")
    return desk.out.result(
        "finished" if held else "failed",
        Exit.DONE if held else Exit.FAILED,
        folder=str(stage.folder),
        sandbox=stage.tier,
        error="" if held else " ".join(one.strip() for one in ends[:-1]),
        millis={"whole": times.whole, "checks": times.checks, "waits": times.waits, "rest": times.rest},
        look=typed,
    )
