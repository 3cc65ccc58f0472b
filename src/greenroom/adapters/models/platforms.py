"""Platforms: conversations with models of any provider, by name. Subclass `BasePlatform` to add one of your own.

Retries with their time limit are in the model that a platform asks. A class that cannot be used is a warning in the
log, and is never raised.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import mimetypes
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import ClassVar, Final

from platformdirs import user_config_path

from greenroom.adapters.models.catalog.catalog import providers, split
from greenroom.core.base.errors import Bug, GreenroomError, WorldFault
from greenroom.core.base.ids import AgentId, StepId, ThreadId
from greenroom.core.ports.model import (
    ChatMessage,
    Failed,
    Finished,
    Media,
    Model,
    ModelCard,
    ModelRequest,
    Purpose,
    Retried,
    TextDelta,
    Usage,
)

LONGEST_ANSWER: Final = 8192
LARGEST_FILE: Final = 20_000_000
CHARS_PER_TOKEN: Final = 3
"""A cautious guess; Chinese has fewer, and is cut earlier than it would have to be."""

SHARE: Final = 2
"""One message may take the second part of a window: the rest is for the conversation and the answer."""

SHOWN: Final = 1000
"""Characters of a message that are said when the whole is in a file."""

SUM_UP: Final = (
    "Sum up our conversation for whoever goes on with it: the task with all its conditions, what is done, what was "
    "learned, what is still to do. Copy names, numbers and paths exactly."
)
SUMMED_UP: Final = "What was said before, in short:\n{summary}"
NO_SUMMARY: Final = "(Nothing could be said about it.)"
IN_A_FILE: Final = "{what} is in the file {name}. Go on from there: read it where you need it."

REQUIRED: Final = (
    "chat_until_success",
    "set_system_prompt",
    "upload_files",
    "reset",
    "set_model_name",
    "set_model_group",
    "name",
    "platform_name",
)
"""The methods of a platform (AG-124)."""

log: Final = logging.getLogger(__name__)


class LLMContext:
    """What was said, oldest first, cut to its last turns; a system message stands before it and stays. It keeps
    the very messages that it is given, and so their bytes. A turn is what a person says and all up to the next time."""

    def __init__(self, context_size: int = 20) -> None:
        if context_size < 0:
            raise Bug(f"A history of {context_size} turns cannot be kept. Give 0 or more.")
        self.context_size = context_size
        self._history: list[ChatMessage] = []

    def add_message(self, message: ChatMessage) -> None:
        """Something more was said."""
        self._history.append(message)

    def remove_last_message(self) -> ChatMessage | None:
        """Take the newest message back."""
        return self._history.pop() if self._history else None

    def set_history(self, messages: Iterable[ChatMessage]) -> None:
        """Another history in the place of this one."""
        self._history = list(messages)

    def get_history(self) -> tuple[ChatMessage, ...]:
        """All messages, oldest first."""
        return tuple(self._history)

    def clear(self) -> None:
        """Forget everything, the system message too."""
        self._history.clear()

    def trim_history(self) -> None:
        """Keep the last `context_size` turns and every system message. A call is never parted from its result."""
        starts: list[int] = []
        waiting: set[str] = set()
        for place, message in enumerate(self._history):
            if message.role == "user" and not waiting:
                starts.append(place)
            elif message.role == "assistant":
                waiting = {call.call_id for call in message.calls}
            elif message.role == "tool":
                waiting.discard(message.call_id or "")
        if len(starts) <= self.context_size:
            return
        first = starts[-self.context_size] if self.context_size else len(self._history)
        self._history = [one for place, one in enumerate(self._history) if place >= first or one.role == "system"]


def fitted(text: str, card: ModelCard) -> tuple[str, tuple[Media, ...]]:
    """What is said of a message that may be too long for the model, and what is shown with it."""
    most = card.window * CHARS_PER_TOKEN // SHARE
    if len(text) <= most:
        return text, ()
    if card.files:
        file = Media(media_type="text/plain", data=text.encode(), name="message.txt")
        return f"The whole message is in the file message.txt. It begins:\n{text[:SHOWN]}", (file,)
    half = most // 2
    return f"{text[:half]}\n[… {len(text) - most:,} characters are left out here …]\n{text[-half:]}", ()


class BasePlatform:
    """A conversation (an `LLMContext`) over the model that `make` gives for a name.

    A platform of one's own sets `platform` and overrides `model_named`, or whole methods.
    """

    platform: ClassVar[str] = ""

    def __init__(
        self,
        make: Callable[[str], Model],
        *,
        groups: Mapping[str, Sequence[str]] | None = None,
        context: LLMContext | None = None,
    ) -> None:
        self._make = make
        self._groups = groups or {}
        self.context = context or LLMContext()
        self._model: Model | None = None
        self._system: ChatMessage | None = None
        self._waiting: tuple[Media, ...] = ()
        self._turns = 0
        self._one_at_a_time = asyncio.Lock()

    @classmethod
    def platform_name(cls) -> str:
        """The name of the platform: for a built-in one the provider's."""
        return cls.platform

    def name(self) -> str:
        """The model's name, without the provider; empty while there is none."""
        return "" if self._model is None else self._model.name.partition(":")[2]

    def model_named(self, name: str) -> Model:
        """The model of this name at this platform."""
        return self._make(name)

    def set_model_name(self, name: str) -> None:
        """Speak with this model from now on; `WorldFault` if it cannot be had."""
        self._model = self.model_named(name)

    def set_model_group(self, group: str) -> None:
        """Speak with the first model of a group that this platform serves."""
        mine = self.platform_name()
        models = [split(name, also=(mine,)) for name in self._groups.get(group, ())]
        ours = [model for platform, model in models if platform == mine]
        if not ours:
            raise WorldFault(f"The group {group!r} has no model of {mine!r}. Add one to it, or take another platform.")
        self.set_model_name(ours[0])

    @property
    def model(self) -> Model:
        """Who answers."""
        if self._model is None:
            raise WorldFault(f"{self.platform_name()!r} was given no model. Choose one with `set_model_name`.")
        return self._model

    def set_system_prompt(self, text: str) -> None:
        """What the model is told before everything else; an empty text takes it back."""
        self._system = ChatMessage(role="system", content=text) if text else None

    def reset(self) -> None:
        """A new conversation: nothing was said, no file is waiting. The system prompt stays."""
        self.context.clear()
        self._waiting = ()

    @property
    def can_upload(self) -> bool:
        """Whether files can be shown to this model; if not, show it a summary."""
        return self.model.card.files or self.model.card.images

    async def upload_files(self, paths: Sequence[str | Path]) -> bool:
        """Show files with the next message: all of them, or none and False."""
        kinds = [mimetypes.guess_type(str(path))[0] or "application/octet-stream" for path in paths]
        card = self.model.card
        if not all(card.images if kind.startswith("image/") else card.files for kind in kinds):
            return False
        try:
            data = await asyncio.to_thread(lambda: [_content(Path(path)) for path in paths])
        except OSError as error:
            log.warning("No file was uploaded: %s", error)
            return False
        self._waiting += tuple(
            Media(media_type=kind, data=one, name=Path(path).name)
            for path, kind, one in zip(paths, kinds, data, strict=True)
        )
        return True

    async def chat_until_success(self, message: str) -> str:
        """Say something and get the answer. The model retries within its time limit; `WorldFault` after that."""
        return await self.call(message, self.context)

    async def call(self, prompt: str, context: LLMContext) -> str:
        """The same in another conversation. Without an answer the question counts as not asked."""
        async with self._one_at_a_time:
            before, shown = context.get_history(), self._waiting
            context.trim_history()
            said, attached = fitted(prompt, self.model.card)
            context.add_message(ChatMessage(role="user", content=said, media=(*shown, *attached)))
            try:
                text = await self._answer(context)
            except BaseException:
                context.set_history(before)
                raise
            self._waiting = self._waiting[len(shown) :]
            context.add_message(ChatMessage(role="assistant", content=text))
            context.trim_history()
            return text

    async def _answer(self, context: LLMContext) -> str:
        self._turns += 1
        history = context.get_history()
        request = ModelRequest(
            purpose=Purpose(
                agent=AgentId("platform"),
                skill="chat",
                step=StepId(f"platform#{self._turns}"),
                thread=ThreadId(self.platform_name()),
                turn=self._turns,
                answering=True,
            ),
            messages=history if self._system is None else (self._system, *history),
            max_output=min(self.model.card.output, LONGEST_ANSWER),
        )
        text, spent = "", Usage()
        async for event in self.model.stream(request):
            match event:
                case TextDelta(text=more):
                    text += more
                case Retried():
                    text = ""
                case Usage():
                    spent = event
                case Failed(why=why):
                    raise WorldFault(f"{self.model.name}: {why}", spent=spent.spent)
                case Finished():
                    if not text.strip():
                        log.warning("%s gave an empty answer", self.model.name)
                    return text if text.strip() else ""
                case _:
                    pass
        raise WorldFault(f"{self.model.name} stopped without an end. Ask again.", spent=spent.spent)


