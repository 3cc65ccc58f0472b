"""Behind walls a command reaches the hosts that were allowed for it, for its own processes, and while it runs only."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, Literal

import pytest

from greenroom.adapters.sandbox.choice import SandboxChoice
from greenroom.app.settings.schema import WebSettings
from greenroom.app.toolset import sandbox as found
from greenroom.app.toolset.policy import build_policy
from greenroom.app.toolset.sandbox import WorkspaceSandbox
from greenroom.app.toolset.toolset import Toolset
from greenroom.core.base.records import Data
from greenroom.core.rules.intents import AnswerApproval
from greenroom.core.state.step import Step
from tests.abilities.tools.calling import T1, Caller, caller
from tests.adapters.web.house import Site, said, site
from tests.conformance.running import until_there
from tests.tiers import keep_known

ONE, OTHER = "127.0.0.2", "127.0.0.3"
"""Addresses of this machine that no program takes for itself: they stand for the internet."""

ASKS: Final = """
import os, pathlib, sys, time, urllib.request
mine, theirs, *hosts = sys.argv[1:]
pathlib.Path(mine).touch()
until = time.monotonic() + 20
while theirs != "-" and not os.path.exists(theirs) and time.monotonic() < until:
    time.sleep(0.01)
for host in hosts:
    try:
        print(host, urllib.request.urlopen(f"http://{host}/", timeout=5).status, flush=True)
    except OSError as error:
        print(host, getattr(error, "code", "none"), flush=True)
"""


@pytest.fixture(name="root")
def _root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    keep_known(tmp_path / "cache")
    made = tmp_path / "work"
    made.mkdir()
    (made / "asks.py").write_text(ASKS, encoding="ascii")
    return made


class Net:
    """A site that stands for the internet, and somebody with walls and rules."""

    def __init__(self, there: Site, root: Path, *rules: str) -> None:
        self.seen = there.seen
        self.one, self.other = f"{ONE}:{there.port}", f"{OTHER}:{there.port}"
        self.walls = WorkspaceSandbox(root, web=WebSettings(local=(self.one, self.other)))
        allowed = [f"allow host {getattr(self, name)}" for name in rules]
        self.hands = Toolset(root, build_policy(root, allowed, is_sandboxed=self.walls.is_holding), sandbox=self.walls)

    async def told(self, script: str, *hosts: str) -> str:
        """What an agent reads that has read nothing else before: so the rule of two has nothing to ask."""
        async with caller(self.hands.executors) as team:
            return await team.output("execute_script", script=script, hosts=list(hosts))


@asynccontextmanager
async def net(root: Path, *rules: str) -> AsyncIterator[Net]:
    async with site({"/": said(b"here")}, at="0.0.0.0") as there:
        made = Net(there, root, *rules)
        try:
            yield made
        finally:
            await made.hands.close()


async def test_of_two_commands_at_once_each_reaches_its_own_host_and_after_them_nobody_does(root: Path) -> None:
    async with net(root, "one", "other") as web:
        both = f"{web.one} {web.other}"
        first, second, third = await asyncio.gather(
            web.told(f"python3 asks.py a b {both}", web.one),
            web.told(f"python3 asks.py b a {both}", web.other),
            web.told(f"python3 asks.py c b {both}"),
        )
        after = await web.told(f"python3 asks.py d - {both}")
        assert f"{web.one} 200\n{web.other} 403\n" in first
        assert f"{web.one} 403\n{web.other} 200\n" in second
        assert f"{web.one} none\n{web.other} none\n" in third
        assert f"{web.one} none\n{web.other} none\n" in after
        assert f'Run it again with hosts=["{web.one}", "{web.other}"] and why: that asks a person.' in first
        assert len(web.seen) == 2
        assert (web.walls.egress_proxy._routes, web.walls.egress_proxy._refusals) == ({}, {})


async def test_a_command_in_the_background_keeps_its_way_out_until_it_ends(root: Path) -> None:
    async with net(root, "one") as web, caller(web.hands.executors) as team:
        # A line with shell signs that wants the network asks; a plain one has its rule.
        (root / "up.sh").write_text(f"python3 asks.py up go {web.one}; touch done; sleep 600\n")
        script = "sh up.sh"
        begun = await team.call("execute_script", script=script, hosts=[web.one], background=True)
        await until_there(root / "up")
        assert f"{web.one} none" in await web.told(f"python3 asks.py x - {web.one}"), "another one has none"
        (root / "go").touch()
        await until_there(root / "done")
        assert len(web.seen) == 1
        ended = await team.output("stop_command", handle=(begun.result or {})["handle"])
        assert f"{web.one} 200" in ended
        assert web.walls.egress_proxy._routes == {}


async def answered(team: Caller, answer: Literal["approved", "denied"], call: Data) -> Step:
    """A call that is asked about, and what comes of it."""
    await team.begin("execute_script", **call)
    assert (await asyncio.wait_for(team.runtime.wait(team.team, T1), 30)).state == "waiting"
    (asked,) = (await team.runtime.state(team.team)).approvals.values()
    await team.runtime.ask(team.team, AnswerApproval(approval_id=asked.approval_id, answer=answer))
    await asyncio.wait_for(team.runtime.wait(team.team, T1), 30)
    return (await team.steps())[-1]


async def test_a_persons_yes_opens_a_host_once_and_their_no_opens_nothing(root: Path) -> None:
    async with net(root) as web, caller(web.hands.executors) as team:
        call = {"script": f"python3 asks.py a - {web.one} {web.other}", "hosts": [web.one], "why": "To see it."}
        refused = await answered(team, "denied", call)
        assert (refused.state, web.seen, (root / "a").exists()) == ("failed", [], False)
        done = await answered(team, "approved", call)
        assert f"{web.one} 200\n{web.other} 403\n" in str((done.result or {})["output"])
        again = await answered(team, "denied", call)
        assert (again.state, len(web.seen)) == ("failed", 1), "it is asked about again"


async def test_walls_without_a_way_out_say_so_and_open_nothing(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(found, "find_strongest_sandbox", lambda _: SandboxChoice(tier="landlock"))
    with tempfile.TemporaryDirectory() as folder:
        open_to_all = Path(folder, "work")
        shutil.copytree(root, open_to_all)
        open_to_all.parent.chmod(0o755)
        await _says_so(open_to_all)


async def _says_so(root: Path) -> None:
    async with net(root, "one") as web:
        told = await web.told(f"python3 asks.py a - {web.one}", web.one)
        assert f"{web.one} none" in told
        assert "greenroom: commands have no network here, even if it is allowed: this sandbox (land" in told
        assert "greenroom" not in await web.told("echo fine")
        assert web.seen == []
