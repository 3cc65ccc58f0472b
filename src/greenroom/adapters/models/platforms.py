"""Platforms: conversations with models of any provider, by name. Subclass `BasePlatform` to add your own.

The model behind a platform handles retries and time limits. An unusable class only causes a warning in the log.
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

from greenroom.adapters.models.catalog.catalog import load_providers, split_model_name
from greenroom.core.base.errors import Bug, GreenroomError, WorldFault, translate
from greenroom.core.base.ids import AgentId, StepId, ThreadId
from greenroom.core.ports.model import (
    ChatMessage,
    Failed,
    Finished,
    Media,
    Model,
    ModelCard,
    ModelRequest,
    ModelTextDelta,
    Purpose,
    Retried,
    Usage,
)

MAX_ANSWER_TOKENS: Final = 8192
MAX_FILE_BYTES: Final = 20_000_000
CHARS_PER_TOKEN: Final = 3
"""A cautious estimate of characters per token. Chinese text has fewer, so it is cut earlier than necessary."""

WINDOW_DIVISOR: Final = 2
"""One message may use this fraction (1/2) of the context window."""

MAX_PREVIEW_CHARS: Final = 1000
"""How many characters of a message are quoted when the whole message is in a file."""

SUMMARY_PROMPT: Final = (
    "Sum up our conversation for the agent that continues: the task with all its conditions, what is done, what was "
    "learned, what is still to do. Copy names, numbers and paths exactly."
)
SUMMARY_TEXT: Final = "What was said before, in short:\n{summary}"
NO_SUMMARY: Final = "(Nothing could be said about it.)"
FILE_TEXT: Final = "{what} is in the file {name}. Go on from there: read it where you need it."

REQUIRED_METHODS: Final = (
    "chat_until_success",
    "set_system_prompt",
    "upload_files",
    "reset",
    "set_model_name",
    "set_model_group",
    "name",
    "platform_name",
)
"""The methods that a platform must have (AG-124)."""

log: Final = logging.getLogger(__name__)


class LLMContext:
    """The history of a conversation, oldest first, limited to the last turns. System messages are always kept.

    It keeps the message objects unchanged. A turn starts with a user message and ends before the next.
    """

    def __init__(self, context_size: int = 20) -> None:
        if context_size < 0:
            raise Bug(f"A history cannot have {context_size} turns. Give 0 or more.")
        self.context_size = context_size
        self._history: list[ChatMessage] = []

    def add_message(self, message: ChatMessage) -> None:
        self._history.append(message)

    def remove_last_message(self) -> ChatMessage | None:
        """Remove and return the newest message; None if there is none."""
        return self._history.pop() if self._history else None

    def set_history(self, messages: Iterable[ChatMessage]) -> None:
        self._history = list(messages)

    def get_history(self) -> tuple[ChatMessage, ...]:
        """Return all messages, oldest first."""
        return tuple(self._history)

    def clear(self) -> None:
        """Remove all messages, including system messages."""
        self._history.clear()

    def trim_history(self) -> None:
        """Keep the last `context_size` turns and every system message. A call and its result stay together."""
        starts: list[int] = []
        open_calls: set[str] = set()
        for place, message in enumerate(self._history):
            if message.role == "user" and not open_calls:
                starts.append(place)
            elif message.role == "assistant":
                open_calls = {call.call_id for call in message.calls}
            elif message.role == "tool":
                open_calls.discard(message.call_id or "")
        if len(starts) <= self.context_size:
            return
        first = starts[-self.context_size] if self.context_size else len(self._history)
        self._history = [entry for place, entry in enumerate(self._history) if place >= first or entry.role == "system"]


def fit_message(text: str, card: ModelCard) -> tuple[str, tuple[Media, ...]]:
    """Fit a message into the context window: return its text, shortened if necessary, and attached files."""
    max_chars = card.window * CHARS_PER_TOKEN // WINDOW_DIVISOR
    if len(text) <= max_chars:
        return text, ()
    if card.files:
        file = Media(media_type="text/plain", data=text.encode(), name="message.txt")
        return f"The whole message is in the file message.txt. It begins:\n{text[:MAX_PREVIEW_CHARS]}", (file,)
    half = max_chars // 2
    return f"{text[:half]}\n[… {len(text) - max_chars:,} characters are left out here …]\n{text[-half:]}", ()


class BasePlatform:
    """A conversation (an `LLMContext`) with the model that `make` returns for a name.

    A custom platform sets `platform` and overrides `model_named` or other methods.
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
        self._pending_media: tuple[Media, ...] = ()
        self._turns = 0
        self._lock = asyncio.Lock()

    @classmethod
    def platform_name(cls) -> str:
        """Return the name of the platform; a built-in platform has the name of its provider."""
        return cls.platform

    def name(self) -> str:
        """Return the name of the model without its provider; empty if none is set."""
        return "" if self._model is None else self._model.name.partition(":")[2]

    def model_named(self, name: str) -> Model:
        return self._make(name)

    def set_model_name(self, name: str) -> None:
        """Use this model from now on. Raise `WorldFault` if it is not available."""
        self._model = self.model_named(name)

    def set_model_group(self, group: str) -> None:
        """Use the first model of a group that this platform serves."""
        platform_name = self.platform_name()
        models = [split_model_name(name, own_providers=(platform_name,)) for name in self._groups.get(group, ())]
        model_names = [model for platform, model in models if platform == platform_name]
        if not model_names:
            raise WorldFault("models.group_lacks_platform", group=group, platform_name=platform_name)
        self.set_model_name(model_names[0])

    @property
    def model(self) -> Model:
        """The current model. Raise `WorldFault` if none is set."""
        if self._model is None:
            raise WorldFault("models.platform_without_model", platform_name=self.platform_name())
        return self._model

    def set_system_prompt(self, text: str) -> None:
        """Set the system prompt; an empty text removes it."""
        self._system = ChatMessage(role="system", content=text) if text else None

    def reset(self) -> None:
        """Start a new conversation without history and files. The system prompt stays."""
        self.context.clear()
        self._pending_media = ()

    @property
    def can_upload(self) -> bool:
        """Whether this model accepts files. If not, send a summary."""
        return self.model.card.files or self.model.card.images

    async def upload_files(self, paths: Sequence[str | Path]) -> bool:
        """Attach files to the next message: all of them, or none and return False."""
        kinds = [mimetypes.guess_type(str(path))[0] or "application/octet-stream" for path in paths]
        card = self.model.card
        if not all(card.images if kind.startswith("image/") else card.files for kind in kinds):
            return False
        try:
            data = await asyncio.to_thread(lambda: [_read_file(Path(path)) for path in paths])
        except OSError as error:
            log.warning("No file was uploaded: %s", error)
            return False
        self._pending_media += tuple(
            Media(media_type=kind, data=content, name=Path(path).name)
            for path, kind, content in zip(paths, kinds, data, strict=True)
        )
        return True

    async def chat_until_success(self, message: str) -> str:
        """Send a message and return the reply. The model retries within its time limit; then `WorldFault` is raised."""
        return await self.call(message, self.context)

    async def call(self, prompt: str, context: LLMContext) -> str:
        """Send a message in another conversation. Without a reply, the message is removed from its history."""
        async with self._lock:
            before, uploaded = context.get_history(), self._pending_media
            context.trim_history()
            fitted_text, attached = fit_message(prompt, self.model.card)
            context.add_message(ChatMessage(role="user", content=fitted_text, media=(*uploaded, *attached)))
            try:
                text = await self._ask_model(context)
            except BaseException:
                context.set_history(before)
                raise
            self._pending_media = self._pending_media[len(uploaded) :]
            context.add_message(ChatMessage(role="assistant", content=text))
            context.trim_history()
            return text

    async def _ask_model(self, context: LLMContext) -> str:
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
            max_output=min(self.model.card.output, MAX_ANSWER_TOKENS),
        )
        text, usage = "", Usage()
        async for event in self.model.stream(request):
            match event:
                case ModelTextDelta(text=more):
                    text += more
                case Retried():
                    text = ""
                case Usage():
                    usage = event
                case Failed(why=why):
                    raise WorldFault(f"{self.model.name}: {why}", spent=usage.amounts)
                case Finished():
                    if not text.strip():
                        log.warning("%s gave an empty answer", self.model.name)
                    return text if text.strip() else ""
                case _:
                    pass
        raise WorldFault("models.answer_cut_short", name=self.model.name, spent=usage.amounts)


