"""Redaction: removes known keys from what a person gives, a tool returns and a model replies; refuses calls that carry
one.

Keys are matched literally. Only in the arguments of a call their base64, hexadecimal and URL-encoded forms are found
too. Redaction is the second defence; the first is that no key reaches a command.
"""

from __future__ import annotations

import base64
import logging
import re
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from typing import Final, TypeAlias, cast
from urllib.parse import unquote

from greenroom.adapters.models.catalog.catalog import load_providers
from greenroom.adapters.models.retry import ModelWrapper
from greenroom.adapters.web import TAVILY_KEY
from greenroom.app.settings.schema import ProviderSettings
from greenroom.core.base.errors import Rejection, translate
from greenroom.core.base.records import Data, evolve
from greenroom.core.ports.codec import validate_intent
from greenroom.core.ports.executor import LiveEvent, Outcome, StepContext, ToolPrinted
from greenroom.core.ports.model import (
    ClosingStream,
    Model,
    ModelEvent,
    ModelReasoningDelta,
    ModelRequest,
    ModelTextDelta,
    Opaque,
    ToolCall,
)
from greenroom.core.rules.intents import AddTask, CreateTeam, Intent

MASK: Final = "[secret]"
WITHHELD: Final = "secret-withheld-by-greenroom"
"""Replaces a key in a model's reply. A call with it in its arguments is refused. It is one plain word in JSON, YAML,
XML, an address and a command line."""

MIN_SECRET_CHARS: Final = 8
MIN_OBVIOUS_CHARS: Final = 20
"""The length in characters from which any value counts as a secret. A shorter value needs a digit.

Placeholders for local servers (`not-needed`) are ordinary words and must not be removed from texts.
"""

SECRET_HEADER: Final = re.compile(r"auth|key|token|secret|cookie", re.IGNORECASE)


def find_known_secrets(
    environ: Mapping[str, str], provider_settings: Iterable[ProviderSettings], saved: Iterable[str] = ()
) -> tuple[str, ...]:
    """Find all keys of models and searches: in known variables, in the settings and in the key file."""
    settings = tuple(provider_settings)
    from_variables = [environ.get(name, "") for name in sorted(find_secret_names(settings))]
    from_settings = [item.key.reveal() for item in settings if item.key is not None]
    headers = [value for item in settings for name, value in item.headers.items() if SECRET_HEADER.search(name)]
    return tuple(
        item
        for item in (*from_variables, *from_settings, *saved, *(value.rpartition(" ")[2] for value in headers))
        if item
    )


def find_secret_names(provider_settings: Iterable[ProviderSettings]) -> frozenset[str]:
    """Return the variables that may hold such keys."""
    catalog_names = (name for provider in load_providers().values() for name in provider.keys)
    return frozenset(filter(None, (*catalog_names, TAVILY_KEY, *(provider.key_env for provider in provider_settings))))


def remove_secrets(environ: Mapping[str, str], provider_settings: Iterable[ProviderSettings]) -> dict[str, str]:
    """Return the environment without any variable that holds a known key, under any name."""
    settings = tuple(provider_settings)
    names, secrets = find_secret_names(settings), set(filter(_is_secret, find_known_secrets(environ, settings)))
    return {name: value for name, value in environ.items() if name not in names and value.strip() not in secrets}


def _is_secret(value: str) -> bool:
    return len(value) >= MIN_OBVIOUS_CHARS or (len(value) >= MIN_SECRET_CHARS and any(map(str.isdigit, value)))


