"""What a worker answers over HTTP: metrics, and whether it is alive and ready."""
