"""What is at hand: keys by the name of their variable, servers that answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
import pytest_asyncio
from aiohttp import web

from greenroom.adapters.models.catalog import servers as discovery
from greenroom.adapters.models.catalog.catalog import Server, found
from greenroom.adapters.models.catalog.servers import local_servers

NOBODY = "http://127.0.0.1:1/v1"
SILENT = dict.fromkeys(("OLLAMA_HOST", "LMSTUDIO_BASE_URL", "LLAMACPP_BASE_URL", "VLLM_BASE_URL"), NOBODY)
Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]
Serve = Callable[[Answer], Awaitable[int]]


@pytest_asyncio.fixture
async def serve() -> AsyncIterator[Serve]:
    """A server on this machine that answers GET /v1/models."""
    runners: list[web.AppRunner] = []

    async def start(answer: Answer) -> int:
        app = web.Application()
        app.router.add_get("/v1/models", answer)
        runner = web.AppRunner(app)
        await runner.setup()
        runners.append(runner)
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        port: int = runner.addresses[0][1]
        return port

    yield start
    for runner in runners:
        await runner.cleanup()


def says(text: str) -> Answer:
    async def answer(_: web.Request) -> web.StreamResponse:
        return web.Response(text=text)

    return answer


def test_providers_with_a_key_are_found_with_the_variable() -> None:
    environ = {"GOOGLE_API_KEY": "g-secret", "OPENAI_API_KEY": "sk-secret", "HOME": "/root"}
    assert [(one.provider.name, one.variable) for one in found(environ)] == [
        ("openai", "OPENAI_API_KEY"),
        ("google", "GOOGLE_API_KEY"),
    ]
    assert "secret" not in repr(found(environ))


@pytest.mark.parametrize("value", ["", " ", "\t\n"])
def test_an_empty_variable_is_no_key(value: str) -> None:
    assert found({"OPENAI_API_KEY": value}) == ()
    assert [one.variable for one in found({"GEMINI_API_KEY": value, "GOOGLE_API_KEY": "x"})] == ["GOOGLE_API_KEY"]


def test_a_shared_variable_counts_for_the_first_of_its_providers() -> None:
    assert [one.provider.name for one in found({"DASHSCOPE_API_KEY": "x"})] == ["dashscope"]
    both = found({"DASHSCOPE_API_KEY": "x", "DASHSCOPE_CN_API_KEY": "y"})
    assert [(one.provider.name, one.variable) for one in both] == [
        ("dashscope", "DASHSCOPE_API_KEY"),
        ("dashscope-cn", "DASHSCOPE_CN_API_KEY"),
    ]


async def test_servers_that_answer_are_found_with_their_models(serve: Serve) -> None:
    ollama = await serve(says('{"object": "list", "data": [{"id": "qwen3:8b", "owned_by": "me"}, {"id": "llama3.2"}]}'))
    vllm = await serve(says('{"data": null}'))
    environ = {**SILENT, "OLLAMA_HOST": f"0.0.0.0:{ollama}", "VLLM_BASE_URL": f"http://127.0.0.1:{vllm}/v1"}
    servers = await local_servers(5, environ=environ)
    assert [(one.provider.name, one.base_url, one.models) for one in servers] == [
        ("ollama", f"http://127.0.0.1:{ollama}/v1", ("llama3.2", "qwen3:8b")),
        ("vllm", f"http://127.0.0.1:{vllm}/v1", ()),
    ]
    assert all(isinstance(one, Server) for one in servers)


@pytest.mark.parametrize("text", ["", "hello", "[]", '{"data": 3}', '{"models": []}', '{"data": [{"name": "x"}]}'])
async def test_what_lists_no_models_is_no_model_server(serve: Serve, text: str) -> None:
    port = await serve(says(text))
    assert await local_servers(5, environ={**SILENT, "OLLAMA_HOST": f":{port}"}) == ()


async def test_a_server_that_says_too_much_is_none(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discovery, "LONGEST", 10)
    port = await serve(says('{"data": [{"id": "llama3.2"}]}'))
    assert await local_servers(5, environ={**SILENT, "OLLAMA_HOST": f":{port}"}) == ()


async def test_a_server_that_sends_one_elsewhere_is_not_followed(serve: Serve) -> None:
    async def elsewhere(_: web.Request) -> web.StreamResponse:
        raise web.HTTPFound(f"http://127.0.0.1:{there}/v1/models")

    there = await serve(says('{"data": []}'))
    port = await serve(elsewhere)
    assert await local_servers(5, environ={**SILENT, "OLLAMA_HOST": f":{port}"}) == ()


async def test_a_server_that_does_not_answer_is_not_waited_for(serve: Serve) -> None:
    asked_long_ago = asyncio.Event()

    async def late(_: web.Request) -> web.StreamResponse:
        await asked_long_ago.wait()
        return web.Response(text='{"data": []}')

    port = await serve(late)
    assert await local_servers(0.05, environ={**SILENT, "OLLAMA_HOST": f":{port}"}) == ()
    asked_long_ago.set()


async def test_an_address_that_is_none_stops_nothing() -> None:
    assert await local_servers(environ={**SILENT, "OLLAMA_HOST": "ftp://x", "VLLM_BASE_URL": "http://[::1"}) == ()
