"""`@path` brings a file of the workspace along, and nothing else ever."""

import os
from pathlib import Path

import pytest

from greenroom.app.conversation.typed import LONGEST_FILE as MOST
from greenroom.app.conversation.typed import Handled, file_context, offered


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A workspace with a folder in it."""
    root = tmp_path / "work"
    (root / "src").mkdir(parents=True)
    (root / "notes.md").write_text("My notes.\n")
    (root / "src" / "main.py").write_text("x = 1\n")
    (root / ".env").write_text("KEY=1")
    (tmp_path / "outside.txt").write_text("not yours")
    return root


def typed(place: Path, text: str, folder: str = "") -> Handled:
    return file_context(place / folder, place)(text)


def names(done: Handled) -> list[str]:
    return [one.name for one in done.attached]


def test_a_file_comes_along_once_with_its_text(place: Path) -> None:
    done = typed(place, "Compare @notes.md with @src/main.py, and @notes.md.")
    assert (done.content, done.need_return) == ("Compare @notes.md with @src/main.py, and @notes.md.", False)
    assert [(one.name, one.text) for one in done.attached] == [("notes.md", "My notes.\n"), ("src/main.py", "x = 1\n")]


def test_a_name_is_seen_from_the_folder_and_else_from_the_root(place: Path) -> None:
    assert names(typed(place, "@main.py", "src")) == ["src/main.py"]
    assert names(typed(place, "@notes.md", "src")) == ["notes.md"]
    assert names(typed(place, "@../notes.md", "src")) == ["notes.md"]


def test_a_name_with_spaces_is_quoted(place: Path) -> None:
    (place / "my notes.md").write_text("hm")
    assert names(typed(place, 'See @"my notes.md"!')) == ["my notes.md"]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("@.env", "'.env' looks like a place for secrets, and is not read."),
        ("@../outside.txt", "lies outside of the workspace"),
        ("@/etc/passwd", "lies outside of the workspace"),
        ("@src", "'src' is a folder; name a file in it."),
        ("@notse.md", "There is no file 'notse.md'. Did you mean @notes.md?"),
        ("@src/mian.py", "There is no file 'src/mian.py'. Did you mean @src/main.py?"),
        ("@NOTES", "There is no file 'NOTES'. Did you mean @notes.md?"),
        ("@nothing/like.it", "There is no file 'nothing/like.it'. Name it as it is seen from here"),
        (f"@{'x' * 5000}.md", "There is no file"),
    ],
)
def test_what_is_not_read_is_said_and_nothing_is_sent(place: Path, text: str, sentence: str) -> None:
    done = typed(place, f"Look at {text} please")
    assert done.need_return
    assert sentence in done.said
    assert done.said.endswith("Nothing was sent.")
    assert done.attached == ()


@pytest.mark.parametrize("text", ["me@example.org", "@property is a decorator", "ask @alice.", "@ notes.md", "a @ b"])
def test_a_word_that_is_no_file_stays_a_word(place: Path, text: str) -> None:
    assert typed(place, text) == Handled(content=text)


def test_a_link_is_what_it_leads_to(place: Path) -> None:
    (place / "out.md").symlink_to(place.parent / "outside.txt")
    (place / "safe.md").symlink_to(place / ".env")
    (place / "fine.md").symlink_to(place / "notes.md")
    assert "outside of the workspace" in typed(place, "@out.md").said
    assert "secrets" in typed(place, "@safe.md").said
    assert names(typed(place, "@fine.md")) == ["notes.md"]


@pytest.mark.parametrize(
    "name",
    [
        ".env.production",
        "id_ed25519",
        "server.pem",
        "tls.key",
        ".npmrc",
        "credentials.json",
        "secrets.yaml",
        ".git/config",
        ".ssh/known_hosts",
    ],
)
def test_what_holds_keys_by_its_name_is_not_read(place: Path, name: str) -> None:
    (place / name).parent.mkdir(exist_ok=True)
    (place / name).write_text("hm")
    assert "secrets" in typed(place, f"@{name}").said


@pytest.mark.parametrize("name", [".env.example", "id_ed25519.pub", "keyboard.py"])
def test_what_only_sounds_like_it_is_read(place: Path, name: str) -> None:
    (place / name).write_text("fine")
    assert names(typed(place, f"@{name}")) == [name]


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"\xff\xfe\x00", "is no text (it is not UTF-8)"),
        (b"a\0b", "is no text."),
        (b"x" * (MOST + 1), "is larger than 64 KB"),
        (b"-----BEGIN OPENSSH PRIVATE KEY-----\nabc\n", "holds a private key"),
    ],
)
def test_what_is_no_text_for_a_model_is_not_read(place: Path, data: bytes, sentence: str) -> None:
    (place / "thing").write_bytes(data)
    assert sentence in typed(place, "@thing").said


def test_a_file_may_have_all_of_64_kb_and_a_mark_at_its_beginning(place: Path) -> None:
    (place / "thing").write_bytes(b"\xef\xbb\xbf" + b"x" * (MOST - 3))
    (one,) = typed(place, "@thing").attached
    assert one.text == "x" * (MOST - 3)


def test_a_pipe_is_no_file_and_nobody_waits_for_it(place: Path) -> None:
    os.mkfifo(place / "pipe")
    assert "'pipe' is no file with text." in typed(place, "@pipe").said


def test_a_file_that_may_not_be_read_is_said(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("greenroom.app.conversation.typed.os.open", refuse)
    assert "'notes.md' cannot be read: Permission denied." in typed(place, "@notes.md").said


def test_completion_offers_files_and_folders_but_no_secrets(place: Path) -> None:
    (place / "__pycache__").mkdir()
    (place / ".github").mkdir()
    assert list(offered("", place, place)) == ["notes.md", "src/"]
    assert list(offered("src/m", place, place)) == ["src/main.py"]
    assert list(offered(".", place, place)) == [".github/"]
    assert list(offered("../", place, place)) == []
    assert list(offered("nowhere/", place, place)) == []
