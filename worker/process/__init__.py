"""A worker as a process: its threads, signals, health, memory and logs."""
