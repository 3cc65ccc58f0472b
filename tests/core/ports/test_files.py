"""Paths of a workspace: what they mean, and which names nobody writes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as some

from greenroom.core.base.errors import WorldFault
from greenroom.core.ports.files import FileFault, compute_digest, is_governing, is_protected, make_relative

ROOTS = ("/private/work", "/work")


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("a/b.py", "a/b.py"),
        ("./a//b/./c", "a/b/c"),
        ("a/", "a"),
        ("", ""),
        (".", ""),
        ("/work", ""),
        ("/work/", ""),
        ("/work/a", "a"),
        ("/private/work/a/b", "a/b"),
        ("ünï/名前.py", "ünï/名前.py"),
        ("...", "..."),
        ("a/..b", "a/..b"),
    ],
)
def test_a_path_is_seen_from_the_root(path: str, found: str) -> None:
    assert make_relative(path, ROOTS) == found


@pytest.mark.parametrize(
    "path",
    [
        "..",
        "../a",
        "a/..",
        "a/../b",
        "/",
        "/etc",
        "/workshop/a",
        "//work/a",
        "/work/../etc",
        "a\x00",
        "a\nb",
        "\x7f",
        "\udc80",
    ],
)
def test_anything_else_is_refused_with_a_sentence(path: str) -> None:
    with pytest.raises(FileFault) as caught:
        make_relative(path, ROOTS)
    assert caught.value.reason == "path"
    assert str(caught.value).endswith((".", ".py."))
    assert isinstance(caught.value, WorldFault)


def test_a_path_has_an_end() -> None:
    assert make_relative("a" * 4096, ROOTS)
    with pytest.raises(FileFault, match="longer than 4096 bytes"):
        make_relative("ä" * 2049, ROOTS)


@given(some.text(max_size=60))
def test_whatever_is_taken_stays_below_the_root_and_means_itself(path: str) -> None:
    try:
        found = make_relative(path, ROOTS)
    except FileFault:
        return
    assert not found.startswith("/")
    assert ".." not in found.split("/")
    assert make_relative(found, ROOTS) == found


@pytest.mark.parametrize(
    "name",
    [
        ".git",
        ".GIT",
        ".Git",
        ".greenroom",
        ".GreenRoom",
        ".git.",
        ".git ",
        ".g\u200cit",
        ".ｇｉｔ",
        "git~1",
        "GIT~1",
        "GREENR~1",
    ],
)
def test_names_that_some_file_system_takes_for_a_protected_one_are_protected(name: str) -> None:
    assert is_protected(name)


@pytest.mark.parametrize(
    "name", [".gitignore", ".github", "git", "greenroom", ".greenroom-x.tmp", "a.git", ".gits", ""]
)
def test_other_names_are_not(name: str) -> None:
    assert not is_protected(name)


@pytest.mark.parametrize(
    ("path", "governs"),
    [
        *((path, True) for path in ("AGENTS.md", "api/CLAUDE.md", ".mcp.json", ".envrc", "web/.husky/pre-commit")),
        *((path, True) for path in (".claude", ".claude/agents/x.md", ".vscode/tasks.json", ".GitHub/workflows/x.yml")),
        *((path, True) for path in (".greenroom/memory/a.md", ".ENVRC.", ".clau\u200cde/x")),
        *((path, False) for path in ("docs/howto/agents.md", "Agents.md", "claude.md", "docs/Claude.MD")),
        *((path, False) for path in ("", "README.md", "MYAGENTS.md", ".vscode/settings.json", ".github/CODEOWNERS")),
        *((path, False) for path in ("workflows/x.yml", "tasks.json", "claude/x", ".envrc.example")),
    ],
)
def test_files_that_configure_agents_or_tools_are_known(path: str, governs: bool) -> None:
    assert is_governing(path) == governs


def test_a_content_has_one_name() -> None:
    assert compute_digest(b"") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
