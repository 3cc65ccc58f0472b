"""The model registry: all models of this process by name, role or group, with settings, recordings and connections."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final

from platformdirs import user_cache_path

from greenroom.adapters.models.catalog.catalog import (
    ModelServer,
    Provider,
    find_card,
    find_keys,
    find_local_servers,
    is_local,
    load_providers,
    resolve_base_url,
    split_model_name,
)
from greenroom.adapters.models.platforms import PlatformRegistry
from greenroom.adapters.models.pricing import ModelPrice, TokenRates, find_price
from greenroom.adapters.models.replay.model import Recorder, ReplayModels
from greenroom.adapters.models.replay.recording import FIRST_LINE, find_secrets
from greenroom.adapters.models.retry import LazyModel, ModelGroup, RateLimiter, RetryingModel, RetryPolicy, RetryTime
from greenroom.adapters.models.vendors import make_missing_fault
from greenroom.app.messages import translate
from greenroom.app.settings.keys import key_for, saved_keys
from greenroom.app.settings.layers import LoadedSettings, load_settings
from greenroom.app.settings.schema import ModelSettings, ProviderSettings, Settings
from greenroom.app.settings.schema import PriceSettings as PriceSetting
from greenroom.app.toolset.redaction import SecretRedactor, find_known_secrets
from greenroom.app.workspace import current_folder
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.records import evolve, record
from greenroom.core.ports.model import Model, ModelCard, Models

if TYPE_CHECKING:
    from greenroom.adapters.models.openai.model import Endpoint
    from greenroom.adapters.models.vendors.vendor import Vendor


MILLIONTHS_PER_DOLLAR: Final = 1_000_000
ROLES: Final = ("", "strong", "fast")
"""Model names that the settings, or the available providers, define."""

MAX_ALIAS_DEPTH: Final = 8
IDLE_TIMEOUT_S: Final = 300.0
"""Seconds without output after which a provider counts as hung."""

NO_MODEL_MESSAGE: Final = "models.no_model_found"


class ModelRegistry:
    """Models that share connections, rate limits and a recording. Close it when the work is done."""

    def __init__(
        self,
        settings: Settings,
        environ: Mapping[str, str],
        *,
        servers: Iterable[ModelServer] = (),
        recorder: Recorder | None = None,
        replay: Models | None = None,
    ) -> None:
        self._settings = settings
        self._environ = environ
        self._servers = {server.provider.name: server for server in servers}
        self._recorder = recorder
        self._replay = replay
        self._rates = {name: _convert_rates(price) for name, price in settings.prices.items()}
        self._endpoints: dict[str, Endpoint] = {}
        self._vendors: dict[str, Vendor] = {}
        self._gates: dict[str, RateLimiter] = {}
        self._models: dict[str, Model] = {}

    @classmethod
    def from_settings(cls, **flags: object) -> ModelRegistry:
        """Make a registry from the settings for this folder. `model="…"` overrides the default model."""
        return cls(load_settings(flags, os.environ, Path.cwd()).settings, os.environ)

    def get_model(self, name: str) -> Model:
        """Return the model for a name, role or group. An empty name means the default model."""
        if self._replay is not None:
            return self._replay.get_model(name)
        known = self._models.get(name)
        if known is None:
            members = self.resolve_models(name)
            models = [self._make_retrying_model(member) for member in members]
            model: Model = models[0] if len(models) == 1 else ModelGroup(self.resolve_alias(name), models)
            known = self._models[name] = model if self._recorder is None else self._recorder.wrap(model)
        return known

    def resolve_models(self, name: str) -> tuple[str, ...]:
        """Return the `provider:model` names behind a name, the main one first."""
        resolved = self.resolve_alias(name)
        if resolved not in self._settings.groups:
            return (resolved,)
        members = self._settings.groups[resolved].models
        nested = next((member for member in members if member in self._settings.groups), None)
        if nested is not None:
            raise WorldFault("model_registry.group_holds_group", resolved=resolved, nested=nested)
        return tuple(name for member in members for name in self.resolve_models(member))

    def resolve_alias(self, name: str) -> str:
        """Return the model or group that a role, or an empty name, currently stands for."""
        resolved = name
        for _ in range(MAX_ALIAS_DEPTH):
            if resolved in self._settings.groups or resolved not in ROLES:
                return resolved
            resolved = self._resolve_role(resolved)
        raise WorldFault("model_registry.model_refers_itself", name=name)

    def find_name_error(self, name: str) -> str:
        """Return why a name cannot refer to any model, with or without keys. Return "" if it can."""
        groups = self._settings.groups
        for model_name in groups[name].models if name in groups else (name,):
            if model_name in groups or model_name in ROLES:
                continue
            try:
                split_model_name(model_name, self._extra_providers)
            except WorldFault as fault:
                return str(fault)
        return ""

    def _resolve_role(self, role: str) -> str:
        """Resolve a role or an empty name: from the settings, else from the available providers."""
        settings = self._settings
        configured = {"": settings.model, "strong": settings.strong, "fast": settings.fast}[role]
        if configured:
            return configured
        if role and settings.model and role not in settings.model:
            main_model = self.resolve_models(settings.model)[0]
            entry = load_providers().get(split_model_name(main_model, self._extra_providers)[0])
            proposed = (entry.fast if role == "fast" else entry.strong) if entry is not None else ""
            return f"{entry.name}:{proposed}" if entry is not None and proposed else main_model
        return self._find_default(role or "strong")

    def _find_default(self, role: str) -> str:
        """Return the first provider with a key in the environment or key file, else a local server."""
        with_key = [key.provider.name for key in find_keys(self._environ)] + list(saved_keys())
        for entry in (load_providers()[name] for name in with_key if name in load_providers()):
            proposed = entry.fast if role == "fast" else entry.strong
            if proposed:
                return f"{entry.name}:{proposed}"
        for server in self._servers.values():
            if server.models:
                return f"{server.provider.name}:{server.models[0]}"
        raise WorldFault(NO_MODEL_MESSAGE)

    def _make_retrying_model(self, name: str) -> Model:
        retry = self._settings.retry
        retry_policy = RetryPolicy(retries=retry.attempts, delay=retry.delay, total=retry.total)
        provider, _ = split_model_name(name, self._extra_providers)
        gate = self._gates.get(provider)
        if gate is None:
            provider_settings = self._settings.providers.get(provider, ProviderSettings())
            gate = self._gates[provider] = RateLimiter(
                provider_settings.max_parallel, provider_settings.requests_per_minute or 0
            )
        return RetryingModel(self.make_bare_model(name), gate, retry_policy, self._find_retry_time(provider, name))

    def _find_retry_time(self, provider: str, name: str) -> RetryTime:
        """Return when the model may be asked again: for this address and key, in all processes of the user."""
        entry = load_providers().get(provider) or Provider(name=provider)
        provider_settings = self._settings.providers.get(provider, ProviderSettings())
        address = provider_settings.base_url or self._environ.get(entry.base_url_env, "")
        key = key_for(provider, self._environ, provider_settings)
        account = "\n".join((name, address, key.reveal() if key is not None else ""))
        folder = user_cache_path("greenroom", appauthor=False) / "retry-after"
        return RetryTime(folder / hashlib.sha256(account.encode()).hexdigest()[:32])

    def make_bare_model(self, name: str) -> Model:
        """Return the model itself, without retries, for tests of a model."""
        provider, model = split_model_name(name, self._extra_providers)
        if provider in self.platforms.names() and provider not in self._settings.providers:
            return self.platforms.make_model(provider, model)
        entry = load_providers().get(provider) or Provider(name=provider)
        provider_settings = self._settings.providers.get(provider, ProviderSettings())
        if (provider_settings.wire or entry.wire) == "pydantic_ai":
            return self._make_vendor_model(entry, model, provider_settings)
        self._prepare_endpoint(provider)  # refuse an unusable model now, before any connection
        price, card = self.price(name), self.card(name)

        def make() -> Model:
            from greenroom.adapters.models.openai.model import OpenAICompatible

            return OpenAICompatible(
                self.endpoint(provider),
                model,
                card=card,
                price=price.compute_max_cost,
                cost=price.compute_cost,
                max_seconds=provider_settings.timeout,
            )

        return LazyModel(f"{provider}:{model}", card, price.compute_max_cost, make)

    @cached_property
    def platforms(self) -> PlatformRegistry:
        """The platforms that the user's folder adds. A provider of the settings hides one with its name."""
        registry = PlatformRegistry()
        registry.scan()
        return registry

    @property
    def _extra_providers(self) -> Collection[str]:
        """Providers besides the catalog: those of the settings and the user's platforms."""
        return (*self._settings.providers, *self.platforms.names())

    def _make_vendor_model(self, entry: Provider, model: str, provider_settings: ProviderSettings) -> Model:
        """Make a model with another API. Its client takes seconds to import, so it is imported on first use."""
        try:
            from greenroom.adapters.models.vendors.model import VendorModel
            from greenroom.adapters.models.vendors.vendor import Vendor
        except ImportError:
            raise make_missing_fault(f"{entry.name}:{model}") from None
        vendor = self._vendors.get(entry.name)
        if vendor is None:
            key = key_for(entry.name, self._environ, provider_settings)
            if key is None and not entry.keyless:
                raise make_missing_key_fault(entry, provider_settings)
            vendor = self._vendors[entry.name] = Vendor(
                entry.name,
                key=key.reveal if key is not None else str,
                base_url=resolve_base_url(entry, self._environ, provider_settings.base_url),
                idle=min(provider_settings.timeout, IDLE_TIMEOUT_S),
            )
        price = find_price(entry.name, model, local=False, own_rates=self._rates)
        return VendorModel(
            vendor,
            model,
            card=self.card(f"{entry.name}:{model}"),
            price=price.compute_max_cost,
            cost=price.compute_cost,
            max_seconds=provider_settings.timeout,
        )

    def endpoint(self, provider: str) -> Endpoint:
        """Return the connections to a provider with an OpenAI-compatible API."""
        endpoint = self._endpoints.get(provider)
        if endpoint is None:
            endpoint = self._endpoints[provider] = self._prepare_endpoint(provider)()
        return endpoint

    def _prepare_endpoint(self, provider: str) -> Callable[[], Endpoint]:
        entry = load_providers().get(provider) or Provider(name=provider)
        provider_settings = self._settings.providers.get(provider, ProviderSettings())
        server = self._servers.get(provider)
        base_url = resolve_base_url(
            entry, self._environ, provider_settings.base_url or (server.base_url if server is not None else "")
        )
        key = key_for(provider, self._environ, provider_settings)
        if key is None and not entry.keyless and not is_local(base_url):
            raise make_missing_key_fault(entry, provider_settings)

        def connect() -> Endpoint:
            from greenroom.adapters.models.openai.model import Endpoint

            return Endpoint(
                provider,
                base_url,
                key=key.reveal if key is not None else str,
                headers=provider_settings.headers,
                idle=min(provider_settings.timeout, IDLE_TIMEOUT_S),
                connections=provider_settings.max_parallel,
            )

        return connect

    def price(self, name: str) -> ModelPrice:
        """Return the price of a model."""
        provider, model = split_model_name(name, self._extra_providers)
        entry = load_providers().get(provider)
        # Only a known local server is free: another local address may be a proxy to a paid provider.
        return find_price(provider, model, local=entry is not None and entry.local, own_rates=self._rates)

    def card(self, name: str) -> ModelCard:
        """Return the facts about a model."""
        return build_card(":".join(split_model_name(name, self._extra_providers)), self._settings)

    async def close(self) -> None:
        """Close all connections and end the recording."""
        for endpoint in self._endpoints.values():
            await endpoint.close()
        for vendor in self._vendors.values():
            await vendor.close()
        if self._recorder is not None:
            self._recorder.close()


