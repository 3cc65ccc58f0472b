"""`greenroom skills` in this process, and what agents of a run get of skills."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.app.trust.yes import agree
from tests.cli.conftest import Type
from tests.e2e.provider import provider, reached
from tests.fake_openai import Answer, Call

RELEASE = "---\nname: release\ndescription: How to release a version: changelog, tag.\n---\nRun the tests, then tag.\n"
PDF = "---\nname: pdf\ndescription: Fills in forms of PDF files.\nallowed-tools: Read\n---\nUse pypdf.\n"
REVIEW = "---\ndescription: 代码评审，检查安全问题。\n---\n先看测试。\n"
WRITER = "---\ndescription: Writes.\ntools: [read_code]\n{more}---\nYou write.\n"


@pytest.fixture(name="brought")
def _brought(project: Path) -> Path:
    """A project with a skill, of a person with one of Claude Code's."""
    write(project / ".greenroom" / "skills" / "release" / "SKILL.md", RELEASE)
    write(project / ".greenroom" / "skills" / "release" / "steps" / "list.md", "Ask Ann.")
    write(project.parent / ".claude" / "skills" / "pdf" / "SKILL.md", PDF)
    return project


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def trust(project: Path) -> None:
    agree(project.parents[1] / "config", project)


def shown(greenroom: Type, message: str, agent: str = "coder") -> dict[str, object]:
    """What `prompt show` says of a first request."""
    ended = greenroom("prompt", "show", agent, "--message", message, "--output-format", "json")
    assert ended.code == 0, ended.err
    found = json.loads(ended.out)
    assert isinstance(found, dict)
    return found


def user_message(found: dict[str, object]) -> str:
    request = found["request"]
    assert isinstance(request, dict)
    return str(request["messages"][-1]["content"])


@pytest.mark.req("AG-123")
def test_skills_of_the_project_and_of_claude_code_are_listed_with_their_trust(greenroom: Type, brought: Path) -> None:
    told = greenroom("skills", "list")
    rows = {line.split()[0]: line for line in told.out.splitlines()[1:]}
    assert rows["release"].endswith("project (not trusted)")
    assert rows["pdf"].rstrip().endswith("user, Claude Code")
    assert "Fills in forms of PDF files. " in rows["pdf"], "the next key is not part of the description"
    assert "greenroom trust" in told.err
    trust(brought)
    listed = json.loads(greenroom("skills", "list", "--output-format", "json").out)
    assert {one["name"]: one["agreed"] for one in listed["skills"]} == {"pdf": True, "release": True}
    (brought / ".greenroom" / "skills" / "release" / "steps" / "list.md").write_text("Ask Bob.")
    listed = json.loads(greenroom("skills", "list", "--output-format", "json").out)
    assert {one["name"]: one["agreed"] for one in listed["skills"]} == {"pdf": True, "release": False}


def test_a_skill_is_shown_with_its_files(greenroom: Type, brought: Path) -> None:
    told = greenroom("skills", "show", "release")
    assert told.out.endswith("SKILL.md, steps/list.md\n\nRun the tests, then tag.\n")
    assert "not trusted" in told.err
    assert greenroom("skills", "show", "nope").err == "Error: There is no skill 'nope'. There are: pdf, release.\n"
    assert brought.is_dir()


@pytest.mark.req("AG-121")
def test_bad_skills_are_named_with_the_reason(greenroom: Type, brought: Path) -> None:
    folder = brought / ".greenroom" / "skills"
    write(folder / "bare" / "SKILL.md", "---\nname: bare\n---\nx")
    write(folder / "odd" / "SKILL.md", "---\nname: a/b\ndescription: x\n---\nx")
    write(folder / "copy" / "SKILL.md", RELEASE)
    write(folder / "leads" / "SKILL.md", RELEASE.replace("name: release", "name: leads"))
    (folder / "leads" / "out.md").symlink_to("/etc/hostname")
    told = greenroom("skills", "list")
    assert "bare/SKILL.md: has no description" in told.err.replace("SKILL.md has", "SKILL.md: has")
    assert "has the name 'a/b'" in told.err
    assert "out.md: " in told.err
    assert "has the same name and is nearer" in told.err
    assert user_message(shown(greenroom, "Hello there")).startswith("Hello there"), "the others are used"
    write(brought.parents[1] / "config" / "greenroom" / "config.toml", "[skills]\nuse = false\n")
    assert "use = false" in greenroom("skills", "list").err


def test_without_skills_the_command_says_how_to_make_one(greenroom: Type, project: Path) -> None:
    assert "SKILL.md" in greenroom("skills", "list").err
    assert project.is_dir()


@pytest.mark.req("AG-119", "AG-120", "AG-169")
def test_a_task_is_given_the_trusted_skills_that_fit_it(greenroom: Type, brought: Path) -> None:
    untrusted = shown(greenroom, "Prepare the release of the next version")
    assert untrusted["skills"] == []
    assert "then tag" not in user_message(untrusted)
    assert "- pdf: " in user_message(untrusted), "the others are named"
    trust(brought)
    found = shown(greenroom, "Prepare the release of the next version")
    assert found["skills"] == ["release"]
    assert "Run the tests, then tag." in user_message(found)
    assert "- pdf: Fills in forms" in user_message(found)
    assert shown(greenroom, "Say something unrelated: 你好")["skills"] == []
    write(brought / ".greenroom" / "agents" / "plain.md", WRITER.format(more="use_methodology: false\n"))
    write(brought / ".greenroom" / "agents" / "bare.md", "---\ndescription: Talks.\n---\nYou talk.\n")
    trust(brought)
    assert user_message(shown(greenroom, "Release it", "plain")) == "Release it"
    bare = shown(greenroom, "Release it", "bare")
    assert bare["skills"] == ["release"]
    assert "read_skill" not in json.dumps(bare), "it has no tools"


