"""Tables come from a folder, else from the web with their bytes checked, else generated and said to be; all of them fit their public schemas."""

from __future__ import annotations

import gzip
import hashlib
import io
import pickle
import socket
import threading
import zipfile
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import privfit as pf
from privfit.bench import baskets, data, download, paper_census, sources, stand_ins
from privfit.bench.download import Archive, Member, NoDownload, WrongChecksum, cache_folder, fetched
from privfit.bench.sources import Loaded, Source
from privfit.bench.weights import adult_split
from privfit.schema import Category, Numeric

TABLES = ["adult", "bank", "brazil", "census_1980", "cps_wages", "lifesci", "house", "adult_baskets"]
GENERATED = {
    "adult": (48_842, 14),
    "bank": (45_211, 16),
    "brazil": (38_000, 52),
    "census_1980": (40_000, 6),
    "cps_wages": (40_000, 5),
    "lifesci": (26_733, 10),
    "house": (33_925, 3),
    "adult_baskets": (32_561, 11),
}
REAL = {**GENERATED, "census_1980": (329_509, 6), "cps_wages": (278_660, 5)}


@pytest.fixture
def offline(tmp_path) -> Source:
    return Source(folder=tmp_path, download=False, cache=tmp_path / "cache")


def real(table: str) -> Loaded:
    """A table of the data folder."""
    found = getattr(Source(download=False), table)()
    if found.origin != "folder":
        pytest.skip(f"no data folder with the files of {table} is here; name one with {data.FOLDER_VARIABLE}")
    return found


def check_fits(loaded: Loaded, share_outside: float = 0.0) -> None:
    """Every column is there, levels are all known, and numbers lie between the bounds."""
    for column in loaded.schema.columns:
        values = loaded.frame[column.name]
        assert values.null_count() == 0
        if isinstance(column, Category):
            assert set(values.unique()) <= set(column.levels), column.name
        else:
            assert isinstance(column, Numeric)
            outside = ((values < column.low) | (values > column.high)).mean()
            assert outside <= share_outside, column.name


# -- generated -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("table", TABLES)
def test_without_files_a_table_is_generated_and_says_so(offline, table: str) -> None:
    loaded = getattr(offline, table)()
    assert loaded.origin == "generated"
    assert loaded.notice.startswith("Generated in place of ")
    assert "made-up rows" in loaded.notice
    assert (loaded.frame.height, len(loaded.schema.features)) == GENERATED[table]
    check_fits(loaded, share_outside=0.02)
    assert getattr(offline, table)().frame.equals(loaded.frame)


@pytest.mark.parametrize(("table", "share"), [("adult", 0.24), ("bank", 0.12), ("brazil", 0.5)])
def test_generated_classes_have_their_shares_and_can_be_learned(offline, table: str, share: float) -> None:
    loaded = getattr(offline, table)()
    target = loaded.schema.target
    second = loaded.frame[target.name] == target.levels[1]
    assert second.mean() == pytest.approx(share, abs=0.001)
    model = pf.LogisticRegression(10.0, schema=loaded.schema, random_state=0).fit(loaded.frame)
    wrong = np.mean(model.predict(loaded.frame) != loaded.frame[target.name].to_numpy())
    assert wrong < 0.8 * share


@pytest.mark.parametrize("table", ["census_1980", "cps_wages"])
def test_generated_incomes_can_be_learned(offline, table: str) -> None:
    loaded = getattr(offline, table)()
    model = pf.LinearRegression(10.0, schema=loaded.schema, random_state=0).fit(loaded.frame)
    goal = loaded.frame[loaded.schema.target.name].to_numpy()
    assert np.mean((model.predict(loaded.frame) - goal) ** 2) < 0.95 * goal.var()


def test_generated_points_are_clustered(offline) -> None:
    from sklearn.cluster import KMeans

    for loaded, k in ((offline.lifesci(), 5), (offline.house(), 15)):
        points = loaded.frame.to_numpy()
        assert -KMeans(k, n_init=3, random_state=0).fit(points).score(points) < 0.25 * len(points) * points.var(axis=0).sum()


def test_the_highest_wage_is_a_setting(offline) -> None:
    assert offline.cps_wages(1_000_000).schema.target.high == 1_000_000


def test_generated_baskets_pose_the_problem_of_the_paper(offline) -> None:
    split = adult_split(offline.adult_baskets())
    assert "sex" not in split.private.columns
    assert split.truth > split.unweighted + 0.03


# -- the paper's census ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("d", [5, 8, 11, 14])
@pytest.mark.parametrize("target", ["income", "high_income"])
def test_the_generated_census_has_the_papers_attributes(d: int, target: str) -> None:
    loaded = Source().generated_census(500, d=d, target=target)
    assert loaded.frame.columns == paper_census.paper_columns(d, target) == [column.name for column in loaded.schema.columns]
    assert loaded.frame.shape == (500, d)
    assert loaded.origin == "generated"
    check_fits(loaded, share_outside=0.02)


