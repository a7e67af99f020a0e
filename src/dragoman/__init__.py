"""Dragoman: bulk translation that finishes."""

__version__ = "0.1.0"
