"""The log in one SQLite file: many readers, one writer thread per process, one fsync per group of appends."""

from greenroom.adapters.storage.sqlite.log import SqliteLog

__all__ = ["SqliteLog"]
