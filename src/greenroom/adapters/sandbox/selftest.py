"""Walls tried out before anybody trusts them: a command that tries to get out, behind them and without them.

What works without walls and not behind them is shown to be held. What does not even work without shows nothing, and
then no walls are trusted: a feature that is said to be there is no proof.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import tempfile
from collections.abc import Callable, Iterator
from contextlib import aclosing, contextmanager
from pathlib import Path
from typing import Final

from greenroom.core.base.errors import WorldFault
from greenroom.core.base.records import record
from greenroom.core.ports.commands import Command, Commands, Printed
from greenroom.core.ports.sandbox import Wall

ATTEMPTS: Final = """\
outside=$1 house=$2 port=$3
(echo x >"$outside/drop/written") 2>/dev/null && echo "write outside of the workspace"
(read -r line <"$outside/secret" && [ -n "$line" ]) 2>/dev/null && echo "read what it was not shown"
kill -0 "$house" 2>/dev/null && echo "reach other processes"
(exec 5<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null && echo "reach the network"
(mkdir ids; : >ids/one; chmod u+s ids/one) 2>/dev/null && echo "make a program that runs as its owner"
[ "$EUID" = 0 ] && echo "be root"
(: >>/proc/sys/kernel/core_pattern) 2>/dev/null && echo "change the kernel's settings"
command -v unshare >/dev/null && unshare --user true 2>/dev/null && echo "make namespaces"
mkdir made && echo x >made/file && cat made/file >/dev/null && echo "work"
"""
WORKS: Final = "work"
SURE: Final = frozenset(
    {
        "write outside of the workspace",
        "read what it was not shown",
        "reach other processes",
        "reach the network",
        "make a program that runs as its owner",
    }
)
"""What works for everybody without walls. The rest works for some, and must not work for anybody behind them."""

SECONDS: Final = 10.0

Open = Callable[[Path, Wall | None], Commands]
Build = Callable[[Path, Path], Wall]


@record
class Trial:
    """What came of it; empty is good. Else why these walls are not trusted."""

    why: str = ""


async def tried(build: Build, opened: Open) -> Trial:
    """Whether these walls hold. `build` puts them up around a workspace, with a folder for themselves."""
    with _outside() as (outside, port):
        try:
            held, free = await asyncio.gather(
                _got_out(opened, build, outside, port), _got_out(opened, None, outside, port)
            )
        except (WorldFault, OSError) as fault:
            return Trial(why=str(fault))
        _undo(outside)
        return Trial(why=_judged(held, free))


def _judged(held: str, free: str) -> str:
    reached, open_ = set(held.splitlines()), set(free.splitlines())
    if not open_ >= SURE:
        missing = ", ".join(sorted(SURE - open_))
        return f"nothing is shown by trying: without walls a command could not {missing} either"
    if escaped := sorted(reached - {WORKS}):
        return f"a command could still {escaped[0]}" if escaped[0] in open_ | SURE else f"it said {escaped[0][:200]!r}"
    return "" if WORKS in reached else "a command could not work in its workspace"


@contextmanager
def _outside() -> Iterator[tuple[Path, int]]:
    """A place that everybody can reach, and a port of this machine that answers."""
    folder = Path(tempfile.mkdtemp(prefix="greenroom-trial-")).resolve()
    with socket.create_server(("127.0.0.1", 0)) as server:
        try:
            folder.chmod(0o755)
            (folder / "secret").write_text("secret\n", encoding="utf-8")
            (folder / "secret").chmod(0o644)
            (folder / "drop").mkdir()
            (folder / "drop").chmod(0o777)
            yield folder, server.getsockname()[1]
        finally:
            shutil.rmtree(folder, ignore_errors=True)


async def _got_out(opened: Open, build: Build | None, outside: Path, port: int) -> str:
    """What a command says that it could do."""
    root = outside / ("held" if build is not None else "free")
    root.mkdir()
    said = list[str]()
    commands = opened(root, build(root, outside / "scratch") if build is not None else None)
    try:
        words = ("bash", "-c", ATTEMPTS, "trial", str(outside), str(os.getpid()), str(port))
        async with aclosing(commands.run(Command(words=words, seconds=SECONDS))) as events:
            async for event in events:
                said.append(event.text if isinstance(event, Printed) else "")
        if build is not None and (root / "made").stat().st_uid != root.stat().st_uid:
            said.append("leave files that are not the person's\n")
        return "".join(said)
    except FileNotFoundError:
        return "".join(said)
    finally:
        await asyncio.to_thread(commands.close)


def _undo(outside: Path) -> None:
    """Nothing is left of a program that would run as its owner."""
    for name in ("held", "free"):
        (outside / name / "ids" / "one").unlink(missing_ok=True)
