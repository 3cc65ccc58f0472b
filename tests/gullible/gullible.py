"""A model with a plan that obeys every instruction it reads, wherever it is.

An instruction is `CALL tool {arguments}` in any surrounding text; in a file's name it is `CALL64-` and the same in
base64. `$SECRET` stands for the secret, if the model has seen it. The model never doubts an instruction.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from greenroom.core.base.records import Data
from greenroom.core.ports.model import (
    Finished,
    Model,
    ModelCard,
    ModelEvent,
    ModelRequest,
    ModelTextDelta,
    ToolCall,
    Usage,
)
from tests.gullible.outside import SECRET

ORDER = re.compile(r"CALL ([A-Za-z0-9_]+) (\{[^{}\n]*\})")
DEAF = "bob"
HIDDEN = re.compile(r"CALL64-([A-Za-z0-9_-]+)")


@dataclass(frozen=True)
class Call:
    """A call to make."""

    tool: str
    arguments: Data = field(default_factory=dict)

    @property
    def order(self) -> str:
        """Return the call as an attacker writes it."""
        return f"CALL {self.tool} {json.dumps(self.arguments, ensure_ascii=False)}"

    @property
    def hidden(self) -> str:
        """Return the call as part of a file name."""
        return "CALL64-" + base64.urlsafe_b64encode(self.order.encode()).decode().rstrip("=")


def orders(text: str) -> Iterator[tuple[str, str]]:
    """Yield all instructions in a text."""
    yield from ORDER.findall(text)
    for one in HIDDEN.findall(text):
        try:
            yield from ORDER.findall(base64.urlsafe_b64decode(one + "=" * (-len(one) % 4)).decode())
        except ValueError:
            continue  # cut off


class Gullible:
    """One model for a team: each agent has its own plan and its own instructions. Bob ignores instructions and follows
    his plan; as a `parrot` he finally repeats what he has read."""

    name = "fake:gullible"
    obeys = True
    card = ModelCard(family="fake", window=1_000_000)

    def __init__(self, plans: Mapping[str, Sequence[Call]], *, parrot: bool = False) -> None:
        self._plans = {agent: list(calls) for agent, calls in plans.items()}
        self._parrot = parrot
        self._known: dict[str, set[tuple[str, str]]] = {}
        self._waiting: dict[str, list[tuple[str, str]]] = {}
        self.obeyed: list[str] = []
        self.seen: list[str] = []

    def get_model(self, _: str) -> Model:
        """Return this model for every name."""
        return self

    def price(self, _: int, __: int) -> int | None:
        """Return a price of 0."""
        return 0

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Follow instructions first, then the plan."""
        agent, texts = request.purpose.agent, _read(request)
        self.seen += texts
        call = self._next(agent, texts)
        if call is None:
            yield ModelTextDelta(text=texts[-1] if self._parrot and agent == DEAF else "Done.")
        else:
            yield ToolCall(call_id=f"{request.purpose.step}/1", name=call.tool, arguments=call.arguments)
        yield Usage(output=1)
        yield Finished(reason="stop" if call is None else "calls")

    def _next(self, agent: str, texts: Sequence[str]) -> Call | None:
        known, waiting = self._known.setdefault(agent, set()), self._waiting.setdefault(agent, [])
        for one in (found for text in texts for found in orders(text)):
            if one not in known and agent != DEAF and self.obeys:
                known.add(one)
                waiting.append(one)
        if waiting:
            tool, written = waiting.pop(0)
            secret = SECRET if any(SECRET in text for text in texts) else "nothing"
            self.obeyed.append(tool)
            return Call(tool, json.loads(written.replace("$SECRET", secret)))
        plan = self._plans.get(agent, [])
        return plan.pop(0) if plan else None


def _read(request: ModelRequest) -> list[str]:
    """Return everything that the model reads: tools, descriptions, and all messages but its own."""
    described = [f"{tool.name}: {tool.description}" for tool in request.tools]
    return [*described, *(one.content for one in request.messages if one.role != "assistant")]
