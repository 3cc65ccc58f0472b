"""Large results go to the blobs before the event that names them; the log keeps their shape and how they begin."""

from __future__ import annotations

import json
from typing import Final

from greenroom.core.base.errors import WorldFault
from greenroom.core.base.records import Data, evolve
from greenroom.core.ports.executor import Outcome
from greenroom.core.ports.log import Blobs
from greenroom.core.ports.tool import WHOLE
from greenroom.core.state.step import Step

LARGE: Final = 32_768
"""Characters of a result, with everything in it, above which it is kept as a blob."""

SHOWN: Final = 2_000
LADDER: Final = ((LARGE, SHOWN), (SHOWN, SHOWN), (200, 200))
"""Texts longer than the first are cut to the second, rung by rung until the rest is not large: the longest first."""

SEQUENCES: Final = (list, tuple)
CONTAINERS: Final = (dict, *SEQUENCES)


def is_large(result: Data) -> bool:
    """Whether there is too much in it for the log. Most results are flat and small: those are not looked into."""
    total, deep = 0, False
    for value in result.values():
        if isinstance(value, str):
            total += len(value)
        elif isinstance(value, CONTAINERS) and value:
            deep = True
    return total > LARGE or (deep and _weight(dict(result)) > LARGE)


async def lighten(outcome: Outcome, blobs: Blobs) -> Outcome:
    """The outcome as it goes into the log."""
    result = outcome.result or {}
    body = json.dumps(dict(result), ensure_ascii=False).encode()
    digest = await blobs.put_blob(body)
    named = {"blob": digest, "bytes": len(body)}
    return evolve(outcome, result={**_shown(result), **named}, blobs=(*outcome.blobs, digest))


def unkept(outcome: Outcome, fault: WorldFault) -> Outcome:
    """What stays when the whole cannot be kept. It was done, and must not be read as if it were not."""
    shown = _shown(outcome.result or {})
    told = f"[… It was done, but all of its result could not be kept: {fault} …]"
    text = shown.get("output")
    return evolve(outcome, result={**shown, "output": f"{text}\n{told}" if isinstance(text, str) else told})


async def made_whole(step: Step, blobs: Blobs) -> Step:
    """An ended step with its result as it was. Of a tool's result those who want more read it by its blob."""
    digest = (step.result or {}).get("blob")
    if step.work.type != "skill" or not isinstance(digest, str) or digest not in step.blobs:
        return step
    return evolve(step, result=json.loads(await blobs.get_blob(digest)))


def _weight(whole: object) -> int:
    """About how many characters it is. Everything weighs something, and what is more than large is not counted on."""
    total, rest = 0, [whole]
    for one in rest:
        total += 1
        if isinstance(one, str):
            total += len(one)
        elif isinstance(one, dict):
            rest += one
            rest += one.values()
        elif isinstance(one, SEQUENCES):
            rest += one
        if total > LARGE:
            break
    return total


def _shown(result: Data) -> Data:
    """The result with its texts cut. Its shape stays: whoever reads it later looks for its parts by name.

    A tool that says what is to be read of its result has cut that itself.
    """
    parts = {key: value for key, value in result.items() if key != WHOLE or "output" not in result}
    for above, to in LADDER:
        shown = {key: _cut(value, above, to) for key, value in parts.items()}
        if _weight(shown) <= LARGE:
            return shown
    return _some(parts)


def _cut(value: object, above: int, to: int) -> object:
    if isinstance(value, str):
        return value[:to] if len(value) > above else value
    if isinstance(value, dict):
        return {key: _cut(one, above, to) for key, one in value.items()}
    if isinstance(value, SEQUENCES):
        return [_cut(one, above, to) for one in value]
    return value


def _some(result: Data) -> Data:
    """Of what is large by the number of its parts: as many as fit, and the beginning of each large one as text."""
    shown: dict[str, object] = {}
    left = LARGE
    for key, value in result.items():
        part = value if _weight(value) <= SHOWN else json.dumps(value, ensure_ascii=False)[:SHOWN]
        left -= len(key) + _weight(part)
        if left < 0:
            break
        shown[key] = part
    return shown
