"""Several lines as one input: a line that ends in a backslash goes on, and so does all between two lines of quotes."""

from __future__ import annotations

from typing import Final

QUOTES: Final = '"""'
GOES_ON: Final = "\\"


def unfinished(text: str) -> bool:
    """Whether more lines belong to it."""
    lines = text.split("\n")
    if sum(line.strip() == QUOTES for line in lines) % 2:
        return True
    return lines[-1].endswith(GOES_ON) and not lines[-1].endswith(GOES_ON * 2)


def joined(text: str) -> str:
    """The text without the signs that held it together."""
    kept, quoted = list[str](), False
    for line in text.split("\n"):
        if line.strip() == QUOTES:
            quoted = not quoted
        elif not quoted and line.endswith(GOES_ON) and not line.endswith(GOES_ON * 2):
            kept.append(line.removesuffix(GOES_ON))
        else:
            kept.append(line)
    return "\n".join(kept).strip("\n")
