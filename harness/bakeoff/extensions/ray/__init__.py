"""Ray: the heavy steps of a run on a cluster, and a FAISS index sharded over nodes."""

ENGINES = {"ray": "bakeoff.extensions.ray.engine:RayEngine"}
WORDS = {"ray": "bakeoff.extensions.ray:SENTENCES"}
SENTENCES = {
    "worker_replaced": "{model}: a worker was killed and started again; at most one batch was asked for twice",
}
STORES = {"faiss_shards": "bakeoff.extensions.ray.faiss_shards:FaissShards"}
