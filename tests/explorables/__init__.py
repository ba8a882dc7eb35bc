"""Tests of the explorable pages."""
