"""From nothing to a model that answers: `init`, `models`, `config`, through the real door."""

import stat
from pathlib import Path

import pytest

from tests.e2e.provider import KEY, PRICED, provider, reached, settings
from tests.e2e.terminal import greenroom
from tests.e2e.typing import CTRL_C, CTRL_D, Typing
from tests.fake_openai import Answer, Call
from tests.sampling import first

USED = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder of one's own, under version control."""
    (tmp_path / "project" / ".git").mkdir(parents=True)
    return tmp_path / "project"


# ------------------------------------------------------------------------------------------------------------ init


def test_a_key_in_the_environment_is_found_and_never_written_down(tmp_path: Path, project: Path) -> None:
    ended = greenroom(tmp_path, "init", "--yes", cwd=str(project), OPENAI_API_KEY=KEY)
    assert (ended.code, ended.out) == (0, "Next: greenroom models check\n")
    assert "✓ openai: a key in $OPENAI_API_KEY" in ended.err
    written = (project / ".greenroom" / "config.toml").read_text()
    assert 'strong = "openai:gpt-5.5"\n' in written
    assert KEY not in written
    assert "!config.toml" in (project / ".greenroom" / ".gitignore").read_text()
    assert not (tmp_path / "config").exists()


def test_a_script_pipes_its_key_in(tmp_path: Path, project: Path) -> None:
    words = ("init", "--provider", "deepseek", "--key-stdin", "--user", "--output-format", "json")
    told = greenroom(tmp_path, *words, stdin=f"{KEY}\n", cwd=str(project)).json
    keys = tmp_path / "config" / "greenroom" / "keys.toml"
    assert (told["status"], told["keys"]) == ("written", str(keys))
    assert stat.S_IMODE(keys.stat().st_mode) == 0o600
    assert KEY in keys.read_text()
    assert 'fast = "deepseek:deepseek-v4-flash"' in (tmp_path / "config" / "greenroom" / "config.toml").read_text()
    assert not (project / ".greenroom").exists()


ASKED = (("Number [1]:", "1\r"), ("not shown", f"{KEY}\r"), ("Strong model", "\r"), ("Fast model", "gpt-mini\r"))


def test_a_person_is_asked_and_the_key_is_not_shown(tmp_path: Path, project: Path) -> None:
    with Typing(tmp_path, "init", cwd=str(project)) as person:
        for question, answer in ASKED:
            person.until(question)
            person.press(answer)
        assert person.ends() == 0
        assert KEY not in person.seen
        assert person.seen.rstrip().endswith("Next: greenroom models check")
    assert KEY in (tmp_path / "config" / "greenroom" / "keys.toml").read_text()
    assert 'fast = "openai:gpt-mini"' in (project / ".greenroom" / "config.toml").read_text()


@pytest.mark.parametrize("key", [CTRL_C, CTRL_D], ids=["Ctrl-C", "Ctrl-D"])
@pytest.mark.parametrize("place", first(2, 0, 1))
def test_who_leaves_half_way_leaves_nothing_behind(tmp_path: Path, project: Path, key: str, place: int) -> None:
    with Typing(tmp_path, "init", cwd=str(project)) as person:
        for question, answer in ASKED[:place]:
            person.until(question)
            person.press(answer)
        person.until(ASKED[place][0])
        person.press(key)
        assert person.ends() == 130
        assert "Nothing was written." in person.seen
    assert not (project / ".greenroom").exists()
    assert not (tmp_path / "config").exists()


def test_a_server_of_this_machine_is_found_with_its_models(tmp_path: Path, project: Path) -> None:
    with provider({"qwen3:8b": "hello", "tiny": "hello"}, api_key="") as fake:
        ended = greenroom(tmp_path, "init", "--yes", cwd=str(project), OLLAMA_HOST=fake.base_url)
    assert ended.code == 0
    assert f"ollama: a server at {fake.base_url} with qwen3:8b, tiny" in ended.err
    assert 'strong = "ollama:qwen3:8b"' in (project / ".greenroom" / "config.toml").read_text()


ENDPOINT = '[providers."{name}"]\nbase_url = "{base_url}"\nkey_env = "OUR_KEY"\n'


