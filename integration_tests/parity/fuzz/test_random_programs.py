"""Random programs behave equally on both consumers: 15 seconds of programs from seeds known to be clean.

They run in four lanes on a separate broker, whatever the load. A seed is known to be clean from an idle run
and a loaded one. A difference counts if three rounds show it, each compared with up to six runs of
the original.
"""

import time

import pytest

from integration_tests.parity.fuzz.__main__ import fuzz
from integration_tests.parity.lanes import Lanes, shared_broker

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(900)]

_SECONDS = 15.0
_SEEDS = range(41_001, 41_047)


def test_random_programs_do_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    with shared_broker() as broker, Lanes(broker, 4) as lanes:
        result = fuzz(lanes, iter(_SEEDS), time.monotonic() + _SECONDS, tries=8)

    assert result.settled == [], capsys.readouterr().out
    assert result.programs > 0
