"""How git is asked: also by somebody who changes their mind."""

import asyncio
import os
import signal
import time

import pytest

from greenroom.adapters.git.process import PATH, Git


async def test_who_changes_their_mind_ends_git_with_all_that_it_began() -> None:
    began = time.monotonic()
    asking = asyncio.ensure_future(Git("/bin/sh", words=("-c", "sleep 60; true"), env={"PATH": PATH}).tried())
    await asyncio.sleep(0.1)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert time.monotonic() - began < 30


async def test_what_a_hook_leaves_running_is_not_waited_for_and_its_words_are_heard() -> None:
    script = "echo said; echo why >&2; sleep 60 & echo $!"
    git = Git("/bin/sh", words=("-c", script), env={"PATH": PATH})
    began = time.monotonic()
    said = await git.tried()
    first, pid = said.out.split()
    try:
        assert (said.code, first, said.err) == (0, b"said", "why")
        assert time.monotonic() - began < 30
    finally:
        os.kill(int(pid), signal.SIGKILL)