@pytest.mark.parametrize("model", ["big", "qwen3:8b", "mistral:7b", "a/b:free"])
@pytest.mark.parametrize(("words", "name"), [(("--provider", "ours"), "ours"), ((), "custom")])
def test_an_address_of_ones_own_is_written_for_the_person_and_works(
    tmp_path: Path, project: Path, words: tuple[str, ...], name: str, model: str
) -> None:
    with provider({model: Answer(text="Hello.")}) as fake:
        address = ("--base-url", fake.base_url, "--key-env", "OUR_KEY", "--yes")
        ended = greenroom(tmp_path, "init", *words, "--model", model, *address, cwd=str(project))
        file = tmp_path / "config" / "greenroom" / "config.toml"
        assert (ended.code, str(file) in ended.err) == (0, True)
        assert ENDPOINT.format(name=name, base_url=fake.base_url) in file.read_text()
        assert not (project / ".greenroom").exists(), "a project cannot name an address for a key"
        file.write_text(f'{file.read_text()}[prices."{name}:{model}"]\ninput = 1\noutput = 2\n')
        answer = greenroom(tmp_path, "ask", "-q", "Hello?", OUR_KEY=KEY)
    assert (answer.code, answer.out) == (0, "Hello.\n")


def test_an_address_that_is_none_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    ended = greenroom(tmp_path, "init", "--base-url", "ftp://x", "--model", "big", "--yes")
    assert (ended.code, "base_url" in ended.err) == (3, True)
    assert not (tmp_path / "config").exists()


def test_a_person_can_name_another_address(tmp_path: Path, project: Path) -> None:
    typed = (
        *(("Number [1]:", "2\r"), ("Base URL", "http://127.0.0.1:9/v1\r"), ("Variable", "\r")),
        *(("Strong model", "big\r"), ("Fast model", "\r")),
    )
    with Typing(tmp_path, "init", cwd=str(project), OPENAI_API_KEY=KEY) as person:
        for question, answer in typed:
            person.until(question)
            person.press(answer)
        assert person.ends() == 0
    written = (tmp_path / "config" / "greenroom" / "config.toml").read_text()
    assert 'strong = "custom:big"\nfast = "custom:big"\n' in written
    assert '[providers."custom"]\nbase_url = "http://127.0.0.1:9/v1"\n' in written


def test_a_server_of_this_machine_costs_nothing_and_a_mistake_is_replaced(tmp_path: Path) -> None:
    address = ("init", "--model", "big", "--yes", "--base-url")
    with provider({"big": Answer(text="Hello.")}, api_key="") as fake:
        assert greenroom(tmp_path, *address, "http://127.0.0.1:9/v1").code == 0
        kept = greenroom(tmp_path, *address, fake.base_url)
        assert (kept.code, "Add --replace" in kept.err) == (0, True)
        assert greenroom(tmp_path, *address, fake.base_url, "--replace").code == 0
        answer = greenroom(tmp_path, "ask", "-q", "Hello?")
    assert (answer.code, answer.out) == (0, "Hello.\n")
    assert "127.0.0.1:9/" in (tmp_path / "config" / "greenroom" / "config.toml.old").read_text()


def test_without_a_key_and_a_server_real_commands_are_named(tmp_path: Path) -> None:
    ended = greenroom(tmp_path, "init", "--yes")
    assert ended.code == 3
    for command in (
        "ollama pull qwen3",
        "llama-server -hf ",
        "lms server start",
        "vllm serve ",
        "export OPENAI_API_KEY=",
    ):
        assert command in ended.err


# ---------------------------------------------------------------------------------------------------------- models


def test_models_are_listed_as_their_endpoint_names_them(tmp_path: Path) -> None:
    with provider({"gpt-5.5": "hello", "gpt-oss-20b": "hello"}) as fake:
        told = greenroom(tmp_path, "models", "list", **reached(fake))
        row = greenroom(tmp_path, "models", "list", "openai", "--output-format", "json", **reached(fake)).json["models"]
    assert told.code == 0
    assert "272,000  yes              5.00 / 30.00  $OPENAI_API_KEY" in told.out
    assert "openai:gpt-oss-20b" in told.out
    assert isinstance(row, list)
    assert row[0] == {
        "name": "openai:gpt-5.5",
        "window": 272_000,
        "tools": True,
        "input_price": 5.0,
        "output_price": 30.0,
        "key": "$OPENAI_API_KEY",
    }


SMALL = """model = "ollama:tiny"
[models."ollama:tiny"]
window = 8192
max_output = 300
tools = false
"""