def _content(path: Path) -> bytes:
    if path.stat().st_size > LARGEST_FILE:
        raise OSError(f"{path} is larger than {LARGEST_FILE:,} bytes")
    return path.read_bytes()


async def shorten_history(platform: BasePlatform, *, prompt: str = SUM_UP, tell: Callable[[str], object] = str) -> str:
    """Begin anew with the history as a file, or with a summary; what to say with the next message.

    `tell` hears `before_history_clear` and `after_history_clear` on both ways. The system prompt stays in force. The
    file is shown before anything is forgotten, so that one which cannot be shown costs nothing but a summary.
    """
    history = platform.context.get_history()
    text = "\n\n".join(f"## {message.role}\n{message.content}" for message in history)
    if platform.can_upload and await _shown(platform, "history.md", text):
        said = IN_A_FILE.format(what="What was said so far", name="history.md")
    else:
        said = SUMMED_UP.format(summary=await _summary(platform, prompt))
    tell("before_history_clear")
    platform.context.clear()
    tell("after_history_clear")
    return said


async def show_output(platform: BasePlatform, call: str, output: str) -> str:
    """Begin anew with a tool's output as a file: a summary, which call it was and how to go on, to be said next.

    Empty when the file cannot be shown: then nothing is forgotten. `call` is how the tool was called, in words.
    """
    if not platform.can_upload:
        return ""
    summary = await _summary(platform, SUM_UP)  # asked before the file waits: it is for the next message
    if not await _shown(platform, "output.txt", output):
        return ""
    platform.context.clear()
    said = IN_A_FILE.format(what=f"The whole output of {call}", name="output.txt")
    return f"{SUMMED_UP.format(summary=summary)}\n\n{said}"


