"""A vendor: its SDK, its connections, its key."""

from __future__ import annotations

import asyncio
import ssl
import subprocess
import sys
from collections.abc import Callable

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
from pydantic_ai.models import Model
from pydantic_ai.models.test import TestModel
from pydantic_ai.providers import Provider

from greenroom.adapters.models.vendors import make_missing_fault
from greenroom.adapters.models.vendors import vendor as room
from greenroom.adapters.models.vendors.model import VENDOR_ERRORS, VendorFaultMaker, VendorModel
from greenroom.adapters.models.vendors.vendor import Vendor
from greenroom.core.base.errors import WorldFault
from greenroom.core.ports.installation import how_to_install
from greenroom.core.ports.model import Failed, FaultKind
from greenroom.testing.conformance.models import collect_events
from tests.adapters.models.vendors import test_anthropic as claude
from tests.adapters.models.vendors.talk import ASKING
from tests.adapters.models.vendors.test_anthropic import plain
from tests.adapters.models.vendors.wire import Wire


def test_importing_greenroom_imports_no_sdk() -> None:
    code = (
        "import sys, greenroom, greenroom.adapters.models.vendors, greenroom.adapters.models.openai.model;"
        "print([name for name in ('pydantic_ai', 'anthropic', 'google.genai', 'pydantic') if name in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert ran.stdout.strip() == "[]"


def test_an_sdk_that_is_not_installed_is_named_with_what_brings_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def infer(_: str) -> None:
        raise ImportError("Please install `anthropic`")

    monkeypatch.setattr(room, "infer_provider_class", infer)
    with pytest.raises(WorldFault) as caught:
        Vendor("anthropic")
    assert str(caught.value) == f"anthropic needs an extra package. Install it: {how_to_install('vendors')}."


def test_an_sdk_that_the_extra_does_not_bring_is_named_too() -> None:
    command = how_to_install("vendors", "'pydantic-ai-slim[bedrock]'")
    assert str(make_missing_fault("bedrock:claude")) == f"bedrock:claude needs an extra package. Install it: {command}."


def test_a_provider_that_nobody_knows_is_refused() -> None:
    with pytest.raises(WorldFault, match="There is no SDK for 'nobody'"):
        Vendor("nobody")


def test_an_address_that_is_none_is_refused() -> None:
    with pytest.raises(WorldFault, match="is not a valid base_url"):
        Vendor("anthropic", base_url="localhost")


@pytest.mark.parametrize("provider", ["anthropic", "google"])
async def test_without_a_key_nothing_is_sent(provider: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ANTHROPIC_API_KEY", "GOOGLE_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    failed = (await collect_events(VendorModel(Vendor(provider), "some-model"), ASKING))[-1]
    assert isinstance(failed, Failed)
    assert failed.kind == "auth"
    assert "no key is set" in failed.why


async def test_a_new_key_is_used_from_the_next_request_on() -> None:
    keys = iter(["first-key", "second-key"])
    key = next(keys)
    async with Wire(lambda _: plain()) as wire:
        vendor = Vendor("anthropic", key=lambda: key, base_url=wire.base_url)
        model = VendorModel(vendor, claude.MODEL)
        await collect_events(model, ASKING)
        await collect_events(model, ASKING)
        key = next(keys)
        await collect_events(model, ASKING)
        await model.close()
    assert [asked.headers["Authorization"] for asked in wire.asked] == [
        "Bearer first-key",
        "Bearer first-key",
        "Bearer second-key",
    ]


async def test_models_of_a_vendor_share_its_connections_and_a_closed_one_opens_them_again() -> None:
    async with Wire(lambda _: plain()) as wire:
        vendor = Vendor("anthropic", key=lambda: "some-key", base_url=wire.base_url)
        strong, fast = VendorModel(vendor, "claude-sonnet-5"), VendorModel(vendor, claude.MODEL)
        await collect_events(strong, ASKING)
        client = vendor._client
        await collect_events(fast, ASKING)
        assert vendor._client is client
        await strong.close()
        await fast.close()
        assert client is not None
        assert client.is_closed
        await collect_events(fast, ASKING)
        await fast.close()
    assert [asked.body["model"] for asked in wire.asked] == ["claude-sonnet-5", claude.MODEL, claude.MODEL]


def test_another_event_loop_gets_connections_of_its_own() -> None:
    vendor = Vendor("anthropic", key=lambda: "some-key")

    async def made() -> tuple[Model, httpx2.AsyncClient | None]:
        return vendor.get_model(claude.MODEL), vendor._client

    first, its = asyncio.run(made())
    second, others = asyncio.run(made())
    assert first is not second
    assert its is not others
    asyncio.run(vendor.close())
    assert others is not None
    assert not others.is_closed, "the loop of its connections is gone: nobody can close them any more"


async def test_whoever_listens_nowhere_is_an_address_to_check() -> None:
    async with Wire(lambda _: plain()) as wire:
        gone = wire.base_url
    model = VendorModel(Vendor("anthropic", key=lambda: "some-key", base_url=gone), claude.MODEL)
    failed = (await collect_events(model, ASKING))[-1]
    await model.close()
    assert isinstance(failed, Failed)
    assert failed.kind == "address"
    assert failed.why.startswith(f"anthropic:{claude.MODEL} does not answer at {gone}: no server is listening there")
    assert failed.why.endswith("Check base_url with `greenroom config show`.")


async def test_bedrock_is_told_how_long_to_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    told: dict[str, object] = {}
    made = TestModel()

    def connect(**given: object) -> None:
        told.update(given)

    def infer(name: str, provider_factory: Callable[[str], Provider[object]]) -> Model:
        provider_factory(name)
        return made

    monkeypatch.setattr(room, "find_sdk", lambda _: connect)
    monkeypatch.setattr(room, "infer_model", infer)
    assert Vendor("bedrock", idle=60.0).get_model("anthropic.claude") is made
    assert told == {"api_key": None, "aws_read_timeout": 60.0, "aws_connect_timeout": 15.0}


async def test_other_vendors_get_their_key(monkeypatch: pytest.MonkeyPatch) -> None:
    told: dict[str, object] = {}
    monkeypatch.setattr(room, "find_sdk", lambda _: told.update)
    monkeypatch.setattr(room, "infer_model", lambda *_, **__: None)
    Vendor("cohere", key=lambda: "some-key").get_model("command")
    assert told == {"api_key": "some-key"}


FAULTS = VendorFaultMaker("google:gemini", Vendor("google", idle=5.0), "a-long-secret", max_seconds=9.0)


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
        (ModelTimeoutError("m", "timed out", phase="read"), "timeout", "no data for 5 s. Try again or change --model"),
        (ModelRequestTimeout("m", 3.0), "timeout", "no data for 5 s. Try again or change --model"),
        (httpx2.ReadTimeout("slow"), "timeout", "no data for 5 s. Try again or change --model"),
        (TimeoutError(), "timeout", "incomplete after 9 s. Try again or change --model"),
        (
            ModelTimeoutError("m", "timed out", phase="connect"),
            "network",
            "the default address of google cannot be reached (no connection within 15 s). Check your network",
        ),
        (
            caused(ModelConnectionError("m", "Connection error.", phase="connect"), OSError("no route to host")),
            "network",
            "the default address of google cannot be reached (no route to host). Check your network",
        ),
        (
            caused(httpx2.ConnectError("all attempts failed"), OSError("")),
            "network",
            "the default address of google cannot be reached (all attempts failed). Check your network",
        ),
        (caused(ModelConnectionError("m", "Connection error."), ssl.SSLError("bad hand")), "tls", "('bad hand',)"),
        (httpx2.ConnectError("[SSL: CERTIFICATE_VERIFY_FAILED]"), "tls", "[SSL: CERTIFICATE_VERIFY_FAILED]"),
        (httpx2.ReadError(""), "network", "ReadError"),
        (ConnectionResetError("reset by a-long-secret"), "network", "reset by ****"),
    ],
)
def test_every_error_has_its_kind_and_its_words(error: Exception, kind: FaultKind, said: str) -> None:
    assert isinstance(error, VENDOR_ERRORS)
    failed = FAULTS.from_exception(error)
    assert (failed.kind, failed.said) == (kind, said)
    assert failed.why.endswith(".")
    assert failed.unsent is ("cannot be reached" in said), "what never left this machine costs nothing"


def test_what_an_sdk_lacks_is_told_in_its_words() -> None:
    failed = FAULTS.from_missing_setup(UserError("You must provide a `region_name`."))
    assert failed.kind == "auth"
    assert "You must provide a `region_name`." in failed.why


def test_a_page_that_is_not_there_is_no_model_that_is_not_there() -> None:
    error = ModelHTTPError(404, "m", "<html><h1>Not here</h1></html>")
    failed = FAULTS.from_exception(error)
    assert (failed.kind, failed.said) == ("address", "Not here")
    assert failed.why == (
        "google:gemini does not answer at the default address of google (HTTP 404): Not here. "
        "Check base_url with `greenroom config show`."
    )
