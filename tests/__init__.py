"""Tests of neardup. They mirror the packages; `tests.kafka` provides a real broker."""
