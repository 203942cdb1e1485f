"""Servers that tests start by themselves: PostgreSQL from the machine's binaries, and a store that speaks S3."""

from __future__ import annotations

import atexit
import glob
import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import pytest

SECRET = "hunter2-SECRET"
"""A password that must not be told anywhere."""


def _binaries() -> Path | None:
    found = shutil.which("initdb")
    if found:
        return Path(found).parent
    installed = sorted(glob.glob("/usr/lib/postgresql/*/bin"))
    return Path(installed[-1]) if installed else None


class PostgreSQL:
    """A server of our own, which listens on a socket in a temporary folder. Every role may enter, and the role `locked`
    with its password, SECRET.
    """

    def __init__(self) -> None:
        binaries = _binaries()
        if binaries is None:
            pytest.skip("no PostgreSQL server is installed (Debian: apt-get install postgresql)")
        self._binaries, self._as_user = binaries, []
        self.folder = tempfile.mkdtemp(prefix="privfit-pg-")
        if os.geteuid() == 0:  # the server refuses to run as root
            user = "postgres" if subprocess.run(["id", "postgres"], capture_output=True).returncode == 0 else "nobody"
            shutil.chown(self.folder, user)
            self._as_user = ["runuser", "-u", user, "--"]
        self._data = f"{self.folder}/data"
        self._run("initdb", "-D", self._data, "-A", "trust", "-U", "people", "-E", "UTF8", "--locale=C", "--no-sync")
        rules = Path(self._data, "pg_hba.conf")
        rules.write_text("local all locked scram-sha-256\n" + rules.read_text())
        atexit.register(self._remove, os.getpid())
        self.start()

    @property
    def address(self) -> str:
        return f"postgresql://people:{SECRET}@/postgres?host={self.folder}"

    def as_role(self, role: str, password: str = "") -> str:
        """The address for another role."""
        return f"postgresql://{role}{':' + password if password else ''}@/postgres?host={self.folder}"

    def _run(self, program: str, *arguments: str, check: bool = True) -> None:
        command = [*self._as_user, str(self._binaries / program), *arguments]
        subprocess.run(command, check=check, capture_output=True, cwd=self.folder)

    def start(self) -> None:
        options = f"-c listen_addresses='' -c unix_socket_directories={self.folder}"
        self._run("pg_ctl", "-D", self._data, "-w", "-o", options, "-l", f"{self.folder}/log", "start")

    def kill(self) -> None:
        """End all its processes at once: nothing is flushed, and the next start recovers from the log."""
        self._run("pg_ctl", "-D", self._data, "-m", "immediate", "stop", check=False)

    def back_up(self) -> str:
        """A copy of its files as they are while it is stopped."""
        copy = f"{self.folder}/backup-{len(os.listdir(self.folder))}"
        self.kill()
        subprocess.run(["cp", "-a", self._data, copy], check=True)
        self.start()
        return copy

    def restore(self, copy: str) -> None:
        """Go back to a copy."""
        self.kill()
        shutil.rmtree(self._data)
        subprocess.run(["cp", "-a", copy, self._data], check=True)
        self.start()

    def become_standby(self) -> None:
        """Go on as a standby of nobody, which can be read and not written."""
        self.kill()
        Path(self._data, "standby.signal").touch()
        self.start()

    def become_primary(self) -> None:
        self._run("pg_ctl", "-D", self._data, "-w", "promote")

    def _remove(self, process: int) -> None:
        if os.getpid() == process:
            self.kill()
            shutil.rmtree(self.folder, ignore_errors=True)


@cache
def postgresql_server() -> PostgreSQL:
    """The server that tests share."""
    return PostgreSQL()


def postgresql() -> str:
    """The address of a database on the shared server, for tables, which are read by ADBC."""
    pytest.importorskip("adbc_driver_postgresql", reason="the ADBC driver of PostgreSQL is not installed")
    return postgresql_server().address


def run_sql(*statements: str) -> None:
    """Run statements on the PostgreSQL server, and commit."""
    from adbc_driver_postgresql import dbapi

    with dbapi.connect(postgresql(), autocommit=True) as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def fill_postgresql(name: str, table: Any) -> None:
    """Write an Arrow table to the PostgreSQL server."""
    from adbc_driver_postgresql import dbapi

    with dbapi.connect(postgresql()) as connection, connection.cursor() as cursor:
        cursor.adbc_ingest(name, table, mode="replace")
        connection.commit()


@cache
def object_store() -> tuple[Any, str]:
    """A file system on a store that speaks S3, and what addresses on it end with. It has a bucket `people`."""
    moto = pytest.importorskip("moto.server", reason="moto, a local store that speaks S3, is not installed")
    import logging

    import pyarrow.fs as arrow_fs

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    os.environ["AWS_EC2_METADATA_DISABLED"] = "true"
    server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    atexit.register(server.stop)
    host, port = server.get_host_and_port()
    files = arrow_fs.S3FileSystem(
        access_key="anybody",
        secret_key=SECRET,
        endpoint_override=f"{host}:{port}",
        scheme="http",
        region="us-east-1",
        allow_bucket_creation=True,
        allow_bucket_deletion=True,
    )
    files.create_dir("people")
    return files, f"endpoint_override={host}:{port}&scheme=http&region=us-east-1"


def web_address(path: str) -> str:
    """The address of a path in the bucket as a web server has it, with a token in it."""
    pytest.importorskip("aiohttp", reason="aiohttp, by which fsspec reads web servers, is not installed")
    server = object_store()[1].partition("endpoint_override=")[2].partition("&")[0]
    return f"http://{server}/people/{path}?token={SECRET}"


def object_address(path: str) -> str:
    """The address of a path in the bucket, with the password in it."""
    return f"s3://anybody:{SECRET}@people/{path}?{object_store()[1]}"
