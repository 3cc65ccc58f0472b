"""Large results are stored as blobs before the event that names them. The log keeps their shape and beginning."""

from __future__ import annotations

import json
from typing import Final

from greenroom.core.base.errors import WorldFault
from greenroom.core.base.records import Data, evolve
from greenroom.core.ports.executor import Outcome
from greenroom.core.ports.log import Blobs
from greenroom.core.ports.tool import WHOLE_KEY
from greenroom.core.state.step import Step

MAX_INLINE_CHARS: Final = 32_768
"""Maximum characters of a whole result in the log. A larger one is stored as a blob."""

MAX_TEXT_CHARS: Final = 2_000
CUT_LEVELS: Final = ((MAX_INLINE_CHARS, MAX_TEXT_CHARS), (MAX_TEXT_CHARS, MAX_TEXT_CHARS), (200, 200))
"""Texts longer than the first number are cut to the second, level by level, until the rest is small enough."""

SEQUENCES: Final = (list, tuple)
CONTAINERS: Final = (dict, *SEQUENCES)


def is_large(result: Data) -> bool:
    """Return whether a result is too large for the log. Most results are flat and small, and need no deep count."""
    total, deep = 0, False
    for value in result.values():
        if isinstance(value, str):
            total += len(value)
        elif isinstance(value, CONTAINERS) and value:
            deep = True
    return total > MAX_INLINE_CHARS or (deep and _count_chars(dict(result)) > MAX_INLINE_CHARS)


async def move_to_blob(outcome: Outcome, blobs: Blobs) -> Outcome:
    """Store the result as a blob and return the outcome for the log."""
    result = outcome.result or {}
    body = json.dumps(dict(result), ensure_ascii=False).encode()
    digest = await blobs.put_blob(body)
    named = {"blob": digest, "bytes": len(body)}
    return evolve(outcome, result={**_cut_texts(result), **named}, blobs=(*outcome.blobs, digest))


def cut_result(outcome: Outcome, fault: WorldFault) -> Outcome:
    """Return the outcome with a cut result, if the blob cannot be stored. It says that the work was done."""
    shown = _cut_texts(outcome.result or {})
    remark = f"[… It was done, but all of its result could not be kept: {fault} …]"
    text = shown.get("output")
    return evolve(outcome, result={**shown, "output": f"{text}\n{remark}" if isinstance(text, str) else remark})


async def restore_result(step: Step, blobs: Blobs) -> Step:
    """Return an ended skill step with its full result. Full results of tools are read by their blob."""
    digest = (step.result or {}).get("blob")
    if step.work.type != "skill" or not isinstance(digest, str) or digest not in step.blobs:
        return step
    return evolve(step, result=json.loads(await blobs.get_blob(digest)))


def _count_chars(whole: object) -> int:
    """Estimate the number of characters. Every item counts at least one; counting stops above `MAX_INLINE_CHARS`."""
    total, rest = 0, [whole]
    for item in rest:
        total += 1
        if isinstance(item, str):
            total += len(item)
        elif isinstance(item, dict):
            rest += item
            rest += item.values()
        elif isinstance(item, SEQUENCES):
            rest += item
        if total > MAX_INLINE_CHARS:
            break
    return total


def _cut_texts(result: Data) -> Data:
    """Return the result with its texts cut. Its shape stays, because readers look for parts by name.

    A tool that sets `output` beside the full text has cut it itself.
    """
    parts = {key: value for key, value in result.items() if key != WHOLE_KEY or "output" not in result}
    for above, to in CUT_LEVELS:
        shown = {key: _cut(value, above, to) for key, value in parts.items()}
        if _count_chars(shown) <= MAX_INLINE_CHARS:
            return shown
    return _cut_parts(parts)


def _cut(value: object, above: int, to: int) -> object:
    if isinstance(value, str):
        return value[:to] if len(value) > above else value
    if isinstance(value, dict):
        return {key: _cut(item, above, to) for key, item in value.items()}
    if isinstance(value, SEQUENCES):
        return [_cut(item, above, to) for item in value]
    return value


def _cut_parts(result: Data) -> Data:
    """Cut a result with too many parts: keep as many as fit, and the beginning of each large one as text."""
    shown: dict[str, object] = {}
    left = MAX_INLINE_CHARS
    for key, value in result.items():
        part = (
            value if _count_chars(value) <= MAX_TEXT_CHARS else json.dumps(value, ensure_ascii=False)[:MAX_TEXT_CHARS]
        )
        left -= len(key) + _count_chars(part)
        if left < 0:
            break
        shown[key] = part
    return shown
