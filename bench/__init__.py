"""Speed, measured beside peers in the same run. `python -m bench` prints the tables; RESULTS.md keeps them."""
