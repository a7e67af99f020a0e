"""Promises of Dragoman, one folder a kind."""
