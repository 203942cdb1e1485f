"""Hot journals: what a process that is killed in the middle of a commit leaves beside an SQLite file."""

from __future__ import annotations

import struct
from pathlib import Path

_MAGIC = bytes.fromhex("d9d505f920a163d7")
_SECTOR = 512


def leave_hot_journal(path: Path) -> Path:
    """The journal of a transaction that had saved every page and changed none: whoever opens the file by this name next
    goes back to it as it is now.

    The format is https://www.sqlite.org/fileformat.html#the_rollback_journal.
    """
    content = path.read_bytes()
    (size,) = struct.unpack(">H", content[16:18])
    pages = [content[start : start + size] for start in range(0, len(content), size)]
    nonce = 0x01020304
    header = _MAGIC + struct.pack(">IIIII", len(pages), nonce, len(pages), _SECTOR, size)
    records = [
        struct.pack(">I", number)
        + page
        + struct.pack(">I", (nonce + sum(page[place] for place in range(size - 200, 0, -200))) % 2**32)
        for number, page in enumerate(pages, 1)
    ]
    journal = path.with_name(path.name + "-journal")
    journal.write_bytes(header.ljust(_SECTOR, b"\0") + b"".join(records))
    return journal
