"""How git is asked: also by somebody who changes their mind."""

import asyncio
import time
from typing import Any

import pytest

from greenroom.adapters.git.running import Git

WATCHER: Any = getattr(asyncio, "ThreadedChildWatcher", None)


@pytest.mark.skipif(WATCHER is None, reason="this Python watches over its processes in another way")
async def test_who_changes_their_mind_while_git_starts_leaves_nothing_on_the_screen(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    asyncio.get_event_loop_policy().set_child_watcher(WATCHER())
    waits = WATCHER._do_waitpid

    def late(self: object, *rest: object) -> None:
        time.sleep(0.05)  # in a thread of its own; until then the process has long ended
        waits(self, *rest)

    monkeypatch.setattr(WATCHER, "_do_waitpid", late)
    for looks in range(1, 8):
        asking = asyncio.ensure_future(Git("/bin/true", words=(), env={}).tried())
        for _ in range(looks):
            await asyncio.sleep(0)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
    assert caplog.messages == []
