"""Random programs are the same for a seed everywhere, and are made small."""

import json

from integration_tests.parity.fuzz.programs import Program, random_program
from integration_tests.parity.fuzz.shrink import shrink


def test_a_seed_makes_one_program() -> None:
    assert random_program(7) == random_program(7)
    assert random_program(7) != random_program(8)


def test_a_program_survives_json() -> None:
    for seed in range(200):
        program = random_program(seed)
        assert Program.from_json(json.loads(json.dumps(program.to_json()))) == program


def test_a_program_is_made_small() -> None:
    program = next(p for p in map(random_program, range(200)) if len(p.steps) > 7 and "seek" in str(p))

    small = shrink(program, lambda candidate: any(step[0] == "seek" for step in candidate.steps), 40)

    assert [step[0] for step in small.steps] == ["seek"]
    assert small.settings["partition_assignment_strategy"] == "range"


def test_all_steps_occur() -> None:
    names = {step[0] for seed in range(2000) for step in random_program(seed).steps}
    assert {"subscribe", "seek", "commit", "outage", "stall", "second_joins", "from_thread"} <= names
