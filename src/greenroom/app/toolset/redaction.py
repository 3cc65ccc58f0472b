"""Redaction: the keys that the house itself knows are taken out of whatever a tool says, before anybody reads it.

They are looked for as they are written, and in no other form: who encodes a key (base64, say) gets it past this. It is
a net below the rule that no key reaches a command, not that rule.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, cast

from greenroom.adapters.models.catalog.catalog import providers
from greenroom.adapters.web import TAVILY_KEY
from greenroom.app.settings.schema import ProviderSettings
from greenroom.core.base.records import Data, evolve
from greenroom.core.ports.executor import Bench, Live, Outcome, ToolPrinted

MASK: Final = "[secret]"
SHORTEST: Final = 8
OBVIOUS: Final = 20
"""Characters from which on a value is a secret whatever it looks like; a shorter one needs a digit. What local servers
take for a key (`not-needed`) is a word, and would be missed in every text."""

GUARDED: Final = re.compile(r"auth|key|token|secret|cookie", re.IGNORECASE)
"""Headers that hold a secret."""


def known_secrets(
    environ: Mapping[str, str], told: Iterable[ProviderSettings], saved: Iterable[str] = ()
) -> tuple[str, ...]:
    """All keys of models and searches that are at hand: in variables that they are known by, in settings, in the key
    file."""
    settings = tuple(told)
    named = [environ.get(name, "") for name in sorted(secret_names(settings))]
    own = [one.key.reveal() for one in settings if one.key is not None]
    headers = [value for one in settings for name, value in one.headers.items() if GUARDED.search(name)]
    return tuple(one for one in (*named, *own, *saved, *(value.rpartition(" ")[2] for value in headers)) if one)


def secret_names(told: Iterable[ProviderSettings]) -> frozenset[str]:
    """The variables in which such keys may be."""
    known = (name for one in providers().values() for name in one.keys)
    return frozenset(filter(None, (*known, TAVILY_KEY, *(one.key_env for one in told))))


def without_secrets(environ: Mapping[str, str], told: Iterable[ProviderSettings]) -> dict[str, str]:
    """The environment of a program that has no use for our keys: without them, whatever else they are called there."""
    settings = tuple(told)
    names, secrets = secret_names(settings), set(filter(_is_one, known_secrets(environ, settings)))
    return {name: value for name, value in environ.items() if name not in names and value.strip() not in secrets}


def _is_one(value: str) -> bool:
    return len(value) >= OBVIOUS or (len(value) >= SHORTEST and any(map(str.isdigit, value)))


class Redaction:
    """Takes these values out. Without any it changes nothing, and costs nothing."""

    def __init__(self, secrets: Iterable[str]) -> None:
        plain = {one.strip() for one in secrets}
        # The longest first: one may begin like another.
        self._secrets: Sequence[str] = sorted(filter(_is_one, plain), key=lambda one: (-len(one), one))

    def __bool__(self) -> bool:
        return bool(self._secrets)

    def finds(self, text: str) -> bool:
        """Whether one of them is in it."""
        return any(secret in text for secret in self._secrets)

    def text(self, text: str) -> str:
        """A text without them. Looking for each by itself is a hundred times quicker than for all at once."""
        for secret in self._secrets:
            if secret in text:
                text = text.replace(secret, MASK)
        return text

    def bytes(self, data: bytes) -> bytes:
        """The same for what need not be text."""
        for secret in self._secrets:
            data = data.replace(secret.encode(), MASK.encode())
        return data

    def data(self, data: Data) -> Data:
        """The same for data of any shape."""
        return {self.text(str(name)): self._value(value) for name, value in data.items()}

    def outcome(self, outcome: Outcome) -> Outcome:
        """What came of a call, without them."""
        if not self._secrets:
            return outcome
        result = None if outcome.result is None else self.data(outcome.result)
        return evolve(outcome, result=result, error=self.text(outcome.error))

    def bench(self, bench: Bench) -> Bench:
        """A bench on which a tool shows and leaves nothing of them either."""
        return cast("Bench", _RedactedBench(bench, self)) if self._secrets else bench

    def _value(self, value: object) -> object:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return self.data(value)
        if isinstance(value, list | tuple):
            return [self._value(one) for one in value]
        return value


NOTHING_SECRET: Final = Redaction(())


def stands_in(data: object) -> bool:
    """Whether this was written with what stands in for a secret, which would be lost if it was put into a file."""
    if isinstance(data, str):
        return MASK in data
    if isinstance(data, Mapping):
        return any(map(stands_in, data.values()))
    return isinstance(data, list | tuple) and any(map(stands_in, data))


class _RedactedBench:
    """Another bench, with what is kept, shown and left passed through the redaction."""

    def __init__(self, bench: Bench, redaction: Redaction) -> None:
        self._bench = bench
        self._redaction = redaction

    def __getattr__(self, name: str) -> object:
        return getattr(self._bench, name)

    async def keep(self, data: bytes) -> str:
        """Keep something large, without secrets."""
        return await self._bench.keep(self._redaction.bytes(data))

    def show(self, event: Live) -> None:
        """Let those see it who watch, without secrets."""
        if isinstance(event, ToolPrinted):
            event = evolve(event, text=self._redaction.text(event.text))
        self._bench.show(event)

    def leave(self, left: Callable[[], Outcome | None]) -> None:
        """Say what stays if somebody cancels this, without secrets."""

        def redacted() -> Outcome | None:
            outcome = left()
            return None if outcome is None else self._redaction.outcome(outcome)

        self._bench.leave(redacted)
