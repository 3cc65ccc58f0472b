"""Settings from all sides: which one holds, where it comes from, and what a person sets for the web and commands."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom.app.settings.layers import (
    SettingOrigin,
    SettingRow,
    SettingsPart,
    list_settings,
    merge_parts,
    project_folder,
)
from greenroom.app.settings.schema import AgentDefaults, LimitSettings, Settings, WebSettings
from greenroom.core.base.amounts import Limits
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.records import to_full_dict
from greenroom.teamwork.plan import TeamSettings
from tests.app.settings.places import Place, written


def test_flags_win_over_environment_over_local_over_project_over_user(place: Place) -> None:
    user = place.user("[limits]\ncost = 9\n")
    assert place.load().settings.limits.cost == 9
    shared = place.shared("[limits]\ncost = 2\n")
    assert place.load().origin("limits.cost") == SettingOrigin(layer="project", source=str(shared))
    local = place.local("[limits]\ncost = 3\ntokens = 7\n")
    assert place.load().origin("limits.cost") == SettingOrigin(layer="local", source=str(local))
    environ = {"GREENROOM_MAX_COST": "4"}
    loaded = place.load(environ=environ)
    assert (loaded.settings.limits.cost, str(loaded.origin("limits.cost"))) == (4, "environment: $GREENROOM_MAX_COST")
    loaded = place.load(environ=environ, limits__cost="5", model=None)
    assert (loaded.settings.limits.cost, str(loaded.origin("limits.cost"))) == (5, "flag: --max-cost")
    assert (loaded.settings.limits.tokens, loaded.origin("limits.tokens").layer) == (7, "local")
    assert user.exists()


def test_every_variable_sets_its_value(place: Place) -> None:
    environ = {
        "GREENROOM_MODEL": "strong",
        "GREENROOM_STRONG": "openai:gpt-5.5",
        "GREENROOM_FAST": "ollama:qwen3:8b",
        "GREENROOM_MAX_COST": "none",
        "GREENROOM_MAX_TOKENS": "2m",
        "GREENROOM_MAX_TIME": "90s",
        "GREENROOM_LANGUAGE": "zh",
        "GREENROOM_EXECUTE_TOOL_CONFIRM": "true",
        "GREENROOM_NON_INTERACTIVE": "1",
    }
    settings = place.load(environ=environ).settings
    assert settings == Settings(
        model="strong",
        strong="openai:gpt-5.5",
        fast="ollama:qwen3:8b",
        limits=LimitSettings(cost=None, tokens=2_000_000, time=90.0),
        language="zh",
        execute_tool_confirm=True,
        non_interactive=True,
    )
    assert settings.limits.limits == Limits(tokens=2_000_000, millis=90_000)


def test_tables_merge_and_lists_replace(place: Place) -> None:
    place.user(
        '[groups.a]\nmodels = ["openai:x", "openai:y"]\n[groups.b]\nmodels = ["openai:z"]\n'
        '[providers.openai]\nheaders = { A = "1" }\nmax_parallel = 3\n'
    )
    place.shared('[groups.a]\nmodels = ["groq:x"]\n[providers.openai]\ntimeout = 5\n')
    loaded = place.load()
    assert {name: group.models for name, group in loaded.settings.groups.items()} == {
        "a": ("groq:x",),
        "b": ("openai:z",),
    }
    openai = loaded.settings.providers["openai"]
    assert (openai.headers, openai.max_parallel, openai.timeout) == ({"A": "1"}, 3, 5.0)
    assert loaded.origin("providers.openai.timeout").layer == "project"


COSTS = st.one_of(st.none(), st.integers(min_value=0, max_value=99))


@given(st.lists(st.tuples(COSTS, COSTS), max_size=6))
def test_of_many_layers_the_last_that_says_something_holds(said: list[tuple[int | None, int | None]]) -> None:
    names = ("cost", "tokens")
    parts = [
        SettingsPart(
            origin=SettingOrigin(layer="flag", source=str(index)),
            raw={"limits": {name: one for name, one in zip(names, values, strict=True) if one is not None}},
        )
        for index, values in enumerate(said)
    ]
    raw, origins = merge_parts(parts)
    for place, name in enumerate(names):
        last = [(index, values[place]) for index, values in enumerate(said) if values[place] is not None][-1:]
        held = raw.get("limits", {})
        assert isinstance(held, dict)
        assert [(int(origins[f"limits.{name}"].source), held[name])] if name in held else last == []


def test_what_strangers_left_in_a_shared_folder_is_not_the_projects(place: Place) -> None:
    shared = place.home / "tmp"
    written(shared / ".greenroom" / "config.toml", 'language = "zh"\n')
    mine = shared / "mine"
    mine.mkdir()
    assert place.load(cwd=mine).settings.language == "zh"
    shared.chmod(0o1777)
    assert place.load(cwd=mine).settings.language == "en"


def test_folders_that_cannot_be_seen_are_passed_over(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    def hidden(path: Path, **_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "stat", hidden)
    monkeypatch.setattr(Path, "exists", hidden)
    assert project_folder(place.project, None) is None


@pytest.mark.parametrize(
    ("environ", "words"),
    [
        ({"GREENROOM_CONFIG": ""}, r"\$GREENROOM_CONFIG is set but empty"),
        ({"GREENROOM_CONFIG": "/no/such.toml"}, r"names '/no/such.toml', which does not exist"),
        ({"GREENROOM_MODEL": " "}, r"\$GREENROOM_MODEL is set but empty. Give it a value, or unset it"),
        (
            {"GREENROOM_MAX_COST": "much"},
            r"\$GREENROOM_MAX_COST: `limits.cost` must be a number of dollars, .* not 'much'",
        ),
        ({"GREENROOM_LANGUAGE": "de"}, r"\$GREENROOM_LANGUAGE: `language` must be one of 'en', 'zh', not 'de'"),
        ({"GREENROOM_MODEL": "gpt-4o"}, r"environment: \$GREENROOM_MODEL: `model`: 'gpt-4o' has no provider"),
    ],
)
def test_a_variable_that_cannot_be_used_is_named(place: Place, environ: dict[str, str], words: str) -> None:
    with pytest.raises(WorldFault, match=words):
        place.load(environ=environ)


def test_a_flag_that_cannot_be_used_is_named(place: Place) -> None:
    with pytest.raises(WorldFault, match=r"--max-time: `limits.time` must be a time like .*, not 'soon'"):
        place.load(limits__time="soon")
    with pytest.raises(WorldFault, match=r"--modle: there is no setting `modle`. Did you mean `model`\?"):
        place.load(modle="x")


@pytest.mark.req("AG-146")
def test_folders_of_callbacks_come_from_the_persons_file_or_a_variable(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(place.home))
    place.user('after_tool_call = ["~/calls", "/srv/audit"]')
    assert place.load().settings.after_tool_call == (f"{place.home}/calls", "/srv/audit")
    told = place.load(environ={"GREENROOM_AFTER_TOOL_CALL": "/a:/b"}).settings
    assert told.after_tool_call == ("/a", "/b")


@pytest.mark.parametrize("value", ['["here"]', "5", '[""  , 5]', '"~nobody-of-this-name/x"'])
def test_a_folder_of_callbacks_that_is_seen_from_somewhere_is_refused(place: Place, value: str) -> None:
    place.user(f"after_tool_call = {value}")
    with pytest.raises(WorldFault, match=r"`after_tool_call` must be a list of folders, each written from / or from ~"):
        place.load()


def test_every_setting_has_a_row_with_its_origin(place: Place) -> None:
    table = {row.key: row for row in list_settings(place.load(environ={"GREENROOM_MAX_COST": "2.5"}))}
    assert list(table) == [
        "version",
        "model",
        "strong",
        "fast",
        "retry.attempts",
        "retry.delay",
        "retry.total",
        "limits.cost",
        "limits.tokens",
        "limits.time",
        "web.search",
        "web.searxng_url",
        "web.local",
        "web.ports",
        "web.delay",
        "browser.program",
        "browser.headless",
        "browser.steps",
        "browser.seconds",
        "browser.tokens",
        "browser.hosts",
        "language",
        "after_tool_call",
        "execute_tool_confirm",
        "non_interactive",
        "approvals_expire",
        "sandbox.walls",
        "sandbox.hosts",
        "workspace.setup",
        "workspace.seconds",
        "workspace.lend",
        *(f"team.{name}" for name in to_full_dict(TeamSettings())),
        "skills.use",
        "skills.repositories",
        *(f"agents.{name}" for name in to_full_dict(AgentDefaults())),
    ]
    assert (table["limits.cost"].value, str(table["limits.cost"].origin)) == ("2.5", "environment: $GREENROOM_MAX_COST")
    assert (table["limits.tokens"].value, table["model"].value, table["retry.total"].value) == ("none", "", "300")
    assert table["language"].origin.layer == "default"


def test_secrets_are_masked(place: Place) -> None:
    path = place.user(
        '[providers.openai]\nkey = "sk-proj-1234567890abcd"\nheaders = { Authorization = "Bearer 1234567890" }\n'
        '[groups.main]\nmodels = ["openai:a", "openai:b"]\n[prices."openai:gpt-4.1"]\ninput = 2\noutput = 8\n'
    )
    told: tuple[SettingRow, ...] = tuple(list_settings(place.load()))
    table = {row.key: row.value for row in told}
    assert table["providers.openai.key"] == "openai:****abcd"
    assert table["providers.openai.headers"] == "Authorization: ****"
    assert table["groups.main.models"] == "openai:a, openai:b"
    assert table['prices."openai:gpt-4.1".output'] == "8"
    assert table["providers.openai.requests_per_minute"] == ""
    assert "1234567890" not in repr(told)
    assert next(row for row in told if row.key == "providers.openai.key").origin.source == str(path)


OWN_WEB = (
    '[web]\nsearch = "searxng"\nsearxng_url = "http://localhost:8888/"\nlocal = ["LocalHost:8000"]\nports = [8443]\n'
)


def test_a_person_says_who_is_asked_and_what_is_reached(place: Place) -> None:
    assert place.load().settings.web == WebSettings()
    place.user(OWN_WEB)
    loaded = place.load()
    assert loaded.settings.web == WebSettings(
        search="searxng", searxng_url="http://localhost:8888", local=("localhost:8000",), ports=(8443,)
    )
    shown = {row.key: row.value for row in list_settings(loaded)}
    assert (shown["web.search"], shown["web.local"], shown["web.ports"]) == ("searxng", "localhost:8000", "8443")


SERVER = """
[mcp.github]
command = "npx"
args = ["-y", "server-github", "--api-key", "sk-in-args", "TOKEN=also"]
env = { GITHUB_TOKEN = "ghp-secret" }
read_only = ["search"]

