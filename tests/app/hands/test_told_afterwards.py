"""Those who hear of a call afterwards cost it nothing: not even when everything ends meanwhile."""

import asyncio
import subprocess
import sys
import time
from types import SimpleNamespace
from typing import cast

import pytest

from greenroom.app.designs.jarvis import execute_tool_call
from greenroom.app.toolset.pipeline import Guarded
from greenroom.core.ports.executor import Bench, Outcome
from greenroom.core.state.step import Step
from tests.app.hands.test_callbacks import STEP
from tests.app.hands.test_guarded import ALLOW, Say, Says

BENCH = cast("Bench", SimpleNamespace(step=STEP))


@pytest.mark.parametrize("hangs", [False, True])
async def test_what_a_call_came_to_is_not_lost_when_all_ends_while_others_hear_of_it(hangs: bool) -> None:
    begun, heard, goes_on = asyncio.Event(), list[str](), asyncio.Event()

    async def after(_: Step, outcome: Outcome) -> None:
        begun.set()
        await goes_on.wait()
        heard.append(outcome.state)

    call = asyncio.create_task(Guarded(Say(), Says(ALLOW), [after]).run(BENCH))
    async with asyncio.timeout(20):
        await begun.wait()
        call.cancel()
        if not hangs:
            goes_on.set()
        assert (await call).result == {"output": "x"}
    assert heard == ([] if hangs else ["finished"])
    assert not call.cancelling()


async def test_who_cancels_himself_while_he_hears_of_a_call_is_not_mistaken_for_others() -> None:
    async def after(_: Step, __: Outcome) -> None:
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await Guarded(Say(), Says(ALLOW), [after]).run(BENCH)


class Handler:
    """Takes every reply."""

    def name(self) -> str:
        """What it is called."""
        return "echo"

    def can_handle(self, _: str) -> bool:
        """Always."""
        return True

    def handle(self, response: str) -> tuple[bool, str]:
        """Say it again."""
        return False, response


async def test_a_handlers_callbacks_are_awaited_and_have_copies_of_their_own() -> None:
    heard: list[object] = []

    def takes(told: object) -> None:
        cast("dict[str, object]", told).clear()

    async def hears(told: object) -> None:
        await asyncio.sleep(0)
        heard.append(cast("dict[str, object]", told)["output"])

    assert await execute_tool_call("hello", [Handler()], after=[takes, hears]) == (False, "hello")
    assert heard == ["hello"]


ENDLESS = """
import asyncio, threading
from greenroom.app.toolset.callbacks import Telling
asyncio.run(Telling([lambda told: threading.Event().wait()], seconds=0.1).tell({}, "it"))
print("over")
"""


def test_a_callback_that_never_ends_does_not_keep_a_process_from_ending() -> None:
    began = time.monotonic()
    ended = subprocess.run([sys.executable, "-c", ENDLESS], capture_output=True, text=True, timeout=30, check=False)
    assert (ended.returncode, ended.stdout) == (0, "over\n")
    assert "has not ended 0.1 seconds after it" in ended.stderr
    assert time.monotonic() - began < 20
