"""How to type what sets Greenroom up: `init`, `eval live`, and the families `models`, `config`,
`agents`, `prompt`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Annotated, TypeAlias, cast

import typer

from greenroom.interfaces.cli.asked.orders import (
    AgentsList,
    AgentsNew,
    AgentsShow,
    Caps,
    ConfigPath,
    ConfigShow,
    EvalLive,
    Init,
    ModelsCheck,
    ModelsList,
    PromptShow,
    Tape,
)
from greenroom.interfaces.cli.asked.setup import Setup, setup_of
from greenroom.interfaces.cli.entry.doing import do
from greenroom.interfaces.cli.entry.options import MaxCost, MaxTime, MaxTokens, Record, Replay
from greenroom.interfaces.cli.loading import load

Agent: TypeAlias = Annotated[str, typer.Argument(metavar="AGENT", help="Its name, as `greenroom agents list` has it.")]


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


def eval_live(
    context: typer.Context,
    *,
    model: Annotated[
        str, typer.Option("--model", "-m", metavar="NAME", help="provider:model, a role or a group.")
    ] = "",
    only: Annotated[
        list[str] | None, typer.Option("--only", metavar="TASK", help="Only this task; again for more.")
    ] = None,
    max_cost: MaxCost = "2",
    max_tokens: MaxTokens = None,
    max_time: MaxTime = None,
    record: Record = None,
    replay: Replay = None,
) -> int:
    """Play fifteen small tasks: tools, edits, repair, hand-off, stopping, injection … Exit code 1 if one fails."""
    caps = Caps(cost=max_cost, tokens=max_tokens, time=max_time)
    tape = Tape(record=record, replay=replay)
    return do(context, EvalLive(model=model.strip(), only=tuple(only or ()), caps=caps, tape=tape))


def config_show(context: typer.Context) -> int:
    """Show every setting and where it comes from; keys are masked."""
    return do(context, ConfigShow())


def config_path(context: typer.Context) -> int:
    """Print the files that settings and keys are read from."""
    return do(context, ConfigPath())


def agents_list(context: typer.Context) -> int:
    """List the agents that can be used in this folder: of the project, your own, and Claude Code's."""
    return do(context, AgentsList())


def agents_show(context: typer.Context, name: Agent) -> int:
    """Show all that is known of an agent, which file it is from, and what of that file does not count here."""
    return do(context, AgentsShow(name=name.strip()))


def agents_new(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="AGENT", help="What it is to be called, like code-reviewer.")],
    *,
    description: Annotated[str, typer.Option("--description", "-d", metavar="TEXT", help="What it is for.")] = "",
    model: Annotated[
        str, typer.Option("--model", "-m", metavar="NAME", help="strong, fast, a group or provider:model.")
    ] = "",
    tools: Annotated[str, typer.Option("--tools", metavar="A,B", help="The only tools that it may use.")] = "",
    user: Annotated[
        bool, typer.Option("--user", help="For all your projects, not only for the one in this folder.")
    ] = False,
) -> int:
    """Write .greenroom/agents/AGENT.md: a template that works as it is. Nothing is ever overwritten."""
    order = AgentsNew(name=name.strip(), description=description, model=model.strip(), tools=tools, user=user)
    return do(context, order)


def prompt_show(
    context: typer.Context,
    name: Agent,
    *,
    message: Annotated[str, typer.Option("--message", metavar="TEXT", help="What the agent is told.")] = "Hello.",
) -> int:
    """Print exactly what a model gets when this agent begins: messages, tools, settings. Nobody is asked."""
    return do(context, PromptShow(name=name.strip(), message=message))
