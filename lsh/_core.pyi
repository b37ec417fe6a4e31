"""The compiled core: `core/` in Rust. This stub is its whole face."""

__version__: str
