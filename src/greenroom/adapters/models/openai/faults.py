"""What went wrong, as a `Failed`: which kind, in one sentence, with the provider's own words."""

from __future__ import annotations

import html
import re
import time
from collections.abc import Callable, Iterable, Mapping
from email.utils import parsedate_to_datetime
from typing import Final

import aiohttp
from msgspec import DecodeError, json

from greenroom.core.ports.model import Failed, FaultKind

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


LONGEST_WAIT: Final = 3600.0
"""Seconds. What a provider wants us to wait longer for is a matter for a person."""

_BY_STATUS: Final[Mapping[int, FaultKind]] = {
    401: "auth",
    402: "credit",
    403: "auth",
    404: "address",
    405: "address",
    407: "address",
    408: "timeout",
    409: "server",
    413: "too_long",
    421: "address",
    425: "server",
    429: "rate",
    498: "overloaded",
    503: "overloaded",
    504: "timeout",
    524: "timeout",
    529: "overloaded",
}

_WORDS: Final[Mapping[FaultKind, tuple[str, ...]]] = {
    "too_long": (
        r"context[_ ](length|window|size)|maximum context|max(imum)? (number of )?tokens|prompt is too long",
        r"too many (input )?tokens|exceed(s|ed)? .{0,40}context|input is too long|string_above_max_length",
        r"reduce (the|your) (length|prompt|input)|token limit|range of input length",
    ),
    "credit": (
        r"insufficient[_ ](quota|balance|credit|funds)|exceeded your current quota|credit balance",
        r"arrearage|more credits|out of credits|billing_hard_limit|余额",
    ),
    "auth": (
        r"invalid[_ ](api[_ ]key|authentication|token)|incorrect api key|unauthori[sz]ed|authentication",
        r"api key (not|is)|no auth|permission[_ ]denied|login fail|鉴权",
    ),
    "model": (
        r"model[_ ]not[_ ]found|model_not_exist|no such model|(unknown|invalid|unsupported) model",
        r"model .{0,80}(not (exist|found|available)|does not exist|is not found)",
        r"not a valid model|no endpoints found|pull(ing)? it first",
    ),
    "rate": (r"rate[_ ]?limit|too many requests|requests per|tokens per|throttl|resource_exhausted",),
    "overloaded": (r"overloaded|capacity|try again later|temporarily unavailable|server is busy|system_resource",),
    "filter": (r"content[_ ](filter|policy|management)|data_inspection_failed|safety|moderation",),
}
"""In this order: the first that is found in code, type or words decides, whatever the status says."""

_BY_WORDS: Final = tuple((kind, re.compile("|".join(words), re.IGNORECASE)) for kind, words in _WORDS.items())
_NO_CREDIT: Final = re.compile(
    r"insufficient[_ ](quota|balance|credit|funds)|credit balance|arrearage|余额", re.IGNORECASE
)
_RATE: Final = re.compile(r"rate_limit|resource_exhausted|per (minute|day)|(try again|retry|wait) ", re.IGNORECASE)
_ASKING_MAY_HELP: Final = frozenset({500, 502, 503, 504, 520, 521, 522, 523, 524, 529})

_WHAT: Final[Mapping[FaultKind, str]] = {
    "auth": "{who} does not let us in",
    "credit": "{who} says there is no credit left",
    "address": "{who} has no chat completions at {url}",
    "model": "{who} does not know this model",
    "request": "{who} does not understand the request",
    "too_long": "the conversation is too long for {who}",
    "filter": "{who} refuses to answer this",
    "tls": "the certificate of {who} at {url} cannot be trusted",
    "rate": "{who} gets too many requests",
    "overloaded": "{who} is overloaded",
    "server": "{who} has a fault of its own",
    "network": "the connection to {who} was lost",
    "timeout": "{who} took too long",
    "malformed": "{who} answered something that cannot be read",
    "cut_off": "the answer of {who} broke off",
    "too_large": "{who} sent more than it was asked for",
    "truncated": "{who} has read only a part of the request",
}
_NOW: Final[Mapping[FaultKind, str]] = {
    "auth": "Check the key: `greenroom init` stores a new one",
    "credit": "Top up the account, or choose another model with --model",
    "address": "Check base_url in the settings (`greenroom config show`); it usually ends in /v1",
    "model": "`greenroom models list` shows those that it has",
    "too_long": "Choose a model with a larger window",
    "tls": "If a proxy of yours is between, name its certificate in SSL_CERT_FILE",
    "truncated": "Give the model a larger window (for Ollama: num_ctx), or shorten the task",
}


SHORTEST_SECRET: Final = 8
"""Characters. What is shorter is no secret, and taking it out would make nonsense of the words."""


