"""What the stages exchange: frames and headers.

Only this package knows the byte layout of a frame; all other code sees arrays.
"""

from __future__ import annotations
