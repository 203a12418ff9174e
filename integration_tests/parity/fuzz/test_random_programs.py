"""Random programs do the same on both consumers: as many as two minutes hold, from seeds that are known to be clean.

Two lanes, and a broker of their own, whatever else runs on the machine. What is known to be clean is so in an idle run and in
a loaded one; a difference counts when three rounds show it, each against all that the original did in up to six.
"""

import time

import pytest

from parity.fuzz.__main__ import fuzz
from parity.lanes import Lanes, shared_broker

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(900)]

_SECONDS = 120.0
_SEEDS = range(41_001, 41_047)


def test_random_programs_do_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    with shared_broker() as broker, Lanes(broker, 2) as lanes:
        result = fuzz(lanes, iter(_SEEDS), time.monotonic() + _SECONDS, tries=8)

    assert result.settled == [], capsys.readouterr().out
    assert result.programs > 0
