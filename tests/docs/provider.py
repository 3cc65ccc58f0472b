"""A provider for the programs in the docs: it uses the offered tools, then answers."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from tests.e2e.organised import SKILL, TEA, Company
from tests.fake_openai.answers import Answer, Call
from tests.fake_openai.faults.shape import HELLO
from tests.fake_openai.scripts import Script
from tests.fake_openai.server import FakeOpenAI

ARGUMENTS: dict[str, dict[str, Any]] = {
    "population": {"city": "Paris"},
    "pay": {"amount": 5},
    "call_agent": {"agent_name": "searcher", "instruction": "Look it up."},
}
ASKED_FOR: dict[str, tuple[str, dict[str, Any]]] = {
    "read_code": ("notes.txt", {"file": "notes.txt"}),
    "execute_script": ("made.txt", {"script": "touch made.txt"}),
}
"""Built-in tools are used if the task contains this word."""

ANSWERS = {
    "read_code": "It says: tea.",
    "execute_script": "It is there.",
    "population": "2100000 people live in Paris.",
    "pay": "It is paid.",
    "call_agent": "The searcher says: {result}",
}


ORGANISATION = Company(TEA)
"""Answers for planning agents."""


def script(body: Mapping[str, Any], number: int) -> Answer:
    """Call the tool once, then answer in the requested form. Planning agents follow the story of their page."""
    if SKILL.search(str(body["messages"][-1]["content"])):
        return ORGANISATION(dict(body), number)
    tools = {one["function"]["name"]: one["function"] for one in body.get("tools", ())}
    results = [str(one["content"]) for one in body["messages"] if one["role"] == "tool"]
    words = " ".join(str(one["content"]) for one in body["messages"] if one["role"] == "user")
    known = ARGUMENTS | {name: given for name, (word, given) in ASKED_FOR.items() if word in words}
    name = next((one for one in tools if one in known), None)
    if name is not None and not results:
        return Answer(calls=(Call(name=name, arguments=known[name]),))
    if "answer" in tools:
        shape = tools["answer"]["parameters"]["properties"]
        fact = {"city": "Paris", "people": 2_100_000}
        return Answer(calls=(Call(name="answer", arguments={"value": 2_100_000} if "value" in shape else fact),))
    if name is not None:
        return Answer(text=ANSWERS[name].format(result=results[-1]))
    if body["messages"][-1]["content"] == "Hello?":
        return Answer(text="Hello! How can I help?")
    return Answer(text="Found it.") if "searcher" in str(body["messages"][0]["content"]) else HELLO


@contextmanager
def provider(plays: Script = script) -> Iterator[str]:
    """Serve from a thread, because the clients are other processes, and yield the address."""
    started: list[tuple[str, asyncio.AbstractEventLoop, asyncio.Event]] = []
    ready = threading.Event()

    async def serve() -> None:
        over = asyncio.Event()
        async with FakeOpenAI(plays, strict=True) as server:
            started.append((server.base_url, asyncio.get_running_loop(), over))
            ready.set()
            await over.wait()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    assert ready.wait(10)
    address, loop, over = started[0]
    try:
        yield address
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join(10)
