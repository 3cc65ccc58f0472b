"""Trying a model: three calls, bounded, with the fault in the provider's words."""

from collections.abc import AsyncIterator

from greenroom.app.model_catalog import WAYS, bound, trials
from greenroom.core.ports.model import (
    Failed,
    FaultKind,
    Finished,
    ModelCard,
    ModelEvent,
    ModelRequest,
    TextDelta,
    ToolCall,
    Usage,
)


class Obedient:
    """Answers, and calls the tool that it is told of."""

    name = "fake:model"
    card = ModelCard(effort=True)

    def __init__(self, fault: FaultKind | None = None, *, calls: bool = True, ends: bool = True) -> None:
        self.asked: list[ModelRequest] = []
        self._fault: FaultKind | None = fault
        self._calls = calls
        self._ends = ends

    def price(self, read: int, written: int) -> int | None:
        """One for each token."""
        return read + written

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """As it was told."""
        self.asked.append(request)
        if self._fault is not None:
            yield Failed(kind=self._fault, why="No.")
            return
        if request.tools and self._calls:
            yield ToolCall(call_id="1", name="add", arguments={"a": 2, "b": 3})
        else:
            yield TextDelta(text="Green.")
        yield Usage(input=9, output=1)
        if self._ends:
            yield Finished()


async def test_a_good_model_works_in_three_ways() -> None:
    model = Obedient()
    found = [one async for one in trials(model)]
    assert [(one.way, one.fault) for one in found] == [(way, "") for way in WAYS]
    assert [request.streaming for request in model.asked] == [True, False, True]
    assert all(request.effort == "low" for request in model.asked)
    assert bound(model) == 3 * (600 + 256)


async def test_after_a_fault_that_only_a_person_mends_nothing_more_is_sent() -> None:
    model = Obedient("auth")
    found = [one async for one in trials(model)]
    assert [(one.fault, one.hopeless) for one in found] == [("No.", True)]


async def test_a_passing_fault_does_not_end_the_trial() -> None:
    assert len([one async for one in trials(Obedient("server"))]) == 3


async def test_a_model_that_answers_instead_of_calling_is_found_out() -> None:
    found = [one async for one in trials(Obedient(calls=False))]
    assert [bool(one.fault) for one in found] == [False, False, True]


async def test_a_stream_without_an_end_does_not_work() -> None:
    found = [one async for one in trials(Obedient(ends=False))]
    assert "stopped without an end" in found[0].fault
