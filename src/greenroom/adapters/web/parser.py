"""The process in which pages and PDFs are parsed, seen from outside."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Sequence
from typing import Final, Literal

from greenroom.core.base.records import record
from greenroom.core.ports.web import WebFault

PROGRAM: Final = ("-I", "-m", "greenroom.adapters.web.parsing")
UNREADABLE: Final = "It cannot be read: its parser needed too much time or memory for it, or gave up."


@record
class Reading:
    """What was read."""

    text: str
    title: str = ""
    note: str = ""


async def parsed(
    kind: Literal["html", "pdf"], data: bytes, url: str, *, seconds: float, program: Sequence[str] = PROGRAM
) -> Reading:
    """What a page or a PDF says; `WebFault` when nothing can be made of it in that time."""
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        *program,
        kind,
        url,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env={},
    )
    try:
        async with asyncio.timeout(seconds):
            said, _ = await child.communicate(data)
    except TimeoutError:
        raise WebFault("broken", UNREADABLE) from None
    finally:
        if child.returncode is None:
            child.kill()
            await asyncio.shield(asyncio.ensure_future(child.wait()))
    if child.returncode != 0:
        raise WebFault("broken", UNREADABLE)
    answer = json.loads(said)
    if "error" in answer:
        raise WebFault("broken", answer["error"])
    return Reading(text=answer["text"], title=answer["title"], note=answer["note"])