[mcp.far]
url = "https://host.example/mcp?key=in-the-address"
headers = { Authorization = "Bearer secret" }
timeout = 5
"""


def test_servers_are_read_and_shown_without_their_secrets(place: Place) -> None:
    path = place.user(SERVER)
    loaded = place.load()
    github = loaded.settings.mcp["github"]
    assert (github.command, github.read_only, github.env["GITHUB_TOKEN"].reveal()) == ("npx", ("search",), "ghp-secret")
    assert loaded.settings.mcp["far"].seconds == 5
    told = {row.key: row for row in list_settings(loaded)}
    assert told["mcp.github"].value == "npx -y server-github --api-key **** TOKEN=**** (env GITHUB_TOKEN)"
    assert told["mcp.far"].value == "https://host.example/mcp?key=**** (headers Authorization)"
    assert told["mcp.far"].origin.source == str(path)
    assert "secret" not in repr(loaded)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("mcp = 3", "`mcp` is a table. Write [mcp.NAME] and its keys below."),
        ("[mcp.x]\nargs = []", "[mcp]: `x.command`: it is missing"),
        ("[mcp.x]\ncomand = 'x'", "there is no setting `mcp.x.comand`. Did you mean `command`?"),
        ("[mcp.x]\ncommand = 'x'\nurl = 'https://a'", "is set together with `url`"),
        ("[mcp]\nx = 'npx'", "[mcp]: `x`: expected `object`, got `str`"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(place: Place, text: str, why: str) -> None:
    path = place.user(text)
    with pytest.raises(WorldFault) as fault:
        place.load()
    assert str(fault.value).startswith(str(path))
    assert why in str(fault.value)


@pytest.mark.parametrize("layer", ["shared", "local"])
def test_a_project_may_not_start_programs(place: Place, layer: str) -> None:
    path = getattr(place, layer)('[mcp.evil]\ncommand = "evil"\n')
    with pytest.raises(WorldFault) as fault:
        place.load()
    assert str(fault.value) == (
        f"{path}: a project may not set `mcp`, because it decides which programs start. "
        "Put it into .mcp.json, which `greenroom trust` shows to every user of the project."
    )
