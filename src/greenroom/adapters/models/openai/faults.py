"""Convert errors of a provider to `Failed`: the kind, one sentence, and the provider's own message."""

from __future__ import annotations

import html
import math
import re
import time
from collections.abc import Callable, Iterable, Mapping
from email.utils import parsedate_to_datetime
from typing import Final

import aiohttp
from msgspec import DecodeError, json

from greenroom.adapters.models.retry import MAX_RETRY_AFTER_S
from greenroom.core.base.errors import translate
from greenroom.core.base.records import evolve
from greenroom.core.ports.model import Failed, FaultKind

MAX_DETAIL_CHARS: Final = 400
"""How many characters of a provider's message are shown."""

_TITLE: Final = re.compile(r"<title[^>]*>(.*?)</title>", re.IGNORECASE | re.DOTALL)
_HEADING: Final = re.compile(r"<h1[^>]*>(.*?)</h1>", re.IGNORECASE | re.DOTALL)
_TAGS: Final = re.compile(r"<(script|style)\b.*?</\1>|<[^>]*>", re.IGNORECASE | re.DOTALL)
_MESSAGE_FIELDS: Final = (
    "message",
    "detail",
    "error",
    "errors",
    "msg",
    "title",
    "status_msg",
    "error_msg",
    "description",
)


def is_error(body: Mapping[str, object]) -> bool:
    """Return whether a body is an error, even with status 200."""
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


def find_codes(body: object) -> str:
    """Return the provider's error codes and types, joined. They help to find the kind of fault."""
    codes: list[str] = []
    for holder in _list_error_objects(body):
        for name in ("code", "type", "status", "param", "status_code", "reason"):
            value = holder.get(name)
            if isinstance(value, str | int) and not isinstance(value, bool):
                codes.append(str(value))
    return " ".join(codes).lower()


def find_status(body: object) -> int | None:
    """Return an HTTP status from inside the body; None if there is none."""
    for holder in _list_error_objects(body):
        for name in ("code", "status", "status_code"):
            value = holder.get(name)
            number = int(value) if isinstance(value, str) and value.isascii() and value.isdigit() else value
            if isinstance(number, int) and not isinstance(number, bool) and 400 <= number < 600:
                return number
    return None


def _list_error_objects(body: object) -> list[Mapping[str, object]]:
    """Return the objects that may describe the error, innermost last."""
    if isinstance(body, list):
        body = body[0] if body else None
    if not isinstance(body, dict):
        return []
    holders: list[Mapping[str, object]] = [body]
    choices = body.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    for holder in (body, first):
        for name in ("error", "base_resp", "x_groq"):
            inner = holder.get(name) if isinstance(holder, dict) else None
            if isinstance(inner, dict):
                holders.append(inner)
    return holders


def find_message(body: object, redact: Callable[[str], str] = str) -> str:
    """Return the error message in one line; empty if there is none. `redact` removes secrets."""
    raw = _find_upstream_message(body)
    text = next((text for holder in reversed(_list_error_objects(body)) if (text := _find_text(holder))), "")
    if not text and isinstance(body, str):
        text = body
    if raw and raw not in text:
        text = f"{text} ({raw})" if text else raw
    return shorten(redact(text))


def _find_upstream_message(body: object) -> str:
    """Return the message of the provider behind a router."""
    for holder in _list_error_objects(body):
        metadata = holder.get("metadata")
        raw = metadata.get("raw") if isinstance(metadata, dict) else None
        if isinstance(raw, str) and raw:
            try:
                return find_message(json.decode(raw)) or raw
            except (DecodeError, UnicodeEncodeError, RecursionError):
                return raw
    return ""


def _find_text(holder: object, depth: int = 0) -> str:
    if isinstance(holder, str):
        return holder
    if depth > 3:
        return ""
    if isinstance(holder, list):
        return "; ".join(text for item in holder[:5] if (text := _find_text(item, depth + 1)))
    if not isinstance(holder, dict):
        return ""
    text = next((text for name in _MESSAGE_FIELDS if (text := _find_text(holder.get(name), depth + 1))), "")
    place = holder.get("loc")
    if text and isinstance(place, list):
        return f"{'.'.join(map(str, place))}: {text}"
    return text


def extract_page_message(page: str) -> str:
    """Return the message of an HTML page."""
    for pattern in (_TITLE, _HEADING):
        found = pattern.search(page)
        if found and (text := shorten(html.unescape(_TAGS.sub(" ", found.group(1))))):
            return text
    return shorten(html.unescape(_TAGS.sub(" ", page)))


