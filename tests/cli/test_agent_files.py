"""`files` of an agent file: what goes with the first message of a run, as text or as an upload."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from tests.app.trust.yes import agree
from tests.cli.conftest import Type
from tests.e2e.provider import provider, reached
from tests.fake_openai import Answer

READER = "---\ndescription: Reads.\nfiles: [guide.md, plan.pdf, {more}]\n---\nYou read.\n"
PDF = b"%PDF-1.4 \x00 binary"


@pytest.fixture(name="brought")
def _brought(project: Path) -> Path:
    """A project with an agent that has three files."""
    (project / "guide.md").write_text("Use tabs.\n")
    (project / "plan.pdf").write_bytes(PDF)
    (project / "data.bin").write_bytes(b"\0\1")
    name_file(project, "data.bin")
    return project


def name_file(project: Path, more: str) -> None:
    path = project / ".greenroom" / "agents" / "reader.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(READER.format(more=more))
    agree(project.parents[1] / "config", project)


def content_sent(greenroom: Type, monkeypatch: pytest.MonkeyPatch, model: str, *words: str) -> tuple[str, str]:
    """Run the agent, and return the content of its first message and what the person reads."""
    bodies = list[dict[str, object]]()

    def answer(body: dict[str, object], _: int) -> Answer:
        bodies.append(body)
        return Answer(text="Done.")

    with provider(answer) as fake:
        for name, value in reached(fake).items():
            monkeypatch.setenv(name, value)
        ended = greenroom(*words, "--agent", "reader", "--model", model, "--max-cost", "none")
    assert ended.out == "Done.\n", ended.err
    messages = bodies[0]["messages"]
    assert isinstance(messages, list)
    return json.dumps(messages[-1]["content"], ensure_ascii=False), ended.err


@pytest.mark.req("AG-117", "AG-131", "AG-173")
def test_files_are_uploaded_where_the_platform_takes_them(
    greenroom: Type, brought: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent, told = content_sent(greenroom, monkeypatch, "openai:gpt-5.5", "run", "Read it.")
    assert "Use tabs." in sent
    assert base64.b64encode(PDF).decode() in sent
    assert '"filename": "plan.pdf"' in sent
    assert sent.count("Read it.") == 1
    assert "left out" not in told
    assert brought.is_dir()


@pytest.mark.req("AG-118", "AG-119", "AG-131")
def test_where_the_platform_takes_no_files_texts_are_loaded_and_the_others_left_out(
    greenroom: Type, brought: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = brought.parents[1] / "config" / "greenroom" / "config.toml"
    settings.write_text('[models."openai:small"]\nwindow = 4000\nmax_output = 1000\nimages = false\n')
    sent, told = content_sent(greenroom, monkeypatch, "openai:small", "run", "Read it.")
    assert "Use tabs." in sent
    assert base64.b64encode(PDF).decode() not in sent
    assert "plan.pdf is left out: the model takes no files of this kind." in told
    (brought / "guide.md").write_text("long " * 2000)
    _, told = content_sent(greenroom, monkeypatch, "openai:small", "chat", "Read it.")
    assert "guide.md is left out: it is too long for the model." in told


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("none.md", "does not exist. Paths are relative to the workspace."),
        ("../../secret.txt", "is a link that leads outside. Put the file itself there."),
        (".env", "may hold a secret. Name another file."),
    ],
)
def test_a_file_that_an_agent_should_not_send_is_refused(greenroom: Type, brought: Path, name: str, why: str) -> None:
    (brought / ".env").write_text("KEY=1")
    (brought.parents[1] / "secret.txt").write_text("x")
    name_file(brought, f'"{name}"')
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", "sk-test-0123456789abcdef")
        told = greenroom("run", "Read it.", "--agent", "reader", "--model", "openai:gpt-5.5")
    assert told.code == 3
    assert f"`files` of the agent 'reader' names {name}, which {why}" in told.err
