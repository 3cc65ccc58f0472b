"""What went wrong with a vendor, as a `Failed`: pydantic-ai's exceptions, and what lies behind them."""

from __future__ import annotations

import ssl
from collections.abc import Iterator, Mapping
from typing import Final

import httpx2
from multidict import CIMultiDict
from pydantic_ai.exceptions import (
    AgentRunError,
    ContentFilterError,
    ModelAPIError,
    ModelAuthenticationError,
    ModelConnectionError,
    ModelContextWindowExceededError,
    ModelHTTPError,
    ModelNotFoundError,
    ModelOverloadedError,
    ModelQuotaExceededError,
    ModelRateLimitError,
    ModelRequestTimeout,
    ModelTimeoutError,
    ModelUnavailableError,
    UserError,
)

from greenroom.adapters.models.openai.endpoint import CONNECT
from greenroom.adapters.models.openai.faults import Faults
from greenroom.adapters.models.openai.words import shortened, words_of_page
from greenroom.adapters.models.vendors.vendor import Vendor
from greenroom.core.base.records import evolve
from greenroom.core.ports.model import Failed, FaultKind

TRIPPED: Final = (ValueError, TypeError, LookupError, AttributeError, AssertionError)
"""What an SDK trips over when an answer is not what it expects."""

RAISED: Final = (AgentRunError, UserError, httpx2.HTTPError, httpx2.StreamError, OSError, *TRIPPED)
"""Everything that asking a vendor raises."""

KINDS: Final[Mapping[type[ModelAPIError], FaultKind]] = {
    ModelContextWindowExceededError: "too_long",
    ModelQuotaExceededError: "credit",
    ModelRateLimitError: "rate",
    ModelOverloadedError: "overloaded",
    ModelUnavailableError: "overloaded",
    ModelAuthenticationError: "auth",
}
"""Kinds that pydantic-ai tells by the vendor's own codes. The others are found by status and words."""


class VendorFaults:
    """Makes faults for one model. `secret` never appears in one."""

    def __init__(self, name: str, vendor: Vendor, secret: str, *, longest: float) -> None:
        self._name = name
        self._vendor = vendor
        self._faults = Faults(name, vendor.address, (secret,), idle=vendor.idle, longest=longest)

    def fault(self, kind: FaultKind, said: str = "") -> Failed:
        """A fault of this kind, in one sentence."""
        return self._faults.fault(kind, said)

    def unmade(self, error: UserError) -> Failed:
        """The SDK has not what it needs to ask at all."""
        said = "there is no key" if "API_KEY" in error.message else shortened(error.message)
        return self._faults.fault("auth", said)

    def raised(self, error: Exception) -> Failed:
        """Whatever asking raised."""
        match error:
            case ModelHTTPError():
                return self._answered(error)
            case ModelTimeoutError() | ModelRequestTimeout() | TimeoutError() | httpx2.TimeoutException():
                return self._timed_out(error)
            case ModelConnectionError() | httpx2.HTTPError() | httpx2.StreamError() | OSError():
                return self._lost(error)
            case ModelAPIError():
                return self._complained(error)
            case ContentFilterError():
                return self._faults.fault("filter", shortened(error.message))
            case UserError():
                return self._faults.fault("request", shortened(error.message))
            case _:
                return self._faults.fault("malformed", shortened(str(error)) or type(error).__name__)

    def _timed_out(self, error: Exception) -> Failed:
        if isinstance(error, TimeoutError):
            return self._faults.raised(error, local=self._vendor.local)
        if getattr(error, "phase", "") == "connect":
            return self._unreached(f"no connection was made within {CONNECT:g} s")
        return self._faults.fault("timeout", f"nothing came for {self._vendor.idle:g} s")

    def _answered(self, error: ModelHTTPError) -> Failed:
        """A response that is no answer, or an error in the middle of one."""
        body, status = error.body, error.status_code
        if isinstance(body, str) and "<" in body[:200]:
            body = words_of_page(body)
        told = self._faults.complained(body, status=status, headers=CIMultiDict(error.headers or {}))
        kind = next((kind for cls, kind in KINDS.items() if isinstance(error, cls)), told.kind)
        if isinstance(error, ModelNotFoundError):
            kind = "model" if "model" in told.said.lower() else "address"
        shown = None if error.in_stream else status
        if kind == "address":
            return self._nowhere(told.said, shown)
        return self._faults.fault(kind, told.said, status=shown, retry_after=told.retry_after)

    def _complained(self, error: ModelAPIError) -> Failed:
        """An error without a status of its own."""
        if 300 <= int(getattr(error.__cause__, "status_code", 0)) < 400:
            return self._nowhere("it sends us on to somewhere else")
        if error.body is None:
            return self._faults.fault("malformed", shortened(error.message))
        told = self._faults.complained(error.body)
        kind = next((kind for cls, kind in KINDS.items() if isinstance(error, cls)), told.kind)
        return self._faults.fault(kind, told.said, retry_after=told.retry_after)

    def _lost(self, error: Exception) -> Failed:
        """What the network did."""
        causes = list(chain(error))
        said = next((words for one in reversed(causes) if (words := shortened(str(one)))), type(error).__name__)
        if any(isinstance(one, ssl.SSLError) or "CERTIFICATE_VERIFY_FAILED" in str(one) for one in causes):
            return self._faults.fault("tls", said)
        if any(isinstance(one, httpx2.ConnectError) or getattr(one, "phase", "") == "connect" for one in causes):
            return self._unreached(said)
        return self._faults.fault("network", said)

    def _unreached(self, said: str) -> Failed:
        if self._vendor.local:
            return self._nowhere(f"nothing listens there ({said}): start the server")
        return self._faults.fault("network", f"{self._vendor.address} cannot be reached ({said})")

    def _nowhere(self, said: str, status: int | None = None) -> Failed:
        """Nothing that speaks the vendor's language is there."""
        failed = self._faults.fault("address", said, status=status)
        code = f" (HTTP {status})" if status is not None else ""
        words = f": {failed.said.rstrip('.')}" if failed.said else ""
        now = "Check base_url in the settings (`greenroom config show`)."
        return evolve(failed, why=f"{self._name} does not answer at {self._vendor.address}{code}{words}. {now}")


def chain(error: BaseException) -> Iterator[BaseException]:
    """An error and what caused it, the innermost last."""
    seen: BaseException | None = error
    while seen is not None:
        yield seen
        seen = seen.__cause__ or seen.__context__
