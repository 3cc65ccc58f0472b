"""SEND_MESSAGE as an output handler in a list of handlers, the way MultiAgent has it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from greenroom.abilities.protocols.asking import prompt
from greenroom.abilities.protocols.outcome import Acts, NotRun
from greenroom.abilities.protocols.reading import read
from greenroom.abilities.protocols.send_message import TAG
from greenroom.core.ports.packs import ENGLISH


class MessageHandler:
    """Finds a message in a response. It only reads: whoever called it sends. `agents` are descriptions by name."""

    def __init__(self, agents: Mapping[str, str]) -> None:
        self._agents = agents

    def can_handle(self, response: str) -> bool:
        """Whether the opening tag occurs at all; `handle` may still find that it is no message."""
        return f"<{TAG}>" in response

    def handle(self, response: str) -> tuple[Literal[True], dict[str, str]] | tuple[Literal[False], str]:
        """(True, the message as `to` and `content`), or (False, what is wrong and how to write it)."""
        found = read(response, ["send_message"], agents=self._agents, ended=True)
        if isinstance(found, Acts):
            arguments = found.call.arguments
            return True, {"to": str(arguments["receiver"]), "content": str(arguments["message"])}
        if isinstance(found, NotRun):
            return False, str(found)
        return False, found.hint or f"There is no <{TAG}> block in the reply: its opening tag begins a line."

    def prompt(self, language: str = ENGLISH) -> str:
        """How a model is asked to write messages."""
        return prompt(["send_message"], agents=self._agents, language=language)
