"""The formats of documents: reading them, and writing matches into them."""
