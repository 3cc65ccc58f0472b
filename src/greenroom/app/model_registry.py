"""All models that this process can ask, by name, role or group; settings, recordings and connections behind them."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from greenroom.adapters.models.catalog.catalog import (
    Provider,
    Server,
    address,
    card_of,
    found,
    is_local,
    local_servers,
    providers,
    split,
)
from greenroom.adapters.models.platforms import PlatformRegistry, set_global_platform_registry
from greenroom.adapters.models.pricing import Price, Rates, price_of
from greenroom.adapters.models.replay.cassette import FIRST_LINE, secrets_in
from greenroom.adapters.models.replay.model import Playing, Recorder
from greenroom.adapters.models.retry import Gate, Group, Late, Patience, Retrying
from greenroom.adapters.models.vendors import missing
from greenroom.app.settings.keys import key_for, saved_keys
from greenroom.app.settings.layers import Loaded, load
from greenroom.app.settings.schema import Price as PriceSetting
from greenroom.app.settings.schema import ProviderSettings, Settings
from greenroom.app.toolset.redaction import known_secrets
from greenroom.app.workspace import current_folder
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.records import record
from greenroom.core.ports.model import Model, Models

if TYPE_CHECKING:
    from greenroom.adapters.models.openai.model import Endpoint
    from greenroom.adapters.models.vendors.vendor import Vendor


MILLION: Final = 1_000_000
ROLES: Final = ("", "strong", "fast")
"""Names of models that mean whatever the settings say, or what is at hand."""

DEEPEST: Final = 8
"""How often one name may stand for another."""

SILENCE: Final = 300.0
"""Seconds without a word after which a provider counts as hung, however long its answer may take."""

NO_MODEL: Final = (
    "No model is set, and no key was found in the environment. "
    "`greenroom init` sets one up; `greenroom demo` needs none."
)


class Supply:
    """Models that share their connections, their gates and their recording. Close it when the work is done."""

    def __init__(
        self,
        settings: Settings,
        environ: Mapping[str, str],
        *,
        servers: Iterable[Server] = (),
        recorder: Recorder | None = None,
        replay: Models | None = None,
    ) -> None:
        self._settings = settings
        self._environ = environ
        self._servers = {server.provider.name: server for server in servers}
        self._recorder = recorder
        self._replay = replay
        self._rates = {name: _rates(price) for name, price in settings.prices.items()}
        self._endpoints: dict[str, Endpoint] = {}
        self._vendors: dict[str, Vendor] = {}
        self._gates: dict[str, Gate] = {}
        self._made: dict[str, Model] = {}
        self._platforms: PlatformRegistry | None = None
        self._own: frozenset[str] = frozenset()

    @classmethod
    def here(cls, **flags: object) -> Supply:
        """What the settings of this folder, of this user and of the environment give; `model="…"` wins over all."""
        return cls(load(flags, os.environ, Path.cwd()).settings, os.environ)

    def named(self, name: str) -> Model:
        """The model of this name, role or group; the normal one for no name."""
        if self._replay is not None:
            return self._replay.named(name)
        known = self._made.get(name)
        if known is None:
            known = self._made[name] = self._make(name)
        return known

    def meaning(self, name: str) -> tuple[str, ...]:
        """What a name stands for: the `provider:model` names behind it, the main one first."""
        seen = self.settled(name)
        if seen not in self._settings.groups:
            return (seen,)
        members = self._settings.groups[seen].models
        nested = next((member for member in members if member in self._settings.groups), None)
        if nested is not None:
            raise WorldFault(f"The group {seen!r} holds the group {nested!r}. Name its models instead.")
        return tuple(name for member in members for name in self.meaning(member))

    def settled(self, name: str) -> str:
        """The model or group that a role, or no name at all, stands for today."""
        seen = name
        for _ in range(DEEPEST):
            if seen in self._settings.groups or seen not in ROLES:
                return seen
            seen = self._role(seen)
        raise WorldFault(f"The model {name!r} stands for itself in a circle. `greenroom config show` shows how.")

    def misnamed(self, name: str) -> str:
        """Why nothing is behind a name, whichever keys are at hand; empty for what may be there."""
        groups = self._settings.groups
        for one in groups[name].models if name in groups else (name,):
            if one in groups or one in ROLES:
                continue
            try:
                split(one, self._known)
            except WorldFault as fault:
                return str(fault)
        return ""

    def _role(self, role: str) -> str:
        """What a role, or no name at all, stands for: the settings' word, else what is at hand."""
        settings = self._settings
        told = {"": settings.model, "strong": settings.strong, "fast": settings.fast}[role]
        if told:
            return told
        if role and settings.model and role not in settings.model:
            main = self.meaning(settings.model)[0]
            known = providers().get(split(main, self._known)[0])
            proposed = (known.fast if role == "fast" else known.strong) if known is not None else ""
            return f"{known.name}:{proposed}" if known is not None and proposed else main
        return self._at_hand(role or "strong")

    def _at_hand(self, role: str) -> str:
        """The first provider with a key in the environment or in the user's file, else a server of this machine."""
        with_key = [one.provider.name for one in found(self._environ)] + list(saved_keys())
        for known in (providers()[name] for name in with_key if name in providers()):
            proposed = known.fast if role == "fast" else known.strong
            if proposed:
                return f"{known.name}:{proposed}"
        for server in self._servers.values():
            if server.models:
                return f"{server.provider.name}:{server.models[0]}"
        raise WorldFault(NO_MODEL)

    def _make(self, name: str) -> Model:
        members = self.meaning(name)
        models = [self._retrying(member) for member in members]
        model: Model = models[0] if len(models) == 1 else Group(self.settled(name), models)
        return model if self._recorder is None else self._recorder.wrap(model)

    def _retrying(self, name: str) -> Model:
        retry = self._settings.retry
        patience = Patience(retries=retry.attempts, delay=retry.delay, total=retry.total)
        provider, _ = split(name, self._known)
        return Retrying(self.bare(name), self._gate(provider), patience)

    def bare(self, name: str) -> Model:
        """The model itself, which is asked once and no more: for checks."""
        provider, model = split(name, self._known)
        own = self.platforms.create_platform(provider, model) if provider in self._own else None
        if own is not None:
            return own.model
        known = providers().get(provider) or Provider(name=provider)
        told = self._settings.providers.get(provider, ProviderSettings())
        if (told.wire or known.wire) == "pydantic_ai":
            return self._of_vendor(known, model, told)
        self._way_to(provider)  # what cannot be asked is refused now, though nobody is connected yet
        price, card = self.price(name), card_of(model)

        def make() -> Model:
            from greenroom.adapters.models.openai.model import OpenAICompatible

            return OpenAICompatible(
                self.endpoint(provider), model, card=card, price=price.most, cost=price.of, longest=told.timeout
            )

        return Late(f"{provider}:{model}", card, price.most, make)

    @property
    def platforms(self) -> PlatformRegistry:
        """All platforms: the providers, and what the user's folder adds (AG's registry)."""
        if self._platforms is None:
            groups = {name: group.models for name, group in self._settings.groups.items()}
            normal = self._settings.model if ":" in self._settings.model else ""
            self._platforms = PlatformRegistry(
                lambda provider, model: self.named(f"{provider}:{model}"), normal=normal, groups=groups
            )
            self._own = frozenset(self._platforms.scan()) - frozenset(self._settings.providers)
            set_global_platform_registry(self._platforms)
        return self._platforms

    @property
    def _known(self) -> Collection[str]:
        """Providers beyond the catalog: of the settings, and the user's own platforms."""
        return (*self._settings.providers, *self.platforms.names())

    def _of_vendor(self, known: Provider, model: str, told: ProviderSettings) -> Model:
        """A model that speaks another language. What reads it takes seconds to import, so only whoever asks pays."""
        try:
            from greenroom.adapters.models.vendors.model import VendorModel
            from greenroom.adapters.models.vendors.vendor import Vendor
        except ImportError:
            raise missing(f"{known.name}:{model}") from None
        vendor = self._vendors.get(known.name)
        if vendor is None:
            key = key_for(known.name, self._environ, told)
            if key is None and not known.keyless:
                raise WorldFault(no_key(known, told))
            vendor = self._vendors[known.name] = Vendor(
                known.name,
                key=key.reveal if key is not None else str,
                base_url=address(known, self._environ, told.base_url),
                idle=min(told.timeout, SILENCE),
            )
        price = price_of(known.name, model, local=False, own=self._rates)
        return VendorModel(vendor, model, card=card_of(model), price=price.most, cost=price.of, longest=told.timeout)

    def endpoint(self, provider: str) -> Endpoint:
        """The connections to a provider that speaks OpenAI's language."""
        endpoint = self._endpoints.get(provider)
        if endpoint is None:
            endpoint = self._endpoints[provider] = self._way_to(provider)()
        return endpoint

    def _way_to(self, provider: str) -> Callable[[], Endpoint]:
        known = providers().get(provider) or Provider(name=provider)
        told = self._settings.providers.get(provider, ProviderSettings())
        server = self._servers.get(provider)
        base_url = address(known, self._environ, told.base_url or (server.base_url if server is not None else ""))
        key = key_for(provider, self._environ, told)
        if key is None and not known.keyless and not is_local(base_url):
            raise WorldFault(no_key(known, told))

        def connect() -> Endpoint:
            from greenroom.adapters.models.openai.model import Endpoint

            return Endpoint(
                provider,
                base_url,
                key=key.reveal if key is not None else str,
                headers=told.headers,
                idle=min(told.timeout, SILENCE),
                connections=told.max_parallel,
            )

        return connect

    def _gate(self, provider: str) -> Gate:
        gate = self._gates.get(provider)
        if gate is None:
            told = self._settings.providers.get(provider, ProviderSettings())
            gate = self._gates[provider] = Gate(told.max_parallel, told.requests_per_minute or 0)
        return gate

    def price(self, name: str) -> Price:
        """The price of one model."""
        provider, model = split(name, self._known)
        known = providers().get(provider)
        # Free is only what is known to run here: behind an address of this machine may be a proxy to somebody dear.
        return price_of(provider, model, local=known is not None and known.local, own=self._rates)

    async def close(self) -> None:
        """Let all connections go, and end the recording."""
        for endpoint in self._endpoints.values():
            await endpoint.close()
        for vendor in self._vendors.values():
            await vendor.close()
        if self._recorder is not None:
            self._recorder.close()


