"""What a person is shown of a call of which nothing is known but its tool: its arguments, so that a yes means them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

from greenroom.abilities.permission.saying import plainly
from greenroom.core.base.records import Data
from greenroom.core.ports.tool import Target

MOST: Final = 4_000
LINES: Final = 60


def with_what(targets: Sequence[Target], given: Data) -> str:
    """The arguments, one a line; nothing where the question says already what is touched."""
    if not given or any(one.kind != "tool" for one in targets):
        return ""
    lines = [line for name, value in given.items() for line in f"{name}: {_told(value)}".split("\n")]
    told = "\n".join(f"  | {plainly(line)}" for line in lines[:LINES])
    more = len(lines) > LINES or len(told) > MOST
    return f"\n{told[:MOST]}" + ("\n  [… There is more of it than can be shown here …]" if more else "")


def _told(value: object) -> str:
    """A text as it is, everything else as JSON."""
    return (
        value[: MOST + 1] if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)[: MOST + 1]
    )
