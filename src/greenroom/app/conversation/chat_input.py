"""The input of chats: commands (`/`), file mentions (`@path`), attachments, and the person at the terminal."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path, PurePath
from typing import Final, Protocol, TypeAlias

from greenroom.app.messages import MESSAGES, translate
from greenroom.app.settings.home import read_inside
from greenroom.app.settings.layers import is_visible
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.records import record
from greenroom.core.base.text import add_fence
from greenroom.core.ports.prompt_pack import PromptPack
from greenroom.policy import secrets

PRIVATE_KEY: Final = "PRIVATE KEY-----"


def is_secret(path: PurePath) -> bool:
    """Whether the path's name, or a folder in it, marks it as secret."""
    return secrets.is_secret(tuple(part.lower() for part in path.parts))


PACK: Final = PromptPack("greenroom.app.conversation.prompts")
MEGABYTE: Final = 1_000_000
MAX_MESSAGE_BYTES: Final = MEGABYTE


@record
class Attachment:
    """An attached text: a file with its name, or piped input without one."""

    text: str
    name: str = ""


def build_message(typed_text: str, attachments: Sequence[Attachment] = (), *, language: str = "") -> str:
    """Build the whole message. Raise `WorldFault` if it is too long."""
    parts = [*(render_attachment(attachment, language) for attachment in attachments), typed_text]
    whole = "\n\n".join(part for part in parts if part)
    size = len(whole.encode())
    if size > MAX_MESSAGE_BYTES:
        raise WorldFault("conversation.message_too_long", size=size / MEGABYTE)
    return whole


def render_attachment(attachment: Attachment, language: str = "") -> str:
    """Render an attachment under its label, in a fence that its text cannot close."""
    label = PACK.render(language, "file" if attachment.name else "stdin", {"name": attachment.name})
    return PACK.render(language, "data", {"label": label, "text": add_fence(attachment.text)})


def mark_interrupted(text: str, *, language: str = "") -> str:
    """Mark a message that follows an interruption."""
    return PACK.render(language, "interrupted", {"text": text})


BLOCK_QUOTES: Final = '"""'
CONTINUATION: Final = "\\"


def is_unfinished(text: str) -> bool:
    """Whether the input continues on the next line."""
    lines = text.split("\n")
    if sum(line.strip() == BLOCK_QUOTES for line in lines) % 2:
        return True
    return lines[-1].endswith(CONTINUATION) and not lines[-1].endswith(CONTINUATION * 2)


def join_lines(text: str) -> str:
    """Remove the continuation marks from a text."""
    kept_lines, is_quoted = list[str](), False
    for line in text.split("\n"):
        if line.strip() == BLOCK_QUOTES:
            is_quoted = not is_quoted
        elif not is_quoted and line.endswith(CONTINUATION) and not line.endswith(CONTINUATION * 2):
            kept_lines.append(line.removesuffix(CONTINUATION))
        else:
            kept_lines.append(line)
    return "\n".join(kept_lines).strip("\n")


@record
class ChatCommand:
    """A command for the front end, not for the agent."""

    name: str
    argument: str = ""


@record
class HandledInput:
    """The result of a handler. `content` goes to the next handler, unless `need_return` ends the chain. `reply` is for
    the person, `command` for the front end. `attached` goes to the agent with the content."""

    content: str
    need_return: bool = False
    reply: str = ""
    command: ChatCommand | None = None
    attached: tuple[Attachment, ...] = ()


Handler: TypeAlias = Callable[[str], HandledInput]


class ChatCommands(Mapping[str, str]):
    """The chat commands with their help in the language of the process. Arguments come before two spaces."""

    def __getitem__(self, name: str) -> str:
        return MESSAGES.table("chat_commands", "")[name]

    def __iter__(self) -> Iterator[str]:
        return iter(MESSAGES.table("chat_commands", ""))

    def __len__(self) -> int:
        return len(MESSAGES.table("chat_commands", ""))


COMMANDS: Final = ChatCommands()
COMMAND_ALIASES: Final = {"quit": "exit", "q": "exit", "bye": "exit", "new": "clear", "?": "help", "go": "continue"}


MULTI_AGENT: Final = re.compile(r"@multi-agent(?=\s|$)", re.IGNORECASE)


