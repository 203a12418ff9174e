"""The table of mutations keeps up with the sources, the tests and the README."""

import ast
import re

import pytest

from mutations.mended import MENDED
from mutations.mutation import Mutation
from mutations.runner import ROOT
from mutations.table import MUTATIONS
from parity.scenarios import all_scenarios

README = ROOT / "integration_tests" / "README.md"
PARITY_README = ROOT / "integration_tests" / "parity" / "README.md"


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_a_mutation_breaks_one_place_of_what_is_there_and_the_code_stays_code(mutation: Mutation) -> None:
    text = (ROOT / mutation.file).read_text(encoding="utf-8")

    changed = mutation.applied_to(text)

    assert ast.dump(ast.parse(changed)) != ast.dump(ast.parse(text))


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_the_test_that_notices_it_is_there(mutation: Mutation) -> None:
    path, _, test = mutation.caught_by.partition("::")
    module = ast.parse((ROOT / path).read_text(encoding="utf-8"))

    assert test.partition("[")[0] in {node.name for node in module.body if isinstance(node, ast.FunctionDef)}


def test_the_scenarios_that_show_mutations_exist() -> None:
    named = {mutation.scenario for mutation in MUTATIONS} - {""}

    assert named <= set(all_scenarios())


def test_names_of_mutations_are_their_own() -> None:
    names = [mutation.name for mutation in MUTATIONS]

    assert len(set(names)) == len(names)


def test_the_readme_lists_all_mutations_and_no_other() -> None:
    section = README.read_text(encoding="utf-8").partition("## Mutations")[2]
    rows = re.findall(r"^\| (.+?) \| `(.+?)` \|$", section, re.MULTILINE)

    assert rows == [(mutation.name, mutation.caught_by) for mutation in MUTATIONS]


def test_the_readme_of_the_parity_suite_says_how_each_mended_defect_is_found() -> None:
    section = PARITY_README.read_text(encoding="utf-8").partition("### Defects found again")[2]
    rows = re.findall(r"^\| (.+?) \| (.+?) \|", section.partition("\n## ")[0], re.MULTILINE)[1:]

    assert [name for name, _ in rows] == [mutation.name for mutation in MENDED]
