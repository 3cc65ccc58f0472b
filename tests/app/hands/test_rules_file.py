"""The person's rules: what they wrote stays, nobody else writes it, and several processes lose nothing."""

import subprocess
import sys
from pathlib import Path

import pytest

from greenroom.app.toolset.policy import HEAD, RulesFile, persons_rules
from greenroom.core.base.errors import WorldFault

WRITTEN = """# Mine.
allow   command ls   # no, this is part of it

# Work.
[/work]
# Never!
deny path secret/**

[/play]
allow command npm test
"""
ADDING = """
import sys
from pathlib import Path
from greenroom.app.toolset.policy import RulesFile
for number in range(10):
    assert RulesFile(Path(sys.argv[1])).add(f"allow command {sys.argv[2]} {number}", Path("/work"))
"""


@pytest.fixture(name="file")
def a_file(tmp_path: Path) -> RulesFile:
    """What a person has written with an editor."""
    path = tmp_path / "permissions"
    path.write_text(WRITTEN.replace("   # no, this is part of it", ""))
    return RulesFile(path, own=True)


def test_what_a_person_wrote_stays_where_it_is(file: RulesFile) -> None:
    before = file.path.read_text()
    assert file.add("allow command make", Path("/work"))
    assert file.add("allow command cat", None)
    assert file.add("allow command ps", Path("/new"))
    assert file.path.read_text() == (
        before.replace("secret/**\n", "secret/**\nallow command make\n").replace(
            "command ls\n", "command ls\nallow command cat\n"
        )
        + "\n[/new]\nallow command ps\n"
    )
    for rule, place in (("make", Path("/work")), ("cat", None), ("ps", Path("/new"))):
        assert file.remove(f"allow command {rule}", place)
    assert file.path.read_text().rstrip("\n") == before.rstrip("\n")
    assert file.remove("deny path secret/**", Path("/work"))
    assert "[/work]\n# Never!\n" in file.path.read_text()


def test_a_first_rule_for_everywhere_stands_before_the_workspaces(tmp_path: Path) -> None:
    file = RulesFile(tmp_path / "permissions")
    assert file.add("allow command ls", Path("/work"))
    assert file.add("allow command cat", None)
    assert file.path.read_text() == f"{HEAD}\nallow command cat\n\n[/work]\nallow command ls\n"
    file.path.write_text("[/work]\nallow command ls\n")
    assert file.add("allow command cat", None)
    assert file.path.read_text() == "allow command cat\n\n[/work]\nallow command ls\n"


def test_several_processes_that_add_at_once_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "config" / "permissions"
    names = ("a", "b", "c", "d")
    adding = [
        subprocess.Popen([sys.executable, "-c", ADDING, str(path), name], stderr=subprocess.PIPE) for name in names
    ]
    assert [(one.communicate(timeout=60)[1], one.returncode) for one in adding] == [(b"", 0)] * len(names)
    assert len(RulesFile(path).of(Path("/work"))) == 10 * len(names)


def test_a_file_that_others_may_write_is_not_believed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    file = persons_rules()
    file.add("allow command ls", None)
    file.path.chmod(0o664)
    with pytest.raises(WorldFault, match=r"says what agents may do, and others can write it.*chmod 600"):
        file.of(tmp_path)
    with pytest.raises(WorldFault, match="others can write it"):
        file.add("allow command cat", None)
    assert "cat" not in file.path.read_text()


def test_where_nothing_can_be_written_it_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(WorldFault, match=r"cannot be written: .*Nothing was changed"):
        RulesFile(tmp_path / "file" / "permissions").add("allow command ls", None)


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "dotfiles").mkdir()
    real, link = tmp_path / "dotfiles" / "permissions", tmp_path / "permissions"
    real.write_text("")
    link.symlink_to(real)
    assert RulesFile(link).add("allow command ls", None)
    assert link.is_symlink()
    assert "allow command ls" in real.read_text()
