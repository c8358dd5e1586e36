"""Code that is not ours, in a process of its own: it can hang, crash or change its process, and only its row fails."""

ISOLATION = {"create": "bakeoff.extensions.isolation.parts:create"}
