"""The conformance suite of `Files`: every sentence of the port as a test.

    class TestMyFiles(FilesConformance):
        def open_files(self, root):
            return MyFiles(root)

The workspace is a real folder. Requires pytest and pytest-asyncio.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from greenroom.core.ports.files import FileFault, Files, compute_digest

Act = Callable[[Files, str], Awaitable[object]]


async def _reads(files: Files, path: str) -> object:
    return await files.read(path, 100)


async def _writes(files: Files, path: str) -> None:
    await files.write(path, b"x", expected=None)


async def _deletes(files: Files, path: str) -> None:
    await files.delete(path, expected=compute_digest(b"x"))


def _content(file: Path) -> bytes:
    return file.read_bytes()


def _names(folder: Path) -> list[str]:
    return sorted(one.name for one in folder.iterdir())


ACTS = (_reads, _writes, _deletes)


class FilesCase:
    """Base class of the suites. Subclasses open the port on a folder."""

    def open_files(self, root: Path) -> Files:
        """Open the port."""
        raise NotImplementedError

    @pytest.fixture
    def root(self, tmp_path: Path) -> Path:
        """The workspace."""
        found = tmp_path / "work"
        found.mkdir()
        return found

    @pytest.fixture
    def outside(self, tmp_path: Path) -> Path:
        """Return a file outside the workspace that must stay unseen and unchanged."""
        found = tmp_path / "outside.txt"
        found.write_bytes(b"x")
        return found

    @pytest.fixture
    def files(self, root: Path) -> Files:
        """Return the port on the workspace."""
        return self.open_files(root)


async def refused(act: Awaitable[object]) -> FileFault:
    """Return the fault that this raises."""
    with pytest.raises(FileFault) as caught:
        await act
    return caught.value


class PathsConformance(FilesCase):
    """Which paths are valid, and where they lead."""

    async def test_a_path_is_seen_from_the_root(self, files: Files, root: Path) -> None:
        (root / "a").mkdir()
        (root / "a/b.txt").write_bytes(b"b")
        for path in ("a/b.txt", "./a/b.txt", "a//b.txt", "a/./b.txt", f"{root}/a/b.txt", f"{files.root}/a/b.txt"):
            assert await files.read(path, 10) == b"b"
            assert files.real(path) == "a/b.txt"
        assert files.real("") == files.real(".") == files.real(str(root)) == ""

    @pytest.mark.parametrize("act", ACTS)
    @pytest.mark.parametrize(
        "path",
        [
            "../outside.txt",
            "a/../../outside.txt",
            "/etc/passwd",
            "//etc/passwd",
            "a\x00b",
            "a\nb",
            "\ud800",
            "a" * 5000,
        ],
    )
    async def test_what_is_no_path_of_the_workspace_is_refused(
        self, files: Files, outside: Path, path: str, act: Act
    ) -> None:
        fault = await refused(act(files, path))
        assert fault.reason == "path"
        assert str(fault)
        assert _content(outside) == b"x"

    @pytest.mark.parametrize("act", ACTS)
    @pytest.mark.parametrize("name", ["relative", "absolute", "chained", "folder/outside.txt", "up/up.txt"])
    async def test_a_link_out_of_the_workspace_is_refused(
        self, files: Files, root: Path, outside: Path, name: str, act: Act
    ) -> None:
        (root / "relative").symlink_to("../outside.txt")
        (root / "absolute").symlink_to(outside)
        (root / "chained").symlink_to("relative")
        (root / "folder").symlink_to("..")
        (root / "up").mkdir()
        (root / "up/up.txt").symlink_to("../../outside.txt")
        assert (await refused(act(files, name))).reason == "outside"
        assert _content(outside) == b"x"

    async def test_a_link_inside_the_workspace_is_followed(self, files: Files, root: Path) -> None:
        (root / "real/deep").mkdir(parents=True)
        (root / "real/a.txt").write_bytes(b"a")
        (root / "relative").symlink_to("real")
        (root / "absolute").symlink_to(root / "real")
        (root / "real/deep/up").symlink_to("../a.txt")
        (root / "real/back").symlink_to("../relative/deep/..")
        for path in ("relative/a.txt", "absolute/a.txt", "real/deep/up", "absolute/deep/up", "real/back/a.txt"):
            assert await files.read(path, 10) == b"a"
            assert files.real(path) == "real/a.txt"
        assert files.real("absolute/new/b.txt") == "real/new/b.txt"

    async def test_links_that_go_round_are_refused(self, files: Files, root: Path) -> None:
        (root / "a").symlink_to("b")
        (root / "b").symlink_to("a")
        (root / "in").symlink_to("in/in")
        for path in ("a", "a/x", "in", "in/x"):
            assert (await refused(files.read(path, 10))).reason == "outside"

    async def test_pipes_and_devices_are_refused_at_once(self, files: Files, root: Path) -> None:
        os.mkfifo(root / "pipe")
        for act in (_reads, _writes, _deletes):
            assert (await refused(act(files, "pipe"))).reason == "kind"
        found = await files.stat("pipe")
        assert found is not None
        assert found.kind == "other"

    @pytest.mark.parametrize(
        "path",
        [
            ".git/config",
            ".git",
            ".greenroom/x",
            "sub/.git/hooks/x",
            ".GIT/x",
            "sub/.GreenRoom/x",
            ".g\u200cit/x",
            "git~1",
        ],
    )
    async def test_what_is_git_s_or_ours_is_never_written(self, files: Files, root: Path, path: str) -> None:
        (root / "sub").mkdir()
        assert (await refused(_writes(files, path))).reason == "protected"
        assert not (root / path).exists()

    async def test_what_is_git_s_is_not_written_through_a_link_either(self, files: Files, root: Path) -> None:
        (root / "nested/.git/hooks").mkdir(parents=True)
        (root / "nested/.git/config").write_bytes(b"x")
        (root / "hooks").symlink_to("nested/.git/hooks")
        (root / "config").symlink_to("nested/.git/config")
        (root / "moved").mkdir()
        (root / ".git").symlink_to("moved")
        for path in ("hooks/pre-commit", "hooks/deep/down", "moved/config", "moved/deep/config"):
            assert (await refused(_writes(files, path))).reason == "protected"
        replace = files.write("config", b"y", expected=compute_digest(b"x"))
        assert (await refused(replace)).reason == "protected"
        assert (await refused(_deletes(files, "config"))).reason == "protected"
        assert (root / "nested/.git/config").read_bytes() == b"x"
        assert await files.read("config", 10) == b"x"


class ContentConformance(FilesCase):
    """Reading and writing."""

    async def test_a_file_comes_back_as_it_was_written(self, files: Files, root: Path) -> None:
        content = bytes(range(256)) * 10_000
        await files.write("new/folder/a.bin", content, expected=None)
        assert await files.read("new/folder/a.bin", len(content)) == content
        found = await files.stat("new/folder/a.bin")
        assert found is not None
        assert (found.kind, found.size, found.digest) == ("file", len(content), compute_digest(content))

    async def test_nothing_is_there_until_something_is(self, files: Files) -> None:
        assert await files.stat("a.txt") is None
        assert await files.stat("no/folder/a.txt") is None
        assert (await refused(files.read("a.txt", 10))).reason == "missing"
        assert (await refused(files.delete("a.txt", expected=compute_digest(b"")))).reason == "missing"

    async def test_a_file_larger_than_the_limit_is_refused(self, files: Files, root: Path) -> None:
        (root / "a.txt").write_bytes(b"12345")
        assert await files.read("a.txt", 5) == b"12345"
        fault = await refused(files.read("a.txt", 4))
        assert fault.reason == "too_large"
        assert "'a.txt' has 5 bytes; at most 4" in str(fault)

    async def test_only_what_is_expected_is_written_over(self, files: Files, root: Path) -> None:
        await files.write("a.txt", b"one", expected=None)
        assert (await refused(files.write("a.txt", b"two", expected=None))).reason == "exists"
        assert (await refused(files.write("a.txt", b"two", expected=compute_digest(b"zero")))).reason == "changed"
        assert (await refused(files.write("b.txt", b"two", expected=compute_digest(b"one")))).reason == "missing"
        assert (root / "a.txt").read_bytes() == b"one"
        await files.write("a.txt", b"two", expected=compute_digest(b"one"))
        assert (root / "a.txt").read_bytes() == b"two"
        assert _names(root) == ["a.txt"]

    async def test_the_mode_of_a_file_is_kept(self, files: Files, root: Path) -> None:
        (root / "run.sh").write_bytes(b"one")
        (root / "run.sh").chmod(0o755)
        await files.write("run.sh", b"two", expected=compute_digest(b"one"))
        assert (root / "run.sh").stat().st_mode & 0o7777 == 0o755

    async def test_a_link_stays_a_link_and_what_it_leads_to_is_written(self, files: Files, root: Path) -> None:
        (root / "real").mkdir()
        (root / "real/a.txt").write_bytes(b"one")
        (root / "link").symlink_to("real/a.txt")
        (root / "dangling").symlink_to("real/b.txt")
        await files.write("link", b"two", expected=compute_digest(b"one"))
        await files.write("dangling", b"new", expected=None)
        assert (root / "link").is_symlink()
        assert (root / "dangling").is_symlink()
        assert ((root / "real/a.txt").read_bytes(), (root / "real/b.txt").read_bytes()) == (b"two", b"new")

    async def test_a_read_only_file_is_refused(self, files: Files, root: Path) -> None:
        (root / "a.txt").write_bytes(b"one")
        (root / "a.txt").chmod(0o444)
        assert (await refused(files.write("a.txt", b"two", expected=compute_digest(b"one")))).reason == "read_only"
        assert (root / "a.txt").read_bytes() == b"one"

    async def test_a_folder_is_no_file_and_a_file_is_no_folder(self, files: Files, root: Path) -> None:
        (root / "folder").mkdir()
        (root / "file").write_bytes(b"x")
        for act in (_reads, _writes, _deletes):
            assert (await refused(act(files, "folder"))).reason == "kind"
            assert (await refused(act(files, ""))).reason == "kind"
            assert (await refused(act(files, "file/x"))).reason == "kind"
        for listing in (files.entries("file"), files.walk("file", limit=10)):
            assert (await refused(listing)).reason == "kind"

    async def test_a_file_is_deleted_only_as_expected(self, files: Files, root: Path) -> None:
        (root / "a.txt").write_bytes(b"one")
        assert (await refused(files.delete("a.txt", expected=compute_digest(b"two")))).reason == "changed"
        await files.delete("a.txt", expected=compute_digest(b"one"))
        assert not (root / "a.txt").exists()


class ListingConformance(FilesCase):
    """Listing and searching."""

    async def test_a_folder_is_listed_by_name(self, files: Files, root: Path) -> None:
        (root / "f/b").mkdir(parents=True)
        (root / "f/c").write_bytes(b"12")
        (root / "f/a").symlink_to("c")
        os.mkfifo(root / "f/d")
        found = await files.entries("f")
        assert [(one.path, one.kind) for one in found] == [
            ("f/a", "link"),
            ("f/b", "folder"),
            ("f/c", "file"),
            ("f/d", "other"),
        ]
        assert found[2].size == 2
        assert [one.path for one in await files.entries()] == ["f"]

    async def walked(self, files: Files, under: str = "", **more: object) -> list[str]:
        """Return the paths of a walk."""
        globs = more.get("globs", ())
        assert isinstance(globs, tuple)
        return [one.path for one in (await files.walk(under, globs=globs, limit=1000)).entries]

    async def test_a_walk_goes_down_but_not_through_links_and_skips_git_and_ours(
        self, files: Files, root: Path
    ) -> None:
        for name in ("a/b/c.txt", "a/d.txt", ".git/config", ".greenroom/x", "sub/.git/x", ".github/ci.yml"):
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_bytes(b"")
        (root / "link").symlink_to("a")
        assert await self.walked(files) == [".github/ci.yml", "a/b/c.txt", "a/d.txt", "link"]
        assert await self.walked(files, "a/b") == ["a/b/c.txt"]
        assert await self.walked(files, "link") == ["a/b/c.txt", "a/d.txt"]

    async def test_a_walk_leaves_out_what_git_ignores(self, files: Files, root: Path) -> None:
        (root / ".gitignore").write_text("*.log\n!keep.log\n/top\nbuild/\n\\\n")
        (root / "sub/deep").mkdir(parents=True)
        (root / "sub/.gitignore").write_text("!other.log\n*.tmp\n/only\n")
        (root / "build").mkdir()
        (root / ".git/info").mkdir(parents=True)
        (root / ".git/info/exclude").write_text("mine\n")
        (root / "mine").write_bytes(b"")
        names = ["a.log", "keep.log", "top", "build/x", "sub/a.log", "sub/other.log", "sub/x.tmp", "sub/top"]
        for name in (*names, "sub/only", "sub/deep/only", "sub/deep/x.tmp", "x.tmp"):
            (root / name).write_bytes(b"")
        found = [path for path in await self.walked(files) if not path.endswith(".gitignore")]
        assert found == ["keep.log", "sub/deep/only", "sub/other.log", "sub/top", "x.tmp"]
        assert await self.walked(files, "sub/deep") == ["sub/deep/only"]

    async def test_a_walk_takes_patterns_seen_from_its_folder(self, files: Files, root: Path) -> None:
        for name in ("a.py", "src/b.py", "src/c.md", "src/deep/d.py"):
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_bytes(b"")
        assert await self.walked(files, globs=("*.py",)) == ["a.py", "src/b.py", "src/deep/d.py"]
        assert await self.walked(files, "src", globs=("/*.py", "*.md")) == ["src/b.py", "src/c.md"]
        assert await self.walked(files, globs=("src/**/d.py",)) == ["src/deep/d.py"]
        for glob in ("*a*b*c*d", "\\", "**/**/**/**/x"):
            assert (await refused(files.walk(globs=(glob,), limit=10))).reason == "pattern"

    async def test_a_walk_ends_at_its_limit_and_says_so(self, files: Files, root: Path) -> None:
        for number in range(10):
            (root / f"{number}").write_bytes(b"")
        found = await files.walk(limit=9)
        assert (len(found.entries), found.whole) == (9, False)
        found = await files.walk(limit=10)
        assert (len(found.entries), found.whole) == (10, True)

    async def test_names_that_are_no_text_are_listed_all_the_same(self, files: Files, root: Path) -> None:
        (root / os.fsdecode(b"caf\xe9")).write_bytes(b"")
        assert [one.path for one in await files.entries()] == ["caf\ufffd"]
        assert await self.walked(files) == ["caf\ufffd"]


class FilesConformance(PathsConformance, ContentConformance, ListingConformance):
    """Inherit from this class and implement `open_files`."""
