"""The commands of this extension."""
