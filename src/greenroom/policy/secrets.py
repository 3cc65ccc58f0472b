"""Files that nobody reads by accident: keys, passwords, what a tool keeps to log in with. Names only, no contents."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase, translate
from typing import Final

HARMLESS: Final = ("*.example", "*.sample", "*.template", "*.dist", "*.pub", "*.md")
NAMES: Final = (
    *(".env", ".env.*", "*.env", ".envrc", "*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.kdbx"),
    *("*.ppk", "id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*", ".netrc", "_netrc", ".npmrc", ".pypirc", ".pgpass"),
    *(".my.cnf", ".htpasswd", ".git-credentials", ".dockercfg", "credentials", "credentials.*", "secrets.*"),
    *("secret.*", ".vault*", "config.local.toml"),
)
FOLDERS: Final = frozenset({".git", ".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker"})
OFTEN: Final = (
    *(".env", ".env.local", ".envrc", ".netrc", ".npmrc", ".pypirc", ".pgpass", ".my.cnf", ".htpasswd"),
    *(".git-credentials", ".dockercfg", ".ssh", ".aws", ".gnupg", ".kube", ".docker", ".git"),
    *("id_rsa", "id_ed25519", "credentials", "credentials.json", "secrets.yml", "secrets.toml", "secret.key"),
    *("server.pem", "server.key"),
)
"""What they are mostly called."""

TELLING: Final = 3
"""Letters that a pattern has: `*` and `s*` stand for too much to ask about."""

_WILD: Final = re.compile(r"\[[^]]*\]|[*?]")
_NAMES: Final = re.compile("|".join(map(translate, NAMES)))
_HARMLESS: Final = re.compile("|".join(map(translate, HARMLESS)))


def is_secret(parts: tuple[str, ...]) -> bool:
    """Whether a file's name, or a folder on the way to it, says that it is nobody else's business. Parts are folded."""
    if not parts:
        return False
    if not FOLDERS.isdisjoint(parts):
        return True
    return _NAMES.match(parts[-1]) is not None and _HARMLESS.match(parts[-1]) is None


def may_name_secrets(pattern: str) -> bool:
    """Whether the shell may put such a file in the place of a pattern: one that begins with the dot that they begin
    with, or says enough of their name."""
    last = pattern.rpartition("/")[2].casefold()
    if not last.startswith(".") and len(_WILD.sub("", last)) < TELLING:
        return False
    return any(fnmatchcase(name, last) for name in OFTEN if name.startswith(".") == last.startswith("."))


def names_secrets(parts: tuple[str, ...]) -> bool:
    """Whether a pattern stands for nothing but such files: it was written by somebody who knew what they are."""
    return bool(parts) and (parts[-1] in NAMES or is_secret(parts))
