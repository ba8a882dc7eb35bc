"""Where predictions go: files, brokers, alerts."""
