"""What is at hand: keys in the environment, model servers on this machine. The value of a key is never taken.

Who looks for servers needs `servers.py`, which takes its time to be loaded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from greenroom.adapters.models.catalog.catalog import Provider, providers
from greenroom.core.base.records import record


@record
class Found:
    """There is a key for this provider in this variable."""

    provider: Provider
    variable: str


@record
class Server:
    """A model server that answers, and the models that it has."""

    provider: Provider
    base_url: str
    models: tuple[str, ...]


def found(environ: Mapping[str, str]) -> Sequence[Found]:
    """The providers that have a key. One that shares its variable with an earlier one needs a variable of its own."""
    here: dict[str, Found] = {}
    for one in providers().values():
        variable = next((name for name in one.keys if environ.get(name, "").strip()), None)
        if variable is not None and variable not in here:
            here[variable] = Found(provider=one, variable=variable)
    return tuple(here.values())
