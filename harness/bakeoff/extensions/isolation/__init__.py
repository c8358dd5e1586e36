"""Runs third-party code in its own process: if it hangs or crashes, only its row fails."""

ISOLATION = {"create": "bakeoff.extensions.isolation.parts:create"}
