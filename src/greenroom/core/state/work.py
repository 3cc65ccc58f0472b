"""The work of a step, as it is planned, queued and done."""

from __future__ import annotations

from typing import Literal

from greenroom.core.base.records import Data, record

StepType = Literal["skill", "tool"]


@record
class StoredMedia:
    """An image or file of a message, stored as a blob. `tokens` is the most that it adds to a request."""

    blob: str
    media_type: str
    name: str = ""
    tokens: int = 0


@record
class Work:
    """The work of a step: a skill with its goal, or a tool with its goal and, once filled in, its instruction. `media`
    goes to the model with the text."""

    type: StepType
    executor: str
    intention: str = ""
    text_content: str = ""
    instruction_content: Data | None = None
    call_id: str | None = None
    media: tuple[StoredMedia, ...] = ()

    @property
    def media_tokens(self) -> int:
        """The most tokens that the media add to a request."""
        return sum(item.tokens for item in self.media) if self.media else 0
