"""Gzipped files. All that is there is read, even if the file breaks off."""

from __future__ import annotations

import os
import zlib
from typing import Any

GZIP_MAGIC = b"\x1f\x8b"
CHUNK_BYTES = 2**16  # compressed bytes that are read at a time
GZIP_WINDOW_BITS = 31  # zlib's number for: a gzip header and trailer around the largest window


def open_bytes(path: str | os.PathLike) -> Any:
    """Open a file to read its bytes, without those of gzip if it is compressed."""
    with open(path, "rb") as file:
        compressed = file.read(len(GZIP_MAGIC)) == GZIP_MAGIC
    return Gunzipped(path) if compressed else open(path, "rb", buffering=0)


class Gunzipped:
    """The bytes of a gzip file of one member or several, perhaps with zeros between or after them.

    If the file breaks off, all bytes before that are given first. Then it ends, and `cut` is True. (Python's own reader
    calls a header that breaks off damaged.) Damage is a ValueError, after the bytes that came before it.
    """

    def __init__(self, path: str | os.PathLike) -> None:
        self.fileobj = open(path, "rb", buffering=0)  # noqa: SIM115 (it stays open)
        self._path = path
        self._begin()

    def _begin(self) -> None:
        self.cut = False
        self._at = 0  # bytes that were given
        self._stream = zlib.decompressobj(GZIP_WINDOW_BITS)
        self._input = b""  # compressed bytes that wait
        self._between = False  # whether a member has ended, and no other has begun
        self._failure = ""

    @property
    def closed(self) -> bool:
        return self.fileobj.closed

    def read(self, size: int) -> bytes:
        """As many bytes, or those that are left."""
        pieces, left = [], size
        while left and not self._failure:
            try:
                piece = self._piece(left)
            except zlib.error as error:
                self._failure = str(error)
                break
            if not piece:
                break
            pieces.append(piece)
            left -= len(piece)
        if self._failure and not pieces:
            raise ValueError(f"{self._path} is damaged, after {self._at:,} bytes: {self._failure}")
        self._at += size - left
        return b"".join(pieces)

    def _piece(self, most: int) -> bytes:
        """Some bytes; none at the end."""
        while True:
            if self._between:
                self._input = self._input.lstrip(b"\0")
                if self._input:
                    self._stream, self._between = zlib.decompressobj(GZIP_WINDOW_BITS), False
            if not self._between:
                piece = self._stream.decompress(self._input, most)  # also without input: some may be waiting inside
                self._between = self._stream.eof
                self._input = self._stream.unused_data if self._stream.eof else self._stream.unconsumed_tail
                if piece:
                    return piece
            if not self._input:
                self._input = self.fileobj.read(CHUNK_BYTES)
                if not self._input:
                    self.cut = not self._between
                    return b""

    def seek(self, offset: int) -> None:
        """Go to a place, by reading all before it; to the end, where there is no such place."""
        if offset < self._at:
            self.fileobj.seek(0)
            self._begin()
        while self._at < offset and self.read(min(offset - self._at, 2**20)):
            pass

    def close(self) -> None:
        self.fileobj.close()