def run_handlers(text: str, handlers: Sequence[Handler]) -> HandledInput:
    """Run the handlers in order until one ends the chain."""
    handled, attachments = HandledInput(content=text), tuple[Attachment, ...]()
    for handler in handlers:
        handled = handler(handled.content)
        attachments += handled.attached
        if handled.need_return:
            return handled
    return HandledInput(content=handled.content, attached=attachments)


def handle_command(text: str) -> HandledInput:
    """Handle `/word …` as a command. A path, or a line that starts with a space, is text.

    `@multi-agent …` is the command `/team …`.
    """
    if request := MULTI_AGENT.match(text):
        command = ChatCommand(name="team", argument=text[request.end() :].strip())
        return HandledInput(content="", need_return=True, command=command)
    word, _, rest = text[1:].partition(" ")
    first = word.strip()
    if not text.startswith("/") or "/" in first or "\n" in text:
        return HandledInput(content=text)
    name = COMMAND_ALIASES.get(first.lower(), first.lower()) or "help"
    if name in COMMANDS:
        return HandledInput(content="", need_return=True, command=ChatCommand(name=name, argument=rest.strip()))
    similar = get_close_matches(first.lower(), [*COMMANDS, *COMMAND_ALIASES], n=1)
    suggestion = translate("chat.meant_command", near=similar[0]) if similar else translate("chat.see_help")
    return HandledInput(
        content="", need_return=True, reply=translate("chat.unknown_command", word=first, hint=suggestion)
    )


def handle_shell(text: str) -> HandledInput:
    """Refuse `!command`: there is no shell yet."""
    if not text.startswith("!"):
        return HandledInput(content=text)
    return HandledInput(content="", need_return=True, reply=translate("chat.no_shell"))


MAX_FILE_BYTES: Final = 64 * 1024
MAX_ENTRIES_SCANNED: Final = 2_000
FILE_MENTION: Final = re.compile(r'(?<!\S)@(?:"([^"\n]+)"|(\S+))')
PUNCTUATION: Final = ".,;:!?)]}'\""
SKIPPED_FOLDERS: Final = frozenset({"node_modules", "__pycache__", ".venv"})


class UnreadableAttachment(Exception):
    """Why a file is not attached, as a sentence."""


def make_file_handler(folder: Path, root: Path) -> Handler:
    """Return the file handler for a folder of a workspace."""

    def attach_files(text: str) -> HandledInput:
        attachments: dict[str, Attachment] = {}
        for quoted, bare in FILE_MENTION.findall(text):
            try:
                attachment = _read_attachment(quoted or bare, folder, root)
            except UnreadableAttachment as fault:
                return HandledInput(content=text, need_return=True, reply=translate("chat.nothing_sent", fault=fault))
            if attachment is not None:
                attachments[attachment.name] = attachment
        return HandledInput(content=text, attached=tuple(attachments.values()))

    return attach_files


def _read_attachment(mentioned: str, folder: Path, root: Path) -> Attachment | None:
    """Read a mentioned file. Return None for a word that only looks like a mention, such as `@property`."""
    path = _find_file(mentioned, folder, root)
    if path is None:
        similar = _find_similar(mentioned, folder)
        if not similar and "/" not in mentioned and "." not in mentioned.rstrip(PUNCTUATION):
            return None
        suggestion = translate("chat.meant_file", near=similar) if similar else translate("chat.use_relative_path")
        raise UnreadableAttachment(translate("chat.no_file", path=mentioned, hint=suggestion))
    real_path = path.resolve()
    if not real_path.is_relative_to(root.resolve()):
        raise UnreadableAttachment(translate("chat.file_outside", path=mentioned, root=root))
    if is_secret(path) or is_secret(real_path.relative_to(root.resolve())):
        raise UnreadableAttachment(translate("chat.file_secret", path=mentioned))
    return Attachment(text=_read_text(real_path, mentioned), name=str(real_path.relative_to(root.resolve())))


def _find_file(mentioned: str, folder: Path, root: Path) -> Path | None:
    """Find a file relative to the folder, then to the workspace root. A trailing period may belong to the sentence."""
    for name in dict.fromkeys((mentioned, mentioned.rstrip(PUNCTUATION))):
        for base in dict.fromkeys((folder, root)):
            if name and is_visible(base / name):
                return base / name
    return None


