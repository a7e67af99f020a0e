"""The whole system in one thread on virtual time: real code, one seed, faults at every point."""
