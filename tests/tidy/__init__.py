"""The style of the house as tests: `rules` says what holds, the checkers find who breaks it."""
