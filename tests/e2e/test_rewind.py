"""Going back to a step: whatever is wrong is said, and nothing is made."""

import asyncio
from pathlib import Path

import pytest

from greenroom.app.runtime import Runtime
from greenroom.core.base.ids import TeamId
from greenroom.core.ports.log import Lease
from tests.e2e.jobs import Desk, founded, git, honest
from tests.tiers import has_bubblewrap

pytestmark = pytest.mark.skipif(not has_bubblewrap(), reason="bubblewrap is not installed")


@pytest.fixture(name="over", scope="module")
def _over(tmp_path_factory: pytest.TempPathFactory) -> tuple[Desk, str]:
    """A job that is done, and its run; it takes its time, and nobody here changes it."""
    place = tmp_path_factory.mktemp("done")
    desk = Desk(place / "home", founded(place / "repo"))
    ended = desk.asks(*honest())
    assert ended.code == 0, ended.err
    return desk, team(desk)


def team(desk: Desk) -> str:
    """The newest run."""
    return desk.types("show", "last").out.split()[1]


async def held(home: Path, name: str) -> tuple[Runtime, Lease]:
    """Somebody else who runs a team."""
    runtime = await Runtime.open(home)
    lease = await runtime.log.acquire(TeamId(name), "another terminal")
    assert isinstance(lease, Lease)
    return runtime, lease


def test_whatever_is_wrong_is_said_and_nothing_is_made(over: tuple[Desk, str]) -> None:
    desk, old = over
    made = desk.types("rewind", old, "--to", "coder#10", "--no-run", "--output-format", "json")
    assert made.code == 0
    assert '"origin":' in made.out
    new = team(desk)
    assert new != old
    refs = git(desk.repo, "for-each-ref", "refs/greenroom")
    wrong = {
        ("rewind", "nosuch", "--to", "3"): "There is no team 'nosuch'",
        ("rewind", old, "--to", "99"): f"{old} has no step '99' that has ended. The last that have: coder#16",
        ("rewind", old, "--to", "ann#1"): "has no step 'ann#1'",
        ("rewind", old, "--to", "16"): f"the work of {old} was over",
        ("rewind", new, "--to", "11"): f"Step coder#11 of {new} has not ended (init)",
        ("rewind", f"{old}/t1", "--to", "3"): f"Say {old}",
        ("rewind", old, "differently"): "Say --to STEP",
        ("rewind", old, "--to", " "): "--to names no step. Without it, all steps are listed",
        ("rewind", old, "--to", "8"): "There is no key for 'openai",
    }
    for words, why in wrong.items():
        ended = desk.types(*words)
        assert ended.code != 0, words
        assert why in ended.err, words
    other = asyncio.new_event_loop()
    runtime, lease = other.run_until_complete(held(desk.home, old))
    try:
        assert "runs, in another terminal" in desk.types("rewind", old, "--to", "3").err
        assert "its run works, in another terminal" in desk.types("workspaces", "clean", "--discard").out
    finally:
        other.run_until_complete(runtime.log.release(lease))
        other.run_until_complete(runtime.close())
        other.close()
    assert team(desk) == new
    assert git(desk.repo, "for-each-ref", "refs/greenroom") == refs
