"""How git is asked: also by somebody who changes their mind."""

import asyncio
import os
import signal
import time
from typing import Any

import pytest

from greenroom.adapters.git.process import PATH, Git

WATCHER: Any = getattr(asyncio, "ThreadedChildWatcher", None)


@pytest.mark.skipif(WATCHER is None, reason="this Python watches over its processes in another way")
async def test_who_changes_their_mind_while_git_starts_leaves_nothing_on_the_screen(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    # Not by `set_child_watcher`: that closes the one there is, which whoever comes later needs.
    monkeypatch.setattr(asyncio.get_event_loop_policy(), "_watcher", WATCHER())
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


async def test_what_a_hook_leaves_running_is_not_waited_for_and_its_words_are_heard() -> None:
    script = "echo said; echo why >&2; sleep 60 & echo $!"
    git = Git("/bin/sh", words=("-c", script), env={"PATH": PATH}, outlived=True)
    began = time.monotonic()
    said = await git.tried()
    first, pid = said.out.split()
    try:
        assert (said.code, first, said.err) == (0, b"said", "why")
        assert time.monotonic() - began < 30
    finally:
        os.kill(int(pid), signal.SIGKILL)
