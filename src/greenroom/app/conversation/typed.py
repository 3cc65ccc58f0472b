"""Who is asked for text or for a yes, and what they type: commands (`/`), files (`@path`), and the message of it."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable, Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path, PurePath
from typing import Final, Protocol, TypeAlias

from greenroom.app.settings.home import read_inside
from greenroom.app.settings.layers import there
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.records import record
from greenroom.core.base.text import fenced
from greenroom.core.ports.packs import Pack
from greenroom.policy import secrets

PRIVATE_KEY: Final = "PRIVATE KEY-----"


def is_secret(path: PurePath) -> bool:
    """Whether its name or a folder on the way to it says that it is nobody else's business."""
    return secrets.is_secret(tuple(part.lower() for part in path.parts))


PACK: Final = Pack("greenroom.app.conversation.prompts")
MEGABYTE: Final = 1_000_000
LONGEST_MESSAGE: Final = MEGABYTE
"""Bytes of one message with all that is in it."""


@record
class Attached:
    """A text and what it is: a file by its name, or (without one) what was piped in."""

    text: str
    name: str = ""


def message(words: str, attached: Sequence[Attached] = (), *, language: str = "") -> str:
    """The whole message. `WorldFault` for one that is too long for anybody."""
    parts = [*(labelled(one, language) for one in attached), words]
    whole = "\n\n".join(part for part in parts if part)
    size = len(whole.encode())
    if size > LONGEST_MESSAGE:
        raise WorldFault(f"That is {size / MEGABYTE:.1f} MB of text; a message may have 1 MB. Leave something out.")
    return whole


def labelled(one: Attached, language: str = "") -> str:
    """The text in a fence that nothing in it can close, under what it is."""
    label = PACK.render(language, "file" if one.name else "stdin", {"name": one.name})
    return PACK.render(language, "data", {"label": label, "text": fenced(one.text)})


def interrupted(words: str, *, language: str = "") -> str:
    """What is said to somebody who was stopped in the middle of something else."""
    return PACK.render(language, "interrupted", {"text": words})


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


@record
class Command:
    """Something that the door is to do, and not the agent."""

    name: str
    argument: str = ""


@record
class Handled:
    """What a handler made of a text: the `content` for the next one. With `need_return` none comes after it.

    `said` is for the person; `command` is to be done; `attached` goes along with the content to the agent.
    """

    content: str
    need_return: bool = False
    said: str = ""
    command: Command | None = None
    attached: tuple[Attached, ...] = ()


Handler: TypeAlias = Callable[[str], Handled]

COMMANDS: Final = {
    "help": "what can be typed here",
    "clear": "begin anew; what was said stays in the log",
    "retry": "ask the last thing again",
    "continue": "let it go on",
    "model": "NAME  ask another model from now on",
    "cost": "what this chat has cost",
    "limit": "cost|tokens|time VALUE  what it may spend",
    "history": "what was said so far",
    "done": "SUMMARY  end this chat for good",
    "exit": "leave; it can be resumed",
}
"""The commands, and what each does. What it takes comes before two spaces."""

OTHER_NAMES: Final = {"quit": "exit", "q": "exit", "bye": "exit", "new": "clear", "?": "help", "go": "continue"}
SHELL: Final = "`!` is for commands, and Greenroom cannot run any yet. Put a space before it to say it to the agent."


def handle(text: str, handlers: Sequence[Handler]) -> Handled:
    """What comes of a text: each handler gets what the one before made of it, until one ends the chain."""
    done, attached = Handled(content=text), tuple[Attached, ...]()
    for handler in handlers:
        done = handler(done.content)
        attached += done.attached
        if done.need_return:
            return done
    return Handled(content=done.content, attached=attached)


def builtin(text: str) -> Handled:
    """`/word …` is a command. A path is none, and neither is what begins with a space."""
    word, _, rest = text[1:].partition(" ")
    first = word.strip()
    if not text.startswith("/") or "/" in first or "\n" in text:
        return Handled(content=text)
    name = OTHER_NAMES.get(first.lower(), first.lower()) or "help"
    if name in COMMANDS:
        return Handled(content="", need_return=True, command=Command(name=name, argument=rest.strip()))
    near = get_close_matches(first.lower(), [*COMMANDS, *OTHER_NAMES], n=1)
    told = f"Did you mean /{near[0]}?" if near else "/help lists what there is."
    return Handled(content="", need_return=True, said=f"There is no /{first}. {told}")


def shell(text: str) -> Handled:
    """`!command` is for the shell, which is not there yet."""
    if not text.startswith("!"):
        return Handled(content=text)
    return Handled(content="", need_return=True, said=SHELL)


LONGEST_FILE: Final = 64 * 1024
"""Bytes of one file."""

LOOKED_AT: Final = 2_000
"""Names in a folder among which a near one is looked for."""

AT: Final = re.compile(r'(?<!\S)@(?:"([^"\n]+)"|(\S+))')
PUNCTUATION: Final = ".,;:!?)]}'\""
SKIPPED: Final = frozenset({"node_modules", "__pycache__", ".venv"})


class Unreadable(Exception):
    """Why a file is not brought along, in one sentence."""


def file_context(folder: Path, root: Path) -> Handler:
    """The handler for somebody who is in this folder of this workspace."""

    def files(text: str) -> Handled:
        found: dict[str, Attached] = {}
        for quoted, bare in AT.findall(text):
            try:
                one = _attached(quoted or bare, folder, root)
            except Unreadable as fault:
                return Handled(content=text, need_return=True, said=f"{fault} Nothing was sent.")
            if one is not None:
                found[one.name] = one
        return Handled(content=text, attached=tuple(found.values()))

    return files