def shorten(text: str) -> str:
    """Return the text on one line, without unprintable characters, at most `MAX_DETAIL_CHARS` long."""
    line = " ".join(
        "".join(character if character.isprintable() else " " for character in text[: MAX_DETAIL_CHARS * 20]).split()
    )
    return line if len(line) <= MAX_DETAIL_CHARS else f"{line[: MAX_DETAIL_CHARS - 1]}…"


_KIND_BY_STATUS: Final[Mapping[int, FaultKind]] = {
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
    501: "address",
    503: "overloaded",
    504: "timeout",
    524: "timeout",
    529: "overloaded",
}

_KIND_PATTERNS: Final[Mapping[FaultKind, tuple[str, ...]]] = {
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
"""Patterns in order: the first match in code, type or message decides, regardless of the status."""

_KIND_BY_WORDS: Final = tuple(
    (kind, re.compile("|".join(words), re.IGNORECASE)) for kind, words in _KIND_PATTERNS.items()
)
_NO_CREDIT: Final = re.compile(
    r"insufficient[_ ](quota|balance|credit|funds)|credit balance|arrearage|余额", re.IGNORECASE
)
_RATE: Final = re.compile(r"rate_limit|resource_exhausted|per (minute|day)|(try again|retry|wait) ", re.IGNORECASE)
_RETRYABLE_STATUSES: Final = frozenset({500, 502, 503, 504, 520, 521, 522, 523, 524, 529})

MIN_SECRET_CHARS: Final = 8
"""Shortest secret in characters. Redacting shorter values would damage ordinary words."""


class FaultMaker:
    """Makes the faults of one endpoint. They never contain its `secrets`."""

    def __init__(
        self,
        model: str,
        url: str,
        secrets: Callable[[], Iterable[str]] = tuple,
        *,
        idle: float = 0.0,
        max_seconds: float = 0.0,
    ) -> None:
        self._model = model
        self._url = url
        self._secrets = secrets
        self._idle = idle
        self._max_seconds = max_seconds

    def redact(self, text: str) -> str:
        """Return the text without secrets: some providers echo what they received."""
        for secret in self._secrets():
            if len(secret) >= MIN_SECRET_CHARS:
                text = text.replace(secret, "****")
        return text

    def make_fault(
        self, kind: FaultKind, detail: str = "", *, status: int | None = None, retry_after: float | None = None
    ) -> Failed:
        """Return a fault of this kind: what happened, the provider's message, and what to do."""
        detail = self.redact(detail)
        code = f" (HTTP {status})" if status is not None and status != 200 else ""
        words = f": {detail}" if detail else ""
        stop = "" if detail.endswith((".", "!", "?", "。")) else translate("files.stop", text="")
        why = translate(f"provider_faults.{kind}", who=self._model, url=self._url, detail=f"{code}{words}{stop}")
        return Failed(kind=kind, why=why, said=detail, status=status, retry_after=retry_after)

    def from_response(self, status: int, headers: Mapping[str, str], body: bytes) -> Failed:
        """Return the fault for an HTTP response, by its status and body."""
        if 300 <= status < 400:
            where = self.redact(headers.get("Location", translate("provider_faults.another_address")))
            return self.make_fault("address", translate("provider_faults.redirects", where=where[:200]), status=status)
        text = self.redact(body.decode(errors="replace").strip())
        error = _decode_json(text)
        if error is None or status < 400:
            page = "<" in text[:200]
            detail = extract_page_message(text) if page else shorten(text)
            if status >= 400:
                return self.make_fault(
                    _kind_of_status(status), detail, status=status, retry_after=find_wait(headers, text)
                )
            if page:
                return self.make_fault("address", translate("provider_faults.web_page", detail=detail))
            return self.make_fault("malformed", detail)
        return self.from_error_body(error, status=status, headers=headers)

    def from_error_body(
        self, body: object, *, status: int | None = None, headers: Mapping[str, str] | None = None
    ) -> Failed:
        """Return the fault for an error object, with any status or inside a stream."""
        detail, code = find_message(body, self.redact), find_codes(body)
        http = status if status is not None and status >= 400 else find_status(body)
        kind = _kind_of_error(http, f"{code} {detail}")
        return self.make_fault(
            kind, detail, status=status, retry_after=find_wait(headers or {}, f"{detail} {_find_retry_delay(body)}")
        )

    def from_exception(self, error: BaseException, *, local: bool) -> Failed:
        unsent = self._explain_unsent(error, local=local)
        if unsent is not None:
            return evolve(unsent, unsent=True)
        match error:
            case aiohttp.ServerTimeoutError():
                return self.make_fault("timeout", translate("provider_faults.no_data", seconds=self._idle))
            case TimeoutError():
                return self.make_fault("timeout", translate("provider_faults.incomplete", seconds=self._max_seconds))
            case aiohttp.ClientPayloadError():
                packed = "decode" in str(error)
                code = "provider_faults.bad_compression" if packed else "provider_faults.closed_early"
                return self.make_fault("malformed" if packed else "network", translate(code))
            case ValueError():
                return self.make_fault("auth", translate("provider_faults.bad_header"))
            case _:
                return self.make_fault("network", self.redact(str(error)) or type(error).__name__)

    def _explain_tls(self, error: BaseException) -> Failed:
        if "WRONG_VERSION_NUMBER" in str(error):
            return self.make_fault("address", translate("provider_faults.no_tls"))
        cause = getattr(error, "certificate_error", error)
        return self.make_fault("tls", getattr(cause, "verify_message", "") or str(cause))

    def _explain_unsent(self, error: BaseException, *, local: bool) -> Failed | None:
        """Return the fault for a request that the provider never had whole; None if it may have had it."""
        match error:
            case aiohttp.ClientConnectorCertificateError() | aiohttp.ClientSSLError():
                return self._explain_tls(error)
            case aiohttp.ConnectionTimeoutError():
                return self.make_fault("timeout", translate("provider_faults.not_connected"))
            case aiohttp.ClientConnectorError():
                cause = error.os_error.strerror or error.os_error
                if local:
                    return self.make_fault("address", translate("provider_faults.no_server", cause=cause))
                return self.make_fault(
                    "network", translate("provider_faults.unreachable", host=error.host, cause=cause)
                )
            case aiohttp.InvalidURL():
                return self.make_fault("address", translate("provider_faults.invalid_url"))
            case aiohttp.ClientHttpProxyError():
                cause = f"{error.status} {error.message}"
                return self.make_fault("address", translate("provider_faults.proxy_refused", cause=cause))
            case aiohttp.ClientOSError() if "Can not write" in str(error):
                return self.make_fault("network", translate("provider_faults.closed_before_sent"))
            case _:
                return None


def _decode_json(text: str) -> object:
    try:
        found: object = json.decode(text)
    except (DecodeError, UnicodeEncodeError, RecursionError):
        return None
    return found


def _kind_of_status(status: int) -> FaultKind:
    return _KIND_BY_STATUS.get(status, "server" if status >= 500 else "request")


def _kind_of_error(status: int | None, words: str) -> FaultKind:
    """Return the kind of a fault: by a known phrase in the message, else by the status."""
    by_status: FaultKind = "server" if status is None else _kind_of_status(status)
    if status in (401, 402):
        return by_status
    if status == 429:
        # Many providers mention billing although waiting is enough.
        return "credit" if _NO_CREDIT.search(words) and not _RATE.search(words) else "rate"
    for kind, pattern in _KIND_BY_WORDS:
        if pattern.search(words) and (status not in _RETRYABLE_STATUSES or kind in ("rate", "overloaded")):
            return "model" if by_status == "address" and kind == "model" else kind
    return by_status


def _find_retry_delay(body: object) -> str:
    """Return Google's own retry delay as text; empty if there is none."""
    text = json.encode(body).decode() if isinstance(body, dict | list) else ""
    found = re.search(r'"retryDelay":\s*"([\d.]+)s"', text)
    return f"try again in {found.group(1)}s" if found else ""


_RETRY_HINT: Final = re.compile(
    r"(?:try again|retry|wait)(?: again)? (?:(?:in|after|for) )?((?:\d+(?:\.\d+)?\s*[a-z]*[\s,]*)+)", re.IGNORECASE
)
_DURATION: Final = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|milli|h|m|s|$|\s)", re.IGNORECASE)
_SECONDS_PER_UNIT: Final = {"ms": 0.001, "milli": 0.001, "h": 3600.0, "m": 60.0, "s": 1.0}


def find_wait(headers: Mapping[str, str], words: str) -> float | None:
    """Return how many seconds the provider asks to wait; None if it does not say."""
    seconds = _parse_retry_header(headers)
    if seconds is None and (hint := _RETRY_HINT.search(words)):
        spans = _DURATION.findall(hint.group(1))
        seconds = (
            sum(float(number) * _SECONDS_PER_UNIT.get(unit.lower().strip(), 1.0) for number, unit in spans)
            if spans
            else None
        )
    return None if seconds is None or math.isnan(seconds) else min(max(seconds, 0.0), MAX_RETRY_AFTER_S)


def _parse_retry_header(headers: Mapping[str, str]) -> float | None:
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
