"""Each requirement that is done has one mutation that removes it, which a test that is marked with it must catch."""

from collections import Counter

from bench.ci.mutations import REQUIREMENT_MUTATIONS, load_mutations
from tests.requirements.page import find_tests, list_requirements, load_groups


def test_each_finished_requirement_has_one_mutation() -> None:
    found = Counter(mutation.requirement for mutation in load_mutations(REQUIREMENT_MUTATIONS))
    finished = {key for key, entry in list_requirements(load_groups()).items() if entry["state"] == "done"}
    assert found == Counter(finished)


def test_the_test_of_each_mutation_is_marked_with_its_requirement() -> None:
    marked = find_tests()
    wrong = []
    for mutation in load_mutations(REQUIREMENT_MUTATIONS):
        test = mutation.caught_by.partition("[")[0]
        if not {test, test.partition("::")[0]} & {*marked.get(str(mutation.requirement), ())}:
            wrong.append(mutation.name)
    assert wrong == []


def test_mutations_change_the_product() -> None:
    mutations = load_mutations(REQUIREMENT_MUTATIONS)
    assert [each.name for each in mutations if not each.file.startswith("src/footplate/")] == []
