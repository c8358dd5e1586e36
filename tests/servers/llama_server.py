"""llama.cpp's server on loopback, in a process that can be killed: python llama_server.py MODEL KIND PORT."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


class LlamaServer:
    """Runs until `kill`; `url` is what a line-up gives as base_url. Without a port it takes a free one."""

    def __init__(self, model: Path, kind: str, port: int = 0) -> None:
        self.process = subprocess.Popen(
            [sys.executable, __file__, str(model), kind, str(port)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self.process.stdout is not None
        address = self.process.stdout.readline().strip()
        assert address.startswith("http://127.0.0.1:"), f"the server of {model.name} did not start: {address!r}"
        self.url, self.port = f"{address}/v1", int(address.rpartition(":")[2])

    def kill(self) -> None:
        """At once, with requests unanswered."""
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            if stream:
                stream.close()


def main(model: str, kind: str, port: str) -> None:
    import xllamacpp

    parameters = xllamacpp.CommonParams()
    parameters.model.path = model
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = int(port)
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = 1
    parameters.offline = True
    parameters.ui = False
    parameters.embedding = kind == "embedding"
    parameters.n_ctx = 512 if parameters.embedding else 4096
    server = xllamacpp.Server(parameters)
    print(server.listening_address, flush=True)
    sys.stdin.read()  # until the test ends, however it ends


if __name__ == "__main__":
    main(*sys.argv[1:])
