"""Ray: the heavy steps of a run on a cluster, and the index whose shards it puts on several nodes."""

ENGINES = {"ray": "bakeoff.extensions.ray.engine:RayEngine"}
STORES = {"faiss_shards": "bakeoff.extensions.ray.faiss_shards:FaissShards"}