def _read_text(real_path: Path, mentioned: str) -> str:
    """Read a file. Raise `UnreadableAttachment` if it is not text, too long or holds a private key."""
    if real_path.is_dir():
        raise UnreadableAttachment(translate("git.is_folder", path=mentioned))
    try:
        text = read_inside(real_path, None, MAX_FILE_BYTES).decode("utf-8-sig")
    except WorldFault as fault:
        raise UnreadableAttachment(translate("files.fault", path=repr(mentioned), fault=fault)) from None
    except UnicodeDecodeError:
        raise UnreadableAttachment(translate("chat.file_not_utf8", path=mentioned)) from None
    if "\0" in text:
        raise UnreadableAttachment(translate("chat.file_not_text", path=mentioned))
    if "-----BEGIN " in text and PRIVATE_KEY in text:
        raise UnreadableAttachment(translate("chat.file_private_key", path=mentioned))
    return text


def _find_similar(mentioned: str, folder: Path) -> str:
    mentioned_path = Path(mentioned.rstrip(PUNCTUATION))
    names = [name for name, _ in _list_entries(folder / mentioned_path.parent)]
    exact = {name.lower(): name for name in names}
    close_matches = get_close_matches(mentioned_path.name.lower(), exact, n=1, cutoff=0.7)
    same_stems = [name for name in names if Path(name).stem.lower() == mentioned_path.name.lower()]
    best = same_stems[0] if same_stems else exact[close_matches[0]] if close_matches else ""
    return str(mentioned_path.parent / best) if best else ""


def complete_paths(prefix: str, folder: Path, root: Path) -> Iterator[str]:
    """Complete a path with files and folders, without secret ones."""
    start, _, name = prefix.rpartition("/")
    base = folder / start if start else folder
    try:
        is_inside = base.resolve().is_relative_to(root.resolve())
    except OSError:
        return
    for entry, is_folder in _list_entries(base) if is_inside else ():
        path = f"{start}/{entry}" if start else entry
        is_hidden = entry in SKIPPED_FOLDERS or (entry.startswith(".") and not name.startswith("."))
        if entry.startswith(name) and not is_hidden and not is_secret(Path(path)):
            yield f"{path}/" if is_folder else path


def _list_entries(folder: Path) -> list[tuple[str, bool]]:
    try:
        with os.scandir(folder) as scan:
            entries = [(entry.name, entry.is_dir()) for entry, _ in zip(scan, range(MAX_ENTRIES_SCANNED), strict=False)]
    except OSError:
        return []
    return sorted(entries)


@record
class TextInput:
    """A typed text."""

    text: str


@record
class WakeInput:
    """Another event woke the prompt before any input."""


@record
class InterruptInput:
    """Ctrl-C on an empty line."""


@record
class EndOfInput:
    """The input has ended."""


InputEvent: TypeAlias = TextInput | WakeInput | InterruptInput | EndOfInput


class PersonInput(Protocol):
    """The input of a person. `is_attended`: a person can be asked. `can_choose`: they can pick an option."""

    is_attended: bool
    can_choose: bool

    async def read_text(self, tip: str, woken: asyncio.Event, *, print_on_empty: bool = False) -> InputEvent:
        """Read a text, unless another event comes first."""
        ...

    async def confirm(self, tip: str, *, default: bool) -> bool:
        """Ask for a yes or a no."""
        ...

    async def read_line(self, tip: str) -> str | None:
        """Read one line. Return None if there is no answer."""
        ...

    def interrupt(self) -> None:
        """Handle Ctrl-C."""
        ...


class NoPersonInput:
    """The input when no person is present: it ends immediately."""

    is_attended = False
    can_choose = False

    async def read_text(self, tip: str, woken: asyncio.Event, *, print_on_empty: bool = False) -> InputEvent:
        """Return the end of input."""
        return EndOfInput()

    async def confirm(self, tip: str, *, default: bool) -> bool:
        """Return the default."""
        return default

    async def read_line(self, tip: str) -> str | None:
        """Return None."""
        return None

    def interrupt(self) -> None:
        """Do nothing."""
