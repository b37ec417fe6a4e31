"""The compiled core: `core/` in Rust. This stub is its whole face."""

__all__ = ["__version__"]

__version__: str
