"""``python -m worker.admin > docs/reference/acls.md`` writes the page of rights."""

from __future__ import annotations

import sys

from worker.admin.acls_page import page

sys.stdout.write(page())
