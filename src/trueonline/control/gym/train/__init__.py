"""The command `trueonline train`."""
