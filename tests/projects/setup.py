"""Fetch a project's archive by name and set the project up as its developer would."""

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import platformdirs

from tests.projects.project import Edit, Project

PATIENCE = 600.0
PERSON = {"GIT_AUTHOR_NAME": "Pia", "GIT_AUTHOR_EMAIL": "pia@example.org"}
PERSON |= {"GIT_COMMITTER_NAME": "Pia", "GIT_COMMITTER_EMAIL": "pia@example.org", "GIT_CONFIG_GLOBAL": os.devnull}
NPM = ("--no-save", "--no-package-lock", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline")


class Unavailable(Exception):
    """A registry cannot be reached, or this machine lacks a program: the row is skipped with this reason."""


def run(command: Sequence[str], cwd: Path, extra: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run a program to its end, with stdout and stderr in one text."""
    return subprocess.run(
        command,
        cwd=cwd,
        env={**os.environ, **PERSON, **(extra or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def require(command: Sequence[str], cwd: Path, purpose: str, extra: Mapping[str, str] | None = None) -> None:
    """Run a program that this machine or a registry may not be able to run; raise `Unavailable` with its error."""
    if os.sep not in command[0] and shutil.which(command[0]) is None:
        raise Unavailable(f"{purpose}: {command[0]} is not installed")
    ended = run(command, cwd, extra)
    if ended.returncode:
        lines = [line for line in ended.stdout.splitlines() if line.strip()] or ["no message"]
        errors = [line for line in lines if "error" in line.lower()]
        raise Unavailable(f"{purpose}: {(errors or lines[-1:])[0].strip()[:200]}")


def prepare(project: Project, folder: Path) -> None:
    """Make `folder` the developer's repository: unpacked, committed, with its environment installed."""
    unpack(fetch(project), folder)
    for path in [folder / "PKG-INFO", folder / ".cargo-checksum.json", *folder.glob("*.egg-info")]:
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    for name, content in project.brought.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    commit(folder, project.tracked)
    install(project, folder)


def commit(folder: Path, tracked: Sequence[str]) -> None:
    """Make all files that git does not ignore, and those in `tracked`, the first commit."""
    steps = [("init", "--quiet", "--initial-branch=main"), ("add", "--all")]
    steps += [("add", "--force", *tracked)] if tracked else []
    steps += [("commit", "--quiet", "--message=Import")]
    for words in steps:
        ended = run(("git", *words), folder)
        assert ended.returncode == 0, ended.stdout


def install(project: Project, folder: Path) -> None:
    """Install what the project's tests need, from the registry."""
    if project.registry == "npm":
        require(("npm", "install", *NPM, *project.packages), folder, "npm install")
    elif project.registry == "pypi":
        make_environment(folder / ".venv")
        pip = (".venv/bin/python", "-m", "pip", "install", "--quiet")
        if project.packages:
            require((*pip, *project.packages), folder, "pip install")
        if project.editable:
            version = {"SETUPTOOLS_SCM_PRETEND_VERSION": project.version}
            require((*pip, "--no-deps", "--no-build-isolation", "--editable", "."), folder, "pip install -e", version)
    else:
        require(("cargo", "build", "--offline", "--quiet"), folder, "cargo build")


def make_environment(path: Path) -> None:
    """Make a virtual environment that git does not ignore by itself, as Python before 3.13 does."""
    require((sys.executable, "-m", "venv", str(path)), path.parent, "python -m venv")
    (path / ".gitignore").unlink(missing_ok=True)


def fetch(project: Project) -> Path:
    """Return the archive from the cache; ask the registry for it the first time."""
    kept = platformdirs.user_cache_path("greenroom-projects") / project.registry
    kept /= f"{project.name.replace('/', '+')}-{project.version}"
    if not kept.is_dir():
        kept.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=kept.parent) as made:
            folder = Path(made) / "archive"
            folder.mkdir()
            {"pypi": fetch_sdist, "npm": fetch_package, "crates": fetch_crate}[project.registry](project, folder)
            folder.rename(kept)
    return next(kept.iterdir())


def fetch_sdist(project: Project, folder: Path) -> None:
    """Download the source archive with a pip of its own: Greenroom's environment has none."""
    with tempfile.TemporaryDirectory() as made:
        make_environment(Path(made) / "pip")
        pip = (str(Path(made) / "pip" / "bin" / "python"), "-m", "pip", "download", "--quiet", "--no-deps")
        pinned = f"{project.name}=={project.version}"
        require((*pip, "--no-binary", project.name, "--dest", str(folder), pinned), folder, "pip download")


def fetch_package(project: Project, folder: Path) -> None:
    """Pack the published package."""
    require(("npm", "pack", f"{project.name}@{project.version}"), folder, "npm pack")


def fetch_crate(project: Project, folder: Path) -> None:
    """Vendor the crate from cargo's registry; where that is out of reach, take Debian's package of its source."""
    with tempfile.TemporaryDirectory() as made:
        work = Path(made)
        (work / "src").mkdir()
        (work / "src" / "lib.rs").write_text("")
        needs = f'[package]\nname = "fetch"\nversion = "0.0.0"\n[dependencies]\n{project.name} = "={project.version}"\n'
        (work / "Cargo.toml").write_text(needs)
        try:
            require(("cargo", "vendor", "--quiet", "vendor"), work, "cargo vendor", {"CARGO_NET_RETRY": "0"})
            source = work / "vendor" / project.name
        except Unavailable as reason:
            source = fetch_debian_crate(project, work, reason)
        shutil.copytree(source, folder / project.name)


def fetch_debian_crate(project: Project, work: Path, reason: Unavailable) -> Path:
    """Return the source in Debian's package of the crate, unpacked and not installed."""
    try:
        require(("apt-get", "download", f"librust-{project.name}-dev"), work, "apt-get download")
        [package] = work.glob("*.deb")
        require(("dpkg-deb", "--extract", str(package), "debian"), work, "dpkg-deb")
    except Unavailable as second:
        raise Unavailable(f"{reason}; {second}") from reason
    source = work / "debian/usr/share/cargo/registry" / f"{project.name}-{project.version}"
    if not source.is_dir():
        raise Unavailable(f"{reason}; Debian has another version: {package.name}")
    return source


def unpack(archive: Path, folder: Path) -> None:
    """Unpack an archive, without its own top folder, into a new folder."""
    if archive.is_dir():
        shutil.copytree(archive, folder)
        return
    with tempfile.TemporaryDirectory(dir=folder.parent) as made:
        with tarfile.open(archive) as packed:
            packed.extraction_filter = getattr(tarfile, "data_filter", None)  # it came with Python 3.11.4
            packed.extractall(made)
        [top] = Path(made).iterdir()
        top.rename(folder)


def apply_edit(edit: Edit, folder: Path) -> None:
    """Make an edit by hand."""
    path = folder / edit.file
    if not edit.search:
        path.write_text(edit.replace, encoding="utf-8")
        return
    before = path.read_text(encoding="utf-8")
    assert before.count(edit.search) == 1, f"{edit.file} has {edit.search!r} {before.count(edit.search)} times"
    path.write_text(before.replace(edit.search, edit.replace), encoding="utf-8")
