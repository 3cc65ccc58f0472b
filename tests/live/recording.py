"""Record what the small model writes without a grammar, as fixtures: `.venv/bin/python -m tests.live.recording FILE`.

It gets the instructions of a text protocol, or a list of tools as some templates write it. Most of its replies are
malformed, each in its own way. `tests/abilities/protocols/test_recorded_replies.py` reads those that were kept.
"""

from __future__ import annotations

import json
import sys
import urllib.request
from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Any

from greenroom.abilities.protocols.parse_result import ProtocolName
from greenroom.abilities.protocols.text_calls import render_prompt, write
from greenroom.core.ports.model import ToolCall
from tests.abilities.protocols.house import AGENTS, ALL, TOOLS
from tests.live.model_front import serve_model

REQUESTS = (
    "Read the file a.py.",
    'Save the text "hello" to b.txt.',
    "Ask bob to write the tests.",
    "In a.py, change x = 1 to x = 2.",
)
SEEDS = (1, 2)
MAX_TOKENS = 120


def call(name: str, **arguments: object) -> ToolCall:
    return ToolCall(call_id="", name=name, arguments=arguments)


EXAMPLES: Mapping[ProtocolName, ToolCall] = {
    "tool_call": call("look", path="setup.py"),
    "xml_tool": call("save", path="todo.txt", text="milk"),
    "send_message": call("send_message", receiver="amy", message="Please look at it."),
    "patch": call("patch", file="setup.py", edits=[{"search": "import os", "replace": "import sys"}]),
    "rewrite": call("rewrite", file="todo.txt", content="milk\n"),
}
"""A good block in the conversation so far. Without one the model never tries."""


def list_prompts() -> Iterator[tuple[str, str, str]]:
    """Yield protocols, their instructions and a good reply. `native`: a list of tools in JSON."""
    usable = [tool for tool in TOOLS if tool.name in ("look", "save", "ping")]
    for name in ALL:
        yield name, render_prompt([name], tools=usable, agents=AGENTS), write(EXAMPLES[name], name)
    functions = json.dumps([{"name": tool.name, "parameters": tool.parameters} for tool in usable])
    example = '<tool_call>{"name": "look", "arguments": {"path": "setup.py"}}</tool_call>'
    yield "native", f"You can call these functions:\n{functions}\nTo call one, write {example}", example


def ask(upstream: str, system: str, example: str, request: str, seed: int) -> dict[str, Any]:
    """Return the model's reply and whether it ended by itself."""
    messages = (("system", system), ("user", "Begin."), ("assistant", example), ("user", f"Done. {request}"))
    body = {
        "messages": [{"role": role, "content": content} for role, content in messages],
        "max_tokens": MAX_TOKENS,
        "temperature": 1.0,
        "seed": seed,
    }
    asked = urllib.request.Request(
        f"{upstream}/v1/chat/completions", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(asked) as answer:
        choice = json.load(answer)["choices"][0]
    return {"text": choice["message"]["content"], "ended": choice["finish_reason"] == "stop"}


def record(path: Path) -> None:
    """Write each reply as a line of JSON."""
    with serve_model() as front, path.open("a", encoding="utf-8") as file:
        for (protocol, system, example), request, seed in product(list_prompts(), REQUESTS, SEEDS):
            reply = ask(front.upstream, system, example, request, seed)
            file.write(json.dumps({"protocol": protocol, "request": request, **reply}) + "\n")
            file.flush()


if __name__ == "__main__":
    record(Path(sys.argv[1]))
