"""Parameters that are not checked while a shell completes a line: typer does that with pydantic, 0.3 s to import."""

from __future__ import annotations

from typing import TYPE_CHECKING

from typer.core import TyperArgument, TyperCommand, TyperOption

if TYPE_CHECKING:
    # typer 0.29 carries its own copy of click and shows its classes nowhere else.
    from typer._click import Context, Parameter


class LenientOption(TyperOption):
    """An option; what it calls is called."""

    def process_value(self, ctx: Context, value: object) -> object:
        """Check it, unless a shell is waiting."""
        if not ctx.resilient_parsing:
            return super().process_value(ctx, value)
        return self.callback(ctx, self, value) if self.callback is not None else value


class LenientArgument(TyperArgument):
    """An argument."""

    def process_value(self, ctx: Context, value: object) -> object:
        """Check it, unless a shell is waiting."""
        return value if ctx.resilient_parsing else super().process_value(ctx, value)


class LenientCommand(TyperCommand):
    """A command all of whose parameters are lenient."""

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
