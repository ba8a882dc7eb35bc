"""The trials of `python -m tests.hostile` take minutes and are apart from the tests (`tests/test_hostile.py` tries a few)."""

collect_ignore = ["hostile"]