def test_an_untrusted_skill_of_the_project_does_not_hide_the_persons_own(greenroom: Type, brought: Path) -> None:
    own = RELEASE.replace("Run the tests, then tag.", "Ask me first.")
    write(brought.parents[1] / "config" / "greenroom" / "skills" / "release" / "SKILL.md", own)
    assert "Ask me first." in user_message(shown(greenroom, "Release the version with a changelog and a tag."))
    trust(brought)
    assert "Run the tests, then tag." in user_message(
        shown(greenroom, "Release the version with a changelog and a tag.")
    )


def test_a_long_skill_is_only_named(greenroom: Type, brought: Path) -> None:
    long = "x" * 7000
    write(brought / ".greenroom" / "skills" / "review" / "SKILL.md", REVIEW + long)
    trust(brought)
    found = shown(greenroom, "请评审这段代码的安全")
    assert found["skills"] == ["review"]
    assert long not in user_message(found)
    assert "- review: 代码评审" in user_message(found)


Run = Callable[..., list[dict[str, object]]]


@pytest.fixture(name="run")
def _run(greenroom: Type, brought: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run the agent `writer` with these calls of its model, and return the bodies of the requests."""
    write(brought / ".greenroom" / "agents" / "writer.md", WRITER.format(more=""))
    trust(brought)

    def run(request: str, *calls: Call) -> list[dict[str, object]]:
        bodies = list[dict[str, object]]()

        def answer(body: dict[str, object], _: int) -> Answer:
            bodies.append(body)
            done = len(bodies) - 1
            return Answer(calls=(calls[done],)) if done < len(calls) else Answer(text="Done.")

        with provider(answer) as fake:
            for name, value in reached(fake).items():
                monkeypatch.setenv(name, value)
            ended = greenroom("run", request, "--agent", "writer", "--model", "openai:gpt-5.5")
        assert ended.out == "Done.\n", ended.err
        return bodies

    return run


@pytest.mark.req("AG-120", "AG-123")
def test_a_run_reads_a_skill_and_the_log_names_the_chosen_ones(greenroom: Type, run: Run) -> None:
    bodies = run(
        "Prepare the release",
        Call(name="read_skill", arguments={"name": "release"}, id="a"),
        Call(name="read_skill", arguments={"name": "release", "file": "steps/list.md"}, id="b"),
        Call(name="read_skill", arguments={"name": "release", "file": "../../agents/writer.md"}, id="c"),
        Call(name="read_skill", arguments={"name": "nope"}, id="d"),
    )
    messages = bodies[-1]["messages"]
    assert isinstance(messages, list)
    told = [str(one["content"]) for one in messages if one["role"] == "tool"]
    assert "Files of this skill: steps/list.md." in told[0]
    assert told[1] == "Ask Ann."
    assert "has no file" in told[2]
    assert "There is no skill 'nope'" in told[3]
    events = greenroom("events", "last", "--output-format", "json").out
    assert '"skills":["release"]' in events.replace(" ", "")


def make_repository(folder: Path, *texts: str) -> None:
    for number, text in enumerate(texts):
        write(folder / "skills" / f"skill{number}" / "SKILL.md", text)
    for words in (("init", "-q"), ("add", "-A"), ("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x")):
        subprocess.run(("git", *words), cwd=folder, check=True)


@pytest.mark.req("AG-123", "AG-191")
def test_skills_of_a_shared_repository_are_used_once_the_person_trusts_them(
    greenroom: Type, project: Path, tmp_path: Path
) -> None:
    shared, config = tmp_path / "shared", project.parents[1] / "config" / "greenroom" / "config.toml"
    assert "name no repositories" in greenroom("skills", "sync").err
    make_repository(shared, RELEASE, REVIEW)
    (shared / "skills" / "skill0" / "leads").symlink_to("/etc")
    make_repository(shared)
    write(config, f'[skills]\nrepositories = ["{shared}"]\n')
    waiting = greenroom("skills", "sync")
    assert waiting.code == 6
    assert "release (new)" in waiting.out
    assert shown(greenroom, "Release the version")["skills"] == []
    assert greenroom("skills", "sync", "--yes").code == 0
    assert shown(greenroom, "Release the version")["skills"] == ["release"]
    make_repository(shared, RELEASE.replace("tests", "checks"))
    assert "release (changed)" in greenroom("skills", "sync").out
    assert shown(greenroom, "Release the version")["skills"] == [], "the new version is not trusted yet"
    shared.rename(tmp_path / "moved")
    assert "was not copied; the former copy stays. " in greenroom("skills", "sync").err
    write(config, f'[skills]\nrepositories = ["{tmp_path}/none"]\n')
    failed = greenroom("skills", "sync")
    assert failed.code == 1
    assert "/none was not copied. " in failed.err
    assert not any((tmp_path / "home" / "skills").iterdir()), "what the settings do not name is removed"


@pytest.mark.parametrize("address", ["http://example.org/x", "https://me:pw@example.org/x", "ext::sh -c x", "x"])
def test_an_address_that_git_should_not_reach_is_refused(greenroom: Type, project: Path, address: str) -> None:
    write(project.parents[1] / "config" / "greenroom" / "config.toml", f'[skills]\nrepositories = ["{address}"]\n')
    told = greenroom("skills", "sync")
    assert told.code == 3
    assert "must be a list of addresses" in told.err


def test_a_project_cannot_name_repositories(greenroom: Type, project: Path) -> None:
    write(project / ".greenroom" / "config.toml", '[skills]\nrepositories = ["/x"]\n')
    assert "decides which instructions your agents get" in greenroom("skills", "list").err
