"""Redaction: removes known keys from everything that a tool returns.

Keys are matched literally. An encoded key (base64, for example) is not found. Redaction is the second defence; the
first is that no key reaches a command.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, cast

from greenroom.adapters.models.catalog.catalog import load_providers
from greenroom.adapters.web import TAVILY_KEY
from greenroom.app.settings.schema import ProviderSettings
from greenroom.core.base.records import Data, evolve
from greenroom.core.ports.executor import LiveEvent, Outcome, StepContext, ToolPrinted

MASK: Final = "[secret]"
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


class SecretRedactor:
    """Removes these values. Without values it does nothing."""

    def __init__(self, secrets: Iterable[str]) -> None:
        stripped = {secret.strip() for secret in secrets}
        # The longest first, because one may be a prefix of another.
        self._secrets: Sequence[str] = sorted(filter(_is_secret, stripped), key=lambda secret: (-len(secret), secret))

    def __bool__(self) -> bool:
        return bool(self._secrets)

    def contains_secret(self, text: str) -> bool:
        """Whether a text contains one of the values."""
        return any(secret in text for secret in self._secrets)

    def text(self, text: str) -> str:
        """Redact a text. Separate searches are a hundred times faster than one combined pattern."""
        for secret in self._secrets:
            if secret in text:
                text = text.replace(secret, MASK)
        return text

    def bytes(self, data: bytes) -> bytes:
        """Redact bytes that may not be text."""
        for secret in self._secrets:
            data = data.replace(secret.encode(), MASK.encode())
        return data

    def data(self, data: Data) -> Data:
        """Redact data of any shape."""
        return {self.text(str(name)): self._redact_value(value) for name, value in data.items()}

    def outcome(self, outcome: Outcome) -> Outcome:
        """Redact the outcome of a call."""
        if not self._secrets:
            return outcome
        result = None if outcome.result is None else self.data(outcome.result)
        return evolve(outcome, result=result, error=self.text(outcome.error))

    def wrap_context(self, context: StepContext) -> StepContext:
        """Return a step context that redacts everything that a tool shows or stores."""
        return cast("StepContext", _RedactedStepContext(context, self)) if self._secrets else context

    def _redact_value(self, value: object) -> object:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return self.data(value)
        if isinstance(value, list | tuple):
            return [self._redact_value(item) for item in value]
        return value


NO_REDACTION: Final = SecretRedactor(())


def contains_mask(data: object) -> bool:
    """Whether the arguments contain the mask. Writing it to a file would destroy the secret there."""
    if isinstance(data, str):
        return MASK in data
    if isinstance(data, Mapping):
        return any(map(contains_mask, data.values()))
    return isinstance(data, list | tuple) and any(map(contains_mask, data))


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
        """Show a live event, redacted."""
        if isinstance(event, ToolPrinted):
            event = evolve(event, text=self._redaction.text(event.text))
        self._context.show(event)

    def set_partial_outcome(self, partial_outcome: Callable[[], Outcome | None]) -> None:
        """Set the outcome of a cancelled step, redacted."""

        def redact_outcome() -> Outcome | None:
            outcome = partial_outcome()
            return None if outcome is None else self._redaction.outcome(outcome)

        self._context.set_partial_outcome(redact_outcome)
