"""What a call was given, read into the shape that its tool wants."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from greenroom.core.base.errors import ModelFault
from greenroom.core.base.records import Data
from greenroom.core.state.step import Step

T = TypeVar("T")


def given(kind: type[T], step: Step) -> T:
    """The arguments of this step; `ModelFault` says which one does not fit, and why."""
    return fitted(kind, step.work.instruction_content or {}, step.work.executor)


def fitted(kind: type[T], arguments: Data, name: str) -> T:
    """The arguments of a call of this tool. A number that came as text is a number all the same."""
    try:
        return msgspec.convert(dict(arguments), kind, strict=False)
    except msgspec.ValidationError as misfit:
        raise ModelFault(f"{name} was not called: {misfit}. Look at its parameters and call it again.") from None
