"""A cluster with TLS, SASL and ACLs, and groups on its secured listeners."""

from collections.abc import Iterator

import pytest

from groupwright.testing import KafkaContainers, Security
from integration_tests.harness import clusters

PASSWORDS = {"alice": "password-of-alice", "bob": "password-of-bob"}


@pytest.fixture(scope="module")
def kafka() -> Iterator[KafkaContainers]:
    """Three nodes that know two users, and heed ACLs."""
    security = Security(users=PASSWORDS, authorize=True)
    with clusters.started(KafkaContainers(security=security)) as kafka:
        yield kafka
