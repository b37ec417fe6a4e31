"""Tests of neardup. They mirror the packages; `tests.support` has what several of them share."""
