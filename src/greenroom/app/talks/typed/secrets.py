"""Files that nobody shows to a model by accident: keys, passwords, what a tool keeps to log in with."""

from __future__ import annotations

from fnmatch import fnmatch
from pathlib import PurePath
from typing import Final

HARMLESS: Final = ("*.example", "*.sample", "*.template", "*.dist", "*.pub", "*.md")
NAMES: Final = (
    ".env",
    ".env.*",
    "*.env",
    ".envrc",
    "*.pem",
    "*.key",
    "*.p12",
    "*.pfx",
    "*.jks",
    "*.keystore",
    "*.kdbx",
    "*.ppk",
    "id_rsa*",
    "id_dsa*",
    "id_ecdsa*",
    "id_ed25519*",
    ".netrc",
    "_netrc",
    ".npmrc",
    ".pypirc",
    ".pgpass",
    ".my.cnf",
    ".htpasswd",
    ".git-credentials",
    ".dockercfg",
    "credentials",
    "credentials.*",
    "secrets.*",
    "secret.*",
    ".vault*",
    "config.local.toml",
)
FOLDERS: Final = frozenset({".git", ".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker"})
PRIVATE_KEY: Final = "PRIVATE KEY-----"


def is_secret(path: PurePath) -> bool:
    """Whether its name or a folder on the way to it says that it is nobody else's business."""
    name = path.name.lower()
    if FOLDERS.intersection(part.lower() for part in path.parts[:-1]):
        return True
    return any(fnmatch(name, one) for one in NAMES) and not any(fnmatch(name, one) for one in HARMLESS)


def holds_key(text: str) -> bool:
    """Whether a private key is in it, whatever it is called."""
    return "-----BEGIN " in text and PRIVATE_KEY in text
