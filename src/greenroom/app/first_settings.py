"""The first settings: what is at hand for them, and writing them, whole or not at all. Keys never get there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from greenroom.adapters.models.catalog.catalog import found, local_servers, provider, providers, split
from greenroom.app.settings.home import replace, tell_git
from greenroom.app.settings.keys import quoted, saved_keys
from greenroom.app.settings.layers import FOLDER, project_folder, there, user_file
from greenroom.app.settings.schema import Settings
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.records import record

HEAD: Final = (
    "# Greenroom's settings{where}. `greenroom config show` says what holds, and why. Keys do not belong here.\n"
)


@record
class Candidate:
    """A provider that can be used at once. `why` says what was found; `models` are what it would be asked with."""

    provider: str
    why: str
    models: tuple[str, ...] = ()


@record
class Choice:
    """The models to begin with, in full."""

    strong: str
    fast: str


async def candidates(environ: Mapping[str, str]) -> Sequence[Candidate]:
    """Who can be used at once: keys in the environment, saved keys, servers of this machine."""
    keyed = [(one.provider.name, f"a key in ${one.variable}") for one in found(environ)]
    saved = [(name, "a key that you have stored") for name in saved_keys() if name in providers()]
    seen = {name: Candidate(provider=name, why=why, models=proposed(name)) for name, why in reversed((*keyed, *saved))}
    for server in await local_servers(environ=environ):
        models = ", ".join(server.models[:3]) + (", …" if len(server.models) > 3 else "")
        why = f"a server at {server.base_url}" + (f" with {models}" if models else " without a model")
        full = tuple(f"{server.provider.name}:{name}" for name in server.models)
        seen[server.provider.name] = Candidate(provider=server.provider.name, why=why, models=full)
    order = list(dict.fromkeys((*(name for name, _ in keyed), *(name for name, _ in saved), *seen)))
    return tuple(seen[name] for name in order)


def proposed(name: str) -> tuple[str, ...]:
    """What the catalog proposes for a provider: a strong model and a fast one, in full."""
    known = providers().get(name)
    models = (known.strong, known.fast) if known is not None else ()
    return tuple(f"{name}:{one}" for one in models if one)


def offered() -> Sequence[tuple[str, str]]:
    """The providers that a key can be asked for, with the page where one gets it."""
    return [(one.name, one.get_key) for one in providers().values() if one.keys and not one.local and one.strong]


def whose(settings: Settings, named: str, model: str) -> str:
    """The provider that was named, by itself or in a model's name; empty when none was."""
    if not named:
        return split(model, settings.providers)[0] if model else ""
    name = named if named in settings.providers else provider(named).name
    if model and in_full(settings, name, model).partition(":")[0] != name:
        raise WorldFault(f"{model!r} is no model of {name!r}. Leave out --provider, or name another model.")
    return name


def in_full(settings: Settings, name: str, model: str) -> str:
    """A model's name with its provider's before it. A colon alone says little: some models have one in their name."""
    first, colon, _ = model.partition(":")
    if colon and (first in settings.providers or first.strip().lower() in providers()):
        return ":".join(split(model, settings.providers))
    return f"{name}:{model}"


def needs_key(name: str) -> bool:
    """Whether it cannot be asked without a key."""
    known = providers().get(name)
    return known is not None and not known.keyless and not known.local


def config_file(environ: Mapping[str, str], cwd: Path, *, user: bool) -> Path:
    """The file to write: the user's, that of the project around here, or a new one at the project's root."""
    if user:
        return user_file(environ)
    root = project_folder(cwd, environ.get("HOME")) or _repository(cwd, environ.get("HOME")) or cwd
    return root / FOLDER / "config.toml"


def _repository(cwd: Path, home: str | None) -> Path | None:
    """The folder above that is under version control; a home folder is none, though some keep theirs in git."""
    for folder in (cwd, *cwd.parents):
        if str(folder) == home:
            return None
        if there(folder / ".git"):
            return folder
    return None


def text(choice: Choice, *, user: bool) -> str:
    lines = (
        HEAD.format(where="" if user else " for this project"),
        "version = 1\n",
        'model = "strong"\n',
        f"strong = {quoted(choice.strong)}\n",
        f"fast = {quoted(choice.fast)}\n",
    )
    return "".join(lines)


def write(path: Path, content: str, *, user: bool) -> Path | None:
    """Write the settings, and in a project what git is to leave out. Returns where the old ones are kept, if any.

    Each file is complete or not there, and the settings come last.
    """
    kept = path.with_name(f"{path.name}.old") if there(path) else None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if not user:
            tell_git(path.parent)
        if kept is not None:
            replace(kept, path.read_text("utf-8"), mode=0o644)
        replace(path, content, mode=0o644)
    except OSError as error:
        raise WorldFault(
            f"{path} cannot be written: {error.strerror or error}. Make the folder writable, or use --user."
        ) from None
    return kept
