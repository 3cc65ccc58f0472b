"""`greenroom init` and `config`: first settings, and the settings in force."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.text import Text

from greenroom.app.first_settings import (
    Candidate,
    ModelChoice,
    NewEndpoint,
    config_file,
    find_candidates,
    find_provider,
    list_key_providers,
    name_endpoint,
    needs_key,
    propose_models,
    qualify_model,
    render_settings,
    write_settings,
)
from greenroom.app.jarvis_import import AGENT_FOLDERS, CONFIG_FILE, import_memories, read_jarvis, write_agents
from greenroom.app.messages import set_language, translate
from greenroom.app.settings.keys import key_for, save_key
from greenroom.app.settings.layers import list_settings, list_settings_files, load_settings
from greenroom.app.settings.schema import Settings
from greenroom.cli.context import Invocation, invoke
from greenroom.cli.exit_codes import Exit
from greenroom.cli.process import open_answer_stream
from greenroom.cli.render.output import Column, FittedTable, Output, make_row, strip_control_characters
from greenroom.cli.render.progress import Progress, progress_for
from greenroom.cli.render.questions import PersonLeft, ask, ask_secret, choose
from greenroom.cli.setup import read_setup
from greenroom.core.base.errors import WorldFault, make_refusal
from greenroom.core.base.records import record

JARVIS_FOLDER: Final = ".jarvis"


@record
class InitPlan:
    """What to write. An empty `key` is not stored; with `keep` existing settings stay."""

    provider: str
    key: str
    choice: ModelChoice
    endpoint: NewEndpoint | None
    path: Path
    keep: bool


def init(
    context: typer.Context,
    *,
    provider: Annotated[str, typer.Option("--provider", metavar="NAME", help="Provider, like openai.")] = "",
    model: Annotated[
        str, typer.Option("--model", "-m", metavar="NAME", help="Default model, like openai:gpt-5.5.")
    ] = "",
    base_url: Annotated[
        str, typer.Option("--base-url", metavar="URL", help="Address of an OpenAI-compatible API.")
    ] = "",
    key_env: Annotated[
        str, typer.Option("--key-env", metavar="NAME", help="Variable that holds the key for --base-url.")
    ] = "",
    key_stdin: Annotated[bool, typer.Option("--key-stdin", help="Read the key from stdin and store it.")] = False,
    user: Annotated[bool, typer.Option("--user", help="Write settings for all projects, not this folder.")] = False,
    replace: Annotated[bool, typer.Option("--replace", help="Replace existing settings; a copy is kept.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Ask nothing; keep existing settings.")] = False,
    from_jarvis: Annotated[
        bool, typer.Option("--import", help="Take settings, agents, memories from ~/.jarvis.")
    ] = False,
) -> int:
    """Find or store a key, choose models, write settings.

    Keys and local model servers are found by themselves. Keys are never written to a project.

    Examples:
      greenroom init
      greenroom init --model openai:gpt-5.5 --yes
      greenroom init --base-url http://127.0.0.1:9000/v1 --provider ours --model big
      printenv MY_KEY | greenroom init --provider openai --key-stdin
      greenroom init --import

    Exit codes: 0; 2; 3; 130.
    """
    if from_jarvis:
        if provider or model or base_url or key_env or key_stdin:
            raise typer.BadParameter(translate("import.alone"))
        return invoke(context, partial(import_jarvis, replace=replace))
    key = sys.stdin.readline().strip() if key_stdin else ""
    if key_stdin and not key:
        raise typer.BadParameter(translate("init.no_key_on_stdin"))
    if key_stdin and not (provider or model):
        raise typer.BadParameter(translate("init.key_provider_unknown"))
    yes, setup = yes or key_stdin, read_setup(context)
    progress = progress_for(setup)
    with open_answer_stream() as stream, Output(setup.output_format, stream) as out:
        try:
            endpoint = NewEndpoint(base_url=base_url.strip(), key_env=key_env.strip()) if base_url else None
            given = (provider.strip(), model.strip(), key, endpoint)
            plan = _make_plan(progress, *given, user=user, yes=yes, replace=replace)
        except PersonLeft:
            progress.note(f"\n{translate('init.nothing_written')}", style="bold")
            return out.result("stopped", Exit.INTERRUPTED)
        return _write_plan(plan, progress, out, user=user or plan.endpoint is not None)


async def import_jarvis(cli: Invocation, *, replace: bool) -> Exit:
    """Write what Jarvis' folder has, and say what was taken and what was left."""
    folder, path = Path.home() / JARVIS_FOLDER, config_file(os.environ, Path.cwd(), user=True)
    found, left = read_jarvis(folder), list[tuple[str, str]]()
    is_new, taken = replace or not path.exists(), found.taken
    if found.settings and is_new:
        backup = write_settings(path, found.settings, user=True)
        cli.progress.note(translate("import.written", path=path), style="green")
        if backup is not None:
            cli.progress.note(f"  {translate('init.backup', path=backup)}")
    elif found.settings:
        left.append((CONFIG_FILE, translate("import.settings_exist", path=path)))
        taken = tuple(line for line in taken if line.partition("/")[0] in AGENT_FOLDERS)
    write_agents(found.agents)
    unread = import_memories(folder, cli.app.memories())
    left += [*found.left, *((name, translate("import.no_memory")) for name in unread)]
    for line in taken:
        cli.out.show(f"✓ {strip_control_characters(line)}")
    for name, why in left:
        cli.out.show(f"– {strip_control_characters(f'{name}: {why}')}")
    return cli.out.result("imported", Exit.DONE, taken=taken, left=[f"{name}: {why}" for name, why in left])


