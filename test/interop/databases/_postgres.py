"""A PostgreSQL server of the tests alone, on a socket."""

import contextlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path


def programs() -> Path | None:
    """The folder of initdb and pg_ctl; distributions do not put it on PATH."""
    found = shutil.which("initdb")
    folders = [Path(found).parent] if found else sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    return folders[-1] if folders and (folders[-1] / "initdb").exists() else None


@contextlib.contextmanager
def server(bin: Path):
    """Yields what follows `postgres:` in the address of its database."""
    # A socket's path is short, and the server's user must reach it: not below the folder of this run.
    folder = Path(tempfile.mkdtemp(prefix="postgres-"))
    user = {}
    if os.geteuid() == 0:  # the server refuses to run as root
        shutil.chown(folder, "nobody")
        user = {"user": "nobody", "group": "nogroup", "extra_groups": []}

    def call(*words: object) -> None:
        output = {"stdout": subprocess.DEVNULL, "timeout": 120, "check": True}
        subprocess.run([str(word) for word in words], cwd=folder, **output, **user)

    data = folder / "data"
    try:
        call(bin / "initdb", "-D", data, "-A", "trust", "-U", "tester", "-E", "UTF8", "--no-locale")
        options = f"-k {folder} -c listen_addresses='' -c fsync=off"
        call(bin / "pg_ctl", "-D", data, "-o", options, "-l", folder / "log", "-w", "start")
        try:
            yield f"host={folder} user=tester dbname=postgres"
        finally:
            call(bin / "pg_ctl", "-D", data, "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
