"""Parameters that are checked only where there is something to check: typer does that with pydantic, 0.1 s to import.

Nothing is while a shell completes a line, and a text that is to be a text never is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from typer.core import TyperArgument, TyperCommand, TyperOption

from greenroom.interfaces.cli.entry.narrow import FittingContext

if TYPE_CHECKING:
    # typer 0.29 carries its own copy of click and shows its classes nowhere else.
    from typer._click import Context, Parameter


class LenientOption(TyperOption):
    """An option; what it calls is called."""

    def process_value(self, ctx: Context, value: object) -> object:
        """Check it, where there is something to check."""
        if not ctx.resilient_parsing and not _is_fine(self, value):
            return super().process_value(ctx, value)
        return self.callback(ctx, self, value) if self.callback is not None else value


class LenientArgument(TyperArgument):
    """An argument."""

    def process_value(self, ctx: Context, value: object) -> object:
        """Check it, where there is something to check."""
        return value if ctx.resilient_parsing or _is_fine(self, value) else super().process_value(ctx, value)


def _is_fine(param: TyperOption | TyperArgument, value: object) -> bool:
    """Whether it is as it is to be: a text that was typed, or nothing where nothing is wanted."""
    if param.multiple or param.nargs != 1:
        return False
    if value is None:
        return not param.required
    return param.type_descriptor.annotation is str and isinstance(value, str)


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