def no_key(provider: Provider, told: ProviderSettings) -> str:
    """There is no key for this provider, and what to do now."""
    variables: Sequence[str] = (told.key_env,) if told.key_env else provider.keys
    where = f" Get one at {provider.get_key}." if provider.get_key else ""
    by_hand = f"Set ${variables[0]}, or type" if variables else "Type"
    return f"There is no key for {provider.name!r}.{where} {by_hand} `greenroom init`. `greenroom demo` needs none."


def _rates(price: PriceSetting) -> Rates:
    """From dollars to millionths of them."""
    cached, written = (None if part is None else round(part * MILLION) for part in (price.cached, price.written))
    return Rates(
        input=round(price.input * MILLION), output=round(price.output * MILLION), cached=cached, written=written
    )


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
        return self.model


class Provisions:
    """Also the models themselves, by name: a team that runs here asks these."""

    def __init__(self, environ: Mapping[str, str] = os.environ, cwd: Callable[[], Path] = current_folder) -> None:
        self._environ = environ
        self._cwd = cwd
        self._loaded: Loaded | None = None
        self._flags: Mapping[str, object] = {}
        self._servers: Sequence[Server] = ()
        self._has_looked = False
        self._supply: Supply | None = None
        self._recorder: Recorder | None = None
        self._replay: Playing | None = None

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

    def tape(self, record: Path | None, replay: Path | None) -> None:
        """Record what models say, or have a recording say it again. Before the first model is asked for."""
        secrets = self._secrets() if record or replay else ()
        if replay is not None:
            # What is known of a model, whether or not it can be asked from here.
            self._replay = Playing(replay, card=lambda name: card_of(name.partition(":")[2]), secrets=secrets)
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

    async def look_around(self) -> None:
        """See once which models there are on this machine, if nothing else says which model to ask."""
        if self._has_looked:
            return
        self._has_looked = True
        known = self._replay or self.loaded.settings.model or found(self._environ) or saved_keys()
        if not known:
            self._servers = await local_servers(environ=self._environ)
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
