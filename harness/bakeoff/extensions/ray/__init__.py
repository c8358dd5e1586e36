"""Ray: the heavy steps of a run on a cluster."""

ENGINES = {"ray": "bakeoff.extensions.ray.engine:RayEngine"}
