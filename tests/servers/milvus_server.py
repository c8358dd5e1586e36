"""Runs a command beside a real Milvus server: `make test-milvus` calls it with the Python of the server's environment.

Milvus listens on every interface, so this is started inside a network that has the loopback interface alone:

    unshare -n sh -c 'ip link set lo up && PYTHON milvus_server.py FOLDER COMMAND …'
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys

PORT = 19530


def main() -> int:
    """The command's exit code; MILVUS_URL leads to the server while it runs."""
    if [name for _, name in socket.if_nameindex()] != ["lo"]:
        print("not started: this network has more than the loopback interface", file=sys.stderr)
        return 2
    from milvus import MilvusServer

    server = MilvusServer()
    server.set_base_dir(sys.argv[1])
    server.listen_port = PORT
    server.start()
    try:
        environment = {**os.environ, "MILVUS_URL": f"http://127.0.0.1:{PORT}"}
        return subprocess.run(sys.argv[2:], env=environment, check=False).returncode
    finally:
        server.stop()


if __name__ == "__main__":
    sys.exit(main())
