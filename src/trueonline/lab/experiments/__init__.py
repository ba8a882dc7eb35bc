"""The paper's experiments: one file each, with its specification as data, its picture, and its claims with verdicts."""
