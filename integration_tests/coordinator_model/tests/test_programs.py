"""Random programs: the same for the same seed, and rich enough to be worth playing."""

from collections import Counter

import pytest

from integration_tests.coordinator_model.programs import Join, Restart, Sync, Wait, generate


def test_a_seed_gives_the_same_program() -> None:
    assert generate(5) == generate(5)
    assert generate(5) != generate(6)


def test_programs_contain_every_kind_of_step() -> None:
    kinds = Counter(type(step).__name__ for seed in range(200) for step in generate(seed).steps)

    assert set(kinds) == {
        "Join", "Sync", "Heartbeat", "Leave", "Commit", "Fetch", "DeleteOffsets", "Describe", "Delete", "Wait"
    }  # fmt: skip
    assert kinds["Join"] > kinds["Sync"] > kinds["Leave"]


@pytest.mark.parametrize("seed", range(20))
def test_a_program_with_a_restart_has_one_and_waits_at_its_end(seed: int) -> None:
    steps = generate(seed, restart=True).steps

    assert sum(isinstance(step, Restart) for step in steps) == 1
    assert [step.seconds for step in steps if isinstance(step, Wait) and step.seconds > 1] == [26.0]


def test_a_program_is_told_in_words() -> None:
    program = generate(1)

    assert len(program.words()) == len(program.actors) + len(program.steps)
    shorter = program.without(0)
    assert shorter.steps == program.steps[1:]
    assert any(isinstance(step, Join | Sync) for step in shorter.steps)
