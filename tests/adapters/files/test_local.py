"""The files of the local disk: the suite that all pass, confined by the kernel and by walking."""

from __future__ import annotations

from pathlib import Path

import pytest

from greenroom.adapters.files.ground import can_open_beneath
from greenroom.adapters.files.local import LocalFiles
from greenroom.core.ports.files import Files
from tests.conformance.files import FilesConformance


@pytest.mark.skipif(not can_open_beneath(), reason="this kernel has no openat2")
class TestByTheKernel(FilesConformance):
    def open_files(self, root: Path) -> Files:
        return LocalFiles(root, kernel=True)


class TestByWalking(FilesConformance):
    def open_files(self, root: Path) -> Files:
        return LocalFiles(root, kernel=False)
