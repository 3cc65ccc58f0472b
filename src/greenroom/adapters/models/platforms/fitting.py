"""A message that is too long for a model: shown as a file where the model takes files, cut in the middle where not."""

from __future__ import annotations

from typing import Final

from greenroom.core.ports.model import Media, ModelCard

CHARS_PER_TOKEN: Final = 3
"""A cautious guess; Chinese has fewer, and is cut earlier than it would have to be."""

SHARE: Final = 2
"""One message may take the second part of a window: the rest is for the conversation and the answer."""

SHOWN: Final = 1000
"""Characters of a message that are said when the whole is in a file."""


def fitted(text: str, card: ModelCard) -> tuple[str, tuple[Media, ...]]:
    """What is said, and what is shown with it."""
    most = card.window * CHARS_PER_TOKEN // SHARE
    if len(text) <= most:
        return text, ()
    if card.files:
        file = Media(media_type="text/plain", data=text.encode(), name="message.txt")
        return f"The whole message is in the file message.txt. It begins:\n{text[:SHOWN]}", (file,)
    left = len(text) - most
    half = most // 2
    return f"{text[:half]}\n[… {left:,} characters are left out here …]\n{text[-half:]}", ()
