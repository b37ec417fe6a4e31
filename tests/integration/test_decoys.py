"""Decoys share most of an original without matching it, and never push it out of the index."""

from random import Random

import pytest

from tests.integration.conftest import Launch
from tests.integration.naive import naive_verdicts
from tests.support.checker import differences
from tests.support.checker.history import verdicts
from tests.support.proof import prove
from tests.support.waves import changed, distinct, in_turns

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(600), pytest.mark.slow(ci=False)]

ORIGINALS = 6
DECOYS = 200
"""Of each original: an average bucket of it meets 24 of them, and has room for two entries."""
COPIES = 4


def test_a_copy_is_a_duplicate_of_an_original_that_decoys_have_crowded(
    launch: Launch,
) -> None:
    random = Random(41)
    originals = {f"o{number}": distinct(random) for number in range(ORIGINALS)}
    decoys = {
        f"{ident}-decoy": [changed(text, 14, random) for _ in range(DECOYS)]
        for ident, text in originals.items()
    }
    copies = {
        f"{ident}-copy": [changed(text, 1, random) for _ in range(COPIES)]
        for ident, text in originals.items()
    }
    application = launch(settings={"index": {"bucket_capacity": 2}})
    application.seat("alpha", "beta")
    application.feed(application.documents(list(originals.items())))
    application.audit.reach(ORIGINALS)  # They come first in the order, too.
    application.feed(application.documents(list(in_turns(decoys))))
    application.audit.reach(ORIGINALS + ORIGINALS * DECOYS // 2)
    application.worker("alpha").kill()
    application.start("alpha")
    application.audit.reach(ORIGINALS + ORIGINALS * DECOYS)
    application.feed(application.documents(list(in_turns(copies))))
    history = prove(application, shards=(1, 4))

    published = verdicts(history)
    fed = {one.key: (one.partition, one.offset) for one in application.inputs}

    def matched(ident: str) -> set[str]:
        return {other for other, _ in published[fed[ident.encode()]].matches}

    unique = sum(not matched(ident) for ident, _ in in_turns(decoys))
    assert unique > 0.85 * ORIGINALS * DECOYS, "the decoys match"
    for ident, _ in in_turns(copies):
        assert ident.partition("-")[0] in matched(ident), f"{ident} is no duplicate"
    rules = application.settings.rules()
    expected = naive_verdicts(application.fingerprints(), application.topology, rules)
    assert differences(published, expected) == []
