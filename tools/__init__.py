"""Programs for those who work on the package. They are no part of it: `make dist` and `make test-lowest` run them."""
