"""All platforms by name: built in, and of one's own."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from greenroom.adapters.models.catalog.catalog import load_providers
from greenroom.adapters.models.platforms import (
    BasePlatform,
    PlatformRegistry,
    get_global_platform_registry,
    set_global_platform_registry,
)
from greenroom.core.base.errors import WorldFault
from greenroom.core.ports.model import (
    Model,
)
from tests.adapters.models.test_platforms import make_any

OWN = """
from greenroom.adapters.models.platforms import BasePlatform

class TeaPlatform(BasePlatform):
    platform = "tea"

    async def chat_until_success(self, message):
        return message.upper()

class _Hidden(BasePlatform):
    pass

class NotOne:
    pass
"""
LACKING = """
from greenroom.adapters.models.platforms import BasePlatform

class HalfPlatform(BasePlatform):
    reset = None
    name = None

class BarePlatform:
    def reset(self): ...

class LikePlatform:
    def chat_until_success(self): ...
    set_system_prompt = upload_files = reset = set_model_name = chat_until_success
    set_model_group = name = platform_name = chat_until_success
"""


def folder(tmp_path: Path, **files: str) -> Path:
    made = tmp_path / "models"
    made.mkdir(mode=0o755)
    for name, text in files.items():
        (made / f"{name}.py").write_text(text)
        (made / f"{name}.py").chmod(0o644)
    return made


@pytest.mark.req("AG-125")
def test_every_provider_is_a_platform() -> None:
    registry = PlatformRegistry(make_any)
    assert set(registry.names()) == set(load_providers())
    for name in load_providers():
        platform = registry.create_platform(name)
        assert platform is not None
        assert (platform.platform_name(), platform.name()) == (name, load_providers()[name].strong)


@pytest.mark.req("AG-125", "AG-126", "AG-189")
async def test_a_platform_of_ones_own_is_found_in_its_folder(tmp_path: Path) -> None:
    registry = PlatformRegistry(make_any)
    assert registry.load_platform_from_dir(folder(tmp_path, tea=OWN, _draft="1/0")) == ("tea",)
    tea = registry.create_platform("tea")
    assert tea is not None
    assert await tea.chat_until_success("oolong") == "OOLONG"


@pytest.mark.req("AG-125")
def test_the_users_folder_is_scanned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "greenroom").mkdir()
    folder(tmp_path / "greenroom", tea=OWN)
    registry = PlatformRegistry(make_any)
    assert registry.scan() == ("tea",)
    assert registry.scan(tmp_path / "none") == ()


@pytest.mark.req("AG-130")
def test_a_class_that_lacks_a_method_is_not_registered(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    registry = PlatformRegistry(make_any)
    before = registry.names()
    assert registry.load_platform_from_dir(folder(tmp_path, half=LACKING)) == ()
    assert registry.names() == before
    assert f"{tmp_path / 'models' / 'half.py'}: HalfPlatform lacks reset, name. Add them." in caplog.text
    assert "BarePlatform lacks chat_until_success" in caplog.text
    assert "LikePlatform is not a subclass of BasePlatform" in caplog.text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("def (", "SyntaxError"),
        ("import no_such_module", "ModuleNotFoundError: No module named 'no_such_module'"),
        ("1 / 0", "ZeroDivisionError"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("x = '\udcff'", "SyntaxError"),
    ],
)
def test_a_file_that_does_not_import_is_reported_and_the_others_load(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, text: str, words: str
) -> None:
    made = folder(tmp_path, tea=OWN)
    (made / "bad.py").write_bytes(text.encode("utf-8", "surrogateescape"))
    registry = PlatformRegistry(make_any)
    assert registry.load_platform_from_dir(made) == ("tea",)
    assert f"{made / 'bad.py'} cannot be loaded: {words}" in caplog.text


def test_a_platform_without_a_name_is_called_like_its_file(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    start = "from greenroom.adapters.models.platforms import BasePlatform\nclass P(BasePlatform):\n"
    texts = {
        "nameless": f"{start}    pass\n",
        "loud": f"{start}    platform = 'loudest'\n",
        "wrong": f"{start}    platform = 'a:b'\n",
    }
    registry = PlatformRegistry(make_any)
    assert registry.load_platform_from_dir(folder(tmp_path, **texts)) == ("loudest", "nameless")
    nameless = registry.create_platform("nameless")
    assert nameless is not None
    assert nameless.platform_name() == "nameless"
    assert "P has the name 'a:b'" in caplog.text


@pytest.mark.req("AG-126")
def test_a_class_can_be_registered(caplog: pytest.LogCaptureFixture) -> None:
    class Mine(BasePlatform):
        platform = "mine"

    broken = type("Broken", (Mine,), {"reset": None})
    registry = PlatformRegistry(make_any)
    assert registry.register_platform("mine", Mine)
    assert isinstance(registry.create_platform("mine"), Mine)
    assert not registry.register_platform("broken", broken)
    assert not registry.register_platform("", Mine)
    assert not registry.register_platform("any", dict)
    assert "broken" not in registry.names()
    assert "Broken lacks reset." in caplog.text


@pytest.mark.req("AG-129")
def test_an_unknown_platform_is_a_warning_and_none(caplog: pytest.LogCaptureFixture) -> None:
    registry = PlatformRegistry(make_any)
    assert registry.create_platform("zzzz") is None
    assert "There is no platform 'zzzz'. Known: openai, anthropic" in caplog.text
    assert {record.levelno for record in caplog.records} == {logging.WARNING}


@pytest.mark.req("AG-129")
def test_a_platform_that_cannot_be_made_is_a_warning_and_none(caplog: pytest.LogCaptureFixture) -> None:
    def no_key(provider: str, model: str) -> Model:
        raise WorldFault(f"There is no key for {provider}.")

    class Odd(BasePlatform):
        def set_model_name(self, name: str) -> None:
            raise RuntimeError("odd")

    registry = PlatformRegistry(no_key)
    assert registry.create_platform("openai") is None
    assert "The platform 'openai' is not available. There is no key for openai." in caplog.text
    assert registry.register_platform("odd", Odd)
    assert registry.create_platform("odd", "x") is None
    assert "The platform 'odd' is not available" in caplog.text


@pytest.mark.req("AG-127", "AG-128")
def test_the_normal_platform_and_model_are_resolved_by_group() -> None:
    groups = {"cheap": ["ollama:qwen3:8b", "openai:gpt-4o-mini"]}
    registry = PlatformRegistry(make_any, normal="openai:gpt-5.5", groups=groups)
    assert (registry.get_normal_platform_name(), registry.get_normal_model_name()) == ("openai", "gpt-5.5")
    assert registry.get_normal_platform_name("cheap") == "ollama"
    assert registry.get_normal_model_name("cheap") == "qwen3:8b"
    normal, cheap = registry.get_normal_platform(), registry.get_normal_platform("cheap")
    assert normal is not None
    assert cheap is not None
    assert (normal.platform_name(), normal.name()) == ("openai", "gpt-5.5")
    assert (cheap.platform_name(), cheap.name()) == ("ollama", "qwen3:8b")
    cheap.set_model_group("cheap")


def test_no_normal_model_is_told(caplog: pytest.LogCaptureFixture) -> None:
    registry = PlatformRegistry(make_any)
    assert registry.get_normal_platform() is None
    assert "There is no normal platform. No model is set." in caplog.text
    with pytest.raises(WorldFault, match=r"There is no model group 'x'. Known: none."):
        registry.get_normal_model_name("x")


@pytest.mark.req("AG-128")
def test_the_registry_of_the_process_is_always_the_same() -> None:
    set_global_platform_registry(None)
    try:
        first = get_global_platform_registry()
        assert get_global_platform_registry() is first
        assert first.create_platform("openai") is None
        own = PlatformRegistry(make_any)
        set_global_platform_registry(own)
        assert get_global_platform_registry() is own
    finally:
        set_global_platform_registry(None)
