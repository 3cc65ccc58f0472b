"""What asking a vendor raises, as faults."""

import ssl

import httpx2
import pytest
from pydantic_ai.exceptions import (
    ContentFilterError,
    ModelAPIError,
    ModelConnectionError,
    ModelHTTPError,
    ModelOverloadedError,
    ModelRequestTimeout,
    ModelTimeoutError,
    UnexpectedModelBehavior,
    UserError,
)

from greenroom.adapters.models.vendors.model import RAISED, VendorFaults
from greenroom.adapters.models.vendors.vendor import Vendor
from greenroom.core.ports.model import FaultKind

FAULTS = VendorFaults("google:gemini", Vendor("google", idle=5.0), "a-long-secret", longest=9.0)


def caused(error: Exception, *causes: Exception) -> Exception:
    """An error that was raised from others."""
    error.__cause__ = caused(*causes) if causes else None
    return error


@pytest.mark.parametrize(
    ("error", "kind", "said"),
    [
        (ContentFilterError("blocked"), "filter", "blocked"),
        (UserError("no native output"), "request", "no native output"),
        (UnexpectedModelBehavior("Streamed response ended"), "malformed", "Streamed response ended"),
        (AssertionError(), "malformed", "AssertionError"),
        (ModelAPIError("m", "Failed to decode response"), "malformed", "Failed to decode response"),
        (ModelAPIError("m", "?", body={"error": {"message": "who knows"}}), "server", "who knows"),
        (ModelOverloadedError("m", "?", body={"message": "not now"}, in_stream=True), "overloaded", "not now"),
        (ModelHTTPError(418, "m", "I am a teapot"), "request", "I am a teapot"),
        (ModelHTTPError(400, "m", None), "request", ""),
        (ModelTimeoutError("m", "timed out", phase="read"), "timeout", "nothing came for 5 s"),
        (ModelRequestTimeout("m", 3.0), "timeout", "nothing came for 5 s"),
        (httpx2.ReadTimeout("slow"), "timeout", "nothing came for 5 s"),
        (TimeoutError(), "timeout", "its answer was not whole after 9 s"),
        (
            ModelTimeoutError("m", "timed out", phase="connect"),
            "network",
            "the usual address of google cannot be reached (no connection was made within 15 s)",
        ),
        (
            caused(ModelConnectionError("m", "Connection error.", phase="connect"), OSError("no route to host")),
            "network",
            "the usual address of google cannot be reached (no route to host)",
        ),
        (
            caused(httpx2.ConnectError("all attempts failed"), OSError("")),
            "network",
            "the usual address of google cannot be reached (all attempts failed)",
        ),
        (caused(ModelConnectionError("m", "Connection error."), ssl.SSLError("bad hand")), "tls", "('bad hand',)"),
        (httpx2.ConnectError("[SSL: CERTIFICATE_VERIFY_FAILED]"), "tls", "[SSL: CERTIFICATE_VERIFY_FAILED]"),
        (httpx2.ReadError(""), "network", "ReadError"),
        (ConnectionResetError("reset by a-long-secret"), "network", "reset by ****"),
    ],
)
def test_every_error_has_its_kind_and_its_words(error: Exception, kind: FaultKind, said: str) -> None:
    assert isinstance(error, RAISED)
    failed = FAULTS.raised(error)
    assert (failed.kind, failed.said) == (kind, said)
    assert failed.why.endswith(".")


def test_what_an_sdk_lacks_is_told_in_its_words() -> None:
    failed = FAULTS.unmade(UserError("You must provide a `region_name`."))
    assert failed.kind == "auth"
    assert "You must provide a `region_name`." in failed.why


def test_a_page_that_is_not_there_is_no_model_that_is_not_there() -> None:
    error = ModelHTTPError(404, "m", "<html><h1>Not here</h1></html>")
    failed = FAULTS.raised(error)
    assert (failed.kind, failed.said) == ("address", "Not here")
    assert failed.why == (
        "google:gemini does not answer at the usual address of google (HTTP 404): Not here. "
        "Check base_url in the settings (`greenroom config show`)."
    )
