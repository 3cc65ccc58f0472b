"""The first settings: where they go, what is in them, and that they are whole or not there."""

from pathlib import Path

import pytest

from greenroom.app.first_settings import Choice, config_file, in_full, needs_key, proposed, text, whose, write
from greenroom.app.settings.layers import load
from greenroom.app.settings.schema import ProviderSettings, Settings
from greenroom.core.base.errors import WorldFault

CHOICE = Choice(strong="openai:gpt-5.5", fast="openai:gpt-5.4-mini")
OWN = Settings(providers={"mine": ProviderSettings(base_url="https://models.invalid/v1")})


def test_what_is_written_can_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    path = config_file({}, tmp_path, user=False)
    assert write(path, text(CHOICE, user=False), user=False) is None
    read = load({}, {}, tmp_path).settings
    assert (read.model, read.strong, read.fast) == ("strong", CHOICE.strong, CHOICE.fast)
    assert (path.parent / ".gitignore").read_text().splitlines()[1:] == [
        "*",
        "!.gitignore",
        "!config.toml",
        "!agents/",
        "!agents/*.md",
        "!teams/",
        "!teams/*.toml",
        "!tools/",
        "!tools/*.py",
        "!callbacks/",
        "!callbacks/*.py",
        "!permissions",
    ]


def test_old_settings_are_kept_beside_the_new_ones(tmp_path: Path) -> None:
    path = tmp_path / ".greenroom" / "config.toml"
    write(path, "old = 1\n", user=True)
    assert not (path.parent / ".gitignore").exists(), "nobody shares the user's own"
    kept = write(path, "new = 1\n", user=False)
    assert kept is not None
    assert (kept.read_text(), path.read_text()) == ("old = 1\n", "new = 1\n")
    assert sorted(one.name for one in path.parent.iterdir()) == [".gitignore", "config.toml", "config.toml.old"]


def test_settings_go_to_the_root_of_the_repository(tmp_path: Path) -> None:
    deep = tmp_path / "repo" / "src" / "deep"
    deep.mkdir(parents=True)
    assert config_file({"HOME": str(tmp_path)}, deep, user=False) == deep / ".greenroom" / "config.toml"
    (tmp_path / "repo" / ".git").mkdir()
    assert config_file({}, deep, user=False) == tmp_path / "repo" / ".greenroom" / "config.toml"


def test_a_place_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(WorldFault, match="cannot be written"):
        write(tmp_path / "file" / "config.toml", "", user=True)


@pytest.mark.parametrize(
    ("name", "model", "full"),
    [
        ("openai", "gpt-5.5", "openai:gpt-5.5"),
        ("openai", "OpenAI:gpt-5.5", "openai:gpt-5.5"),
        ("ollama", "qwen3:8b", "ollama:qwen3:8b"),
        ("mine", "mine:x", "mine:x"),
        ("openrouter", "anthropic/claude", "openrouter:anthropic/claude"),
    ],
)
def test_a_model_is_named_in_full(name: str, model: str, full: str) -> None:
    assert in_full(OWN, name, model) == full


def test_a_provider_is_named_by_itself_or_by_its_model() -> None:
    assert whose(OWN, "", "") == ""
    assert whose(OWN, "mine", "x") == "mine"
    assert whose(OWN, "", "openai:gpt-5.5") == "openai"
    with pytest.raises(WorldFault, match="is no model of 'openai'"):
        whose(OWN, "openai", "xai:grok")


def test_what_needs_a_key_is_known() -> None:
    assert (needs_key("openai"), needs_key("ollama"), needs_key("mine")) == (True, False, False)
    assert proposed("openai") == ("openai:gpt-5.5", "openai:gpt-5.4-mini")
    assert proposed("mine") == ()
