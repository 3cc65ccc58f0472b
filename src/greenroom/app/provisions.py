"""What one invocation asks models with: settings, models, a recording. Each is made when it is first needed."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import cast

from greenroom.adapters.models.catalog.catalog import Server, card_of, found
from greenroom.adapters.models.replay.cassette import FIRST_LINE, secrets_in
from greenroom.adapters.models.replay.model import Playing, Recorder
from greenroom.app.hands.redaction import known_secrets
from greenroom.app.settings.keys import saved_keys
from greenroom.app.settings.layers import Loaded, load
from greenroom.app.settings.schema import ProviderSettings
from greenroom.app.supply import Supply
from greenroom.app.workspace import current_folder
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.records import record
from greenroom.core.ports.model import Model, ModelCard, Models


@record
class Unused:
    """What a recording held that nobody asked for: how many answers, of which models."""

    file: str
    count: int
    models: tuple[str, ...]


@record
class One:
    """One model for everybody, whatever they call it."""

    model: Model

    def named(self, _: str) -> Model:
        """That one."""
        return self.model


class Provisions:
    """Also the models themselves, by name: a team that runs here asks these."""

    def __init__(self, environ: Mapping[str, str] = os.environ, cwd: Callable[[], Path] = current_folder) -> None:
        self._environ = environ
        self._cwd = cwd
        self._loaded: Loaded | None = None
        self._flags: Mapping[str, object] = {}
        self._servers: Sequence[Server] = ()
        self._supply: Supply | None = None
        self._recorder: Recorder | None = None
        self._replay: Playing | None = None

    # -------------------------------------------------------------------------------------------------- settings

    def give(self, flags: Mapping[str, object]) -> None:
        """What was said on the command line, by dotted key. It counts more than all else."""
        self._flags = flags
        self._loaded = None

    @property
    def loaded(self) -> Loaded:
        """The settings, and where they come from; `WorldFault` for a file that cannot be used."""
        if self._loaded is None:
            self._loaded = load(self._flags, self._environ, self._cwd())
        return self._loaded

    # ------------------------------------------------------------------------------------------------ recordings

    def tape(self, record: Path | None, replay: Path | None) -> None:
        """Record what models say, or have a recording say it again. Before the first model is asked for."""
        secrets = self._secrets() if record or replay else ()
        if replay is not None:
            self._replay = Playing(replay, card=_card, secrets=secrets)
        if record is not None:
            refuse_old(record)
            self._recorder = Recorder(record, secrets=secrets)

    def unused(self) -> Unused | None:
        """What is left of a recording that was played."""
        left = self._replay.cassette.unused() if self._replay is not None else ()
        if self._replay is None or not left:
            return None
        models = tuple(dict.fromkeys(tape.model for tape in left))
        return Unused(file=str(self._replay.cassette.path), count=len(left), models=models)

    def around(self, script: Model) -> Models:
        """A model of one's own in the place of all others; a recording counts for it too."""
        if self._replay is not None:
            return self._replay
        return One(model=self._recorder.wrap(script) if self._recorder is not None else script)

    def keys(self) -> tuple[str, ...]:
        """All keys of models that are at hand: whoever writes down what others say leaves them out."""
        return known_secrets(self._environ, self._told(), self._saved())

    def _secrets(self) -> tuple[str, ...]:
        headers = [value for one in self._told() for value in one.headers.values()]
        return tuple(value for value in (*secrets_in(self._environ), *self.keys(), *headers) if value)

    def _saved(self) -> tuple[str, ...]:
        try:
            return tuple(saved_keys().values())
        except WorldFault:
            return ()  # a key file that cannot be read has given nobody a key

    def _told(self) -> tuple[ProviderSettings, ...]:
        try:
            return tuple(self.loaded.settings.providers.values())
        except WorldFault:
            return ()  # settings that cannot be read have given nobody a key either

    # ---------------------------------------------------------------------------------------------------- models

    async def look_around(self) -> None:
        """See which models there are on this machine, if nothing else says which model to ask."""
        known = self._replay or self.loaded.settings.model or found(self._environ) or saved_keys()
        if not known:
            self._servers = await _local_servers(self._environ)
            self._supply = None

    @property
    def supply(self) -> Supply:
        """All models. Making it asks nobody."""
        if self._supply is None:
            settings = self.loaded.settings
            self._supply = Supply(
                settings, self._environ, servers=self._servers, recorder=self._recorder, replay=self._replay
            )
        return self._supply

    def named(self, name: str) -> Model:
        """The model of this name, role or group; the normal one for no name."""
        return self._replay.named(name) if self._replay is not None else self.supply.named(name)

    def settled(self, name: str) -> str:
        """The name that means the same tomorrow: of a single model its own, of a group the group's."""
        if self._replay is not None:
            return self._replay.named(name).name
        behind = self.supply.meaning(name)
        return behind[0] if len(behind) == 1 else self.supply.settled(name)

    async def close(self) -> None:
        """Let the connections go; a recording without an answer in it is taken away again."""
        supply, self._supply = self._supply, None
        if supply is not None:
            await supply.close()
        recorder, self._recorder = self._recorder, None
        if recorder is not None:
            recorder.close()
            forget_empty(recorder.path)


def _card(name: str) -> ModelCard:
    """What is known of a model, whether or not it can be asked from here."""
    return card_of(name.partition(":")[2])


def refuse_old(path: Path) -> None:
    """A recording never takes the place of another file."""
    if path.exists() and (path.is_dir() or path.stat().st_size):
        raise WorldFault(f"There is something at {str(path)!r} already. Record to another file, or delete it first.")


def forget_empty(path: Path) -> None:
    """Delete a recording that holds its first line only."""
    try:
        if path.is_file() and path.stat().st_size <= len(FIRST_LINE):
            path.unlink()
    except OSError:
        return  # it is gone, or not ours any more: nothing is lost by leaving it


async def _local_servers(environ: Mapping[str, str]) -> Sequence[Server]:
    look = import_module("greenroom.adapters.models.catalog.servers").local_servers
    return await cast("Callable[..., Awaitable[Sequence[Server]]]", look)(environ=environ)
