"""The command that adds an extra, for each way in which Greenroom can be installed."""

import sys
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from types import SimpleNamespace

import pytest

from greenroom.core.ports import installation
from greenroom.core.ports.installation import how_to_install

CLONE = "/{folder}/my clone"
REMOTE = "https://example.org/greenroom.git"


@pytest.mark.parametrize(
    ("address", "marker", "expected"),
    [
        ("file:///{folder}/my%20clone", "uv-receipt.toml", f"'{CLONE}/go' uv tool install '{CLONE}[mcp,web]'"),
        ("file:///srv/greenroom", "uv-receipt.toml", "uv tool install '/srv/greenroom[mcp,web]'"),
        ("file:///srv/greenroom", "pipx_metadata.json", "pipx install --force '/srv/greenroom[mcp,web]'"),
        (REMOTE, "", f"{{python}} -m pip install 'greenroom[mcp,web] @ {REMOTE}'"),
        ("", "", "{python} -m pip install 'greenroom[mcp,web]'"),
    ],
)
def test_an_extra_is_added_where_greenroom_is(
    address: str, marker: str, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prefix, folder = tmp_path / "environment", str(tmp_path).removeprefix("/")
    for place in (prefix / (marker or "pyvenv.cfg"), tmp_path / "my clone" / "go"):
        place.parent.mkdir()
        place.touch()
    monkeypatch.setattr(sys, "prefix", str(prefix))
    monkeypatch.setattr(installation, "_find_address", lambda: address.format(folder=folder))
    monkeypatch.setattr(installation, "_find_extras", lambda: {"mcp"})
    how_to_install.cache_clear()
    try:
        assert how_to_install("web") == f"`{expected.format(folder=folder, python=sys.executable)}`"
    finally:
        how_to_install.cache_clear()


def test_a_package_beside_the_extra_is_installed_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "pipx_metadata.json").touch()
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr(installation, "_find_address", lambda: "file:///srv/greenroom")
    monkeypatch.setattr(installation, "_find_extras", set)
    how_to_install.cache_clear()
    try:
        command = "pipx install --force '/srv/greenroom[vendors]' && pipx inject greenroom bedrock"
        assert how_to_install("vendors", "bedrock") == f"`{command}`"
    finally:
        how_to_install.cache_clear()


def test_extras_are_found_by_their_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    def find(name: str) -> SimpleNamespace:
        if name == "trafilatura":
            raise PackageNotFoundError(name)
        lines = ["msgspec", 'mcp<3; extra == "mcp"', 'ddgs; extra == "web"', 'trafilatura; extra == "web"']
        return SimpleNamespace(requires=lines, read_text=lambda _: '{"url": "file:///srv/greenroom"}')

    monkeypatch.setattr(installation, "distribution", find)
    assert installation._find_extras() == {"mcp"}
    assert installation._find_address() == "file:///srv/greenroom"


def test_a_source_tree_without_an_installation_has_neither(monkeypatch: pytest.MonkeyPatch) -> None:
    def find(name: str) -> None:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(installation, "distribution", find)
    assert (installation._find_address(), installation._find_extras()) == ("", set())
