"""How good predictions are: what came true, scores, bands and surprise."""
