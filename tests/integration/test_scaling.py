"""Workers that join and leave while documents stream, in both group protocols."""

import urllib.request

import pytest

from tests.integration.conftest import Launch
from tests.integration.corpus import corpus, scaled
from tests.integration.proof import prove
from tests.integration.stream import stream
from tests.kafka.broker import free_ports, wait_until

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(900)]
