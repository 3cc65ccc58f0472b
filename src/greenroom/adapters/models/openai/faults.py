"""What went wrong, as a `Failed`: which kind, in one sentence, with the provider's own words."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping
from email.utils import parsedate_to_datetime
from typing import Final

import aiohttp
from msgspec import DecodeError, json

from greenroom.adapters.models.openai.words import code_in, shortened, status_in, words_in, words_of_page
from greenroom.core.ports.model import Failed, FaultKind

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
        self, who: str, url: str, secrets: Iterable[str] = (), *, idle: float = 0.0, longest: float = 0.0
    ) -> None:
        self._who = who
        self._url = url
        self._secrets = [one for one in secrets if len(one) >= SHORTEST_SECRET]
        self._idle = idle
        self._longest = longest

    def masked(self, text: str) -> str:
        """The text without our secrets: some providers repeat what they were sent."""
        for secret in self._secrets:
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
