"""A document that kills worker processes, which something restarts."""

from pathlib import Path
from typing import Final

import pytest

from tests.integration.conftest import Launch
from tests.support.checker.history import reason
from tests.support.corpus import corpus
from tests.support.proof import prove
from tests.support.worker_process import ROOT

pytestmark = [pytest.mark.kafka, pytest.mark.slow, pytest.mark.timeout(300)]

POISON: Final = "kills whoever reads it"
STATUS: Final = 137
MORTAL: Final = f"""
import os
import lsh

sign = lsh.Fingerprinter.sign

def mortal(self, texts):
    if any({POISON!r} in text for text in texts):
        os._exit({STATUS})
    return sign(self, texts)

lsh.Fingerprinter.sign = mortal
"""


def test_documents_that_kill_their_worker_are_rejected(launch: Launch, tmp_path: Path) -> None:
    application = launch(partitions=2, supervised=True)
    (tmp_path / "sitecustomize.py").write_text(MORTAL)
    application.worker("alpha", wrapper=["env", f"PYTHONPATH={tmp_path}:{ROOT}"])
    texts = list(corpus(600, 12))
    for place, name in ((201, "first"), (400, "second")):
        texts.insert(place, (name, f"{name} {POISON}"))
    application.feed(application.documents(texts))
    application.start("alpha")
    history = prove(application)
    assert sorted(record.key or b"" for record in history.rejected) == [b"first", b"second"]
    assert {reason(record) for record in history.rejected} == {"poison"}
    assert 5 <= application.restarts <= 6