class Faults:
    """Makes faults for one endpoint. None of its `secrets` ever appears in one."""

    def __init__(
        self,
        who: str,
        url: str,
        secrets: Callable[[], Iterable[str]] = tuple,
        *,
        idle: float = 0.0,
        longest: float = 0.0,
    ) -> None:
        self._who = who
        self._url = url
        self._secrets = secrets
        self._idle = idle
        self._longest = longest

    def masked(self, text: str) -> str:
        """The text without our secrets: some providers repeat what they were sent."""
        for secret in self._secrets():
            if len(secret) >= SHORTEST_SECRET:
                text = text.replace(secret, "****")
        return text

    def fault(
        self, kind: FaultKind, said: str = "", *, status: int | None = None, retry_after: float | None = None
    ) -> Failed:
        """A fault of this kind, in one sentence."""
        said = self.masked(said)
        what = _WHAT[kind].format(who=self._who, url=self._url)
        what = what[0].upper() + what[1:] if what.startswith("the ") else what
        code = f" (HTTP {status})" if status is not None and status != 200 else ""
        words = f": {said}" if said else ""
        stop = "" if said.endswith((".", "!", "?", "。")) else "."
        now = f" {_NOW[kind]}." if kind in _NOW else ""
        return Failed(
            kind=kind, why=f"{what}{code}{words}{stop}{now}", said=said, status=status, retry_after=retry_after
        )

    def answered(self, status: int, headers: Mapping[str, str], body: bytes) -> Failed:
        """A response that is no answer: by its status, and by what it says."""
        if 300 <= status < 400:
            where = self.masked(headers.get("Location", "somewhere else"))
            return self.fault("address", f"it sends us on to {where[:200]}", status=status)
        text = self.masked(body.decode(errors="replace").strip())
        told = _json(text)
        if told is None or status < 400:
            page = "<" in text[:200]
            said = words_of_page(text) if page else shortened(text)
            if status >= 400:
                return self.fault(_of_status(status), said, status=status, retry_after=waiting(headers, text))
            return self.fault("address", f"a web page came: {said}") if page else self.fault("malformed", said)
        return self.complained(told, status=status, headers=headers)

    def complained(
        self, body: object, *, status: int | None = None, headers: Mapping[str, str] | None = None
    ) -> Failed:
        """An error object, with whichever status or in the middle of an answer."""
        said, code = words_in(body, self.masked), code_in(body)
        http = status if status is not None and status >= 400 else status_in(body)
        kind = _of(http, f"{code} {said}")
        return self.fault(kind, said, status=status, retry_after=waiting(headers or {}, f"{said} {_delay(body)}"))

    def raised(self, error: BaseException, *, local: bool) -> Failed:
        """What the network did."""
        match error:
            case aiohttp.ClientConnectorCertificateError() | aiohttp.ClientSSLError():
                return self.fault("tls", str(error))
            case aiohttp.ServerTimeoutError():
                return self.fault("timeout", f"nothing came for {self._idle:g} s")
            case TimeoutError():
                return self.fault("timeout", f"its answer was not whole after {self._longest:g} s")
            case aiohttp.ClientConnectorError():
                return self._unreached(error, local=local)
            case aiohttp.InvalidURL():
                return self.fault("address", "that is no address")
            case aiohttp.ClientPayloadError():
                packed = "decode" in str(error)
                said = "it is not packed as it says" if packed else "it broke off in the middle of the answer"
                return self.fault("malformed" if packed else "network", said)
            case ValueError():
                return self.fault("auth", "the key, or a header of the settings, holds what cannot be sent")
            case _:
                return self.fault("network", self.masked(str(error)) or type(error).__name__)

    def _unreached(self, error: aiohttp.ClientConnectorError, *, local: bool) -> Failed:
        cause = error.os_error.strerror or error.os_error
        if local:
            return self.fault("address", f"nothing listens there ({cause}): start the server")
        return self.fault("network", f"{error.host} cannot be reached ({cause})")


def _json(text: str) -> object:
    try:
        found: object = json.decode(text)
    except (DecodeError, UnicodeEncodeError, RecursionError):
        return None
    return found


def _of_status(status: int) -> FaultKind:
    return _BY_STATUS.get(status, "server" if status >= 500 else "request")


def _of(status: int | None, words: str) -> FaultKind:
    """The kind: what the words say if they say something known, else the status."""
    by_status: FaultKind = "server" if status is None else _of_status(status)
    if status in (401, 402):
        return by_status
    if status == 429:
        # Many name their billing page when they mean that one should wait.
        return "credit" if _NO_CREDIT.search(words) and not _RATE.search(words) else "rate"
    for kind, pattern in _BY_WORDS:
        if pattern.search(words) and (status not in _ASKING_MAY_HELP or kind in ("rate", "overloaded")):
            return "model" if by_status == "address" and kind == "model" else kind
    return by_status


def _delay(body: object) -> str:
    """Google's own way of saying how long to wait."""
    text = json.encode(body).decode() if isinstance(body, dict | list) else ""
    found = re.search(r'"retryDelay":\s*"([\d.]+)s"', text)
    return f"try again in {found.group(1)}s" if found else ""


_TRY_AGAIN: Final = re.compile(
    r"(?:try again|retry|wait)(?: again)? (?:(?:in|after|for) )?((?:\d+(?:\.\d+)?\s*[a-z]*[\s,]*)+)", re.IGNORECASE
)
_SPAN: Final = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|milli|h|m|s|$|\s)", re.IGNORECASE)
_SECONDS: Final = {"ms": 0.001, "milli": 0.001, "h": 3600.0, "m": 60.0, "s": 1.0}


def waiting(headers: Mapping[str, str], words: str) -> float | None:
    """How many seconds the provider wants us to wait, if it says so."""
    found = _in_header(headers)
    if found is None and (said := _TRY_AGAIN.search(words)):
        spans = _SPAN.findall(said.group(1))
        found = (
            sum(float(number) * _SECONDS.get(unit.lower().strip(), 1.0) for number, unit in spans) if spans else None
        )
    return None if found is None else min(max(found, 0.0), LONGEST_WAIT)


def _in_header(headers: Mapping[str, str]) -> float | None:
    try:
        millis, after = headers.get("retry-after-ms"), headers.get("Retry-After")
        if millis is not None:
            return float(millis) / 1000
        if after is None:
            return None
        if after.strip().replace(".", "", 1).isdigit():
            return float(after)
        return parsedate_to_datetime(after).timestamp() - time.time()
    except (ValueError, OverflowError):
        return None
