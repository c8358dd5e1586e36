"""A cluster of two nodes on the loopback interface: prints its address, and lasts until its input ends.

`ray start` takes no second node where Ray is kept to that interface; Ray's own test cluster does. Both nodes must be at
127.0.0.1: at any other address, 127.0.0.2 too, Ray listens on all interfaces.
"""

from __future__ import annotations

import sys

from ray.cluster_utils import Cluster

EACH = {"node_ip_address": "127.0.0.1", "num_cpus": 1, "num_gpus": 1, "object_store_memory": 128 << 20}


def main() -> None:
    cluster = Cluster(initialize_head=True, head_node_args={**EACH, "include_dashboard": False})
    cluster.add_node(**EACH)
    print(cluster.address, flush=True)
    sys.stdin.readline()
    cluster.shutdown()


if __name__ == "__main__":
    main()