async def _shown(platform: BasePlatform, name: str, text: str) -> bool:
    """Show a text as a file, which is gone afterwards in every case; False when it cannot be shown."""
    with tempfile.TemporaryDirectory(prefix="greenroom-shown-") as folder:
        path = Path(folder) / name
        path.write_text(text, encoding="utf-8")
        return await platform.upload_files([path])


async def _summary(platform: BasePlatform, prompt: str) -> str:
    """Asked in a copy of the conversation, which it does not become a part of."""
    copy = LLMContext(platform.context.context_size)
    copy.set_history(platform.context.get_history())
    return await platform.call(prompt, copy) or NO_SUMMARY


class PlatformRegistry:
    """All platforms by name: every provider of the catalog, the user's own files, and installed packages.

    `make` gives a model by the names of its provider and its own; `normal` and the members of `groups` are
    `provider:model`.
    """

    def __init__(
        self,
        make: Callable[[str, str], Model],
        *,
        normal: str = "",
        groups: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self._make = make
        self._normal = normal
        self._groups = groups or {}
        self._classes: dict[str, type[BasePlatform]] = {
            name: type(f"{name.title().replace('-', '')}Platform", (BasePlatform,), {"platform": name})
            for name in providers()
        }

    def names(self) -> Sequence[str]:
        """All platforms."""
        return tuple(self._classes)

    def register_platform(self, name: str, cls: type, where: str = "") -> bool:
        """Add a class under this name, in the place of an older one; False and a warning if it cannot be a platform."""
        missing = [method for method in REQUIRED if not callable(getattr(cls, method, None))]
        why = f"lacks {', '.join(missing)}. Add them." if missing else ""
        if not missing and not issubclass(cls, BasePlatform):
            why = "is no BasePlatform. Make it a subclass."
        elif not missing and (not name or ":" in name):
            why = f"is called {name!r}. A platform's name is not empty and has no colon."
        if why:
            log.warning("%s: %s %s", where or cls.__module__, cls.__name__, why)
            return False
        self._classes[name] = cls
        return True

    def scan(self, folder: Path | None = None) -> Sequence[str]:
        """Add the platforms of the user's folder; their names."""
        return self.load_platform_from_dir(folder or user_config_path("greenroom", appauthor=False) / "models")

    def load_platform_from_dir(self, folder: Path) -> Sequence[str]:
        """Add the platforms of a folder of Python files; their names. One without a name is called like its file."""
        added: list[str] = []
        for path in sorted(folder.glob("[!_]*.py")):
            module = ModuleType(f"greenroom_platforms_{path.stem}")
            module.__file__ = str(path)
            sys.modules[module.__name__] = module  # its own classes look themselves up there
            try:
                SourceFileLoader(module.__name__, str(path)).exec_module(module)
            except (Exception, SystemExit) as error:
                log.debug("%s cannot be loaded", path, exc_info=True)
                del sys.modules[module.__name__]
                log.warning("%s cannot be loaded: %s: %s. Correct it.", path, type(error).__name__, error)
                continue
            for name, cls in vars(module).items():
                if not inspect.isclass(cls) or cls.__module__ != module.__name__ or name.startswith("_"):
                    continue
                if issubclass(cls, BasePlatform):
                    cls.platform = cls.platform or path.stem
                if name.endswith("Platform") or issubclass(cls, BasePlatform):
                    called = getattr(cls, "platform", path.stem)
                    added += [called] if self.register_platform(called, cls, str(path)) else []
        return tuple(added)

    def create_platform(self, name: str, model: str = "") -> BasePlatform | None:
        """A new conversation with this platform and model (left out: what is proposed); None and a warning if not."""
        cls = self._classes.get(name)
        if cls is None:
            log.warning("There is no platform %r. There are: %s.", name, ", ".join(self._classes))
            return None
        known = providers().get(name)
        try:
            platform = cls(partial(self._make, name), groups=self._groups)
            chosen = model or (known.strong if known else "")
            if chosen:
                platform.set_model_name(chosen)
        except GreenroomError as error:
            log.warning("The platform %r cannot be had. %s", name, error)
            return None
        except Exception:
            # Somebody else's class: whatever it does, the others are still there.
            log.exception("The platform %r cannot be had", name)
            return None
        return platform

    def get_normal_platform(self, group: str | None = None) -> BasePlatform | None:
        """A new conversation with the normal model, or with a group's."""
        try:
            name, model = self._names(group)
        except WorldFault as fault:
            log.warning("There is no normal platform. %s", fault)
            return None
        return self.create_platform(name, model)

    def get_normal_platform_name(self, group: str | None = None) -> str:
        """The platform of the normal model, or of a group's main one."""
        return self._names(group)[0]

    def get_normal_model_name(self, group: str | None = None) -> str:
        """The normal model without its provider, or a group's main one."""
        return self._names(group)[1]

    def _names(self, group: str | None) -> tuple[str, str]:
        name = self._normal
        if group is not None:
            members = self._groups.get(group)
            if not members:
                there = ", ".join(self._groups) or "none"
                raise WorldFault(f"There is no model group {group!r}. There are: {there}.")
            name = members[0]
        if not name:
            raise WorldFault("No model is set. `greenroom init` sets one up.")
        return split(name, also=self._classes)


def _nobody(provider: str, model: str) -> Model:
    raise WorldFault(f"Nobody has said how {provider}:{model} is asked. Start Greenroom first.")


_shared: list[PlatformRegistry] = []
"""The registry of this process, once there is one."""


def set_global_platform_registry(registry: PlatformRegistry | None) -> None:
    """From now on this is the registry of the process; None forgets it."""
    _shared[:] = [registry] if registry is not None else []


def get_global_platform_registry() -> PlatformRegistry:
    """The registry of the process: always the same one."""
    if not _shared:
        _shared.append(PlatformRegistry(_nobody))
    return _shared[0]
