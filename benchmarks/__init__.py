"""Side-by-side measurements: `python -m benchmarks` times `trueonline` against other ways of doing the same.

Every comparison is a ratio within one run on one machine: competitors take turns, and the median of the rounds is given
with its spread. Absolute times are shown for orientation; they belong to the machine named in the report.
"""
