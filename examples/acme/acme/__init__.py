"""Plug-ins of Acme."""
