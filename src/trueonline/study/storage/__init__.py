"""Work that is stored when it is done, and resumed after an interruption."""
