"""Every fault of the fake server, streaming and not: which kind it is, what is said, and that nothing raises."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from greenroom.adapters.models.catalog.catalog import is_local
from greenroom.adapters.models.openai.faults import FaultMaker, find_wait
from greenroom.adapters.models.openai.model import Endpoint, OpenAICompatible
from greenroom.core.base.errors import WorldFault
from greenroom.core.ports.model import (
    ChatMessage,
    Failed,
    Finished,
    ModelCard,
    ModelEvent,
    ModelRequest,
    ModelTextDelta,
    ToolCall,
    Usage,
)
from greenroom.testing.conformance.models import make_request
from tests.fake_openai import FAULTS, Answer, FakeOpenAI, Fault

ENDLESS = ("hang_before_headers", "hang_after_headers", "hang_in_text", "slow_drip", "comments_for_ever")
"""Only our own patience ends these: with any other fault it can be so long that a busy machine does not wear it out."""

EXPECTED = {
    "too_long": ("too_long_openai", "too_long_vllm", "too_long_llama_cpp", "too_long_deepseek", "too_large"),
    "request": ("bad_request", "no_media_type", "unprocessable"),
    "filter": ("content_filter",),
    "auth": ("wrong_key", "forbidden", "minimax_error"),
    "credit": ("no_credit", "no_quota"),
    "model": ("no_model", "no_model_ollama"),
    "address": ("no_path", "no_method", "html_200", "login_redirect", "login_page"),
    "rate": ("rate_seconds", "rate_date", "rate_ms", "rate_words", "rate_bare"),
    "overloaded": ("unavailable", "overloaded"),
    "server": (
        *("conflict", "server_error", "bad_gateway", "unknown_error", "error_in_body", "error_in_stream"),
        *("error_event", "openrouter_error"),
    ),
    "timeout": ("request_timeout", "gateway_timeout", *ENDLESS),
    "network": (
        *("closed_before_headers", "reset_before_headers", "reset_in_text", "reset_in_call", "body_cut", "chunk_cut"),
    ),
    "malformed": (
        *("invalid_utf8", "half_json", "not_json", "json_list", "json_number", "empty_body", "empty_stream"),
        *("no_choices", "gzip_garbage"),
    ),
    "cut_off": ("closed_in_text", "ended_in_text"),
    "too_large": ("huge_text", "thousand_calls"),
}
"""The kind of each fault. All others are answers that a tolerant reader understands."""

KINDS = {name: kind for kind, names in EXPECTED.items() for name in names}
ONLY_WHOLE = {"closed_in_text": "malformed", "ended_in_text": "malformed"}
"""Where half a body cannot be told from nonsense."""

CASES = [
    pytest.param(fault, streaming, id=f"{name}-{'streaming' if streaming else 'whole'}")
    for name, fault in FAULTS.items()
    for streaming in (True, False)
    if (fault.streaming if streaming else fault.plain)
]


@asynccontextmanager
async def asked(script: Fault | Answer, *, card: ModelCard | None = None) -> AsyncIterator[OpenAICompatible]:
    """A model that gets this."""
    idle, longest = (0.3, 0.9) if isinstance(script, Fault) and script.name in ENDLESS else (30.0, 60.0)
    async with FakeOpenAI(script) as server:
        endpoint = Endpoint("fake", server.base_url, key=lambda: "sk-very-secret", idle=idle)
        try:
            yield OpenAICompatible(endpoint, "m", card=card, max_seconds=longest)
        finally:
            await endpoint.close()


async def events(model: OpenAICompatible, request: ModelRequest) -> list[ModelEvent]:
    return [event async for event in model.stream(request)]


@pytest.mark.parametrize(("fault", "streaming"), CASES)
async def test_each_fault_is_one_sentence_of_the_right_kind(fault: Fault, streaming: bool) -> None:
    base = make_request()
    request = ModelRequest(purpose=base.purpose, messages=base.messages, streaming=streaming)
    async with asked(fault) as model:
        found = await events(model, request)
    ends = [event for event in found if isinstance(event, Finished | Failed)]
    assert ends == found[-1:], "exactly one end, and nothing after it"
    end = ends[0]
    expected = KINDS.get(fault.name)
    if expected is None:
        assert isinstance(end, Finished), end
        assert any(isinstance(event, ModelTextDelta | ToolCall) for event in found)
        return
    assert isinstance(end, Failed)
    assert end.kind == (ONLY_WHOLE.get(fault.name, expected) if not streaming else expected)
    assert end.why.startswith(("fake:m ", "The "))
    assert end.why.endswith((".", "!"))
    assert "\n" not in end.why
    assert "very-secret" not in end.why
    assert not any(isinstance(event, ToolCall) for event in found), "half a call is no call"


def test_every_expected_fault_is_played() -> None:
    assert len(FAULTS) >= 40
    assert set(KINDS) <= set(FAULTS)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("wrong_key", "Incorrect API key provided"),
        ("no_model", "The model `gpt-9` does not exist"),
        ("unprocessable", "body.messages.0.role: Field required"),
        ("bad_gateway", "502 Bad Gateway"),
        ("login_page", "Sign in"),
        ("minimax_error", "login fail"),
        ("not_json", "upstream connect error"),
    ],
)
async def test_the_provider_is_heard_in_its_own_words(name: str, words: str) -> None:
    async with asked(FAULTS[name]) as model:
        end = (await events(model, make_request()))[-1]
    assert isinstance(end, Failed)
    assert words in end.why
    assert words in end.said


async def test_a_key_that_a_provider_repeats_is_not_shown() -> None:
    failed = FaultMaker("fake:m", "http://x", lambda: ["sk-very-secret"]).from_error_body(
        {"error": {"message": "bad: sk-very-secret"}}
    )
    assert "sk-very-secret" not in failed.why + failed.said


@pytest.mark.parametrize(
    ("name", "least", "most"),
    [("rate_seconds", 0.9, 1.1), ("rate_ms", 0.2, 0.3), ("rate_words", 1.4, 1.6), ("rate_date", 0.0, 2.0)],
)
async def test_how_long_to_wait_is_told_in_many_ways(name: str, least: float, most: float) -> None:
    async with asked(FAULTS[name]) as model:
        end = (await events(model, make_request()))[-1]
    assert isinstance(end, Failed)
    assert end.retry_after is not None
    assert least <= end.retry_after <= most


@pytest.mark.parametrize(
    ("headers", "words", "seconds"),
    [
        ({"Retry-After": "7"}, "", 7.0),
        ({"Retry-After": "1.5"}, "", 1.5),
        ({"Retry-After": "soon"}, "", None),
        ({"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}, "", 0.0),
        ({"retry-after-ms": "250"}, "", 0.25),
        ({"retry-after-ms": "x", "Retry-After": "3"}, "", None),
        ({}, "Please try again in 6m0s.", 360.0),
        ({}, "Please try again in 20ms.", 0.02),
        ({}, "Please retry after 12 seconds.", 12.0),
        ({}, "try again in 5 minutes", 300.0),
        ({}, "Please try again in 10m2.5s.", 602.5),
        ({}, "try again in 2 hours", 3600.0),
        ({}, "try again in . Thanks", None),
        ({}, "please wait 30 seconds", 30.0),
        ({}, "try again later", None),
        ({"Retry-After": "999999"}, "", 3600.0),
        ({"Retry-After": "-5"}, "", None),
        ({"Retry-After": "Fri, 31 Dec 9999 23:59:59 GMT"}, "", 3600.0),
        ({"Retry-After": ""}, "", None),
        ({"retry-after-ms": "nan"}, "", None),
        ({"retry-after-ms": "-1"}, "", 0.0),
        ({"retry-after-ms": "inf"}, "", 3600.0),
    ],
)
def test_waiting_is_read_from_headers_and_words(headers: dict[str, str], words: str, seconds: float | None) -> None:
    assert find_wait(headers, words) == seconds


def test_google_says_in_details_how_long_to_wait() -> None:
    details = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "13s"}]
    body = [{"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "Quota.", "details": details}}]
    failed = FaultMaker("g:m", "http://x").from_error_body(body, status=429)
    assert (failed.kind, failed.retry_after, failed.said) == ("rate", 13.0, "Quota.")


ROUTED = {"message": "Provider returned error", "code": 502, "metadata": {"raw": '{"error":"bad"}'}}
INSPECTED = {"code": "data_inspection_failed", "message": "Input data may contain inappropriate content."}
IN_CHOICE = {"finish_reason": "error", "error": {"code": 429, "message": "slow down"}}


@pytest.mark.parametrize(
    ("body", "kind", "said"),
    [
        ({"error": "overloaded"}, "overloaded", "overloaded"),
        ({"error": ROUTED}, "server", "Provider returned error (bad)"),
        ({"error": {"message": "", "metadata": {"raw": "plain"}}}, "server", "plain"),
        ({"object": "error", "message": "no such model: x", "code": 404}, "model", "no such model: x"),
        ({"code": "Arrearage", "message": "Access denied."}, "credit", "Access denied."),
        ({"detail": "Unauthorized"}, "auth", "Unauthorized"),
        ({"errors": [{"message": "one"}, {"message": "two"}]}, "server", "one; two"),
        ({"error": INSPECTED}, "filter", "Input data may contain inappropriate content."),
        ({"choices": [IN_CHOICE]}, "rate", "slow down"),
        ({"error": {"message": {"deep": {"deeper": 1}}}}, "server", ""),
        ([], "server", ""),
        (7, "server", ""),
    ],
)
def test_errors_come_in_many_wrappings(body: object, kind: str, said: str) -> None:
    failed = FaultMaker("fake:m", "http://x").from_error_body(body)
    assert (failed.kind, failed.said) == (kind, said)


GROQ = "Rate limit reached on tokens per minute. Need more? Upgrade at https://console.groq.com/settings/billing"
GEMINI = {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "You exceeded your current quota, check billing."}


@pytest.mark.parametrize(
    ("status", "error", "kind"),
    [
        (429, {"message": GROQ, "code": "rate_limit_exceeded"}, "rate"),
        (429, GEMINI, "rate"),
        (429, {"message": "Too many tokens, please wait before trying again."}, "rate"),
        (429, {"message": "You exceeded your current quota.", "code": "insufficient_quota"}, "credit"),
        (400, {"message": "Invalid schema for function 'send_payment'"}, "request"),
        (400, {"message": "This model does not support image input: images are not supported"}, "request"),
        (400, {"message": "Your credit balance is too low"}, "credit"),
    ],
)
def test_waiting_is_told_apart_from_paying(status: int, error: dict[str, object], kind: str) -> None:
    assert FaultMaker("fake:m", "http://x").from_error_body({"error": error}, status=status).kind == kind


def test_a_secret_is_taken_out_before_the_words_are_cut() -> None:
    secret = "sk-very-secret"
    failed = FaultMaker("fake:m", "http://x", lambda: [secret]).from_error_body(
        {"error": {"message": "x" * 390 + " " + secret}}
    )
    assert "sk-very" not in failed.why
    assert (
        "sk-very"
        not in FaultMaker("f", "http://x", lambda: [secret]).from_response(500, {}, f"no {secret}".encode()).why
    )


DEEP = b"[" * 30_000
DEEP_CHUNK = b'data: {"a":' + DEEP + b"\n\n"


@pytest.mark.parametrize(
    ("status", "kind", "body"),
    [
        (200, "text/event-stream", DEEP_CHUNK),
        (200, "application/json", b'{"a":' + DEEP),
        (400, "application/json", DEEP),
        (200, "text/event-stream", b'data: {"error":{"message":"x","code":"\xc2\xb2"}}\n\n'),
        (200, "text/event-stream", b'data: {"error":{"message":"try again in . Thanks"}}\n\n'),
        (200, "text/event-stream", b'data: {"x_groq":{"error":"over capacity"},"choices":[]}\n\n'),
        (200, "text/event-stream", b"data: " + b"x" * 9_000_000),
    ],
)
async def test_nothing_that_a_provider_sends_makes_the_stream_raise(status: int, kind: str, body: bytes) -> None:
    async def answer(_: web.Request) -> web.Response:
        return web.Response(status=status, body=body, content_type=kind)

    app = web.Application()
    app.router.add_post("/v1/chat/completions", answer)
    async with TestServer(app) as server:
        model = OpenAICompatible(Endpoint("fake", str(server.make_url("/v1"))), "m")
        found = await events(model, make_request())
        await model.close()
    assert isinstance(found[-1], Failed)


def test_an_address_keeps_its_query_at_the_end() -> None:
    azure = Endpoint("azure", "https://x.openai.azure.com/openai/deployments/d?api-version=2024-10-21")
    assert azure.address == ("https://x.openai.azure.com/openai/deployments/d/chat/completions?api-version=2024-10-21")


async def test_a_key_that_cannot_be_sent_is_a_matter_of_the_key() -> None:
    async with FakeOpenAI(Answer(text="Hi.")) as server:
        model = OpenAICompatible(Endpoint("fake", server.base_url, key=lambda: "sk-two\nlines"), "m")
        end = (await events(model, make_request()))[-1]
        await model.close()
    assert isinstance(end, Failed)
    assert (end.kind, "sk-two" in end.why) == ("auth", False)


def test_words_that_would_harm_a_terminal_or_never_end_are_cut() -> None:
    failed = FaultMaker("fake:m", "http://x").from_response(500, {}, b"\x1b[31m" + b"no " * 9000)
    assert "\x1b" not in failed.why
    assert len(failed.why) < 600


# ---------------------------------------------------------------------------------------------- the request


async def test_a_prompt_that_was_not_read_whole_is_noticed() -> None:
    words = " ".join(f"word{number}" for number in range(3000))
    short = Answer(text="Hm.", usage={"prompt_tokens": 2048, "completion_tokens": 1})
    async with asked(short) as model:
        assert isinstance((await events(model, make_request(words)))[-1], Finished), "one low count proves nothing"
        end = (await events(model, make_request(f"{words} more")))[-1]
        assert isinstance(end, Failed)
        assert (end.kind, end.action) == ("truncated", "ask")
        assert "2048" in end.why
    async with asked(Answer(text="Hm.")) as model:
        assert isinstance((await events(model, make_request(words)))[-1], Finished)


async def test_nobody_at_home_is_said_with_what_to_do() -> None:
    local = OpenAICompatible(Endpoint("ollama", "http://127.0.0.1:9/v1"), "m")
    remote = OpenAICompatible(Endpoint("far", "http://no-such-host.invalid/v1"), "m")
    for model, kind, words in ((local, "address", "Start the server"), (remote, "network", "cannot be reached")):
        end = (await events(model, make_request()))[-1]
        assert isinstance(end, Failed)
        assert (end.kind, end.is_free) == (kind, True)
        assert words in end.why
        await model.close()


async def test_https_to_a_server_without_tls_names_the_right_address() -> None:
    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        model = OpenAICompatible(Endpoint("mine", f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"), "m")
        end = (await events(model, make_request()))[-1]
        await model.close()
    assert isinstance(end, Failed)
    assert (end.kind, end.is_free) == ("address", True)
    assert "Write http:// instead of https://" in end.why


async def test_a_request_that_a_proxy_refused_was_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(refuse, "127.0.0.1", 0) as proxy:
        port = proxy.sockets[0].getsockname()[1]
        monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{port}")
        monkeypatch.delenv("NO_PROXY", raising=False)
        model = OpenAICompatible(Endpoint("far", "https://far.example/v1"), "m")
        end = (await events(model, make_request()))[-1]
        await model.close()
    assert isinstance(end, Failed)
    assert (end.kind, end.is_free) == ("address", True)
    assert "the proxy refused it (407 Proxy Authentication Required)" in end.why


async def test_a_connection_that_closed_before_the_request_was_sent_costs_nothing() -> None:
    lost = aiohttp.ClientOSError(None, "Can not write request body for http://x")
    maker = FaultMaker("fake:m", "http://x")
    assert maker.from_exception(lost, local=False).is_free
    assert not maker.from_exception(aiohttp.ServerDisconnectedError(), local=False).is_free


@pytest.mark.parametrize(
    ("url", "local"),
    [
        ("http://localhost:1/v1", True),
        ("http://127.0.0.1/v1", True),
        ("http://[::1]:8/v1", True),
        ("https://api.x.com", False),
    ],
)
def test_an_address_is_here_or_elsewhere(url: str, local: bool) -> None:
    assert is_local(url) is local


@pytest.mark.parametrize("url", ["", "api.x.com/v1", "ftp://x/v1", "http://"])
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(WorldFault, match="not a valid base_url"):
        Endpoint("fake", url)


async def test_usage_is_priced_and_comes_before_the_end() -> None:
    async with FakeOpenAI(Answer(text="Hi.", usage={"prompt_tokens": 10, "completion_tokens": 2})) as server:
        endpoint = Endpoint("fake", server.base_url)
        model = OpenAICompatible(endpoint, "m", price=lambda read, written: read, cost=lambda usage: usage.input * 3)
        found = await events(model, make_request())
        await model.close()
    assert found[-2] == Usage(input=10, output=2, money=30)


async def test_a_large_request_is_sent_without_complaint() -> None:
    big = ChatMessage(role="user", content="word " * 300_000)
    async with asked(Answer(text="Hm.")) as model:
        found = await events(model, ModelRequest(purpose=make_request().purpose, messages=(big,)))
    assert isinstance(found[-1], Finished)
