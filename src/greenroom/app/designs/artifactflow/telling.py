"""What is put into a prompt from outside: made so that it can neither close the tag it stands in nor open another."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Final

from greenroom.core.base.clock import Millis
from greenroom.core.ports.packs import Pack

PACK: Final = Pack("greenroom.app.designs.artifactflow.prompts")


def defused(text: str) -> str:
    """The same without tags. Only `<` is escaped: that is enough, and leaves the most readable."""
    return text.replace("<", "&lt;")


def line(value: object) -> str:
    """On one line, so that it cannot add items to the list that it stands in either."""
    return defused(" ".join(str(value).split()))


def listed(value: object) -> str:
    """Something of a context, whatever its form: a text as it is, all else as a list with one line per item."""
    match value:
        case None:
            return ""
        case str():
            return defused(value.strip())
        case Mapping():
            return "\n".join(f"- {line(name)}: {_item(one)}" for name, one in value.items())
        case Iterable():
            return "\n".join(f"- {_item(one)}" for one in value)
        case _:
            return line(value)


def minute(now: Millis) -> str:
    """The time, to the minute: what stands first in a prompt and differs by a second costs the whole cache."""
    return f"{datetime.fromtimestamp(now / 1000, UTC):%Y-%m-%d %H:%M} UTC"


def wrapped(tag: str, content: str, history: Iterable[Mapping[str, object]]) -> str:
    """An answer in its tag, also if the model forgot it; instead of no answer, the last result that it was given."""
    text = content.strip()
    if f"<{tag}>" in text and f"</{tag}>" in text:
        return text
    results = [str(one.get("content", "")).strip() for one in history if one.get("role") == "tool"]
    return f"<{tag}>\n{defused(text or next(reversed(results), ''))}\n</{tag}>"


def _item(one: object) -> str:
    fields = one.items() if isinstance(one, Mapping) else ()
    return "; ".join(f"{line(name)}: {line(value)}" for name, value in fields) or line(one)
