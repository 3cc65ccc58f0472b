"""`greenroom init`: from nothing to a model that can be asked. All is asked first, then all is written."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

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
from greenroom.app.settings.layers import load
from greenroom.app.settings.schema import Settings
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.records import record
from greenroom.interfaces.cli.context import refused
from greenroom.interfaces.cli.display.output import Output
from greenroom.interfaces.cli.display.progress import Progress, progress_for
from greenroom.interfaces.cli.display.questions import Gone, Person
from greenroom.interfaces.cli.exit_codes import Exit
from greenroom.interfaces.cli.process import answering
from greenroom.interfaces.cli.setup import setup_of


@record
class Wish:
    """What to set up, as far as it was said. `key` came on stdin; `user` is for all projects; `yes` asks nothing."""

    provider: str
    model: str
    key: str
    user: bool
    yes: bool


@record
class Plan:
    """What is to be written. An empty `key` is none; with `keep` the settings that are there stay."""

    provider: str
    key: str
    choice: Choice
    path: Path
    user: bool
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
    wish = Wish(provider=provider.strip(), model=model.strip(), key=key, user=user, yes=yes or key_stdin)
    setup = setup_of(context)
    progress = progress_for(setup)
    with answering() as stream, Output(setup.output_format, stream) as out:
        try:
            plan = Asking(wish, progress).plan()
        except Gone:
            progress.note("\nNothing was written.", style="bold")
            return out.result("stopped", Exit.INTERRUPTED)
        return _written(plan, progress, out)


class Asking:
    """Makes the plan; a person is asked only at a terminal, and never with `--yes`."""

    def __init__(self, wish: Wish, progress: Progress) -> None:
        self._wish = wish
        self._progress = progress
        alone = wish.yes or not sys.stdin.isatty()
        self._person = None if alone else Person()
        self._settings: Settings = load({}, os.environ, Path.cwd()).settings

    def plan(self) -> Plan:
        """All that is to be known before anything is written."""
        wish = self._wish
        named = whose(self._settings, wish.provider, wish.model)
        if not named and self._person is None and not wish.yes:
            why = "`greenroom init` asks questions, and stdin is no terminal."
            hint = "Say --yes to take what it finds, or name a --provider or a --model."
            raise refused("no_terminal", why, hint)
        found = self._found()
        one = self._provider(named, found)
        key = wish.key or self._key(one.provider)
        choice = self._models(one)
        path = config_file(os.environ, Path.cwd(), user=wish.user)
        keep = self._keeps(path)
        return Plan(provider=one.provider, key=key, choice=choice, path=path, user=wish.user, keep=keep)

    def _found(self) -> Sequence[Candidate]:
        found = asyncio.run(candidates(os.environ))
        self._progress.note("Looked for keys in the environment and for model servers on this machine:")
        for one in found:
            self._progress.note(f"  ✓ {one.provider}: {one.why}", style="green")
        if not found:
            self._progress.note("  none found. Ollama and LM Studio run models here, without a key.", style="yellow")
        return found

    def _provider(self, named: str, found: Sequence[Candidate]) -> Candidate:
        usable = [one for one in found if one.models]
        if named:
            known = next((one for one in found if one.provider == named), None)
            return known or Candidate(provider=named, why="", models=proposed(named))
        if self._person is None:
            if not usable:
                raise WorldFault(
                    "There is no key in the environment and no model server on this machine. "
                    "Give a key with `--provider NAME --key-stdin`, or start a server like Ollama."
                )
            return usable[0]
        if len(usable) == 1:
            return usable[0]
        return self._chosen(self._person, usable)

    @staticmethod
    def _chosen(person: Person, usable: Sequence[Candidate]) -> Candidate:
        if usable:
            return usable[person.choose("Which one?", [f"{one.provider}  ({one.why})" for one in usable])]
        rows = offered()
        name, _ = rows[person.choose("Whose models do you have a key for?", [f"{n}  ({at})" for n, at in rows])]
        return Candidate(provider=name, why="", models=proposed(name))

    def _key(self, name: str) -> str:
        """A key that is to be stored; empty where there is one already, or none is needed."""
        told = self._settings.providers.get(name)
        if not needs_key(name) or key_for(name, os.environ, told) is not None:
            return ""
        if self._person is None:
            raise WorldFault(f"There is no key for {name!r}. Pipe it in: `--provider {name} --key-stdin`.")
        return self._person.secret(f"The key for {name} (it is not shown)")

    def _models(self, one: Candidate) -> Choice:
        given = in_full(self._settings, one.provider, self._wish.model) if self._wish.model else ""
        strong = given or (one.models[0] if one.models else "")
        # What a server of one's own has besides is none of our business, if one of its models was named.
        second = one.models[1:2] if needs_key(one.provider) or not given else ()
        fast = second[0] if second else strong
        if self._person is not None and not given:
            strong = in_full(self._settings, one.provider, self._person.answer("Strong model", strong))
            fast = in_full(self._settings, one.provider, self._person.answer("Fast model", fast or strong))
        if not strong:
            raise WorldFault(f"Which model of {one.provider!r}? Name it: `--model {one.provider}:MODEL`.")
        return Choice(strong=strong, fast=fast)

    def _keeps(self, path: Path) -> bool:
        """Whether settings that are there stay as they are."""
        if not path.exists():
            return False
        return self._person is None or not self._person.agrees(f"{path} is there already. Replace it?")


def _written(plan: Plan, progress: Progress, out: Output) -> int:
    stored = kept = None
    if plan.key:
        stored = save_key(plan.provider, plan.key)
        progress.note(f"✓ The key for {plan.provider} is in {stored}, which only you can read.", style="green")
    if plan.keep:
        progress.note(f"! {plan.path} is there already and stays as it is.", style="yellow")
    else:
        kept = write(plan.path, text(plan.choice, user=plan.user), user=plan.user)
        progress.note(f"✓ {plan.path}: strong {plan.choice.strong}, fast {plan.choice.fast}", style="green")
    if kept is not None:
        progress.note(f"  The old one is now {kept}.")
    out.show("Next: greenroom models check")
    return out.result(
        "kept" if plan.keep else "written",
        Exit.DONE,
        provider=plan.provider,
        strong=plan.choice.strong,
        fast=plan.choice.fast,
        config=str(plan.path),
        keys=str(stored) if stored else None,
    )
