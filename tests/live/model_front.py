"""A small real model behind real HTTP: llama.cpp in a process of its own, and a front that gives it tool calls.

The model's chat template drops tools without a word. The front turns `tools` into a grammar with an end, so that each
reply is a call of one of them or an answer. Requests without tools pass through unchanged.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import threading
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from aiohttp import ClientSession, web

from tests.fake_openai.strict import broken

ROOT = Path(__file__).parents[2]
PYTHON = ROOT / ".go" / "live" / "bin" / "python"
"""The environment that `./go live` makes."""

MAX_STRING_CHARS = 120
MAX_LIST_ITEMS = 2
MAX_INTEGER = 999
START_S = 60.0


@dataclass
class Traffic:
    """What the model was asked and said since the last `take`."""

    requests: int = 0
    tokens: int = 0
    replies: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    """What a strict provider would refuse: a call without a result, a result without a call."""


class ModelFront:
    """The front's address, and what passed through it."""

    def __init__(self, upstream: str) -> None:
        self.upstream = upstream
        self.base_url = ""
        self.started = threading.Semaphore(0)
        self._traffic = Traffic()
        self._numbers = count(1)

    def take(self) -> Traffic:
        """Return what passed since the last call."""
        taken, self._traffic = self._traffic, Traffic()
        return taken

    def measure(self) -> float:
        """Return the seconds of a short answer."""
        begin = time.monotonic()
        question = {"messages": [{"role": "user", "content": "Name one colour."}], "max_tokens": 20}
        asked = urllib.request.Request(
            f"{self.upstream}/v1/chat/completions",
            json.dumps(question).encode(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(asked) as answer:
            answer.read()
        return time.monotonic() - begin

    async def serve(self, ready: threading.Event, over: asyncio.Event) -> None:
        """Serve until `over` is set."""
        app = web.Application(client_max_size=2**26)
        app.router.add_get("/v1/models", self._list_models)
        app.router.add_post("/v1/chat/completions", self._complete)
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        self.base_url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
        async with ClientSession() as self._session:
            ready.set()
            await over.wait()
            await runner.cleanup()

    async def _list_models(self, _: web.Request) -> web.Response:
        async with self._session.get(f"{self.upstream}/v1/models") as answer:
            return web.json_response(await answer.json())

    async def _complete(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        body |= {"temperature": 0.2, "seed": 1}
        self._traffic.requests += 1
        self._traffic.faults += filter(None, [broken(body)])
        self.started.release()
        try:
            if tools := body.pop("tools", ()):
                return await self._answer_with_tools(request, body, tools)
            return await self._pass_through(request, body)
        except ConnectionResetError:
            return web.Response()  # the client was stopped or killed

    async def _pass_through(self, request: web.Request, body: Mapping[str, Any]) -> web.StreamResponse:
        response, text = web.StreamResponse(), ""
        async with self._session.post(f"{self.upstream}/v1/chat/completions", json=body) as answer:
            response.set_status(answer.status)
            response.content_type = answer.content_type
            await response.prepare(request)
            async for line in answer.content:
                await response.write(line)
                text += self._note(line.removeprefix(b"data: ").strip())
        self._traffic.replies.append(text)
        return response

    def _note(self, data: bytes) -> str:
        """Count the tokens that a chunk or a whole answer reports, and return its text."""
        if not data.startswith(b"{"):
            return ""
        chunk = json.loads(data)
        self._traffic.tokens += (chunk.get("usage") or {}).get("total_tokens", 0)
        parts = [choice.get("delta") or choice.get("message") or {} for choice in chunk.get("choices", ())]
        return "".join(part.get("content") or "" for part in parts)

    async def _answer_with_tools(
        self, request: web.Request, body: dict[str, Any], tools: Sequence[Mapping[str, Any]]
    ) -> web.StreamResponse:
        functions, call_id = [tool["function"] for tool in tools], f"call_{next(self._numbers)}"
        for name in ("parallel_tool_calls", "stream_options"):
            body.pop(name, None)
        streams = body.pop("stream", False)
        may_call = body.pop("tool_choice", "auto") != "none"
        schema = make_schema(functions if may_call else (), may_answer=not may_call or has_result(body["messages"]))
        body["messages"] = flatten_messages(body["messages"], functions)
        body["response_format"] = {
            "type": "json_schema",
            "json_schema": {"name": "reply", "schema": schema},
        }
        async with self._session.post(f"{self.upstream}/v1/chat/completions", json=body) as answer:
            if answer.status != 200:
                return web.Response(status=answer.status, text=await answer.text(), content_type="application/json")
            reply = await answer.json()
        choice, text = reply["choices"][0], reply["choices"][0]["message"]["content"]
        self._traffic.tokens += reply["usage"]["total_tokens"]
        self._traffic.replies.append(text)
        message = read_reply(text, call_id)
        if "tool_calls" in message and choice["finish_reason"] == "stop":
            choice["finish_reason"] = "tool_calls"
        choice["message"] = message
        if not streams:
            return web.json_response(reply)
        return await self._stream(request, reply, choice)

    async def _stream(
        self, request: web.Request, reply: Mapping[str, Any], choice: Mapping[str, Any]
    ) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        head = {
            "id": reply["id"],
            "object": "chat.completion.chunk",
            "created": reply["created"],
            "model": reply["model"],
        }
        calls = [{"index": at, **call} for at, call in enumerate(choice["message"].get("tool_calls", ()))]
        delta = {**choice["message"], "tool_calls": calls} if calls else choice["message"]
        for chunk in (
            {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
            {"choices": [{"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}]},
            {"choices": [], "usage": reply["usage"]},
        ):
            await response.write(b"data: " + json.dumps({**head, **chunk}).encode() + b"\n\n")
        await response.write(b"data: [DONE]\n\n")
        return response


def has_result(messages: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether a call was answered since a person wrote."""
    asked = max((at for at, message in enumerate(messages) if message["role"] == "user"), default=0)
    return any(message["role"] == "tool" for message in messages[asked:])


def make_schema(functions: Sequence[Mapping[str, Any]], *, may_answer: bool) -> dict[str, Any]:
    """Return the schema of a reply: a call of one of these functions, or a text if it `may_answer`.

    A model of this size would never begin with a call by itself.
    """
    calls = [
        {
            "type": "object",
            "properties": {"tool": {"const": function["name"]}, "arguments": bound_schema(function["parameters"])},
            "required": ["tool", "arguments"],
            "additionalProperties": False,
        }
        for function in functions
    ]
    text = {
        "type": "object",
        "properties": {"text": {"type": "string", "maxLength": MAX_STRING_CHARS}},
        "required": ["text"],
        "additionalProperties": False,
    }
    choices = [*calls, text] if may_answer else calls
    return {"anyOf": choices} if len(choices) > 1 else choices[0]


def bound_schema(schema: Any) -> Any:
    """Return the schema with an end: short strings, short lists, whole numbers of few digits, no other keys."""
    if isinstance(schema, list):
        return [bound_schema(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    bounded: dict[str, Any] = {
        key: {name: bound_schema(part) for name, part in value.items()}
        if key in ("properties", "$defs")
        else bound_schema(value)
        for key, value in schema.items()
    }
    match bounded.get("type"):
        case "string" if not {"enum", "const", "pattern", "format"} & bounded.keys():
            bounded["maxLength"] = min(bounded.get("maxLength", MAX_STRING_CHARS), MAX_STRING_CHARS)
        case "array":
            bounded["maxItems"] = min(bounded.get("maxItems", MAX_LIST_ITEMS), MAX_LIST_ITEMS)
        case "object" if "properties" in bounded:
            bounded["additionalProperties"] = False
        case "object":
            bounded = {"type": "object", "properties": {}, "additionalProperties": False}
        case "integer":
            bounded = {"type": "integer", "minimum": 0, "maximum": MAX_INTEGER} | bounded
        case _:
            pass
    return bounded


def read_reply(text: str, call_id: str) -> dict[str, Any]:
    """Return the message that a reply under the grammar means. A reply that was cut off stays cut off."""
    try:
        reply = json.loads(text)
    except json.JSONDecodeError:
        name, _, arguments = text.partition('"arguments"')
        if not arguments:
            return {"role": "assistant", "content": text}
        function = {"name": name.split('"')[3], "arguments": arguments.lstrip(": ")}
        return {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": call_id, "type": "function", "function": function}],
        }
    if "text" in reply:
        return {"role": "assistant", "content": reply["text"]}
    function = {"name": reply["tool"], "arguments": json.dumps(reply["arguments"])}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": call_id, "type": "function", "function": function}],
    }


def flatten_messages(
    messages: Sequence[Mapping[str, Any]], functions: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Write calls, results and the list of tools as plain text, for a template that knows no tools."""
    listed = "\n".join(
        f"- {function['name']}: {function.get('description', '').split('.')[0]}" for function in functions
    )
    flat: list[dict[str, Any]] = []
    for message in messages:
        text = message.get("content") or ""
        calls = [
            {"tool": call["function"]["name"], "arguments": call["function"]["arguments"]}
            for call in message.get("tool_calls") or ()
        ]
        text = "\n".join([text, *map(json.dumps, calls)]).strip()
        flat.append({"role": "user" if message["role"] == "tool" else message["role"], "content": text})
    flat[0]["content"] += f"\nTools:\n{listed}"
    return flat


@contextmanager
def serve_model() -> Iterator[ModelFront]:
    """Serve the model and its front, and stop both at the end."""
    program = [str(PYTHON), str(Path(__file__).with_name("weights_server.py"))]
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as model:
        assert model.stdout is not None
        upstream = model.stdout.readline().strip()
        assert upstream.startswith("http://127.0.0.1:"), "the model's server did not start"
        front, ready, over, loop = ModelFront(upstream), threading.Event(), asyncio.Event(), asyncio.new_event_loop()
        thread = threading.Thread(target=loop.run_until_complete, args=(front.serve(ready, over),), daemon=True)
        thread.start()
        assert ready.wait(START_S)
        try:
            yield front
        finally:
            loop.call_soon_threadsafe(over.set)
            thread.join(START_S)
            loop.close()
            model.communicate()
