"""The experiments of the paper, their report, and pages that explain the methods."""