def _attached(mentioned: str, folder: Path, root: Path) -> Attached | None:
    """The file that is meant; None for a word that only begins like one, as `@property` does."""
    place = _place(mentioned, folder, root)
    if place is None:
        near = _near(mentioned, folder)
        if not near and "/" not in mentioned and "." not in mentioned.rstrip(PUNCTUATION):
            return None
        told = f"Did you mean @{near}?" if near else "Name it as it is seen from here, or put a space behind the @."
        raise Unreadable(f"There is no file {mentioned!r}. {told}")
    real = place.resolve()
    if not real.is_relative_to(root.resolve()):
        raise Unreadable(f"{mentioned!r} lies outside of the workspace {root}, and is not read.")
    if is_secret(place) or is_secret(real.relative_to(root.resolve())):
        raise Unreadable(f"{mentioned!r} looks like a place for secrets, and is not read.")
    return Attached(text=_text(real, mentioned), name=str(real.relative_to(root.resolve())))


def _place(mentioned: str, folder: Path, root: Path) -> Path | None:
    """Where it is: seen from this folder, else from the workspace's root. A full stop behind it may be a sentence's."""
    for name in dict.fromkeys((mentioned, mentioned.rstrip(PUNCTUATION))):
        for base in dict.fromkeys((folder, root)):
            if name and there(base / name):
                return base / name
    return None


def _text(real: Path, mentioned: str) -> str:
    """The text of a file; `Unreadable` for what is not text, is too long or holds a private key."""
    if real.is_dir():
        raise Unreadable(f"{mentioned!r} is a folder; name a file in it.")
    try:
        text = read_inside(real, None, LONGEST_FILE).decode("utf-8-sig")
    except WorldFault as fault:
        raise Unreadable(f"{mentioned!r} {fault}.") from None
    except UnicodeDecodeError:
        raise Unreadable(f"{mentioned!r} is no text (it is not UTF-8).") from None
    if "\0" in text:
        raise Unreadable(f"{mentioned!r} is no text.")
    if "-----BEGIN " in text and PRIVATE_KEY in text:
        raise Unreadable(f"{mentioned!r} holds a private key, and is not read.")
    return text


def _near(mentioned: str, folder: Path) -> str:
    """The name of a file in the same folder that may be meant."""
    wanted = Path(mentioned.rstrip(PUNCTUATION))
    names = [name for name, _ in _entries(folder / wanted.parent)]
    exact = {name.lower(): name for name in names}
    found = get_close_matches(wanted.name.lower(), exact, n=1, cutoff=0.7)
    begins = [name for name in names if Path(name).stem.lower() == wanted.name.lower()]
    best = begins[0] if begins else exact[found[0]] if found else ""
    return str(wanted.parent / best) if best else ""


def offered(beginning: str, folder: Path, root: Path) -> Iterator[str]:
    """The files and folders that a path may go on with, for completion. Secrets are not among them."""
    start, _, name = beginning.rpartition("/")
    base = folder / start if start else folder
    try:
        inside = base.resolve().is_relative_to(root.resolve())
    except OSError:
        return
    for entry, is_folder in _entries(base) if inside else ():
        path = f"{start}/{entry}" if start else entry
        hidden = entry in SKIPPED or (entry.startswith(".") and not name.startswith("."))
        if entry.startswith(name) and not hidden and not is_secret(Path(path)):
            yield f"{path}/" if is_folder else path


def _entries(folder: Path) -> list[tuple[str, bool]]:
    try:
        with os.scandir(folder) as found:
            some = [(one.name, one.is_dir()) for one, _ in zip(found, range(LOOKED_AT), strict=False)]
    except OSError:
        return []
    return sorted(some)


@record
class Written:
    """What was typed."""

    text: str


@record
class Woken:
    """Something else happened while nobody had typed anything."""


@record
class Stopped:
    """Ctrl-C, with nothing typed."""


@record
class Gone:
    """There is nobody any more."""


Read: TypeAlias = Written | Woken | Stopped | Gone


class Person(Protocol):
    """Who talks. `attended` says that somebody really is there and can be asked; `chooses` that they can be asked for
    more than a yes or a no."""

    attended: bool
    chooses: bool

    async def write(self, tip: str, woken: asyncio.Event, *, print_on_empty: bool = False) -> Read:
        """A text, unless something else comes first."""
        ...

    async def agrees(self, tip: str, *, default: bool) -> bool:
        """A yes or a no."""
        ...

    async def replies(self, tip: str) -> str | None:
        """One line; None when somebody does not want to say anything, or nobody is there."""
        ...

    def stop(self) -> None:
        """Somebody pressed Ctrl-C."""
        ...


class Nobody:
    """Nobody is there: what was begun is ended, and that is all."""

    attended = False
    chooses = False

    async def write(self, tip: str, woken: asyncio.Event, *, print_on_empty: bool = False) -> Read:
        """Nothing."""
        return Gone()

    async def agrees(self, tip: str, *, default: bool) -> bool:
        """What is meant when nobody says anything."""
        return default

    async def replies(self, tip: str) -> str | None:
        """Nothing."""
        return None

    def stop(self) -> None:
        """There is nobody to stop."""
