"""From Python functions to compiled kernels that are kept on disk."""