def _make_plan(
    progress: Progress,
    provider: str,
    model: str,
    key: str,
    endpoint: NewEndpoint | None,
    *,
    user: bool,
    yes: bool,
    replace: bool,
) -> InitPlan:
    """Collect everything before anything is written. Questions are asked only at a terminal."""
    settings, may_ask = load_settings({}, os.environ, Path.cwd()).settings, not yes and sys.stdin.isatty()
    set_language(settings.language)
    provider_name = name_endpoint(endpoint, provider) if endpoint else find_provider(settings, provider, model)
    if not provider_name and not may_ask and not yes:
        why = translate("init.stdin_not_terminal")
        raise make_refusal("no_terminal", why, translate("init.add_yes_or_provider"))
    found_candidates = asyncio.run(find_candidates(os.environ))
    progress.note(translate("init.found"))
    for candidate in found_candidates:
        progress.note(f"  ✓ {candidate.provider}: {candidate.why}", style="green")
    if not found_candidates and endpoint is None:
        progress.note(f"  {translate('init.none_found')}", style="yellow")
    chosen = _choose_provider(provider_name, found_candidates, may_ask=may_ask)
    if not chosen.provider:
        address, variable = ask(translate("init.ask_base_url")), ask(translate("init.ask_key_env"), "none")
        endpoint = NewEndpoint(base_url=address, key_env="" if variable == "none" else variable)
        chosen = Candidate(provider=name_endpoint(endpoint, provider), why="")
    key = key or _ask_key(settings, chosen.provider, may_ask=may_ask)
    choice = _choose_models(None if endpoint else settings, chosen, model, may_ask=may_ask)
    path = config_file(os.environ, Path.cwd(), user=user or endpoint is not None)
    question = translate("init.replace_existing", path=path)
    keep = path.exists() and not replace and not (may_ask and ask(question, "no").lower() in ("y", "yes"))
    return InitPlan(provider=chosen.provider, key=key, choice=choice, endpoint=endpoint, path=path, keep=keep)


def _choose_provider(provider_name: str, found_candidates: Sequence[Candidate], *, may_ask: bool) -> Candidate:
    """Choose the provider: the named one, else one that was found, else one that the person chooses. One without a
    name is another address."""
    usable = [candidate for candidate in found_candidates if candidate.models]
    if provider_name:
        named = (candidate for candidate in found_candidates if candidate.provider == provider_name)
        return next(named, Candidate(provider=provider_name, why="", models=propose_models(provider_name)))
    if not usable and not may_ask:
        raise WorldFault("init.nothing_found")
    if usable:
        rows = [f"{candidate.provider}  ({candidate.why})" for candidate in usable]
        question, offered = translate("init.which_provider"), usable
    else:
        providers = list_key_providers()
        rows = [f"{name}  ({address})" for name, address in providers]
        question = translate("init.ask_key_provider")
        offered = [Candidate(provider=name, why="", models=propose_models(name)) for name, _ in providers]
    offered.append(Candidate(provider="", why=""))
    return offered[choose(question, [*rows, translate("init.other_address")]) if may_ask else 0]


