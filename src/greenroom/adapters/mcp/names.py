"""What a stranger's tool is called here: `mcp__SERVER__TOOL`, in letters that every provider takes.

A name that had to be changed ends with a hash of the whole one, so the same tool always gets the same name, whatever
else is on offer, and none can take the name of another server's tool: the first part has no `__` in it.
"""

from __future__ import annotations

import hashlib
import re
from typing import Final

PREFIX: Final = "mcp__"
LONGEST: Final = 64
FOR_SERVER: Final = 24
HASH: Final = 6

_OTHER: Final = re.compile(r"[^A-Za-z0-9_-]")
_RUN: Final = re.compile(r"__+")


def offered_name(server: str, tool: str) -> str:
    """What an agent calls this tool by."""
    front = f"{PREFIX}{_fit(server, _RUN.sub('_', _OTHER.sub('_', server)).strip('_'), FOR_SERVER)}__"
    return front + _fit(tool, _OTHER.sub("_", tool), LONGEST - len(front))


def _fit(raw: str, clean: str, room: int) -> str:
    if clean == raw and 0 < len(raw) <= room:
        return raw
    mark = hashlib.sha256(raw.encode(errors="surrogatepass")).hexdigest()[:HASH]
    return f"{clean[: room - HASH - 1].rstrip('_')}_{mark}".lstrip("_")
