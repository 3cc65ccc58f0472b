"""A scripted model behind real HTTP: it proposes a plan, makes the edits of a change and ends its turn."""

import asyncio
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import groupby

from tests.fake_openai import Answer, Call, FakeOpenAI
from tests.projects.project import Change, Edit

KEY = "sk-test-0123456789abcdef"
PATIENCE = 60.0


class ScriptedModel:
    """Answer by how far the conversation is, so that a repeated request gets the same reply.

    After the edits it finishes, each time it is asked again: what it made is all that it makes.
    """

    def __init__(self, change: Change) -> None:
        self._change = change
        self._files = tuple(dict.fromkeys(edit.file for edit in change.edits))

    def __call__(self, body: dict[str, object], _: int) -> Answer:
        """Return the reply to this request."""
        messages, tools = body["messages"], _schemas(body)
        assert isinstance(messages, list)
        calls = [call for call in self._calls() if call.name in tools]
        turn = sum(message["role"] == "assistant" for message in messages)
        if turn < len(calls):
            return Answer(calls=(calls[turn],))
        if "finish" in tools:
            return Answer(calls=(Call(name="finish", arguments=self._finish(tools["finish"]), id=f"finish{turn}"),))
        return Answer(text=self._change.request)

    def _calls(self) -> Iterator[Call]:
        yield Call(name="propose_plan", arguments={"steps": [self._change.request], "files": self._files}, id="plan")
        for number, (file, edits) in enumerate(groupby(self._change.edits, lambda edit: edit.file)):
            yield _edit_call(file, tuple(edits), f"edit{number}")

    def _finish(self, schema: Mapping[str, object]) -> dict[str, object]:
        """Fill in what the tool asks for; of the words for a status the first one stands for success."""
        wanted = schema.get("properties")
        assert isinstance(wanted, dict)
        status = wanted.get("status", {}).get("enum", ["done"])[0]
        known = {"status": status, "summary": self._change.request, "files": self._files, "tests": ()}
        return {name: value for name, value in known.items() if name in wanted}


def _edit_call(file: str, edits: Sequence[Edit], name: str) -> Call:
    if not edits[0].search:
        return Call(name="rewrite", arguments={"file": file, "content": edits[0].replace}, id=name)
    replaced = [{"search": edit.search, "replace": edit.replace} for edit in edits]
    return Call(name="patch", arguments={"file": file, "edits": replaced}, id=name)


def _schemas(body: Mapping[str, object]) -> dict[str, Mapping[str, object]]:
    """Return the parameters of each tool that the request offers."""
    offered = body.get("tools") or []
    assert isinstance(offered, list)
    return {tool["function"]["name"]: tool["function"].get("parameters", {}) for tool in offered}


@contextmanager
def serve(change: Change) -> Iterator[dict[str, str]]:
    """Serve the model in a thread; yield the environment that reaches it."""
    server, ready, loop = FakeOpenAI(ScriptedModel(change), api_key=KEY), threading.Event(), asyncio.new_event_loop()
    over = asyncio.Event()

    async def until_over() -> None:
        async with server:
            ready.set()
            await over.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(until_over(),), daemon=True)
    thread.start()
    try:
        assert ready.wait(PATIENCE)
        yield {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": server.base_url}
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join(PATIENCE)
        loop.close()