def test_a_model_that_the_catalog_does_not_know_is_described_in_the_settings(tmp_path: Path) -> None:
    settings(tmp_path, SMALL)
    with provider({"tiny": "hello", "other": "hello"}, api_key="") as fake:
        rows = greenroom(tmp_path, "models", "list", "ollama", "--output-format", "json", OLLAMA_HOST=fake.base_url)
        ended = greenroom(tmp_path, "ask", "hi", OLLAMA_HOST=fake.base_url)
        ended_other = greenroom(tmp_path, "ask", "hi", "--model", "ollama:other", OLLAMA_HOST=fake.base_url)
    found = rows.json["models"]
    assert isinstance(found, list)
    assert {row["name"]: (row["window"], row["tools"]) for row in found} == {
        "ollama:other": (32_768, True),
        "ollama:tiny": (8192, False),
    }
    assert (ended.code, ended_other.code) == (0, 0), ended.err
    bodies = [seen.body for seen in fake.requests if seen.body]
    assert [body["max_tokens"] for body in bodies] == [300, 4096]
    assert "tools" not in bodies[0]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[models."ollama:tiny"]\ncontext = 1', '`models."ollama:tiny".context`. There are: `window`, `max_output`'),
        ('[models."ollama:tiny"]\nwindow = "big"', "must be a whole number, at least 1, not 'big'."),
        ('[models."ollama:tiny"]\nwindow = 0', "must be a whole number, at least 1, not 0."),
        ('[models."ollama:tiny"]\ntools = "maybe"', '`models."ollama:tiny".tools` must be'),
        ('[models."tiny"]\nwindow = 8192', "'tiny' has no provider."),
        ("models = 3", "`models` is a table."),
    ],
)
def test_a_wrong_description_of_a_model_is_one_sentence(tmp_path: Path, text: str, words: str) -> None:
    settings(tmp_path, text)
    ended = greenroom(tmp_path, "ask", "hi")
    assert ended.code == 3
    assert words in " ".join(ended.err.split())


def test_a_model_is_checked_in_three_ways(tmp_path: Path) -> None:
    settings(tmp_path, PRICED)
    call = Call(name="add", arguments={"a": 2, "b": 3})
    script = [Answer(text="Green.", usage=USED), Answer(text="Green.", usage=USED), Answer(calls=(call,), usage=USED)]
    with provider([*script, *script]) as fake:
        told = greenroom(tmp_path, "models", "check", **reached(fake))
        fields = greenroom(tmp_path, "models", "check", "--output-format", "json", **reached(fake)).json
    assert told.code == 0
    assert "three small calls, at most $0.0095." in told.err
    assert [line.split()[-1] for line in told.out.splitlines()[1:]] == ["$0.0002"] * 3
    assert "Ask it: greenroom ask --model openai:gpt-5.5" in told.err
    trials = fields["trials"]
    assert isinstance(trials, list)
    assert [(one["call"], one["works"], one["tokens"]) for one in trials] == [
        ("streamed", True, 110),
        ("whole", True, 110),
        ("tool", True, 110),
    ]
    assert [seen.body.get("stream") for seen in fake.requests[:3]] == [True, None, True]


def test_a_model_that_does_not_answer_has_the_providers_code(tmp_path: Path) -> None:
    with provider("hello") as fake:
        told = greenroom(tmp_path, "models", "check", **reached(fake, "sk-wrong-key-0000"))
    assert (told.code, fake.asked) == (4, 0)
    assert "Incorrect API key provided." in told.out
    assert "with a tool" not in told.out, "what cannot work is not tried"


# ---------------------------------------------------------------------------------------------------------- config


def test_every_setting_says_where_it_comes_from(tmp_path: Path, project: Path) -> None:
    own = settings(tmp_path, f'fast = "openai:small"\n[providers.openai]\nkey = "{KEY}"\n')
    own.chmod(0o600)
    shared = project / ".greenroom" / "config.toml"
    shared.parent.mkdir()
    shared.write_text('strong = "openai:large"\n')
    told = greenroom(tmp_path, "config", "show", cwd=str(project), GREENROOM_MAX_COST="2")
    lines = {line.split()[0]: line for line in told.out.splitlines()}
    assert "environment: $GREENROOM_MAX_COST" in lines["limits.cost"]
    assert lines["limits.tokens"].split()[-1] == "default"
    assert "user: " in lines["fast"]
    assert "project: " in lines["strong"]
    assert KEY not in told.out
    assert "****cdef" in lines["providers.openai.key"]
    rows = greenroom(tmp_path, "config", "show", "--output-format", "json", cwd=str(project)).json["settings"]
    assert isinstance(rows, list)
    assert {"key": "language", "value": "en", "from": "default"} in rows
