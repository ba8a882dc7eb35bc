"""From a source to an output: the run behind `trueonline predict` and `trueonline live`."""
