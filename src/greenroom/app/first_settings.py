"""The first settings: find available providers and write the settings file atomically. Keys are never written there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from greenroom.adapters.models.catalog.catalog import (
    Provider,
    complete_base_url,
    find_keys,
    find_local_servers,
    get_provider,
    is_local,
    load_providers,
    split_model_name,
)
from greenroom.app.messages import translate
from greenroom.app.settings.home import replace_file, write_gitignore
from greenroom.app.settings.keys import quote_toml, saved_keys
from greenroom.app.settings.layers import PROJECT_FOLDER, is_visible, project_folder, user_file
from greenroom.app.settings.schema import Settings
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.records import record

SETTINGS_HEADER: Final = (
    "# Greenroom's settings{where}. `greenroom config show` shows all values and their origins. Do not put keys here.\n"
)


@record
class Candidate:
    """A provider that is ready to use. `why` says what was found; `models` are its proposed models."""

    provider: str
    why: str
    models: tuple[str, ...] = ()


@record
class ModelChoice:
    """The chosen models, by full name."""

    strong: str
    fast: str


@record
class NewEndpoint:
    """An address that the person names, and the variable that holds its key, if any."""

    base_url: str
    key_env: str = ""


def name_endpoint(endpoint: NewEndpoint, provider: str) -> str:
    """Return the provider's name for an address. Raise `WorldFault` if the address is not one."""
    name = provider or "custom"
    complete_base_url(load_providers().get(name) or Provider(name=name), endpoint.base_url, "base_url")
    return name


async def find_candidates(environ: Mapping[str, str]) -> Sequence[Candidate]:
    """Find providers that are ready to use: keys in the environment, saved keys and local servers."""
    from_environment = [
        (key.provider.name, translate("init.key_in_variable", variable=key.variable)) for key in find_keys(environ)
    ]
    from_file = [(name, translate("init.stored_key")) for name in saved_keys() if name in load_providers()]
    by_provider = {
        name: Candidate(provider=name, why=why, models=propose_models(name))
        for name, why in reversed((*from_environment, *from_file))
    }
    for server in await find_local_servers(environ=environ):
        models = ", ".join(server.models[:3]) + (", …" if len(server.models) > 3 else "")
        why = translate("init.server_at", base_url=server.base_url) + (
            translate("init.server_with", models=models) if models else translate("init.server_without")
        )
        models_in_full = tuple(f"{server.provider.name}:{name}" for name in server.models)
        by_provider[server.provider.name] = Candidate(provider=server.provider.name, why=why, models=models_in_full)
    order = list(
        dict.fromkeys((*(name for name, _ in from_environment), *(name for name, _ in from_file), *by_provider))
    )
    return tuple(by_provider[name] for name in order)


def propose_models(name: str) -> tuple[str, ...]:
    """Return the strong and the fast model that the catalog proposes for a provider, by full name."""
    entry = load_providers().get(name)
    models = (entry.strong, entry.fast) if entry is not None else ()
    return tuple(f"{name}:{model}" for model in models if model)


def list_key_providers() -> Sequence[tuple[str, str]]:
    """Return the providers that need a key, with the page where to get it."""
    return [
        (entry.name, entry.get_key)
        for entry in load_providers().values()
        if entry.keys and not entry.local and entry.strong
    ]


def find_provider(settings: Settings, provider_name: str, model: str) -> str:
    """Return the provider that was named, directly or in a model name, or an empty string."""
    if not provider_name:
        return split_model_name(model, settings.providers)[0] if model else ""
    name = provider_name if provider_name in settings.providers else get_provider(provider_name).name
    if model and qualify_model(settings, name, model).partition(":")[0] != name:
        raise WorldFault("settings.model_of_other_provider", model=model, name=name)
    return name


def qualify_model(settings: Settings | None, name: str, model: str) -> str:
    """Add the provider to a model name. A colon alone is not enough, because some model names contain one. Without
    settings, the model cannot be another provider's."""
    prefix, colon, _ = model.partition(":")
    if prefix == name and colon:
        return model
    if settings and colon and (prefix in settings.providers or prefix.strip().lower() in load_providers()):
        return ":".join(split_model_name(model, settings.providers))
    return f"{name}:{model}"


def needs_key(name: str) -> bool:
    """Whether the provider needs a key."""
    entry = load_providers().get(name)
    return entry is not None and not entry.keyless and not entry.local


def config_file(environ: Mapping[str, str], cwd: Path, *, user: bool) -> Path:
    """Return the file to write: the user's, the surrounding project's, or a new one at the project's root."""
    if user:
        return user_file(environ)
    root = project_folder(cwd, environ.get("HOME")) or _find_repository(cwd, environ.get("HOME")) or cwd
    return root / PROJECT_FOLDER / "config.toml"


def _find_repository(cwd: Path, home: str | None) -> Path | None:
    """Return the parent folder under version control. A home folder does not count, even if it is a repository."""
    for folder in (cwd, *cwd.parents):
        if str(folder) == home:
            return None
        if is_visible(folder / ".git"):
            return folder
    return None


FREE_MODEL: Final = """
[prices.{name}]  # dollars per million tokens; change them if this server asks a paid one
input = 0
output = 0
"""


def render_settings(choice: ModelChoice, provider: str = "", endpoint: NewEndpoint | None = None, *, user: bool) -> str:
    """Return the text of a settings file, with a table for a provider at another address."""
    lines = [
        SETTINGS_HEADER.format(where="" if user else " for this project"),
        "version = 1\n",
        'model = "strong"\n',
        f"strong = {quote_toml(choice.strong)}\n",
        f"fast = {quote_toml(choice.fast)}\n",
    ]
    if endpoint is not None:
        lines.append(f"\n[providers.{quote_toml(provider)}]\nbase_url = {quote_toml(endpoint.base_url)}\n")
        lines.append(f"key_env = {quote_toml(endpoint.key_env)}\n" if endpoint.key_env else "")
        if is_local(endpoint.base_url) and not endpoint.key_env:
            names = dict.fromkeys((choice.strong, choice.fast))
            lines += [FREE_MODEL.format(name=quote_toml(name)) for name in names]
    return "".join(lines)


def write_settings(path: Path, content: str, *, user: bool) -> Path | None:
    """Write the settings, and `.gitignore` in a project. Return the backup of the old file, if any. Each file is
    written atomically, and the settings come last."""
    backup = path.with_name(f"{path.name}.old") if is_visible(path) else None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if not user:
            write_gitignore(path.parent)
        if backup is not None:
            replace_file(backup, path.read_text("utf-8"), mode=0o644)
        replace_file(path, content, mode=0o644)
    except OSError as error:
        raise WorldFault("settings.folder_not_writable", path=path, strerror=error.strerror or error) from None
    return backup
