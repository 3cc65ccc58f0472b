"""Costs of work, in whole numbers, so that sums are exact."""

from __future__ import annotations

from typing import Final

from greenroom.core.base.records import evolve, record


@record
class Amounts:
    """Amounts spent or reserved. Money is in millionths of a dollar, time in milliseconds of work. `estimated` counts
    the model calls whose cost no provider reported."""

    money: int = 0
    tokens: int = 0
    steps: int = 0
    millis: int = 0
    hops: int = 0
    estimated: int = 0

    @property
    def lowest(self) -> int:
        """The smallest amount. A valid cost has none below zero."""
        if self is NOTHING:
            return 0
        return min(self.money, self.tokens, self.steps, self.millis, self.hops)

    def plus(self, other: Amounts) -> Amounts:
        """Return the sum. Adding `NOTHING` makes no new object."""
        if other is NOTHING:
            return self
        if self is NOTHING:
            return other
        return Amounts(
            money=self.money + other.money,
            tokens=self.tokens + other.tokens,
            steps=self.steps + other.steps,
            millis=self.millis + other.millis,
            hops=self.hops + other.hops,
            estimated=self.estimated + other.estimated,
        )

    def minus(self, other: Amounts) -> Amounts:
        """Return the difference."""
        if other is NOTHING:
            return self
        return Amounts(
            money=self.money - other.money,
            tokens=self.tokens - other.tokens,
            steps=self.steps - other.steps,
            millis=self.millis - other.millis,
            hops=self.hops - other.hops,
            estimated=self.estimated - other.estimated,
        )


NOTHING: Final = Amounts()


@record
class Limits:
    """How much may be spent; None means unlimited. `depth` is how deeply tasks may be nested."""

    money: int | None = None
    tokens: int | None = None
    steps: int | None = None
    millis: int | None = None
    hops: int | None = None
    depth: int | None = None

    @property
    def is_valid(self) -> bool:
        """Whether no limit is negative."""
        known = (self.money, self.tokens, self.steps, self.millis, self.hops, self.depth)
        return all(limit is None or limit >= 0 for limit in known)

    def minus(self, spent: Amounts) -> Limits:
        """Return what is left of the money, the tokens and the time."""
        parts = ((self.money, spent.money), (self.tokens, spent.tokens), (self.millis, spent.millis))
        money, tokens, millis = (None if limit is None else max(0, limit - used) for limit, used in parts)
        return evolve(self, money=money, tokens=tokens, millis=millis)

    def exceeded_by(self, total: Amounts) -> str | None:
        """Return the name of the first limit that `total` would exceed, or None."""
        if self.money is not None and total.money > self.money:
            return "money"
        if self.tokens is not None and total.tokens > self.tokens:
            return "tokens"
        if self.steps is not None and total.steps > self.steps:
            return "steps"
        if self.millis is not None and total.millis > self.millis:
            return "millis"
        return "hops" if self.hops is not None and total.hops > self.hops else None


UNLIMITED: Final = Limits()
