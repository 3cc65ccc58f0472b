"""Behind walls with a way out: pip installs from a host that is allowed, and nothing else is reached."""

from __future__ import annotations

import ensurepip
import shutil
import zipfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import pytest

from greenroom.adapters.web.guard import Guard
from greenroom.adapters.web.proxy import Proxy, Visit
from greenroom.core.ports.sandbox import Limits
from greenroom.testing.conformance.running import ran, shell
from tests.adapters.web.house import HERE, Site, Watched, said, site
from tests.sandbox.jobs import PYTHON
from tests.sandbox.props import PROPS
from tests.sandbox.stage import staged
from tests.sandbox.tiers import open_walled

BUNDLED: Final = sorted((Path(ensurepip.__file__).parent / "_bundled").glob("pip-*.whl"))
WHEEL: Final = "tiny_thing-1.0-py3-none-any.whl"
OUT: Final = """
reach() { python3 -c "import urllib.request as r; print(r.urlopen('$1', timeout=5).status)" 2>&1 | tail -n 1; }
reach http://other.test:PORT/
reach http://127.0.0.1:PORT/
(exec 5<>/dev/tcp/127.0.0.1/PORT) 2>/dev/null && echo straight
getent hosts pypi.test || echo no names
"""


def packed(folder: Path) -> bytes:
    """A package with one module in it."""
    info = "tiny_thing-1.0.dist-info"
    with zipfile.ZipFile(folder / WHEEL, "w") as file:
        file.writestr("tiny_thing.py", "VALUE = 7\n")
        file.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: tiny-thing\nVersion: 1.0\n")
        file.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        file.writestr(f"{info}/RECORD", "")
    return (folder / WHEEL).read_bytes()


@asynccontextmanager
async def way_out(shop: Site, door: Path) -> AsyncIterator[list[Visit]]:
    """A proxy that lets one name through; returns what it is asked for."""
    visits: list[Visit] = []
    network = Watched({name: [[HERE]] for name in ("pypi.test", "other.test")})
    names = [f"{name}:{shop.port}" for name in ("pypi.test", "other.test")]
    proxy = Proxy(Guard(names, network=network), names[:1], told=visits.append)
    await proxy.listen(door, 0o666)
    try:
        yield visits
    finally:
        await proxy.close()


@pytest.mark.prove
@pytest.mark.skipif(not BUNDLED, reason="this Python has no pip of its own")
async def test_pip_installs_from_an_allowed_host_and_no_other_is_reached() -> None:
    with staged(PROPS) as stage:
        shutil.copy(BUNDLED[-1], stage.work / "pip.whl")
        page = said(f'<a href="/{WHEEL}">{WHEEL}</a>'.encode(), "text/html")
        pages = {"/simple/tiny-thing/": page, f"/{WHEEL}": said(packed(stage.base), "application/octet-stream")}
        async with site(pages) as shop, way_out(shop, stage.base / "door") as visits:
            own = {**stage.own, "PATH": f"{PYTHON}:{stage.own['PATH']}"}
            commands = open_walled(stage.work, own, Limits(), proxy=stage.base / "door")
            install = (
                "python3 pip.whl/pip install -q --no-cache-dir --retries 0 --target lib --trusted-host pypi.test "
                f"--index-url http://pypi.test:{shop.port}/simple tiny-thing && ls lib"
            )
            made = await ran(commands, shell(install))
            others = await ran(commands, shell(OUT.replace("PORT", str(shop.port))))
            commands.close()
    assert "tiny_thing.py" in made.text, made.text
    assert [one.verdict for one in visits] == ["allowed", "allowed", "refused"]
    assert "straight" not in others.text
    assert "200" not in others.text
    assert "no names" in others.text