def _read_file(path: Path) -> bytes:
    if path.stat().st_size > MAX_FILE_BYTES:
        raise OSError(f"{path} is larger than {MAX_FILE_BYTES:,} bytes")
    return path.read_bytes()


async def shorten_history(
    platform: BasePlatform, *, prompt: str = SUMMARY_PROMPT, notify: Callable[[str], object] = str
) -> str:
    """Restart the conversation with the history as a file or a summary. Return the text for the next message.

    `notify` is called with `before_history_clear` and `after_history_clear` in both cases. The system prompt stays. The
    file is attached before the history is cleared, so a failed upload only costs a summary.
    """
    history = platform.context.get_history()
    text = "\n\n".join(f"## {message.role}\n{message.content}" for message in history)
    if platform.can_upload and await _upload_text(platform, "history.md", text):
        next_message = FILE_TEXT.format(what="What was said so far", name="history.md")
    else:
        next_message = SUMMARY_TEXT.format(summary=await _summarise(platform, prompt))
    notify("before_history_clear")
    platform.context.clear()
    notify("after_history_clear")
    return next_message


async def _upload_text(platform: BasePlatform, name: str, text: str) -> bool:
    """Attach a text as a temporary file; return False if that fails."""
    with tempfile.TemporaryDirectory(prefix="greenroom-shown-") as folder:
        path = Path(folder) / name
        path.write_text(text, encoding="utf-8")
        return await platform.upload_files([path])


