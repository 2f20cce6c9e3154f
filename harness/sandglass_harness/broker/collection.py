"""Collects files from the workspace, by patterns and within caps.

It runs when no process of a script is left. The names that a script chose are still hostile: it walks paths by descriptor,
follows no links, and has a time budget.
"""

import os
import stat
import time

from ..caps import (
    COLLECT_SEC,
    FILE_CHUNK_BYTES,
    MAX_ENTRIES,
    MAX_FILE_BYTES,
    MAX_FILE_DEPTH,
    MAX_FILES,
    MAX_TOTAL_BYTES,
    MAX_WARNING,
    MAX_WARNINGS,
)
from ..text import cut
from .globs import Matcher
from .scratch import is_utf8, open_real_directory

SLICE_SEC = 0.02  # work between two pauses


class Collection:
    """The regular files below the workspace that match, in the order of their paths."""

    def __init__(self, root, patterns, budget_sec=COLLECT_SEC, limits=None):
        self.limits_hit = []
        self.warnings = []
        self._root = root
        self._matcher = Matcher(patterns)
        limits = limits or {}
        self._max_files = limits.get("max_files") or MAX_FILES
        self._max_file_bytes = limits.get("max_file_bytes") or MAX_FILE_BYTES
        self._max_total_bytes = limits.get("max_total_bytes") or MAX_TOTAL_BYTES
        self._deadline = time.monotonic() + budget_sec

    def chunks(self):
        """Yields (path, size, offset, bytes), with one empty chunk for an empty file. Yields None to pause."""
        count = total = 0
        found_paths = []
        pause_at = time.monotonic() + SLICE_SEC
        for path in self._walk():
            if path is not None:
                found_paths.append(path)
            if time.monotonic() > pause_at:
                yield None
                pause_at = time.monotonic() + SLICE_SEC
        for path in sorted(found_paths):
            if self._is_out_of_time():
                return
            try:
                fd = self._open(path)
            except OSError as error:
                self._warn(f"{path}: {error.strerror}")
                continue
            try:
                found = os.fstat(fd)
                if not stat.S_ISREG(found.st_mode):
                    continue
                if found.st_size > self._max_file_bytes:
                    self._note_limit("max_file_bytes")
                    self._warn(f"{path}: it has {found.st_size} bytes; a collected file may have {self._max_file_bytes}")
                    continue
                if count >= self._max_files:
                    self._note_limit("max_files")
                    return
                if total + found.st_size > self._max_total_bytes:
                    self._note_limit("max_total_bytes")
                    continue
                count += 1
                total += found.st_size
                yield from self._read(fd, path, found.st_size)
            finally:
                os.close(fd)

    def _read(self, fd, path, size):
        offset = 0
        while True:
            piece = os.pread(fd, min(FILE_CHUNK_BYTES, size - offset), offset) if size > offset else b""
            if not piece and offset > 0:
                return
            yield path, size, offset, piece
            offset += len(piece)
            if offset >= size:
                return

    def _open(self, path):
        *directories, name = path.split("/")
        at = open_real_directory(self._root)
        try:
            for part in directories:
                deeper = open_real_directory(part, dir_fd=at)
                os.close(at)
                at = deeper
            return os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=at)
        finally:
            os.close(at)

    def _walk(self):
        seen = 0
        unseen = [""]
        while unseen:
            base = unseen.pop()
            try:
                fd = self._open(base) if base else open_real_directory(self._root)
            except OSError as error:
                self._warn(f"{base}: {error.strerror}")
                continue
            try:
                with os.scandir(fd) as listing:
                    for entry in listing:
                        seen += 1
                        if seen > MAX_ENTRIES:
                            self._note_limit("max_entries")
                            return
                        if seen % 256 == 0:
                            if self._is_out_of_time():
                                return
                            yield None
                        path = f"{base}/{entry.name}" if base else entry.name
                        if not is_utf8(path):
                            shown = path.encode(errors="backslashreplace").decode()
                            self._warn(f"{shown}: the name is not UTF-8")
                        elif entry.is_dir(follow_symlinks=False):
                            if path.count("/") >= MAX_FILE_DEPTH:
                                self._note_limit("max_entries")
                            elif self._matcher.can_match_below(path):
                                unseen.append(path)
                        elif entry.is_file(follow_symlinks=False) and self._matcher.matches(path):
                            yield path
            finally:
                os.close(fd)

    def stop(self):
        """Ends the collection early."""
        self._deadline = 0

    def _is_out_of_time(self):
        """True if the time budget is used up."""
        if time.monotonic() <= self._deadline:
            return False
        self._note_limit("max_time")
        return True

    def _note_limit(self, name):
        if name not in self.limits_hit:
            self.limits_hit.append(name)

    def _warn(self, message):
        if len(self.warnings) < MAX_WARNINGS:
            self.warnings.append({"code": "collect_skipped", "message": cut(message, MAX_WARNING)})
