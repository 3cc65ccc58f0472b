"""A copy is looked at as whoever gets it will have it."""

from __future__ import annotations

from pathlib import Path

from greenroom.abilities.checks.finding.found import found
from greenroom.app.checks.delivered_look import DeliveredLook
from greenroom.core.ports.workspace import Lent

PYTEST = "[tool.pytest.ini_options]\n"


def copied(root: Path) -> Path:
    for name in ("web/pyproject.toml", "web/.venv/bin/python", "web/tests/test_a.py", "pyproject.toml"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(PYTEST)
    return root


def test_what_lies_there_and_is_not_delivered_is_not_seen(tmp_path: Path) -> None:
    look = DeliveredLook(copied(tmp_path), ["web/pyproject.toml", "web/tests/test_a.py", "a.md"], within="web")
    assert look.names(".") == {"pyproject.toml", "tests"}
    assert look.names("tests") == {"test_a.py"}
    assert look.names("nowhere") == look.names(".venv/bin") == frozenset()
    assert look.read("pyproject.toml") == PYTEST.encode()
    assert look.read(".venv/bin/python") is look.read("../pyproject.toml") is None
    assert [one.line for one in found(look)] == ["python3 -m pytest"]


def test_what_is_lent_to_the_copy_is_seen(tmp_path: Path) -> None:
    root, theirs = copied(tmp_path / "copy"), tmp_path / "theirs"
    (theirs / "bin").mkdir(parents=True)
    (theirs / "bin" / "python").touch()
    lent = [Lent(path="web/.venv", source=str(theirs), kind="packages")]
    lent.append(Lent(path="node_modules", source=str(tmp_path), kind="packages"))
    look = DeliveredLook(root, ["web/pyproject.toml"], within="web", lent=lent)
    assert look.names(".") == {"pyproject.toml", ".venv"}
    assert [one.line for one in found(look)] == [".venv/bin/python -m pytest"]
