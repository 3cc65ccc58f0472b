"""Keys: found, kept for their owner only, never shown; and where the log is kept."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom.app.settings import home, home_folder
from greenroom.app.settings.keys import key_for, keys_file, save_key, saved_keys
from greenroom.app.settings.schema import ProviderSettings
from greenroom.app.settings.values import Secret
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.records import encode
from tests.app.settings.places import Place

KEY = "sk-proj-1234567890abcd"


def test_a_key_is_saved_for_its_owner_only(place: Place) -> None:
    path = save_key("openai", f" {KEY}\n")
    assert path == keys_file() == place.home / ".config" / "greenroom" / "keys.toml"
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert [one.name for one in path.parent.iterdir()] == ["keys.toml"]
    found = key_for("openai", {})
    assert found is not None
    assert found.reveal() == KEY


def test_the_environment_comes_before_settings_and_settings_before_the_file(tmp_path: Path) -> None:
    save_key("google", "from-file", tmp_path)
    told = ProviderSettings(key_env="MY_KEY", key=Secret("google", "from-settings"))

    def key(environ: dict[str, str], told: ProviderSettings | None = None) -> str:
        found = key_for("google", environ, told, tmp_path)
        assert found is not None
        return found.reveal()

    assert key({}) == "from-file"
    assert key({}, ProviderSettings()) == "from-file"
    assert key({}, told) == "from-settings"
    assert key({"GEMINI_API_KEY": " ", "GOOGLE_API_KEY": "second"}, told) == "second"
    assert key({"GEMINI_API_KEY": " first\n", "GOOGLE_API_KEY": "second"}) == "first"
    assert key({"MY_KEY": "mine", "GEMINI_API_KEY": "first"}, told) == "mine"


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604])
def test_a_file_that_others_can_read_is_refused_with_what_to_type(tmp_path: Path, mode: int) -> None:
    path = save_key("openai", KEY, tmp_path)
    path.chmod(mode)
    with pytest.raises(WorldFault, match=f"other users can read it. Run: chmod 600 {path}$"):
        key_for("openai", {}, None, tmp_path)


def test_a_damaged_file_is_told_without_its_keys(tmp_path: Path) -> None:
    path = save_key("openai", KEY, tmp_path)
    path.write_text("openai = 12345678\n")
    with pytest.raises(WorldFault, match=r"keys.toml: the key of 'openai' is not a text") as fault:
        saved_keys(tmp_path)
    assert "12345678" not in str(fault.value)


@pytest.mark.parametrize("value", ["", "  ", "two words", "line\nbreak", "schlüssel", "tab\tbed", "\x7f"])
def test_what_is_no_key_is_not_saved(tmp_path: Path, value: str) -> None:
    with pytest.raises(WorldFault, match=r"is not valid: a key is one word of ASCII characters. Copy it again"):
        save_key("openai", value, tmp_path)
    assert not keys_file(tmp_path).exists()


@pytest.mark.parametrize("name", ["", " ", "a\nb"])
def test_a_key_of_nobody_is_not_saved(tmp_path: Path, name: str) -> None:
    with pytest.raises(WorldFault, match="is not a provider"):
        save_key(name, KEY, tmp_path)


def test_a_key_that_cannot_be_written_leaves_the_old_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_key("openai", "old", tmp_path)

    def full(_: Path, __: str) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(home, "replace_file", full)
    with pytest.raises(WorldFault, match=r"cannot be written: No space left on device"):
        save_key("openai", "new", tmp_path)
    assert saved_keys(tmp_path) == {"openai": "old"}


@given(st.text())
def test_a_secret_is_never_shown(value: str) -> None:
    secret = Secret("openai", value)
    hidden = value[:-4] if len(value) >= 12 else value
    masked = f"openai:****{value.removeprefix(hidden)}"
    assert (str(secret), f"{secret}") == (masked, masked)
    assert (repr(secret), f"{[secret]}") == (f"<{masked}>", f"[<{masked}>]")
    assert secret.reveal() == value


def test_a_secret_cannot_be_written_by_accident() -> None:
    with pytest.raises(TypeError, match="cannot be serialised"):
        pickle.dumps(Secret("openai", KEY))
    with pytest.raises(TypeError):
        encode(ProviderSettings(key=Secret("openai", KEY)))


def test_secrets_are_compared_by_what_they_hold() -> None:
    assert Secret("a", "x") == Secret("a", "x")
    assert len({Secret("a", "x"), Secret("a", "x"), Secret("a", "y"), Secret("b", "x")}) == 3
    assert Secret("a", "x") != "x"


def test_what_is_given_wins_over_the_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GREENROOM_HOME", str(tmp_path / "named"))
    assert home_folder() == tmp_path / "named"
    assert home_folder(tmp_path / "given") == tmp_path / "given"
    monkeypatch.setenv("GREENROOM_HOME", " ")
    with pytest.raises(WorldFault, match="set but empty"):
        home_folder()


def test_a_folder_that_nobody_can_find_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(WorldFault, match="names an unknown user's home folder"):
        home_folder(Path("~nobody-of-this-name/x"))
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(WorldFault, match="The current folder is gone"):
        home_folder(Path("here"))
