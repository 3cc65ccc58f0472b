"""Refusals and errors say what, which and what to do."""

from greenroom.core.base.errors import GreenroomError, RefusedError, Rejection, StoreFault, WorldFault


def test_a_refusal_reads_as_a_sentence() -> None:
    assert str(Rejection(code="no", why="There is no cup.", hint="Take a glass.")) == "There is no cup. Take a glass."
    assert str(Rejection(code="no", why="There is no cup.")) == "There is no cup."


def test_a_refusal_at_a_door_keeps_its_code() -> None:
    error = RefusedError(Rejection(code="no_cup", why="There is no cup."))
    assert error.rejection.code == "no_cup"
    assert str(error) == "There is no cup."
    assert isinstance(error, GreenroomError)


def test_a_broken_store_is_the_worlds_fault() -> None:
    assert issubclass(StoreFault, WorldFault)
