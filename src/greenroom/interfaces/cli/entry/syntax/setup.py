"""How to type what sets Greenroom up: `init`, `models list`, `models check`, `config show`, `config path`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Annotated, cast

import typer

from greenroom.interfaces.cli.asked.orders import ConfigPath, ConfigShow, Init, ModelsCheck, ModelsList
from greenroom.interfaces.cli.asked.setup import Setup, setup_of
from greenroom.interfaces.cli.entry.doing import do
from greenroom.interfaces.cli.loading import load


def init(
    context: typer.Context,
    *,
    provider: Annotated[str, typer.Option("--provider", metavar="NAME", help="Whose models, like openai.")] = "",
    model: Annotated[
        str, typer.Option("--model", "-m", metavar="NAME", help="The normal model, like openai:gpt-5.5.")
    ] = "",
    key_stdin: Annotated[bool, typer.Option("--key-stdin", help="Read the key from stdin and store it.")] = False,
    user: Annotated[
        bool, typer.Option("--user", help="Settings for all projects, not only for the one in this folder.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Ask nothing; keep what is there.")] = False,
) -> int:
    """Look for keys and local model servers, choose models, and write the settings. A key never gets into a project."""
    key = sys.stdin.readline().strip() if key_stdin else ""
    if key_stdin and not key:
        raise typer.BadParameter("No key came on stdin. Pipe it in, for instance from your password manager.")
    if key_stdin and not (provider or model):
        raise typer.BadParameter("Whose key is it? Say it with --provider.")
    order = Init(provider=provider.strip(), model=model.strip(), key=key, user=user, yes=yes or key_stdin)
    begin = cast("Callable[[Setup, Init], int]", load("commands.init", "init"))
    return begin(setup_of(context), order)


def models_list(
    context: typer.Context,
    provider: Annotated[str, typer.Argument(metavar="PROVIDER", help="Only this one's, like openai.")] = "",
) -> int:
    """List the models of the providers at hand: window, tools, price per million tokens, where the key comes from."""
    return do(context, ModelsList(provider=provider.strip()))


def models_check(
    context: typer.Context,
    model: Annotated[
        str, typer.Argument(metavar="NAME", help="provider:model, a role or a group. [default: the normal one]")
    ] = "",
) -> int:
    """Try a model with three tiny calls: streamed, whole, with a tool. Exit code 4 when it does not answer."""
    return do(context, ModelsCheck(model=model.strip()))


def config_show(context: typer.Context) -> int:
    """Show every setting and where it comes from; keys are masked."""
    return do(context, ConfigShow())


def config_path(context: typer.Context) -> int:
    """Print the files that settings and keys are read from."""
    return do(context, ConfigPath())
