"""Parameters that are checked only where there is something to check: typer does that with pydantic, 0.1 s to import.

Nothing is while a shell completes a line, and a text that is to be a text never is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from typer._coercion import RuntimeParam, build_runtime_param
from typer.core import TyperArgument, TyperCommand, TyperOption

from greenroom.interfaces.cli.entry.narrow import FittingContext

if TYPE_CHECKING:
    # typer 0.29 carries its own copy of click and shows its classes nowhere else.
    from typer._click import Context, Parameter
    from typer._coercion import TypeDescriptor
    from typer.core import _TyperParameter


@dataclass(frozen=True)
class AsTyped(RuntimeParam):
    """A text stays as it was typed; for everything else typer is asked."""

    descriptor: TypeDescriptor

    def _coerce_value(self, value: object, param: _TyperParameter, ctx: Context) -> object:
        if self.annotation is str and isinstance(value, str):
            return value
        return build_runtime_param(self.descriptor).coerce(value, param, ctx)


def as_typed(found: TypeDescriptor) -> RuntimeParam:
    """How a parameter of this type is read."""
    return AsTyped(parameter_info=found.parameter_info, annotation=found.annotation, descriptor=found)


class LenientOption(TyperOption):
    """An option; what it calls is called."""

    def get_runtime_param(self) -> RuntimeParam:
        """Without pydantic, where it can be."""
        return as_typed(self.type_descriptor)

    def process_value(self, ctx: Context, value: object) -> object:
        """Check it, unless a shell is waiting."""
        if not ctx.resilient_parsing:
            return super().process_value(ctx, value)
        return self.callback(ctx, self, value) if self.callback is not None else value


class LenientArgument(TyperArgument):
    """An argument."""

    def get_runtime_param(self) -> RuntimeParam:
        """Without pydantic, where it can be."""
        return as_typed(self.type_descriptor)

    def process_value(self, ctx: Context, value: object) -> object:
        """Check it, unless a shell is waiting."""
        return value if ctx.resilient_parsing else super().process_value(ctx, value)


class LenientCommand(TyperCommand):
    """A command all of whose parameters are lenient."""

    context_class = FittingContext

    def get_params(self, ctx: Context) -> list[Parameter]:
        """All of them, `--help` too."""
        return lenient(super().get_params(ctx))


def lenient(params: list[Parameter]) -> list[Parameter]:
    """The same parameters, made lenient: typer does not let us name their classes."""
    for param in params:
        if isinstance(param, TyperOption):
            param.__class__ = LenientOption
        elif isinstance(param, TyperArgument):
            param.__class__ = LenientArgument
    return params
