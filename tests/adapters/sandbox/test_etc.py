"""What commands see of the machine's /etc."""

from pathlib import Path

import pytest

from greenroom.adapters.sandbox.ground import Identity
from greenroom.adapters.sandbox.session import furnish

ANN = Identity(uid=4321, gid=4321, changes=True)


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    folder = tmp_path / "machine"
    (folder / "ssl" / "certs").mkdir(parents=True)
    (folder / "ssl" / "certs" / "one.pem").write_text("certificate")
    (folder / "ssl" / "openssl.cnf").write_text("settings")
    (folder / "ssl" / "private").mkdir(mode=0o710)
    (folder / "fonts" / "deep").mkdir(parents=True)
    (folder / "fonts" / "deep" / "fonts.conf").write_text("fonts")
    (folder / "alternatives").mkdir()
    (folder / "alternatives" / "vi").symlink_to("/usr/bin/vim")
    (folder / "shadow").write_text("root:secret")
    (folder / "timezone").write_text("Europe/Vienna")
    return folder


def test_a_folder_that_everybody_may_read_is_not_copied_but_shown_as_it_is(machine: Path, tmp_path: Path) -> None:
    shown = furnish(tmp_path / "etc", ANN, Path("/home/x"), machine=str(machine))
    assert set(shown) == {"fonts", "alternatives", "ssl/certs"}
    assert all([*(tmp_path / "etc" / one).iterdir()] == [] for one in shown)


def test_of_a_folder_with_something_private_in_it_everything_else_is_there(machine: Path, tmp_path: Path) -> None:
    furnish(tmp_path / "etc", ANN, Path("/home/x"), machine=str(machine))
    assert {one.name for one in (tmp_path / "etc" / "ssl").iterdir()} == {"certs", "openssl.cnf"}
    assert (tmp_path / "etc" / "timezone").read_text() == "Europe/Vienna"
    assert not (tmp_path / "etc" / "shadow").exists()


@pytest.mark.parametrize("path", ["fonts/deep/fonts.conf", "fonts/deep"])
def test_one_thing_that_others_may_not_read_and_nothing_around_it_is_shown_as_it_is(
    machine: Path, tmp_path: Path, path: str
) -> None:
    (machine / path).chmod(0o640 if path.endswith("conf") else 0o750)
    (machine / "fonts" / "open.conf").write_text("open")
    shown = furnish(tmp_path / "etc", ANN, Path("/home/x"), machine=str(machine))
    assert not any(one.startswith("fonts/deep") or one == "fonts" for one in shown)
    assert [one.name for one in (tmp_path / "etc" / "fonts").rglob("*") if one.is_file()] == ["open.conf"]


def test_of_a_folder_that_can_be_listed_but_not_entered_nothing_is_there(machine: Path, tmp_path: Path) -> None:
    (machine / "fonts").chmod(0o754)
    assert not any("fonts" in one for one in furnish(tmp_path / "etc", ANN, Path("/home/x"), machine=str(machine)))
    assert not (tmp_path / "etc" / "fonts").exists()


def test_it_says_who_a_command_is(machine: Path, tmp_path: Path) -> None:
    furnish(tmp_path / "etc", ANN, Path("/home/x"), machine=str(machine))
    assert (tmp_path / "etc" / "passwd").read_text().startswith("greenroom:x:4321:4321::/home/x:")
