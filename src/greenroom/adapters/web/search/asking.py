"""One question to a search service over HTTP, answered in JSON; and what of the answer is a result."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Final

from greenroom.adapters.web.body import body_of
from greenroom.adapters.web.exchange import Request, answered
from greenroom.adapters.web.guard import Guard
from greenroom.adapters.web.limits import LIMITS, Limits
from greenroom.core.ports.web import Found, WebFault

TITLE: Final = 300
SNIPPET: Final = 1_000
URL: Final = 2_000
REFUSED: Final = frozenset({HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN})


async def asked(
    request: Request, guard: Guard, refused: str, limits: Limits = LIMITS, secure: ssl.SSLContext | None = None
) -> Mapping[str, object]:
    """The answer; `refused` is what is said when the service will not serve us."""
    place = str(request.address.host)
    try:
        async with (
            asyncio.timeout(limits.total),
            answered(request, guard, limits, secure) as response,
        ):
            if response.status in REFUSED:
                raise WebFault("setup", refused)
            if response.status == HTTPStatus.TOO_MANY_REQUESTS:
                raise WebFault("status", f"{place!r} was asked too often. Search again in a minute.")
            if response.status != HTTPStatus.OK:
                raise WebFault("status", f"{place!r} answered {response.status}. Search again later.")
            data = await body_of(response, limits)
    except TimeoutError:
        raise WebFault("slow", f"{place!r} did not answer within {limits.total:g} s.") from None
    try:
        answer = json.loads(data)
    except (ValueError, RecursionError):
        answer = None
    if not isinstance(answer, dict):
        raise WebFault("broken", f"{place!r} did not answer in JSON. {refused}")
    return answer


def results(answer: object, count: int, *, url: str = "url", snippet: str = "content") -> Sequence[Found]:
    """The results in an answer: each has a title and an address of the web; a double counts once."""
    found: dict[str, Found] = {}
    for one in answer if isinstance(answer, list) else ():
        read = _result(one, url, snippet)
        if read is not None:
            found.setdefault(read.url, read)
    return tuple(found.values())[:count]


def _result(one: object, url: str, snippet: str) -> Found | None:
    if not isinstance(one, dict):
        return None
    place, title = one.get(url), one.get("title")
    if not isinstance(place, str) or not place.startswith(("http://", "https://")) or len(place) > URL:
        return None
    return Found(title=_line(title, TITLE) or place, url=_line(place, URL), snippet=_line(one.get(snippet), SNIPPET))


def _line(value: object, most: int) -> str:
    text = " ".join(value.split()) if isinstance(value, str) else ""
    return text if len(text) <= most else f"{text[: most - 1]}…"