def make_missing_key_fault(provider: Provider, provider_settings: ProviderSettings) -> WorldFault:
    """Make the error for a missing key, with what to do."""
    variables: Sequence[str] = (provider_settings.key_env,) if provider_settings.key_env else provider.keys
    code = "models.missing_key" if variables else "models.missing_stored_key"
    page = translate("models.get_key", get_key=provider.get_key) if provider.get_key else ""
    return WorldFault(code, name=provider.name, variable="".join(variables[:1]), page=page)


def build_card(name: str, settings: Settings) -> ModelCard:
    """Return what the settings and else the catalog say about a model."""
    card, own = find_card(name.partition(":")[2]), settings.models.get(name, ModelSettings())
    window = own.window or card.window
    output = min(own.max_output or (max(1, min(card.output, window // 2)) if own.window else card.output), window)
    given = {key: getattr(own, key) for key in ("tools", "strict", "images") if getattr(own, key) is not None}
    return evolve(card, window=window, output=output, **given)


def _convert_rates(price: PriceSetting) -> TokenRates:
    """Convert dollars to millionths of a dollar."""
    cached, written = (
        None if part is None else round(part * MILLIONTHS_PER_DOLLAR) for part in (price.cached, price.written)
    )
    return TokenRates(
        input=round(price.input * MILLIONTHS_PER_DOLLAR),
        output=round(price.output * MILLIONTHS_PER_DOLLAR),
        cached=cached,
        written=written,
    )


@record
class UnusedAnswers:
    """The unused answers of a recording: their number and models."""

    file: str
    count: int
    models: tuple[str, ...]


@record
class SingleModel:
    """A registry that returns one model for every name."""

    model: Model

    def get_model(self, _: str) -> Model:
        return self.model


class ModelSession:
    """The models of a process with settings and recordings. It is also the `Models` of its teams."""

    def __init__(self, environ: Mapping[str, str] = os.environ, cwd: Callable[[], Path] = current_folder) -> None:
        self._environ = environ
        self._cwd = cwd
        self._loaded: LoadedSettings | None = None
        self._flags: Mapping[str, object] = {}
        self._servers: Sequence[ModelServer] = ()
        self._has_searched = False
        self._registry: ModelRegistry | None = None
        self._recorder: Recorder | None = None
        self._replay: ReplayModels | None = None

    def set_flags(self, flags: Mapping[str, object]) -> None:
        """Set command-line values by dotted key, with the highest priority."""
        self._flags = flags
        self._loaded = None

    @property
    def loaded_settings(self) -> LoadedSettings:
        """The settings with their origins. Raises `WorldFault` for an invalid file."""
        if self._loaded is None:
            self._loaded = load_settings(self._flags, self._environ, self._cwd())
        return self._loaded

    def load_settings_of(self, folder: Path) -> Settings:
        """Return the settings that hold in another folder, with the same command-line values."""
        return load_settings(self._flags, self._environ, folder).settings

    def use_recording(self, record: Path | None, replay: Path | None) -> None:
        """Record model calls, or replay them. Call this before the first model is used."""
        secrets = self._list_secrets() if record or replay else ()
        if replay is not None:
            # The properties of a model, whether or not it can be used from here.
            self._replay = ReplayModels(replay, card=self._find_card, secrets=secrets)
        if record is not None:
            if record.exists() and (record.is_dir() or record.stat().st_size):
                raise WorldFault("model_registry.record_file_exists", path=str(record))
            self._recorder = Recorder(record, secrets=secrets)

    def _find_card(self, name: str) -> ModelCard:
        return build_card(name, self.loaded_settings.settings)

    def find_unused(self) -> UnusedAnswers | None:
        """Return the unused answers of a replayed recording."""
        unused = self._replay.recording.list_unused() if self._replay is not None else ()
        if self._replay is None or not unused:
            return None
        models = tuple(dict.fromkeys(tape.model for tape in unused))
        return UnusedAnswers(file=str(self._replay.recording.path), count=len(unused), models=models)

    def use_script(self, script: Model) -> Models:
        """Return a model in place of all others, recorded or replayed if requested."""
        if self._replay is not None:
            return self._replay
        model = self._recorder.wrap(script) if self._recorder is not None else script
        return SingleModel(model=self.redaction.wrap_model(model))

    @cached_property
    def redaction(self) -> SecretRedactor:
        """The redaction of all model keys of this process."""
        return SecretRedactor(self.list_keys())

    def list_keys(self) -> tuple[str, ...]:
        """Return all model keys of this process, for redaction."""
        return find_known_secrets(self._environ, self._list_provider_settings(), self._list_saved_keys())

    def _list_secrets(self) -> tuple[str, ...]:
        headers = [
            value
            for provider_settings in self._list_provider_settings()
            for value in provider_settings.headers.values()
        ]
        return tuple(value for value in (*find_secrets(self._environ), *self.list_keys(), *headers) if value)

    def _list_saved_keys(self) -> tuple[str, ...]:
        try:
            return tuple(saved_keys().values())
        except WorldFault:
            return ()  # an unreadable key file provides no keys

    def _list_provider_settings(self) -> tuple[ProviderSettings, ...]:
        try:
            return tuple(self.loaded_settings.settings.providers.values())
        except WorldFault:
            return ()  # unreadable settings provide no keys either

    async def find_local_servers(self) -> None:
        """Search once for local model servers, if no model is configured."""
        if self._has_searched:
            return
        self._has_searched = True
        has_model = self._replay or self.loaded_settings.settings.model or find_keys(self._environ) or saved_keys()
        if not has_model:
            self._servers = await find_local_servers(environ=self._environ)
            self._registry = None

    @property
    def registry(self) -> ModelRegistry:
        """The model registry. Creating it makes no request."""
        if self._registry is None:
            settings = self.loaded_settings.settings
            self._registry = ModelRegistry(
                settings, self._environ, servers=self._servers, recorder=self._recorder, replay=self._replay
            )
        return self._registry

    def get_model(self, name: str) -> Model:
        """Return the model for a name, role or group. An empty name means the default model."""
        model = self._replay.get_model(name) if self._replay is not None else self.registry.get_model(name)
        return self.redaction.wrap_model(model)

    def resolve_alias(self, name: str) -> str:
        """Return a stable name: the model's own for a single model, the group's for a group."""
        if self._replay is not None:
            return self._replay.get_model(name).name
        models = self.registry.resolve_models(name)
        return models[0] if len(models) == 1 else self.registry.resolve_alias(name)

    async def close(self) -> None:
        """Close the connections, and delete a recording without answers."""
        registry, self._registry = self._registry, None
        if registry is not None:
            await registry.close()
        recorder, self._recorder = self._recorder, None
        if recorder is not None:
            recorder.close()
            delete_empty_recording(recorder.path)


def delete_empty_recording(path: Path) -> None:
    """Delete a recording that has only its first line."""
    try:
        if path.is_file() and path.stat().st_size <= len(FIRST_LINE):
            path.unlink()
    except OSError:
        return  # it is gone or belongs to another process: leave it
