"""Files from the web, fetched from a server of our own: whole and checked, or not at all."""

from __future__ import annotations

import gzip
import hashlib
import io
import socket
import threading
import zipfile
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from papers.tests.bench.test_sources import real
from privfit_papers.bench import data, download, sources, stand_ins
from privfit_papers.bench.download import Archive, Member, NoDownload, WrongChecksum, cache_folder, fetched
from privfit_papers.bench.sources import Source

OUTER = b"17, Private, made up\n"
INNER = b'"age";"y"\n18;"no"\n'


def zipped(**files: bytes) -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return held.getvalue()


def member(name: str, content: bytes, *outer: str) -> Member:
    return Member((*outer, name), hashlib.sha256(content).hexdigest(), f"{name}.gz")


PLAIN = Archive("some/plain.zip", (member("a", OUTER), member("b", INNER)))
NESTED = Archive("some/nested+name.zip", (member("inner", INNER, "in.zip"),))


class Site:
    """What a little web server has, how much of it it really sends, and what it was asked for."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.sent: int | None = None
        self.asked: list[str] = []
        self.address = ""


@contextmanager
def served():
    site = Site()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            site.asked.append(self.path)
            content = site.files.get(self.path.lstrip("/"))
            if content is None:
                self.send_error(404)
                return
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content[: site.sent])

        def log_message(self, *_) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        site.address = f"http://127.0.0.1:{server.server_port}"
        try:
            yield site
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def site(monkeypatch):
    monkeypatch.setattr(download, "_silent_hosts", set())
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with served() as site:
        site.files = {
            "some/plain.zip": zipped(a=OUTER, b=INNER),
            "some/nested+name.zip": zipped(**{"in.zip": zipped(inner=INNER)}),
        }
        yield site


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_an_archive_is_fetched_once_and_kept(site, tmp_path) -> None:
    cache = tmp_path / "not" / "there" / "yet"
    for _ in range(3):
        assert fetched(PLAIN, cache, site.address) == cache
    assert site.asked == ["/some/plain.zip"]
    assert names(cache) == {"a.gz", "b.gz"}
    assert gzip.decompress((cache / "a.gz").read_bytes()) == OUTER


def test_an_archive_in_an_archive_is_opened(site, tmp_path) -> None:
    fetched(NESTED, tmp_path, site.address)
    assert gzip.decompress((tmp_path / "inner.gz").read_bytes()) == INNER


@pytest.mark.parametrize(
    "harm",
    [lambda whole: whole[:-9], lambda whole: b"", lambda whole: gzip.compress(b"other"), lambda whole: b"no gzip"],
)
def test_a_corrupted_file_of_the_cache_is_fetched_again(site, tmp_path, harm) -> None:
    path = fetched(PLAIN, tmp_path, site.address) / "a.gz"
    whole = path.read_bytes()
    path.write_bytes(harm(whole))
    fetched(PLAIN, tmp_path, site.address)
    assert len(site.asked) == 2
    assert path.read_bytes() == whole


@pytest.mark.parametrize("sent", [0, 10, -1])
def test_a_torn_download_leaves_nothing_behind_and_is_tried_again(site, tmp_path, sent: int) -> None:
    site.sent = sent
    with pytest.raises(NoDownload, match="torn"):
        fetched(PLAIN, tmp_path, site.address)
    assert names(tmp_path) == set()
    site.sent = None
    fetched(PLAIN, tmp_path, site.address)
    assert names(tmp_path) == {"a.gz", "b.gz"}


def test_other_bytes_are_an_error_and_never_kept(site, tmp_path) -> None:
    site.files["some/plain.zip"] = zipped(a=OUTER, b=INNER + b" ")
    with pytest.raises(
        WrongChecksum,
        match=r"b from .*some/plain\.zip has other bytes than expected, so it was not used\. Put b\.gz into",
    ):
        fetched(PLAIN, tmp_path, site.address)
    assert names(tmp_path) == set()


def test_an_archive_without_the_member_is_an_error(site, tmp_path) -> None:
    site.files["some/plain.zip"] = zipped(a=OUTER)
    with pytest.raises(WrongChecksum, match=r"b from .* is not in the archive"):
        fetched(PLAIN, tmp_path, site.address)


@pytest.mark.parametrize(("content", "told"), [(b"<html>log in</html>", "no whole archive"), (None, "answered 404")])
def test_something_else_than_an_archive_is_no_download(site, tmp_path, content: bytes | None, told: str) -> None:
    site.files = {} if content is None else {"some/plain.zip": content}
    with pytest.raises(NoDownload, match=told):
        fetched(PLAIN, tmp_path, site.address)
    assert names(tmp_path) == set()


def test_too_much_is_refused(site, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(download, "MOST_BYTES", 20)
    with pytest.raises(NoDownload, match="too much"):
        fetched(PLAIN, tmp_path, site.address)


def test_a_cache_that_cannot_be_written_is_told(site, tmp_path) -> None:
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(NoDownload, match=r"cannot be written\. Name a folder that can with PRIVFIT_CACHE"):
        fetched(PLAIN, tmp_path / "file", site.address)


def test_a_host_that_does_not_answer_is_asked_once(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(download, "_silent_hosts", set())
    asked = []

    def count(address: str, timeout: float):
        asked.append(address)
        raise TimeoutError

    monkeypatch.setattr(download, "urlopen", count)
    for _ in range(3):
        with pytest.raises(NoDownload, match=r"nobody\.invalid could not be reached"):
            fetched(PLAIN, tmp_path, "http://nobody.invalid")
    assert len(asked) == 1


def closed_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def test_an_unreachable_host_falls_through_to_the_generator(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(download, "_silent_hosts", set())
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    source = Source(folder=tmp_path, cache=tmp_path / "cache", host=f"http://127.0.0.1:{closed_port()}")
    bank = source.bank()
    assert bank.origin == "generated"
    assert "could not be downloaded: 127.0.0.1" in bank.notice


def test_a_fetched_table_is_read_like_one_of_a_folder(site, tmp_path, monkeypatch) -> None:
    """The bank's form, with three made-up clients and their checksum."""
    frame, _ = stand_ins.bank(3)
    content = frame.write_csv(separator=";", quote_style="non_numeric").encode()
    archive = Archive(
        download.BANK.address,
        (Member(("bank.zip", "bank-full.csv"), hashlib.sha256(content).hexdigest(), "bank-full.csv.gz"),),
    )
    site.files[archive.address] = zipped(**{"bank.zip": zipped(**{"bank-full.csv": content})})
    monkeypatch.setattr(sources, "BANK", sources.replace(sources.BANK, archive=archive))
    source = Source(folder=tmp_path / "none", cache=tmp_path / "cache", host=site.address)
    for _ in range(2):
        bank = source.bank()
        assert bank.origin == "download"
        assert bank.notice == "UCI Bank marketing, 3 clients, from 127.0.0.1."
        assert bank.frame.equals(frame)
    assert len(site.asked) == 1
    without_network = Source(folder=tmp_path / "none", download=False, cache=tmp_path / "cache")
    assert without_network.bank().origin == "download"
    (tmp_path / "cache" / "bank-full.csv.gz").write_bytes(b"harmed")
    assert "downloads are off" in without_network.bank().notice
    assert len(site.asked) == 1