def _encode_secret(secret: str) -> set[str]:
    """Return what a key becomes inside a base64 or hexadecimal text. Base64 depends on the place modulo three."""
    data, forms = secret.encode(), {secret.encode().hex(), secret.encode().hex().upper()}
    for offset, first in enumerate((0, 2, 3)):
        padded = bytes(offset) + data
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            forms.add(encode(padded)[first : len(padded) * 8 // 6].decode())
    return forms


class SecretRedactor:
    """Removes these values. Without values it does nothing."""

    def __init__(self, secrets: Iterable[str]) -> None:
        stripped = {secret.strip() for secret in secrets}
        # The longest first, because one may be a prefix of another.
        self._secrets: Sequence[str] = sorted(filter(_is_secret, stripped), key=lambda secret: (-len(secret), secret))
        self._encoded = tuple(form for secret in self._secrets for form in sorted(_encode_secret(secret)))
        self._has_warned = False

    def __bool__(self) -> bool:
        return bool(self._secrets)

    def contains_secret(self, text: str) -> bool:
        """Whether a text contains one of the values."""
        return any(secret in text for secret in self._secrets)

    def text(self, text: str, mask: str = MASK) -> str:
        """Redact a text. Separate searches are a hundred times faster than one combined pattern."""
        for secret in self._secrets:
            if secret in text:
                text = text.replace(secret, mask)
        return text

    def find_open_end(self, text: str) -> int:
        """Return where the end of a text may begin one of the values, else its length."""
        ends = [len(text)]
        for secret in self._secrets:
            start = text.find(secret[0], max(0, len(text) - len(secret) + 1))
            while start >= 0 and not secret.startswith(text[start:]):
                start = text.find(secret[0], start + 1)
            if start >= 0:
                ends.append(start)
        return min(ends)

    def is_in_arguments(self, arguments: Data) -> bool:
        """Whether the arguments of a call carry one of the values, or had one that was withheld."""
        return bool(self) and has_text(arguments, lambda text: WITHHELD in text or self._carries_secret(text))

    def _carries_secret(self, text: str) -> bool:
        """Whether a text contains one of the values, plain or encoded."""
        texts = (text, unquote(text), unquote(unquote(text))) if "%" in text else (text,)
        return any(form in part for part in texts for form in (*self._secrets, *self._encoded))

    def clean_intent(self, intent: Intent) -> Intent | Rejection:
        """Check what a person gives and redact it before anything is stored or sent. Tell the person once."""
        if not self._secrets or isinstance(intent, CreateTeam):
            return validate_intent(intent)
        if isinstance(intent, AddTask):  # its name is the beginning of a text, and may end within a key
            name = intent.name.removesuffix("…")
            cut = name[self.find_open_end(name) :]
            hidden = MASK if len(cut) >= MIN_SECRET_CHARS else cut
            intent = evolve(intent, name=name.removesuffix(cut) + hidden + intent.name[len(name) :])
        return validate_intent(intent, self._redact_input)

    def _redact_input(self, data: bytes) -> bytes:
        redacted = self.bytes(data)
        if redacted != data and not self._has_warned:
            self._has_warned = True
            logging.getLogger(__name__).warning("%s", translate("conversation.secret_removed"))
        return redacted

    def bytes(self, data: bytes) -> bytes:
        """Redact bytes that may not be text."""
        for secret in self._secrets:
            data = data.replace(secret.encode(), MASK.encode())
        return data

    def data(self, data: Data, mask: str = MASK) -> Data:
        """Redact data of any shape."""
        return {self.text(str(name), mask): self._redact_value(value, mask) for name, value in data.items()}

    def withhold(self, arguments: Data) -> Data:
        """Return the arguments of a call for the log. A call that carried a key is refused later."""
        if not self._secrets:
            return arguments
        withheld = self.data(arguments, WITHHELD)
        return {"arguments": WITHHELD} if has_text(withheld, self._carries_secret) else withheld

    def outcome(self, outcome: Outcome) -> Outcome:
        """Redact the outcome of a call."""
        if not self._secrets:
            return outcome
        result = None if outcome.result is None else self.data(outcome.result)
        return evolve(outcome, result=result, error=self.text(outcome.error))

    def wrap_context(self, context: StepContext) -> StepContext:
        """Return a step context that redacts everything that a tool shows or stores."""
        return cast("StepContext", _RedactedStepContext(context, self)) if self._secrets else context

    def wrap_model(self, model: Model) -> Model:
        """Return a model whose replies are redacted, before anything is shown, stored or called."""
        return RedactedModel(model, self) if self._secrets and not isinstance(model, RedactedModel) else model

    def _redact_value(self, value: object, mask: str) -> object:
        if isinstance(value, str):
            return self.text(value, mask)
        if isinstance(value, Mapping):
            return self.data(value, mask)
        if isinstance(value, list | tuple):
            return [self._redact_value(item, mask) for item in value]
        # A key of digits may come as a number.
        return mask if self.contains_secret(str(value)) else value


NO_REDACTION: Final = SecretRedactor(())


def contains_mask(data: object) -> bool:
    """Whether the arguments contain the mask. Writing it to a file would destroy the secret there."""
    return has_text(data, lambda text: MASK in text)


def has_text(data: object, matches: Callable[[str], bool]) -> bool:
    """Whether a name or a value in data of any shape matches."""
    if isinstance(data, Mapping):
        return any(has_text(part, matches) for item in data.items() for part in item)
    if isinstance(data, list | tuple):
        return any(has_text(item, matches) for item in data)
    return matches(str(data))


Delta: TypeAlias = ModelTextDelta | ModelReasoningDelta


class RedactedModel(ModelWrapper):
    """A model whose replies hold no known key."""

    def __init__(self, model: Model, redaction: SecretRedactor) -> None:
        super().__init__(model)
        self._redaction = redaction

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Stream the model's answer. The end of a piece waits for the next one if it may begin a key."""
        held: Delta | None = None
        async with ClosingStream(self._model.stream(request)) as events:
            async for event in events:
                held, ready = self._redact(held, event)
                for redacted in ready:
                    yield redacted
        if held is not None:
            yield held

    def _redact(self, held: Delta | None, event: ModelEvent) -> tuple[Delta | None, list[ModelEvent]]:
        """Return what to hold back now, and what is ready after this event."""
        if not isinstance(event, ModelTextDelta | ModelReasoningDelta):
            return None, [*([held] if held is not None else []), *self._redact_other(event)]
        before: list[ModelEvent] = []
        text = event.text
        if isinstance(held, type(event)):
            text = held.text + text
        elif held is not None:
            before.append(held)
        text = self._redaction.text(text, WITHHELD)
        end = self._redaction.find_open_end(text)
        ready: list[ModelEvent] = [evolve(event, text=text[:end])] if end else []
        return evolve(event, text=text[end:]) if text[end:] else None, before + ready

    def _redact_other(self, event: ModelEvent) -> Iterable[ModelEvent]:
        """Redact a call. Drop an opaque part with a key: its provider would refuse a changed one."""
        if isinstance(event, Opaque) and has_text(event.data, self._redaction.contains_secret):
            return ()
        if not isinstance(event, ToolCall):
            return (event,)
        name, unread = self._redaction.text(event.name, WITHHELD), self._redaction.text(event.unread, WITHHELD)
        return (evolve(event, name=name, arguments=self._redaction.withhold(event.arguments), unread=unread),)


class _RedactedStepContext:
    """A step context that redacts what is kept, shown and left."""

    def __init__(self, context: StepContext, redaction: SecretRedactor) -> None:
        self._context = context
        self._redaction = redaction

    def __getattr__(self, name: str) -> object:
        return getattr(self._context, name)

    async def keep(self, data: bytes) -> str:
        """Store large data, redacted."""
        return await self._context.keep(self._redaction.bytes(data))

    def show(self, event: LiveEvent) -> None:
        if isinstance(event, ToolPrinted):
            event = evolve(event, text=self._redaction.text(event.text))
        self._context.show(event)

    def set_partial_outcome(self, partial_outcome: Callable[[], Outcome | None]) -> None:
        """Set the outcome of a cancelled step, redacted."""

        def redact_outcome() -> Outcome | None:
            outcome = partial_outcome()
            return None if outcome is None else self._redaction.outcome(outcome)

        self._context.set_partial_outcome(redact_outcome)
