"""Backward views as text: equations, and files of methods."""
