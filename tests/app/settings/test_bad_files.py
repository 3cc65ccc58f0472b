"""Files that cannot be used: each fault names the file, the key, what is wrong and what to do."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from greenroom.app.settings.schema import check_table, read_toml
from greenroom.core.base.errors import WorldFault
from tests.app.settings.places import Place


def fault(place: Place) -> str:
    with pytest.raises(WorldFault) as raised:
        place.load()
    return str(raised.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("limts = 3", "there is no setting `limts`. Did you mean `limits`?"),
        ("zzz = 3", "there is no setting `zzz`. There are: `version`, `model`, `strong`"),
        ("[limits]\ncosts = 3", "there is no setting `limits.costs`. Did you mean `cost`?"),
        ('[providers.openai]\napi_key = "sk-1"', "there is no setting `providers.openai.api_key`. Did you mean `key`?"),
        ("limits = 3", "`limits` is a table. Write [limits] and its keys below."),
        ("providers = []", "`providers` is a table."),
        ("[groups]\na = 1", "`groups.a` is a table."),
        (
            "[limits]\ncost = true",
            '`limits.cost` must be a number of dollars, at least 0, or "none" for no limit, not True.',
        ),
        ("[limits]\ntime = 1979-05-27", "`limits.time` must be a time like"),
        ("model = 3", "`model` must be a non-empty text of one line, not 3."),
        ("[retry]\nattempts = 0", "`retry.attempts` must be a whole number, at least 1, not 0."),
        ('[prices."openai:gpt-4.1"]\ninput = -1', '`prices."openai:gpt-4.1".input` must be a number of dollars per'),
        ('[prices."openai:gpt-4.1"]\ninput = 1', 'The setting `prices."openai:gpt-4.1"` needs `output` too.'),
        ("[groups.a]\nmodels = []", "`groups.a.models` must be a list with at least one name"),
        ("version = 2\nnew_thing = 1", "`version` must be 1, the only version that this Greenroom supports"),
        (
            'model = "x"\nmodel = "y"',
            "is not TOML: Cannot overwrite a value (at the end of its last line). Fix the file.",
        ),
        ("model = \nfast = 3", "is not TOML: Invalid value (at line 1, column 9). Fix the file."),
        ("[limits]\ntokens = " + "9" * 5000, "is not TOML: Exceeds the limit"),
        ("model = " + "[" * 5000, "is nested too deeply. Use fewer levels."),
        ('model = "' + "x" * 100 + '\\n"', "not '" + "x" * 58 + "…."),
    ],
)
def test_a_mistake_in_a_file_is_told(place: Place, text: str, words: str) -> None:
    path = place.user(text)
    said = fault(place)
    assert words in said
    assert str(path) in said or "needs" in said


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('model = "gpt-4o"', "`model`: 'gpt-4o' has no provider. Write `openai:gpt-4o`."),
        ('model = "storng"', "`model` names 'storng', which is not a group. Did you mean `strong`?"),
        ('strong = "fast"', "`strong`: 'fast' has no provider."),
        ('fast = "opnai:x"', "`fast`: There is no provider 'opnai'. Did you mean `openai`?"),
        ('[groups.a]\nmodels = ["a"]', "`groups.a.models`: 'a' has no provider."),
        ('[groups.strong]\nmodels = ["openai:x"]', "a group cannot be called 'strong'."),
        ('[groups."a:b"]\nmodels = ["openai:x"]', "a group cannot be called 'a:b'."),
        ('[prices."gpt-4o"]\ninput = 1\noutput = 1', "'gpt-4o' has no provider."),
        (
            "[providers.opnai]\ntimeout = 3",
            "There is no provider 'opnai'. Did you mean `openai`? Your own provider needs",
        ),
    ],
)
def test_a_name_that_means_nothing_is_told(place: Place, text: str, words: str) -> None:
    place.user(text)
    assert words in fault(place)


@pytest.mark.parametrize(
    "text",
    [
        "[providers.openai]\nkey = 12345678",
        '[providers.openai]\nkey_env = "sk-12345678"',
        '[providers.openai]\nheaders = { Authorization = "12345678\\n" }',
    ],
)
def test_what_may_be_a_secret_is_not_repeated(place: Place, text: str) -> None:
    place.user(text)
    said = fault(place)
    assert "12345678" not in said
    assert "`providers.openai." in said


def test_a_file_that_is_not_utf8_is_told(place: Place) -> None:
    place.user("").write_bytes(b'model = "\xff"')
    assert "is not UTF-8: byte 9 cannot be read. Save it as UTF-8." in fault(place)


def test_a_folder_in_the_place_of_a_file_is_told(place: Place) -> None:
    place.user_file.mkdir(parents=True)
    assert f"{place.user_file} is not a plain file. Move it away." in fault(place)


def test_what_is_no_plain_file_is_not_opened(place: Place) -> None:
    place.user_file.parent.mkdir(parents=True)
    os.mkfifo(place.user_file)
    assert "is not a plain file" in fault(place)


def test_a_file_that_cannot_be_read_is_told(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    place.user("")

    def denied(*_: object) -> bytes:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", denied)
    assert "cannot be read: Permission denied. Make it readable, or move it away." in fault(place)


@settings(max_examples=60)
@given(st.binary(max_size=80))
def test_any_bytes_are_settings_or_a_fault(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "any.toml"
    path.write_bytes(data)
    with suppress(WorldFault):
        assert check_table(read_toml(path) or {}, str(path)) is not None


def test_a_mistyped_key_of_a_server_is_told_with_the_nearest_one(place: Place) -> None:
    place.user('[mcp.docs]\ncommand = "x"\nargumnts = ["y"]\n')
    assert "there is no setting `mcp.docs.argumnts`. Did you mean `args`?" in fault(place)