def _ask_key(settings: Settings, name: str, *, may_ask: bool) -> str:
    """Ask for a key to store; empty if there is one already or none is needed."""
    if not needs_key(name) or key_for(name, os.environ, settings.providers.get(name)) is not None:
        return ""
    if not may_ask:
        raise WorldFault("init.no_provider_key", name=name)
    return ask_secret(translate("init.ask_key", name=name))


def _choose_models(settings: Settings | None, chosen: Candidate, model: str, *, may_ask: bool) -> ModelChoice:
    name = chosen.provider
    given = qualify_model(settings, name, model) if model else ""
    strong = given or (chosen.models[0] if chosen.models else "")
    # If a model of a local server was named, its other models are not used.
    second = chosen.models[1:2] if needs_key(name) or not given else ()
    fast = second[0] if second else strong
    if may_ask and not given:
        strong = qualify_model(settings, name, ask(translate("init.strong_model"), strong))
        fast = qualify_model(settings, name, ask(translate("init.fast_model"), fast or strong))
    if not strong:
        raise WorldFault("init.model_missing", name=name)
    return ModelChoice(strong=strong, fast=fast)


def _write_plan(plan: InitPlan, progress: Progress, out: Output, *, user: bool) -> int:
    key_file = backup = None
    if plan.key:
        key_file = save_key(plan.provider, plan.key)
        progress.note(translate("init.key_stored", provider=plan.provider, path=key_file), style="green")
    if plan.keep:
        progress.note(translate("init.kept", path=plan.path), style="yellow")
    else:
        content = render_settings(plan.choice, plan.provider, plan.endpoint, user=user)
        backup = write_settings(plan.path, content, user=user)
        models = {"strong": plan.choice.strong, "fast": plan.choice.fast}
        progress.note(translate("init.written", path=plan.path, **models), style="green")
    if backup is not None:
        progress.note(f"  {translate('init.backup', path=backup)}")
    out.show(translate("init.next", command="greenroom models check"))
    models, keys = {"strong": plan.choice.strong, "fast": plan.choice.fast}, str(key_file) if key_file else None
    result_fields = {"provider": plan.provider, **models, "config": str(plan.path), "keys": keys}
    return out.result("kept" if plan.keep else "written", Exit.DONE, **result_fields)


SETTING_COLUMNS: Final = (
    Column(name="setting"),
    Column(name="value", can_shrink=True),
    Column(name="from", can_shrink=True, style="dim"),
)
FILE_COLUMNS: Final = (Column(name="what"), Column(name="file"), Column(name="exists"))


async def config_show(cli: Invocation) -> None:
    """Show every setting and where it comes from.

    Keys are masked.

    Examples:
      greenroom config show
      greenroom config show --output-format json

    Exit codes: 0; 2; 3.
    """
    try:
        settings_rows = list_settings(load_settings({}, os.environ, Path.cwd()))
    except FileNotFoundError:
        raise WorldFault("init.current_folder_gone") from None
    cli.out.listing(
        "setting",
        ({"key": setting.key, "value": setting.value, "from": str(setting.origin)} for setting in settings_rows),
    )
    unset = Text(translate("init.not_set"), style="dim")
    cells = [make_row(setting.key, setting.value or unset.copy(), str(setting.origin)) for setting in settings_rows]
    cli.out.show(FittedTable(SETTING_COLUMNS, cells))


async def config_path(cli: Invocation) -> None:
    """Show the files that settings are read from.

    The last column says whether a file exists.

    Examples:
      greenroom config path
      greenroom config path --output-format json

    Exit codes: 0; 2; 3.
    """
    files = list_settings_files(os.environ, Path.cwd())
    cli.out.listing("file", ({"what": file.what, "path": str(file.path), "there": file.is_visible} for file in files))
    cli.out.show(
        FittedTable(
            FILE_COLUMNS,
            [
                make_row(file.what, str(file.path), translate("counts.yes" if file.is_visible else "counts.no"))
                for file in files
            ],
        )
    )
