"""The files of the local disk: the suite that all pass."""

from __future__ import annotations

from pathlib import Path

from greenroom.adapters.files.local_files import LocalFiles
from greenroom.core.ports.files import Files
from tests.conformance.files import FilesConformance


class TestLocalFiles(FilesConformance):
    def open_files(self, root: Path) -> Files:
        return LocalFiles(root)
