"""Public files from the web: fetched once, checked against a known SHA-256, and kept in a cache that is read like any
data folder.

Only members whose bytes are the expected ones are ever kept or read. A host that does not answer is asked once a
process, so that a machine without a network loses seconds and not minutes.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import tempfile
import time
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import IO
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import urlopen

UCI = "https://archive.ics.uci.edu"
CACHE_VARIABLE = "PRIVFIT_CACHE"
TIMEOUT = 10.0
"""Seconds that a host may take to answer, and then for every piece of a file."""
LONGEST = 120.0
"""Seconds that a whole file may take."""
MOST_BYTES = 64 << 20
_PIECE = 1 << 16

_silent_hosts: set[str] = set()


class NoDownload(OSError):
    """A file could not be fetched: the host is silent or refuses, or the file came torn."""


class WrongChecksum(ValueError):
    """A file was fetched whole and is not the expected one."""


@dataclass(frozen=True)
class Member:
    """A file in an archive (the last name; those before it are archives in the archive), the SHA-256 of its bytes, and
    its name in the cache.
    """

    inside: tuple[str, ...]
    sha256: str
    kept_as: str


@dataclass(frozen=True)
class Archive:
    """A zip archive at an address below a host, and its members that are wanted."""

    address: str
    members: tuple[Member, ...]


ADULT = Archive(
    "static/public/2/adult.zip",
    (
        Member(("adult.data",), "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d", "adult.data.gz"),
        Member(("adult.test",), "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05", "adult.test.gz"),
    ),
)
BANK = Archive(
    "static/public/222/bank+marketing.zip",
    (
        Member(
            ("bank.zip", "bank-full.csv"),
            "d1513ec63b385506f7cfce9f2c5caa9fe99e7ba4e8c3fa264b3aaf0f849ed32d",
            "bank-full.csv.gz",
        ),
    ),
)


def cache_folder(given: Path | None = None) -> Path:
    """Where fetched files are kept: the folder given, that of PRIVFIT_CACHE, or `privfit` in the user's cache
    directory.
    """
    if given is not None:
        return given
    if os.environ.get(CACHE_VARIABLE):
        return Path(os.environ[CACHE_VARIABLE])
    shared = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (shared if shared.is_absolute() else Path.home() / ".cache") / "privfit"


def kept(archive: Archive, cache: Path) -> bool:
    """Whether the cache has every member of an archive, whole."""
    return all(_is_kept(cache / member.kept_as, member.sha256) for member in archive.members)


def fetched(archive: Archive, cache: Path, host: str = UCI, timeout: float = TIMEOUT) -> Path:
    """The cache, with every member of an archive in it. What is there and whole is not fetched again."""
    wanted = [member for member in archive.members if not _is_kept(cache / member.kept_as, member.sha256)]
    if not wanted:
        return cache
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=cache) as file:
            address = f"{host}/{archive.address}"
            _download(address, file, timeout)
            contents = [_member(file, member, address) for member in wanted]  # all are checked before one is kept
        for member, content in zip(wanted, contents, strict=True):
            _keep(content, cache / member.kept_as)
    except NoDownload:
        raise
    except OSError:
        raise NoDownload(f"The cache cannot be written. Name a folder that can with {CACHE_VARIABLE}.") from None
    return cache


def _is_kept(path: Path, sha256: str) -> bool:
    """Whether the cache has the file, with the right bytes in it."""
    try:
        return hashlib.sha256(gzip.decompress(path.read_bytes())).hexdigest() == sha256
    except (OSError, EOFError, zlib.error):
        return False


def _keep(content: bytes, path: Path) -> None:
    """Write a file under its name only when it is whole."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=path.name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(gzip.compress(content, mtime=0))
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def _download(address: str, file: IO[bytes], timeout: float) -> None:
    """Copy what is at an address to a file, all of it or not at all."""
    host = urlsplit(address).netloc
    if host in _silent_hosts:
        raise NoDownload(f"{host} could not be reached.")
    try:
        answer = urlopen(address, timeout=timeout)
    except HTTPError as error:
        error.close()
        raise NoDownload(f"{host} answered {error.code} and gave no file.") from None
    except (OSError, HTTPException):
        _silent_hosts.add(host)
        raise NoDownload(f"{host} could not be reached.") from None
    with answer:
        got = sum(file.write(piece) for piece in _pieces(answer, host))
        if got != int(answer.headers.get("Content-Length", got)):
            raise NoDownload(f"The file from {host} came torn.")


def _pieces(answer: IO[bytes], host: str) -> Iterator[bytes]:
    """What a host sends, piece by piece, as long as it sends neither too much nor too slowly."""
    until, left = time.monotonic() + LONGEST, MOST_BYTES
    while True:
        try:
            piece = answer.read(_PIECE)
        except (OSError, HTTPException):
            raise NoDownload(f"The file from {host} came torn.") from None
        if not piece:
            return
        left -= len(piece)
        if left < 0 or time.monotonic() > until:
            raise NoDownload(f"{host} sent too much, or too slowly.")
        yield piece


def _member(archive: IO[bytes], member: Member, address: str) -> bytes:
    """The bytes of a member, checked."""
    try:
        for name in member.inside:
            with zipfile.ZipFile(archive) as opened, opened.open(name) as inner:
                content = inner.read(MOST_BYTES)
            archive = io.BytesIO(content)
    except (zipfile.BadZipFile, zlib.error, EOFError):
        raise NoDownload(f"{urlsplit(address).netloc} sent something that is no whole archive.") from None
    except KeyError:
        raise _wrong(member, address, "is not in the archive") from None
    if hashlib.sha256(content).hexdigest() != member.sha256:
        raise _wrong(member, address, "has other bytes than expected")
    return content


def _wrong(member: Member, address: str, what: str) -> WrongChecksum:
    return WrongChecksum(
        f"{member.inside[-1]} from {address} {what}, so it was not used. "
        f"Put {member.kept_as} into the data folder by hand, or go on without downloads."
    )
