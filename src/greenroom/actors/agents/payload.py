"""Large results go to the blobs before the event that names them; the log keeps the beginning and the digest."""

from __future__ import annotations

import json
from typing import Final

from greenroom.core.base.records import Data, evolve
from greenroom.core.ports.executor import Outcome
from greenroom.core.ports.log import Blobs

LARGE: Final = 32_768
"""Characters of one text in a result above which the whole result is kept as a blob."""

SHOWN: Final = 2_000


def is_large(result: Data) -> bool:
    """Whether some text in it is too long for the log."""
    return any(isinstance(value, str) and len(value) > LARGE for value in result.values())


async def lighten(outcome: Outcome, blobs: Blobs) -> Outcome:
    """The outcome as it goes into the log."""
    result = outcome.result or {}
    body = json.dumps(dict(result), ensure_ascii=False).encode()
    digest = await blobs.put_blob(body)
    shown: Data = {
        key: value[:SHOWN] if isinstance(value, str) and len(value) > LARGE else value for key, value in result.items()
    }
    return evolve(outcome, result={**shown, "blob": digest, "bytes": len(body)}, blobs=(*outcome.blobs, digest))