async def _summarise(platform: BasePlatform, prompt: str) -> str:
    """Ask for a summary in a copy of the conversation."""
    context = LLMContext(platform.context.context_size)
    context.set_history(platform.context.get_history())
    return await platform.call(prompt, context) or NO_SUMMARY


class PlatformRegistry:
    """All platforms by name: the providers of the catalog, the user's own files, and installed packages.

    `make` returns a model by provider and model name. `normal` and the members of `groups` are `provider:model`.
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
            for name in load_providers()
        }

    def names(self) -> Sequence[str]:
        return tuple(self._classes)

    def register_platform(self, name: str, cls: type, where: str = "") -> bool:
        """Register a class, replacing an older one. Log a warning and return False if it is unsuitable."""
        missing = [method for method in REQUIRED_METHODS if not callable(getattr(cls, method, None))]
        why = f"lacks {', '.join(missing)}. Add them." if missing else ""
        if not missing and not issubclass(cls, BasePlatform):
            why = "is not a subclass of BasePlatform. Make it one."
        elif not missing and (not name or ":" in name):
            why = f"has the name {name!r}. The name must not be empty or contain a colon."
        if why:
            log.warning("%s: %s %s", where or cls.__module__, cls.__name__, why)
            return False
        self._classes[name] = cls
        return True

    def scan(self, folder: Path | None = None) -> Sequence[str]:
        """Register the platforms in the user's folder and return their names."""
        return self.load_platform_from_dir(folder or user_config_path("greenroom", appauthor=False) / "models")

    def load_platform_from_dir(self, folder: Path) -> Sequence[str]:
        """Register the platforms in a folder of Python files and return their names. The default name is the file's."""
        added: list[str] = []
        for path in sorted(folder.glob("[!_]*.py")):
            module = ModuleType(f"greenroom_platforms_{path.stem}")
            module.__file__ = str(path)
            sys.modules[module.__name__] = module  # its classes may look up their module
            try:
                SourceFileLoader(module.__name__, str(path)).exec_module(module)
            except (Exception, SystemExit) as error:
                log.debug("%s cannot be loaded", path, exc_info=True)
                del sys.modules[module.__name__]
                log.warning("%s cannot be loaded: %s: %s. Fix the file.", path, type(error).__name__, error)
                continue
            for name, cls in vars(module).items():
                if not inspect.isclass(cls) or cls.__module__ != module.__name__ or name.startswith("_"):
                    continue
                if issubclass(cls, BasePlatform):
                    cls.platform = cls.platform or path.stem
                if name.endswith("Platform") or issubclass(cls, BasePlatform):
                    platform_name = getattr(cls, "platform", path.stem)
                    added += [platform_name] if self.register_platform(platform_name, cls, str(path)) else []
        return tuple(added)

    def create_platform(self, name: str, model: str = "") -> BasePlatform | None:
        """Return a new conversation with this platform and model. Log a warning and return None if that fails.

        Without a model, the provider's recommended model is used.
        """
        cls = self._classes.get(name)
        if cls is None:
            log.warning("There is no platform %r. Known: %s.", name, ", ".join(self._classes))
            return None
        known = load_providers().get(name)
        try:
            platform = cls(partial(self._make, name), groups=self._groups)
            chosen = model or (known.strong if known else "")
            if chosen:
                platform.set_model_name(chosen)
        except GreenroomError as error:
            log.warning("The platform %r is not available. %s", name, error)
            return None
        except Exception:
            # A third-party class: its errors must not affect the others.
            log.exception("The platform %r is not available", name)
            return None
        return platform

    def get_normal_platform(self, group: str | None = None) -> BasePlatform | None:
        """Return a new conversation with the normal model, or with the model of a group."""
        try:
            name, model = self._resolve_names(group)
        except WorldFault as fault:
            log.warning("There is no normal platform. %s", fault)
            return None
        return self.create_platform(name, model)

    def get_normal_platform_name(self, group: str | None = None) -> str:
        """Return the platform of the normal model, or of a group's first model."""
        return self._resolve_names(group)[0]

    def get_normal_model_name(self, group: str | None = None) -> str:
        """Return the normal model, or a group's first model, without its provider."""
        return self._resolve_names(group)[1]

    def _resolve_names(self, group: str | None) -> tuple[str, str]:
        name = self._normal
        if group is not None:
            members = self._groups.get(group)
            if not members:
                there = ", ".join(self._groups) or translate("hints.none")
                raise WorldFault("models.unknown_model_group", group=group, there=there)
            name = members[0]
        if not name:
            raise WorldFault("models.no_model_set")
        return split_model_name(name, own_providers=self._classes)


def _refuse_model(provider: str, model: str) -> Model:
    raise WorldFault("models.model_not_available", provider=provider, model=model)


_registry: list[PlatformRegistry] = []
"""The registry of this process, if there is one."""


def set_global_platform_registry(registry: PlatformRegistry | None) -> None:
    """Set the registry of the process; None removes it."""
    _registry[:] = [registry] if registry is not None else []


def get_global_platform_registry() -> PlatformRegistry:
    if not _registry:
        _registry.append(PlatformRegistry(_refuse_model))
    return _registry[0]
