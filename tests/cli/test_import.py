"""`greenroom init --import`: what a user of Jarvis takes along, and what is left."""

import json
from pathlib import Path

import pytest

from greenroom.app.settings.layers import load_settings
from tests.cli.conftest import Type

CONFIG = """
ENV:
  OPENAI_API_KEY: sk-very-secret-0123456789
  OPENAI_API_BASE: http://127.0.0.1:9/v1
JARVIS_PLATFORM: openai
JARVIS_MODEL: gpt-5.5
JARVIS_EXECUTE_TOOL_CONFIRM: true
JARVIS_PLAN_ENABLED: true
JARVIS_PLAN_MAX_DEPTH: 77
JARVIS_TOOL_FILTER_THRESHOLD: 12
JARVIS_AFTER_TOOL_CALL_CB_DIRS: /srv/a:/srv/b
JARVIS_PRETTY_OUTPUT: true
"""
GROUPS = """
llm_group: work
llm_groups: {work: {normal_llm: big}}
llms:
  big:
    platform: openai
    model: gpt-5.5
    llm_config: {openai_api_key: sk-1, openai_api_base: "http://127.0.0.1:9/v1"}
"""
AGENT = """
name: helper
system_prompt: |
  You help.
model_group: strong
need_summary: true
plan: true
in_multi_agent: true
multiline_inputer: x
"""
MEMORY = {
    "id": "20251101_072947_388226",
    "type": "global_long_term",
    "tags": ["api"],
    "content": "The API is under /v2.",
    "created_at": "2025-11-01T07:29:47.388226",
}


@pytest.fixture(name="jarvis")
def a_folder(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Jarvis' folder in the person's home."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / ".jarvis"
    for name, text in (
        ("config.yaml", CONFIG),
        ("agents/helper.yaml", AGENT),
        ("agents/bad.yml", "system_prompt: ''\n"),
        ("tools/audit.py", "print('hello')\n"),
        ("data/memory/global_long_term/20251101_072947_388226.json", json.dumps(MEMORY)),
        ("data/memory/global_long_term/broken.json", "{"),
        ("history", "x"),
    ):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


@pytest.mark.req("AG-146", "AG-153", "AG-160", "AG-177", "AG-188")
def test_settings_agents_and_memories_are_taken_and_the_rest_is_named(
    greenroom: Type, jarvis: Path, tmp_path: Path
) -> None:
    told = greenroom("init", "--import")
    assert told.code == 0, told.err
    config = tmp_path / "config" / "greenroom"
    settings = load_settings({}, {"XDG_CONFIG_HOME": str(tmp_path / "config")}, tmp_path).settings
    assert settings.execute_tool_confirm
    assert (settings.model, settings.after_tool_call) == ("openai:gpt-5.5", ("/srv/a", "/srv/b"))
    assert (settings.agents.plan, settings.agents.filter_tools_above) == (True, 12)
    assert settings.providers["openai"].base_url == "http://127.0.0.1:9/v1"
    assert (config / "agents" / "helper.md").read_text(encoding="utf-8").endswith("---\nYou help.\n")
    shown = greenroom("agents", "show", "helper")
    assert shown.code == 0, shown.err
    for line in (
        "– ENV.OPENAI_API_KEY: variables are not copied. Set $OPENAI_API_KEY in your shell.",
        "– plan_max_depth: its value does not fit `agents.plan_max_depth`",
        "– pretty_output: Greenroom has no such setting or folder.",
        f"– tools/audit.py: Python files are not copied. Read it, then copy it to {config / 'tools'}.",
        "– history: Greenroom has no such setting or folder.",
        "– data/memory/global_long_term/broken.json: it is not a memory.",
        "✓ plan_enabled → agents.plan",
    ):
        assert line in told.out.splitlines(), told.out
    assert "– agents/helper.yaml: `in_multi_agent`" in told.out
    assert "– agents/bad.yml: `system_prompt`" in told.out
    memories = list((tmp_path / "home" / "memory" / "global_long_term").glob("*.json"))
    assert [json.loads(path.read_text(encoding="utf-8"))["content"] for path in memories] == ["The API is under /v2."]
    written = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file() and jarvis not in path.parents]
    assert not any(b"sk-very-secret" in content for content in written)
    assert "sk-very-secret" not in told.out + told.err


def test_existing_settings_and_agents_stay_unless_replaced(greenroom: Type, jarvis: Path, tmp_path: Path) -> None:
    path = tmp_path / "config" / "greenroom" / "config.toml"
    path.parent.mkdir(parents=True)
    path.write_text("version = 1\n", encoding="utf-8")
    told = greenroom("init", "--import")
    assert "– config.yaml:" in told.out
    assert [line for line in told.out.splitlines() if line.startswith("✓")] == [
        f"✓ agents/helper.yaml → {path.parent / 'agents' / 'helper.md'}"
    ]
    assert path.read_text(encoding="utf-8") == "version = 1\n"
    again = greenroom("init", "--import", "--replace", "--output-format", "json")
    assert "you have an agent 'helper' already." in str(again.json["left"])
    assert "gpt-5.5" in path.read_text(encoding="utf-8")
    assert path.with_name("config.toml.old").exists()


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ("- a\n", "config.yaml cannot be read as YAML: it holds no keys."),
        ("a: &b c\n", "config.yaml cannot be read as YAML: aliases"),
        ("platform: kimi\nmodel: k2\n", "– kimi/k2: Greenroom does not know this platform."),
        (
            GROUPS,
            "✓ platform, model → model = openai:gpt-5.5",
        ),
    ],
)
def test_models_of_groups_are_found_and_bad_files_are_named(
    greenroom: Type, jarvis: Path, config: str, said: str
) -> None:
    (jarvis / "config.yaml").write_text(config, encoding="utf-8")
    told = greenroom("init", "--import")
    assert said in told.out + told.err


def test_without_the_folder_or_with_other_options_nothing_is_imported(
    greenroom: Type, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    told = greenroom("init", "--import")
    assert (told.code, "so nothing can be imported" in told.err) == (3, True)
    assert greenroom("init", "--import", "--provider", "openai").code == 2
