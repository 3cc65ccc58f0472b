"""Names that settings give to models, groups and providers: each must mean something."""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches

from greenroom.adapters.models.catalog.catalog import providers, split, unknown
from greenroom.app.settings.schema import ROLES, Settings
from greenroom.core.base.errors import WorldFault

OriginOf = Callable[[str], str]


def check_names(settings: Settings, origin: OriginOf) -> None:
    """`WorldFault` for the first name that means nothing, with where it stands."""
    for name, told in settings.providers.items():
        if name not in providers() and not told.base_url:
            fault = unknown(name, providers())
            raise WorldFault(f"`providers.{name}`: {fault} One of your own needs a `base_url`.")
    for name, group in settings.groups.items():
        check_group(settings, name, group.models, origin(f"groups.{name}.models"))
    for key in ("model", *ROLES):
        value: str = getattr(settings, key)
        if value:
            check_model(settings, key, value, origin(key))
    for name in settings.prices:
        check_full(settings, f'prices."{name}"', name, origin(f"prices.{name}.input"))


def check_group(settings: Settings, name: str, models: tuple[str, ...], where: str) -> None:
    """A group has a name of its own, and models that are written in full."""
    if name in ROLES or ":" in name or not name.strip():
        raise WorldFault(f"{where}: a group cannot be called {name!r}. Give it another name.")
    for model in models:
        check_full(settings, f"groups.{name}.models", model, where)


def check_model(settings: Settings, key: str, value: str, where: str) -> None:
    """A model is written in full, or names a group, or (the normal one) a role."""
    also = (*settings.groups, *(ROLES if key == "model" else ()))
    if value in also:
        return
    near = get_close_matches(value, also, n=1)
    if ":" not in value and near:
        raise WorldFault(f"{where}: `{key}` names {value!r}, which is no group. Did you mean `{near[0]}`?")
    check_full(settings, key, value, where)


def check_full(settings: Settings, key: str, value: str, where: str) -> None:
    """It is `provider:model`, of a provider that there is."""
    try:
        split(value, also=settings.providers)
    except WorldFault as fault:
        raise WorldFault(f"{where}: `{key}`: {fault}") from None
