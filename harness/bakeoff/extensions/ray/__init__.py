"""Ray: the heavy steps of a run on a cluster, and a FAISS index sharded over nodes."""

ENGINES = {"ray": "bakeoff.extensions.ray.engine:RayEngine"}
WORDS = {"ray": "bakeoff.extensions.ray:SENTENCES"}
SENTENCES = {
    "worker_replaced": "{model}: a worker was killed and restarted; at most one batch was sent twice",
}
STORES = {"faiss_shards": "bakeoff.extensions.ray.faiss_shards:FaissShards"}
