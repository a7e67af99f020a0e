"""The fuse box: the only room that picks a clock, a database, a queue, a provider, a family, a format, a
source.
"""
