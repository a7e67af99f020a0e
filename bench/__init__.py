"""Speed, measured beside peers in the same run. `python -m bench` prints tables; RESULTS.md keeps them."""