def test_sets_of_attributes_are_those_of_the_paper_and_nested() -> None:
    assert paper_census.paper_columns(5) == ["age", "gender", "education", "family", "income"]
    sets = [set(paper_census.paper_columns(d)) for d in (5, 8, 11, 14)]
    assert sets[0] < sets[1] < sets[2] < sets[3]
    assert sets[1] - sets[0] == {"nativity", "dwelling", "cars"}
    assert sets[2] - sets[1] == {"is_single", "is_married", "children"}
    with pytest.raises(ValueError, match="no set of 6"):
        paper_census.paper_columns(6)


def test_marital_status_becomes_two_attributes() -> None:
    frame = Source().generated_census(2_000).frame
    both = frame.filter((pl.col("is_single") == "yes") & (pl.col("is_married") == "yes"))
    neither = frame.filter((pl.col("is_single") == "no") & (pl.col("is_married") == "no"))
    assert both.height == 0
    assert 0 < neither.height < 1_000


# -- folders ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("table", TABLES)
def test_a_folder_is_read_first(table: str) -> None:
    loaded = real(table)
    assert (loaded.frame.height, len(loaded.schema.features)) == REAL[table]
    assert f"{loaded.frame.height:,}" in loaded.notice
    assert "enerated" not in loaded.notice
    check_fits(loaded, share_outside=0.02)


def test_stand_ins_have_the_schemas_of_the_real_tables(offline) -> None:
    for table in ("adult", "bank", "census_1980", "cps_wages", "house", "adult_baskets"):
        assert getattr(offline, table)().schema.to_toml() == real(table).schema.to_toml()


def test_stand_ins_in_folders_name_what_they_stand_in_for() -> None:
    assert "in place of the papers' IPUMS extracts" in real("census_1980").notice
    assert "in place of the papers' IPUMS extracts" in real("cps_wages").notice
    assert "in place of the PrivGene paper's Image" in real("house").notice


def test_colours_have_the_bounds_of_a_byte() -> None:
    assert [(column.low, column.high) for column in real("house").schema.features] == [(0, 255)] * 3


def test_a_source_goes_to_other_processes(tmp_path) -> None:
    source = Source(folder=tmp_path, download=False, cache=tmp_path / "cache")
    assert pickle.loads(pickle.dumps(source)) == source


# -- baskets ---------------------------------------------------------------------------------------------------------------


def test_cuts_give_the_same_rows_as_the_package() -> None:
    frame, schema = baskets.derived_baskets(real("adult").frame)
    package = real("adult_baskets")
    assert frame.equals(package.frame)
    assert schema.to_toml() == package.schema.to_toml()


def test_an_edge_belongs_to_the_level_below_it() -> None:
    people, _ = stand_ins.adult(8)
    ages, gains = [17.0, 25.0, 26.0, 45.0, 46.0, 65.0, 66.0, 90.0], [0.0, 0.0, 0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    people = people.with_columns(pl.Series("age", ages), pl.Series("capital-gain", gains), pl.Series("workclass", ["?"] * 8))
    frame, _ = baskets.derived_baskets(people)
    assert frame["age"].to_list() == ["Young", "Young", "Middle-aged", "Middle-aged", "Senior", "Senior", "Old", "Old"]
    assert frame["capital-gain"].to_list() == ["None"] * 3 + ["Low"] * 3 + ["High"] * 2
    assert frame["workclass"].to_list() == ["missing"] * 8


def test_a_split_of_loaded_baskets_is_that_of_the_folder() -> None:
    loaded = real("adult_baskets")
    one, two = adult_split(loaded, seed=3), adult_split(data.data_folder(), seed=3)
    assert one.private.equals(two.private)
    assert one.public.equals(two.public)


# -- downloads -------------------------------------------------------------------------------------------------------------

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
        site.files = {"some/plain.zip": zipped(a=OUTER, b=INNER), "some/nested+name.zip": zipped(**{"in.zip": zipped(inner=INNER)})}
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
    "harm", [lambda whole: whole[:-9], lambda whole: b"", lambda whole: gzip.compress(b"other"), lambda whole: b"no gzip"]
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
    with pytest.raises(WrongChecksum, match=r"b from .*some/plain\.zip has other bytes than expected, so it was not used\. Put b\.gz into"):
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
        download.BANK.address, (Member(("bank.zip", "bank-full.csv"), hashlib.sha256(content).hexdigest(), "bank-full.csv.gz"),)
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
        name: gzip.decompress((data.data_folder() / f"{name}.gz").read_bytes()) for name in ("adult.data", "adult.test", "bank-full.csv")
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
