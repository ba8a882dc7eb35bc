"""What `verify` compares learners with networks with."""
