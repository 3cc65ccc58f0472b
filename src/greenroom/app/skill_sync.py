"""Copies the repositories with skills that the settings name into the data folder.

Git runs without settings of its own: no hooks, no filters, no submodules, and links become plain files. Keys come from
the SSH agent, or from the default key files of ssh.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from greenroom.adapters.git.process import Git, find_git, make_isolated_git
from greenroom.app.skill_folders import (
    FileSkill,
    FoundSkills,
    find_skills_in,
    make_repository_folder,
    name_repository,
    repositories_folder,
)
from greenroom.app.trust import TrustItem, TrustState, describe_skill, open_trust_store
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.records import record

SYNC_TIMEOUT_S: Final = 300.0
NETWORK_ENVIRONMENT: Final = {
    "GIT_ALLOW_PROTOCOL": "https:ssh:file",
    "GIT_SSH_COMMAND": "ssh -o BatchMode=yes",
    "GIT_TEMPLATE_DIR": "",
}
PASSED_VARIABLES: Final = (
    "HOME",
    "SSH_AUTH_SOCK",
    "https_proxy",
    "HTTPS_PROXY",
    "no_proxy",
    "NO_PROXY",
    "SSL_CERT_FILE",
)


@record
class SyncedRepository:
    """A copied repository: its address, its commit, and its skills."""

    address: str
    commit: str
    found: FoundSkills

    def list_items(self) -> Iterator[tuple[FileSkill, TrustItem, TrustState]]:
        """Yield each skill with whether the person trusts its current version."""
        classify = open_trust_store().make_classifier(make_repository_folder(self.address).folder)
        for skill in self.found.by_name.values():
            item = describe_skill(skill)
            yield skill, item, classify(item)

    def trust(self, items: Sequence[TrustItem]) -> None:
        """Trust these skills in their current version."""
        open_trust_store().trust_items(make_repository_folder(self.address).folder, items)


async def sync_repository(address: str, environ: Mapping[str, str], workspace: Path) -> SyncedRepository:
    """Copy the newest commit of a repository, and replace the former copy only when that has worked.

    `workspace` is a folder in which git is never searched. Raise `WorldFault` if it cannot be copied.
    """
    source = make_repository_folder(address)
    source.folder.parent.mkdir(parents=True, exist_ok=True)
    git = _make_git(environ, workspace)
    with tempfile.TemporaryDirectory(prefix=".sync-", dir=source.folder.parent) as temporary:
        copy = Path(temporary) / "copy"
        clone = ("clone", "--quiet", "--depth=1", "--no-tags", "--no-recurse-submodules", "--", address, str(copy))
        try:
            await git.run(*clone, seconds=SYNC_TIMEOUT_S)
            commit = await git.read_line("-C", str(copy), "rev-parse", "HEAD")
        except WorldFault as fault:
            code = "skills.former_copy_stays" if source.folder.exists() else "skills.not_synced"
            raise WorldFault(code, address=address, why=fault) from None
        shutil.rmtree(copy / ".git")
        if source.folder.exists():
            source.folder.rename(Path(temporary) / "former")
        copy.rename(source.folder)
    return SyncedRepository(address=address, commit=commit, found=find_skills_in((source,)))


def _make_git(environ: Mapping[str, str], workspace: Path) -> Git:
    passed = {name: environ[name] for name in PASSED_VARIABLES if name in environ}
    settings = {"core.symlinks": "false", "protocol.allow": "user"}
    program = find_git(environ, workspace.resolve())
    return make_isolated_git(program, env={**passed, **NETWORK_ENVIRONMENT}, settings=settings)


def remove_other_copies(addresses: Sequence[str]) -> int:
    """Remove the copies of repositories that the settings no longer name. Return how many there were."""
    names, folder = {name_repository(address) for address in addresses}, repositories_folder()
    old = [path for path in (folder.iterdir() if folder.is_dir() else ()) if path.name not in names]
    for path in old:
        shutil.rmtree(path)
    return len(old)
