"""The profiles of specialists: as built in, as files of a person, by skill."""

from pathlib import Path

import pytest
from inline_snapshot import external_file

from greenroom.app.agents.discovery import Agents, BrokenAgentFile, find_agents
from greenroom.app.messages import LANGUAGES
from greenroom.app.teams.profiles import SPECIALISTS, Profiles, add_specialists, load_profiles
from greenroom.core.base.errors import RefusedError, WorldFault
from greenroom.core.base.records import to_full_dict
from greenroom.core.state.spec import AgentSpec, Cooperation
from greenroom.teamwork.handoffs import read_protocols

NONE = Agents(by_name={})
ALL, NO_COMMAND, NO_EDIT = ("read", "edit", "command"), ("read", "edit"), ("read", "command")
SOURCE = {
    "architect": (
        ("architecture-design", "documentation"),
        NO_EDIT,
        (1, 300, 92),
        ("code-writer", "documentation"),
        "design-handoff",
    ),
    "code-writer": (("code-generation",), ALL, (4, 180, 88), ("test-writer", "review"), "code-handoff"),
    "test-writer": (("test-generation",), ALL, (4, 150, 90), ("code-writer", "debug"), "test-coverage-report"),
    "documentation": (("documentation",), NO_COMMAND, (3, 120, 93), ("architect", "code-writer"), "doc-review"),
    "refactor": (
        ("refactoring", "optimization"),
        ALL,
        (3, 200, 85),
        ("test-writer", "review"),
        "refactor-report",
    ),
    "review": (("code-review",), ("read",), (2, 240, 91), ("code-writer", "refactor"), "review-feedback"),
    "translator": (
        ("translation",),
        NO_COMMAND,
        (3, 180, 90),
        ("documentation", "review"),
        "translation-review",
    ),
}
"""What the source gives: skills, tool groups, concurrency, seconds and success in percent, partners, protocol."""

LABELS = {
    "architect": "🏗️ Architect",
    "code-writer": "💻 Code Writer",
    "test-writer": "🧪 Test Writer",
    "documentation": "📚 Documentation",
    "refactor": "🔧 Refactor",
    "review": "👁️ Reviewer",
    "translator": "🌐 i18n Translator",
}
SKILLS = {
    "code-generation",
    "test-generation",
    "documentation",
    "refactoring",
    "debugging",
    "code-review",
    "translation",
    "optimization",
    "security-analysis",
    "architecture-design",
}


def built_in(language: str = "en") -> Profiles:
    return load_profiles(NONE, language)


def by_type(language: str = "en") -> dict[str, AgentSpec]:
    return {spec.name: spec for spec in built_in(language).list()}


@pytest.mark.req("RC-8", "RC-9", "RC-11", "RC-12", "RC-13", "RC-14", "RC-15", "RC-16", "RC-17", "RC-116")
@pytest.mark.parametrize("language", LANGUAGES)
def test_the_profiles_are_those_of_the_source(language: str) -> None:
    profiles = by_type(language)
    assert tuple(profiles) == SPECIALISTS
    for name, (skills, groups, (concurrency, seconds, success), partners, protocol) in SOURCE.items():
        spec = profiles[name]
        assert (spec.capabilities, spec.groups, spec.language) == (skills, groups, language)
        assert spec.cooperation == Cooperation(
            concurrency=concurrency,
            seconds=seconds,
            success=success,
            cooperates=True,
            partners=partners,
            protocol=protocol,
        )
    assert {tag for spec in profiles.values() for tag in spec.capabilities} == SKILLS


@pytest.mark.req("RC-18", "RC-134")
def test_debug_optimizer_and_security_are_whole_profiles_too() -> None:
    for name in ("debug", "optimizer", "security"):
        spec = by_type()[name]
        assert spec.cooperation is not None
        assert all((spec.role, spec.description, spec.capabilities, spec.prompt, spec.cooperation.seconds))
        assert set(spec.cooperation.partners) <= set(SPECIALISTS)
        assert spec.cooperation.protocol in read_protocols()
    assert "edit" not in by_type()["security"].groups


