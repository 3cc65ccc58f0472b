"""What a run raises that has no result: by whom to blame, and with the run's name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from greenroom.core.base.errors import GreenroomError, ModelFault, ProviderFault, Refused, Rejected


def fault(word: str, why: str, *, go_on: str) -> GreenroomError:
    """Why there is no result. `go_on` is how to go on with what can be gone on with."""
    match word:
        case "failed" | "idle":
            return ModelFault(why)
        case "provider":
            return ProviderFault(f"{why.partition(': ')[2]} Go on later: {go_on}.")
        case "waiting":
            told, hint = f"A person is asked: {why}", f"Give `approve`, a function that answers, and go on: {go_on}."
        case "interrupted":
            told, hint = "It was interrupted.", f"Say something else, or go on: {go_on}."
        case "cancelled" | "finished":
            told, hint = f"It is {word}: {why}", ""
        case _:
            told, hint = f"It is {word}: {why}", f"Go on with {go_on}."
    return Refused(Rejected(code=word, why=told, hint=hint))


@contextmanager
def telling_of(run: Callable[[], str]) -> Iterator[None]:
    """Whatever is raised here on purpose says of which run it is."""
    try:
        yield
    except GreenroomError as error:
        error.run = error.run or run()
        raise
