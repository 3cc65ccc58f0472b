"""A model that is made when it is first asked: what speaks to a provider takes 0.2 s to load, and the first line of a
run, which needs none of it, is on the screen before."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

from greenroom.core.ports.model import Model, ModelCard, ModelEvent, ModelRequest


class Late:
    """Has a name, a card and a price already. `make` is called once; whatever can be refused was refused before."""

    def __init__(
        self, name: str, card: ModelCard, price: Callable[[int, int], int | None], make: Callable[[], Model]
    ) -> None:
        self.name = name
        self.card = card
        self.price = price
        self._make = make
        self._made: Model | None = None

    def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Ask, and read the answer as it comes."""
        if self._made is None:
            self._made = self._make()
        return self._made.stream(request)