@pytest.mark.req("RC-19", "RC-20", "RC-21", "RC-22", "RC-23", "RC-24", "RC-25", "RC-26")
@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("name", SPECIALISTS)
def test_every_prompt_is_what_it_was(name: str, language: str) -> None:
    prompt = by_type(language)[name].prompt
    role, principles = prompt.split("Key principles:" if language == "en" else "关键原则：")
    assert ("Your role is to:" if language == "en" else "你的职责：") in role
    assert min(role.count("\n- "), principles.count("\n- ")) >= 4
    assert prompt == external_file(f"snapshots/{language}/{name}.md", format=".txt")


def test_the_languages_differ_in_words_only() -> None:
    for name, english in by_type("en").items():
        chinese = by_type("zh")[name]
        differing = {key for key, value in to_full_dict(english).items() if to_full_dict(chinese)[key] != value}
        assert differing == {"role", "description", "prompt", "language", "version"}
        for part in ("\n- ", "\n\n"):
            assert english.prompt.count(part) == chinese.prompt.count(part)


@pytest.mark.req("RC-27")
def test_a_profile_has_an_icon_and_a_label() -> None:
    assert {name: by_type()[name].role for name in LABELS} == LABELS
    assert all(not spec.role[0].isascii() for spec in by_type("zh").values())


@pytest.mark.req("RC-6", "RC-29", "RC-141", "RC-171", "RC-172")
def test_a_profile_is_registered_replaced_and_found() -> None:
    profiles = built_in()
    assert profiles.get("poet") is None
    poet = AgentSpec(name="poet", capabilities=("documentation",))
    profiles.register(poet)
    profiles.register(AgentSpec(name="architect", description="mine"))
    assert profiles.get("poet") is poet
    assert [spec.name for spec in profiles.list()] == [*SPECIALISTS, "poet"]
    assert [spec.name for spec in profiles.find_by_skill("documentation")] == ["documentation", "poet"]
    with pytest.raises(RefusedError, match=r"No agent has the skill 'debuging'. Did you mean `debugging`\?"):
        profiles.find_by_skill("debuging")


@pytest.mark.req("RC-6", "RC-141")
def test_files_of_a_person_replace_and_add_profiles(tmp_path: Path) -> None:
    folder, claude = tmp_path / ".greenroom" / "agents", tmp_path / ".claude" / "agents"
    folder.mkdir(parents=True)
    claude.mkdir(parents=True)
    (folder / "review.md").write_text("---\ngroups: [read]\nskills: [think]\n---\nBe strict.")
    (claude / "sql.md").write_text("---\nname: sql\ndescription: SQL.\ntools: Read, Bash\n---\nYou write SQL.")
    profiles = load_profiles(find_agents(tmp_path), "zh")
    review, sql = profiles.get("review"), profiles.get("sql")
    assert review is not None
    assert sql is not None
    assert (review.prompt, review.cooperation, review.language) == ("Be strict.", None, "zh")
    assert (sql.prompt, sql.groups) == ("You write SQL.", ("read", "command"))
    assert len(profiles.list()) == len(SPECIALISTS) + 1


@pytest.mark.req("RC-10")
def test_an_unknown_tool_group_is_named_with_the_nearest_and_hides_the_built_in_profile(tmp_path: Path) -> None:
    folder = tmp_path / ".greenroom" / "agents"
    folder.mkdir(parents=True)
    (folder / "review.md").write_text("---\ndescription: x\ntoolGroups: [raed]\n---\nRead.")
    profiles = load_profiles(find_agents(tmp_path), "en")
    assert profiles.get("review") is None
    with pytest.raises(WorldFault, match=r"review\.md, line 3: `toolGroups` .*read, edit, command.*`?read") as fault:
        add_specialists(find_agents(tmp_path), "en").get("review")
    assert "\n" not in str(fault.value)
    broken = Agents(by_name={}, broken_files=(BrokenAgentFile(name="debug", text="not trusted", is_untrusted=True),))
    with pytest.raises(WorldFault, match="not trusted"):
        add_specialists(broken, "en").get("debug")
