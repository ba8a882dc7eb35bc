"""One compiled loop for a whole sweep."""
