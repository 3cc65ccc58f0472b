"""`greenroom init` and `config`: from nothing to a model that can be asked, and which settings hold here."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.text import Text

from greenroom.app.first_settings import (
    Candidate,
    Choice,
    candidates,
    config_file,
    in_full,
    needs_key,
    offered,
    proposed,
    text,
    whose,
    write,
)
from greenroom.app.settings.keys import key_for, save_key
from greenroom.app.settings.layers import load, looked_at, rows
from greenroom.app.settings.schema import Settings
from greenroom.cli.context import Invocation, refused
from greenroom.cli.exit_codes import Exit
from greenroom.cli.process import answering
from greenroom.cli.render.output import Column, Fitted, Output, row
from greenroom.cli.render.progress import Progress, progress_for
from greenroom.cli.render.questions import Gone, ask, ask_secret, choose
from greenroom.cli.setup import setup_of
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.records import record


@record
class Plan:
    """What is to be written. An empty `key` is none; with `keep` the settings that are there stay."""

    provider: str
    key: str
    choice: Choice
    path: Path
    keep: bool


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
    yes, setup = yes or key_stdin, setup_of(context)
    progress = progress_for(setup)
    with answering() as stream, Output(setup.output_format, stream) as out:
        try:
            plan = _plan(progress, provider.strip(), model.strip(), key, user=user, yes=yes)
        except Gone:
            progress.note("\nNothing was written.", style="bold")
            return out.result("stopped", Exit.INTERRUPTED)
        return _write(plan, progress, out, user=user)


def _plan(progress: Progress, provider: str, model: str, key: str, *, user: bool, yes: bool) -> Plan:
    """All that is to be known before anything is written. A person is asked only at a terminal."""
    settings, may_ask = load({}, os.environ, Path.cwd()).settings, not yes and sys.stdin.isatty()
    named = whose(settings, provider, model)
    if not named and not may_ask and not yes:
        why = "`greenroom init` asks questions, and stdin is no terminal."
        raise refused("no_terminal", why, "Say --yes to take what it finds, or name a --provider or a --model.")
    found = asyncio.run(candidates(os.environ))
    progress.note("Looked for keys in the environment and for model servers on this machine:")
    for candidate in found:
        progress.note(f"  ✓ {candidate.provider}: {candidate.why}", style="green")
    if not found:
        progress.note("  none found. Ollama and LM Studio run models here, without a key.", style="yellow")
    chosen = _provider(named, found, may_ask=may_ask)
    key = key or _key(settings, chosen.provider, may_ask=may_ask)
    choice = _models(settings, chosen, model, may_ask=may_ask)
    path = config_file(os.environ, Path.cwd(), user=user)
    question = f"{path} is there already. Replace it? yes or no"
    keep = path.exists() and not (may_ask and ask(question, "no").lower() in ("y", "yes"))
    return Plan(provider=chosen.provider, key=key, choice=choice, path=path, keep=keep)


def _provider(named: str, found: Sequence[Candidate], *, may_ask: bool) -> Candidate:
    """Whose models: those of the provider that was named, else of one that was found, else of one that is chosen."""
    usable = [candidate for candidate in found if candidate.models]
    if named:
        known = next((candidate for candidate in found if candidate.provider == named), None)
        return known or Candidate(provider=named, why="", models=proposed(named))
    if not usable and not may_ask:
        raise WorldFault(
            "There is no key in the environment and no model server on this machine. "
            "Give a key with `--provider NAME --key-stdin`, or start a server like Ollama."
        )
    if usable:
        rows = [f"{candidate.provider}  ({candidate.why})" for candidate in usable]
        return usable[choose("Which one?", rows) if may_ask and len(usable) > 1 else 0]
    known_ones = offered()
    rows = [f"{name}  ({address})" for name, address in known_ones]
    name, _ = known_ones[choose("Whose models do you have a key for?", rows)]
    return Candidate(provider=name, why="", models=proposed(name))


def _key(settings: Settings, name: str, *, may_ask: bool) -> str:
    """A key that is to be stored; empty where there is one already, or none is needed."""
    if not needs_key(name) or key_for(name, os.environ, settings.providers.get(name)) is not None:
        return ""
    if not may_ask:
        raise WorldFault(f"There is no key for {name!r}. Pipe it in: `--provider {name} --key-stdin`.")
    return ask_secret(f"The key for {name} (it is not shown)")


def _models(settings: Settings, chosen: Candidate, model: str, *, may_ask: bool) -> Choice:
    name = chosen.provider
    given = in_full(settings, name, model) if model else ""
    strong = given or (chosen.models[0] if chosen.models else "")
    # What a server of one's own has besides is none of our business, if one of its models was named.
    second = chosen.models[1:2] if needs_key(name) or not given else ()
    fast = second[0] if second else strong
    if may_ask and not given:
        strong = in_full(settings, name, ask("Strong model", strong))
        fast = in_full(settings, name, ask("Fast model", fast or strong))
    if not strong:
        raise WorldFault(f"Which model of {name!r}? Name it: `--model {name}:MODEL`.")
    return Choice(strong=strong, fast=fast)


def _write(plan: Plan, progress: Progress, out: Output, *, user: bool) -> int:
    stored = kept = None
    if plan.key:
        stored = save_key(plan.provider, plan.key)
        progress.note(f"✓ The key for {plan.provider} is in {stored}, which only you can read.", style="green")
    if plan.keep:
        progress.note(f"! {plan.path} is there already and stays as it is.", style="yellow")
    else:
        kept = write(plan.path, text(plan.choice, user=user), user=user)
        progress.note(f"✓ {plan.path}: strong {plan.choice.strong}, fast {plan.choice.fast}", style="green")
    if kept is not None:
        progress.note(f"  The old one is now {kept}.")
    out.show("Next: greenroom models check")
    models, keys = {"strong": plan.choice.strong, "fast": plan.choice.fast}, str(stored) if stored else None
    told = {"provider": plan.provider, **models, "config": str(plan.path), "keys": keys}
    return out.result("kept" if plan.keep else "written", Exit.DONE, **told)


SETTINGS: Final = (
    Column(name="setting"),
    Column(name="value", gives=True),
    Column(name="from", gives=True, style="dim"),
)
FILES: Final = (Column(name="what"), Column(name="file"), Column(name="there"))


async def config_show(cli: Invocation) -> None:
    """Show every setting and where it comes from; keys are masked."""
    try:
        found = rows(load({}, os.environ, Path.cwd()))
    except FileNotFoundError:
        raise WorldFault("The current folder is gone. Go to another one.") from None
    cli.out.listing("setting", ({"key": each.key, "value": each.value, "from": str(each.origin)} for each in found))
    unset = Text("not set", style="dim")
    cells = [row(each.key, each.value or unset.copy(), str(each.origin)) for each in found]
    cli.out.show(Fitted(SETTINGS, cells))


async def config_path(cli: Invocation) -> None:
    """Print the files that settings and keys are read from."""
    files = looked_at(os.environ, Path.cwd())
    cli.out.listing("file", ({"what": each.what, "path": str(each.path), "there": each.there} for each in files))
    cli.out.show(Fitted(FILES, [row(each.what, str(each.path), "yes" if each.there else "no") for each in files]))
