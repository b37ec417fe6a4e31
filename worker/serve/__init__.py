"""``neardup serve``: queries, the page, groups and corrections over HTTP."""
