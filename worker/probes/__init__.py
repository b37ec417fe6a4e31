"""The small server for probes and metrics."""
