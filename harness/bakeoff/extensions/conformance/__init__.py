"""Conformance suites for plug-ins: classes of pytest tests, exported by `bakeoff.plugins`."""

_HERE = "bakeoff.extensions.conformance"
PLUGIN_API = {
    "MeasureConformance": f"{_HERE}.measures:MeasureConformance",
    "ProviderConformance": f"{_HERE}.providers:ProviderConformance",
    "StoreConformance": f"{_HERE}.stores:StoreConformance",
}
