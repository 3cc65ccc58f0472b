"""A file of keys and a text: `---`, YAML, `---`, and then the prompt. Reading it, and where in it a key stands."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Final

from greenroom.app.agents.plain_yaml import Keys, NotPlain, read_keys
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.records import evolve, record
from greenroom.core.base.text import UNSEEN, seen

LONGEST: Final = 256 * 1024
FENCE: Final = "---"


class Unusable(WorldFault):
    """A file that no agent can be made of: which, where, what is wrong, what to do. `name` is the agent's, if known."""

    def __init__(self, path: Path, why: str, line: int = 0, name: object = None) -> None:
        super().__init__(seen(f"{path}, line {line}: {why}" if line else f"{path} {why}"))
        self.name: Final = name if isinstance(name, str) else path.stem


@record
class Sheet:
    """A file in two parts. `front` is all between the fences, line by line; `text` what comes below; `digest` is of all
    its bytes."""

    path: Path
    front: tuple[str, ...]
    text: str
    digest: str = ""

    def keys(self) -> Keys:
        """What stands between the fences, with the lines of the file."""
        try:
            # The empty line stands for the fence.
            return read_keys("\n" + "\n".join(self.front))
        except NotPlain as fault:
            raise Unusable(self.path, f"its front matter cannot be read: {fault}.", fault.line) from None


def read_sheet(path: Path, inside: Path | None = None) -> Sheet:
    """The file, if it is one that can be used; with `inside`, only if it does not lead out of that folder."""
    content = _read(path, inside)
    return evolve(cut(path, _decoded(path, content)), digest=hashlib.sha256(content).hexdigest())


def _read(path: Path, inside: Path | None) -> bytes:
    try:
        if inside is not None and not path.resolve().is_relative_to(inside.resolve()):
            raise Unusable(path, "is a link that leads out of its folder. Put the file itself there.")
        if not path.is_file():
            raise Unusable(path, "is no plain file. Move it away.")
        with path.open("rb") as file:
            content = file.read(LONGEST + 1)
    except (OSError, RuntimeError) as error:  # a link that leads to itself is the latter
        why = getattr(error, "strerror", None) or str(error)
        raise Unusable(path, f"cannot be read: {why}. Make it readable, or move it away.") from None
    if len(content) > LONGEST:
        raise Unusable(path, f"is longer than {LONGEST // 1024} KB. Shorten it, or name a file that it is to read.")
    return content


def _decoded(path: Path, content: bytes) -> str:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        why = f"is not UTF-8: byte {error.start} cannot be read. Save it as UTF-8."
        raise Unusable(path, why) from None
    return text.replace("\r\n", "\n").replace("\r", "\n")


def cut(path: Path, text: str) -> Sheet:
    """The two parts."""
    hidden = UNSEEN.search(text)
    if hidden is not None:
        why = f"the character U+{ord(hidden[0]):04X} cannot be seen and does not belong there. Delete it."
        raise Unusable(path, why, text.count("\n", 0, hidden.start()) + 1)
    first, *lines = text.split("\n")
    if first.rstrip() != FENCE:
        why = "has no front matter. Begin it with a line ---, then `description: …`, then a line ---; the prompt below."
        raise Unusable(path, why)
    end = next((place for place, line in enumerate(lines) if line.rstrip() == FENCE), None)
    if end is None:
        raise Unusable(path, "its front matter never ends. Write a line --- below its last key.", 1)
    return Sheet(path=path, front=tuple(lines[:end]), text="\n".join(lines[end + 1 :]).strip())
