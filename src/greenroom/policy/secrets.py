"""Files that likely hold secrets: keys, passwords, a tool's login data. Judged by name only, not by content."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase, translate
from typing import Final

HARMLESS_NAMES: Final = ("*.example", "*.sample", "*.template", "*.dist", "*.pub", "*.md")
SECRET_NAMES: Final = (
    *(".env", ".env.*", "*.env", ".envrc", "*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.kdbx"),
    *("*.ppk", "id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*", ".netrc", "_netrc", ".npmrc", ".pypirc", ".pgpass"),
    *(".my.cnf", ".htpasswd", ".git-credentials", ".dockercfg", "credentials", "credentials.*", "secrets.*"),
    *("secret.*", ".vault*", "config.local.toml"),
)
SECRET_FOLDERS: Final = frozenset({".git", ".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker"})
COMMON_SECRET_NAMES: Final = (
    *(".env", ".env.local", ".envrc", ".netrc", ".npmrc", ".pypirc", ".pgpass", ".my.cnf", ".htpasswd"),
    *(".git-credentials", ".dockercfg", ".ssh", ".aws", ".gnupg", ".kube", ".docker", ".git"),
    *("id_rsa", "id_ed25519", "credentials", "credentials.json", "secrets.yml", "secrets.toml", "secret.key"),
    *("server.pem", "server.key"),
)
"""The most common names of files and folders with secrets."""

MIN_PATTERN_CHARS: Final = 3
"""Minimum literal characters of a pattern: `*` and `s*` match too much to ask about."""

_WILD: Final = re.compile(r"\[[^]]*\]|[*?]")
_SECRET_NAME: Final = re.compile("|".join(map(translate, SECRET_NAMES)))
_HARMLESS_NAME: Final = re.compile("|".join(map(translate, HARMLESS_NAMES)))


def is_secret(parts: tuple[str, ...]) -> bool:
    """Return whether a file's name, or a folder above it, suggests secrets. Parts are folded."""
    if not parts:
        return False
    if not SECRET_FOLDERS.isdisjoint(parts):
        return True
    return _SECRET_NAME.match(parts[-1]) is not None and _HARMLESS_NAME.match(parts[-1]) is None


def may_name_secrets(pattern: str) -> bool:
    """Return whether the shell may expand a pattern to a file with secrets. A pattern without a leading dot needs at
    least `MIN_PATTERN_CHARS` literal characters."""
    last = pattern.rpartition("/")[2].casefold()
    if not last.startswith(".") and len(_WILD.sub("", last)) < MIN_PATTERN_CHARS:
        return False
    return any(fnmatchcase(name, last) for name in COMMON_SECRET_NAMES if name.startswith(".") == last.startswith("."))


def is_secret_pattern(parts: tuple[str, ...]) -> bool:
    """Return whether a pattern matches only files with secrets, so that its author meant them."""
    return bool(parts) and (parts[-1] in SECRET_NAMES or is_secret(parts))
