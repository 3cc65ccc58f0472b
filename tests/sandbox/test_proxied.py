"""Behind walls with a way out, as a person has it: pip installs from a host that they allow, and reaches no other."""

from __future__ import annotations

import asyncio
import ensurepip
import shutil
import zipfile
from pathlib import Path
from typing import Final

import pytest

from greenroom.app.settings.schema import SandboxSettings, WebSettings
from greenroom.app.toolset.policy import build_policy
from greenroom.app.toolset.sandbox import WorkspaceSandbox
from greenroom.app.toolset.toolset import Toolset
from tests.abilities.tools.calling import caller
from tests.adapters.web.house import said, site
from tests.e2e.terminal import greenroom
from tests.tiers import keep_known

BUNDLED: Final = sorted((Path(ensurepip.__file__).parent / "_bundled").glob("pip-*.whl"))
WHEEL: Final = "tiny_thing-1.0-py3-none-any.whl"

INSTALL: Final = """
python3 pip.whl/pip install -q --no-cache-dir --retries 0 --target lib --trusted-host 127.0.0.2 \
    --index-url http://127.0.0.2:PORT/simple tiny-thing && ls lib
reach() { python3 -c "import urllib.request as r; print(r.urlopen('$1', timeout=5).status)" 2>&1 | tail -n 1; }
reach http://127.0.0.3:PORT/
reach https://elsewhere.example/
(exec 5<>/dev/tcp/127.0.0.2/PORT) 2>/dev/null && echo straight
getent hosts pypi.org || echo no names
"""
ALLOWS: Final = '[sandbox]\nhosts = ["127.0.0.2:PORT"]\n[web]\nlocal = ["127.0.0.2:PORT", "127.0.0.3:PORT"]\n'


def packed(folder: Path) -> bytes:
    """A package with one module in it."""
    info = "tiny_thing-1.0.dist-info"
    with zipfile.ZipFile(folder / WHEEL, "w") as file:
        file.writestr("tiny_thing.py", "VALUE = 7\n")
        file.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: tiny-thing\nVersion: 1.0\n")
        file.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        file.writestr(f"{info}/RECORD", "")
    return (folder / WHEEL).read_bytes()


@pytest.mark.skipif(not BUNDLED, reason="this Python has no pip of its own")
@pytest.mark.prove
async def test_pip_installs_from_a_host_in_the_persons_settings_and_no_other_is_reached(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    shutil.copy(BUNDLED[-1], work / "pip.whl")
    page = said(f'<a href="/{WHEEL}">{WHEEL}</a>'.encode(), "text/html")
    pages = {"/simple/tiny-thing/": page, f"/{WHEEL}": said(packed(tmp_path), "application/octet-stream")}
    async with site(pages, at="0.0.0.0") as shop:
        own = tmp_path / "own.toml"
        own.write_text(ALLOWS.replace("PORT", str(shop.port)), encoding="utf-8")
        made = await asyncio.to_thread(
            greenroom,
            tmp_path,
            *("tools", "run", "execute_script", f"script={INSTALL.replace('PORT', str(shop.port))}"),
            cwd=str(work),
            GREENROOM_CONFIG=str(own),
            GREENROOM_SANDBOX="auto",
        )
    assert "tiny_thing.py" in made.out, made.out + made.err
    assert [head.split(" ")[1] for head in shop.seen] == ["/simple/tiny-thing/", f"/{WHEEL}"]
    assert "straight" not in made.out
    assert "200" not in made.out
    assert "no names" in made.out
    refused = f"'127.0.0.3:{shop.port}', 'elsewhere.example' are not open, only 127.0.0.2:{shop.port}."
    assert f"greenroom: the hosts {refused}" in made.out
    assert f'`hosts = ["127.0.0.3:{shop.port}", "elsewhere.example"]` below [sandbox]' in made.out


@pytest.fixture(name="root")
def _root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    keep_known(tmp_path / "cache")
    made = tmp_path / "work"
    made.mkdir()
    return made


ASKS: Final = "import sys, urllib.request as r; r.urlopen(f'http://{sys.argv[1]}/', timeout=5)"
ASK: Final = "python3 asks.py HOST >/dev/null 2>&1; true"


async def told(hands: Toolset, script: str) -> str:
    """What an agent reads that has read nothing else before: so the rule of two has nothing to ask."""
    async with caller(hands.executors) as team:
        return await team.output("execute_script", script=script)


async def test_each_command_is_told_of_its_own_hosts_only_and_nothing_is_left(root: Path) -> None:
    (root / "asks.py").write_text(ASKS, encoding="ascii")
    walls = WorkspaceSandbox(root, SandboxSettings(hosts=("allowed.example",)), web=WebSettings())
    hands = Toolset(root, build_policy(root, (), is_sandboxed=walls.is_holding), sandbox=walls)
    assert walls.reach() == ("allowed.example",)
    scripts = [ASK.replace("HOST", "one.example"), ASK.replace("HOST", "two.example"), "echo fine"]
    first, second, third = [await told(hands, script) for script in scripts]
    door = await walls.egress_proxy.get_socket()
    await hands.close()
    assert ("'one.example'" in first, "'two.example'" in first) == (True, False)
    assert ("'one.example'" in second, "'two.example'" in second) == (False, True)
    assert third == "exit code 0\nfine\n"
    assert door
    assert not Path(door).parent.exists()


async def test_who_finds_no_network_at_all_is_told_what_a_person_can_do(root: Path) -> None:
    walls = WorkspaceSandbox(root)
    hands = Toolset(root, build_policy(root, (), is_sandboxed=walls.is_holding), sandbox=walls)
    assert walls.reach() == ()
    closed = await told(hands, "echo 'curl: (6) Could not resolve host: pypi.org'; exit 6")
    other = await told(hands, "echo fine")
    await hands.close()
    assert "greenroom: commands have no network here by themselves." in closed
    assert "greenroom" not in other
