"""The settings: read once, validated, frozen, and passed down.

Precedence: command line, environment (``NEARDUP_SECTION__NAME``), TOML files, defaults.
"""
