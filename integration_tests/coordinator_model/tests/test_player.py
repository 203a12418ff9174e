"""The comparison itself, without a broker: a second model takes its place, in virtual time."""

import asyncio

import pytest

from groupwright.core import hash_order
from groupwright.testing._simulation import classic_group
from groupwright.testing._simulation.settings import KafkaVersion
from integration_tests.coordinator_model import runner
from integration_tests.coordinator_model.network import ModelNetwork
from integration_tests.coordinator_model.player import DifferenceError, Player
from integration_tests.coordinator_model.programs import Program, generate

V3_9, V4_3 = KafkaVersion.KAFKA_3_9, KafkaVersion.KAFKA_4_3
RULES = sorted(name for name, value in vars(KafkaVersion).items() if isinstance(value, property))


def differs(program: Program, delay_ms: int = 0, broker: KafkaVersion = V4_3) -> str:
    """Play a program on two models; return what differed."""
    settings = runner.settings(delay_ms)
    network = ModelNetwork(settings, broker)
    player = Player(program, "group", network, settings, V4_3, network.restart)
    try:
        asyncio.run(player.play())
    except DifferenceError as error:
        return "\n".join(error.lines)
    return ""


def constant(value: object) -> property:
    return property(lambda _: value)


@pytest.mark.medium
@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize("delay_ms", [0, 600])
def test_the_model_agrees_with_itself(delay_ms: int, *, restart: bool) -> None:
    assert [differs(generate(seed, restart=restart), delay_ms) for seed in range(40)] == [""] * 40


def test_versions_differ() -> None:
    assert any(differs(generate(seed), broker=V3_9) for seed in range(100))


@pytest.mark.slow
@pytest.mark.parametrize("rule", RULES)
def test_random_programs_notice_each_difference_between_versions(
    rule: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One rule at a time is that of 3.9, on the side that stands in for the broker."""
    for name in RULES:
        if name != rule:
            monkeypatch.setattr(KafkaVersion, name, constant(getattr(V4_3, name)))
    for order in ("scala_mutable_hash_map", "scala_immutable_hash_map"):
        monkeypatch.setattr(classic_group, order, hash_order.java_hash_map)

    def found(seed: int) -> bool:
        programs = (generate(seed), generate(seed, restart=True))
        return any(differs(program, delay_ms, V3_9) for program in programs for delay_ms in (0, 600))

    rarest = 949  # the first that notices the vote of members without a common protocol
    assert any(found(seed) for seed in (rarest, *range(3000)))
