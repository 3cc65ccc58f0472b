"""Settings as a table."""

from __future__ import annotations

from greenroom.app.settings.layers import Row, rows
from tests.app.settings.places import Place


def test_every_setting_has_a_row_with_its_origin(place: Place) -> None:
    table = {row.key: row for row in rows(place.load(environ={"GREENROOM_MAX_COST": "2.5"}))}
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
    ]
    assert (table["limits.cost"].value, str(table["limits.cost"].origin)) == ("2.5", "environment: $GREENROOM_MAX_COST")
    assert (table["limits.tokens"].value, table["model"].value, table["retry.total"].value) == ("none", "", "300")
    assert table["language"].origin.layer == "default"


def test_secrets_are_masked(place: Place) -> None:
    path = place.user(
        '[providers.openai]\nkey = "sk-proj-1234567890abcd"\nheaders = { Authorization = "Bearer 1234567890" }\n'
        '[groups.main]\nmodels = ["openai:a", "openai:b"]\n[prices."openai:gpt-4.1"]\ninput = 2\noutput = 8\n'
    )
    told: tuple[Row, ...] = tuple(rows(place.load()))
    table = {row.key: row.value for row in told}
    assert table["providers.openai.key"] == "openai:****abcd"
    assert table["providers.openai.headers"] == "Authorization: ****"
    assert table["groups.main.models"] == "openai:a, openai:b"
    assert table['prices."openai:gpt-4.1".output'] == "8"
    assert table["providers.openai.requests_per_minute"] == ""
    assert "1234567890" not in repr(told)
    assert next(row for row in told if row.key == "providers.openai.key").origin.source == str(path)