def test_other_bytes_than_those_of_uci_stop_the_load(site, tmp_path) -> None:
    site.files[download.ADULT.address] = zipped(**{"adult.data": OUTER, "adult.test": INNER})
    source = Source(folder=tmp_path / "none", cache=tmp_path / "cache", host=site.address)
    with pytest.raises(WrongChecksum, match=r"adult\.data"):
        source.adult()


def test_the_real_files_pass_their_checksums(site, tmp_path) -> None:
    """Served as UCI packs them, the files of the folder are the expected bytes and give the same tables."""
    adult, bank = real("adult"), real("bank")
    held = {
        name: gzip.decompress((data.data_folder() / f"{name}.gz").read_bytes())
        for name in ("adult.data", "adult.test", "bank-full.csv")
    }
    site.files[download.BANK.address] = zipped(**{"bank.zip": zipped(**{"bank-full.csv": held.pop("bank-full.csv")})})
    site.files[download.ADULT.address] = zipped(**held)
    source = Source(folder=tmp_path / "none", cache=tmp_path / "cache", host=site.address)
    assert source.adult().origin == source.bank().origin == source.adult_baskets().origin == "download"
    assert source.adult().frame.equals(adult.frame)
    assert source.bank().frame.equals(bank.frame)
    assert source.adult_baskets().frame.equals(real("adult_baskets").frame)
    assert len(site.asked) == 2


def test_the_cache_is_where_the_user_says(tmp_path, monkeypatch) -> None:
    monkeypatch.delenv("PRIVFIT_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder() == tmp_path / "xdg" / "privfit"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert cache_folder() == Path.home() / ".cache" / "privfit"
    monkeypatch.setenv("PRIVFIT_CACHE", str(tmp_path / "own"))
    assert cache_folder() == tmp_path / "own"
    assert cache_folder(tmp_path) == tmp_path
