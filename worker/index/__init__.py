"""A shard's index on disk: its store, its owner, and how it is opened, kept warm and restored.

The compiled core decides verdicts. It names what it must read of a store, and changes nothing
there; decisions are applied to the store once the transaction has committed.
"""
