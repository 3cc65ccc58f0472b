"""A provider's own words for what went wrong, in whichever shape it wraps them."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Mapping
from typing import Final

from msgspec import DecodeError, json

LONGEST: Final = 400
"""Characters of a provider's words that are shown."""

_TITLE: Final = re.compile(r"<title[^>]*>(.*?)</title>", re.IGNORECASE | re.DOTALL)
_HEADING: Final = re.compile(r"<h1[^>]*>(.*?)</h1>", re.IGNORECASE | re.DOTALL)
_TAGS: Final = re.compile(r"<(script|style)\b.*?</\1>|<[^>]*>", re.IGNORECASE | re.DOTALL)
_NAMES: Final = ("message", "detail", "error", "errors", "msg", "title", "status_msg", "error_msg", "description")


def complaint_in(body: Mapping[str, object]) -> bool:
    """Whether this is an error and no answer, though it may have come with status 200."""
    if "error" in body and (error := body["error"]) and not (isinstance(error, dict) and not any(error.values())):
        return True
    if "x_groq" in body and isinstance(groq := body["x_groq"], dict) and groq.get("error"):
        return True
    if "base_resp" in body and isinstance(status := body["base_resp"], dict):
        return status.get("status_code") not in (None, 0, "0")
    choices = body.get("choices")
    if isinstance(choices, list) and choices:
        first = choices[0]
        return isinstance(first, dict) and (bool(first.get("error")) or first.get("finish_reason") == "error")
    if body.get("object") == "error":
        return True
    return choices is None and any(body.get(name) for name in ("message", "detail", "msg", "errors", "error_msg"))


def code_in(body: object) -> str:
    """The provider's codes and types for it, joined: what tells one kind of fault from another."""
    found: list[str] = []
    for holder in _holders(body):
        for name in ("code", "type", "status", "param", "status_code", "reason"):
            value = holder.get(name)
            if isinstance(value, str | int) and not isinstance(value, bool):
                found.append(str(value))
    return " ".join(found).lower()


def status_in(body: object) -> int | None:
    """An HTTP status that is told inside the body."""
    for holder in _holders(body):
        for name in ("code", "status", "status_code"):
            value = holder.get(name)
            number = int(value) if isinstance(value, str) and value.isascii() and value.isdigit() else value
            if isinstance(number, int) and not isinstance(number, bool) and 400 <= number < 600:
                return number
    return None


def _holders(body: object) -> list[Mapping[str, object]]:
    """The objects in which something about the error may stand, the innermost last."""
    if isinstance(body, list):
        body = body[0] if body else None
    if not isinstance(body, dict):
        return []
    found: list[Mapping[str, object]] = [body]
    choices = body.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    for holder in (body, first):
        for name in ("error", "base_resp", "x_groq"):
            inner = holder.get(name) if isinstance(holder, dict) else None
            if isinstance(inner, dict):
                found.append(inner)
    return found


def words_in(body: object, clean: Callable[[str], str] = str) -> str:
    """What it says, in one line; empty when it says nothing. `clean` takes out what nobody may read."""
    raw = _raw(body)
    said = next((said for holder in reversed(_holders(body)) if (said := _said(holder))), "")
    if not said and isinstance(body, str):
        said = body
    if raw and raw not in said:
        said = f"{said} ({raw})" if said else raw
    return shortened(clean(said))


def _raw(body: object) -> str:
    """What a router was told by the provider behind it."""
    for holder in _holders(body):
        metadata = holder.get("metadata")
        raw = metadata.get("raw") if isinstance(metadata, dict) else None
        if isinstance(raw, str) and raw:
            try:
                return words_in(json.decode(raw)) or raw
            except (DecodeError, UnicodeEncodeError, RecursionError):
                return raw
    return ""


def _said(holder: object, depth: int = 0) -> str:
    if isinstance(holder, str):
        return holder
    if depth > 3:
        return ""
    if isinstance(holder, list):
        return "; ".join(said for one in holder[:5] if (said := _said(one, depth + 1)))
    if not isinstance(holder, dict):
        return ""
    said = next((said for name in _NAMES if (said := _said(holder.get(name), depth + 1))), "")
    place = holder.get("loc")
    if said and isinstance(place, list):
        return f"{'.'.join(map(str, place))}: {said}"
    return said


def words_of_page(page: str) -> str:
    """What a web page says that came instead of an answer."""
    for pattern in (_TITLE, _HEADING):
        found = pattern.search(page)
        if found and (said := shortened(html.unescape(_TAGS.sub(" ", found.group(1))))):
            return said
    return shortened(html.unescape(_TAGS.sub(" ", page)))


def shortened(said: str) -> str:
    """On one line, without what no terminal should get, and not too long."""
    line = " ".join("".join(one if one.isprintable() else " " for one in said[: LONGEST * 20]).split())
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 1]}…"
