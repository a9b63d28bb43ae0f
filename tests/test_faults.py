"""The campaign of faults, a few trials of each kind: nothing is silent."""

import pytest

from benchmarks.faults.flips import flip_bits
from benchmarks.faults.forged import crafted_files
from benchmarks.faults.kills import kill_all
from benchmarks.faults.machines import machine_faults
from benchmarks.faults.pages import evil_pages


def test_a_bit_that_is_flipped_in_any_file_is_noticed():
    for fault in flip_bits(60):
        assert (fault.silent, fault.detected) == (0, fault.trials), fault


def test_what_was_killed_ends_in_the_same_bits():
    for fault in kill_all(1):
        assert (fault.silent, fault.recovered) == (0, fault.trials), fault


@pytest.mark.nightly
@pytest.mark.timeout(3600)
def test_the_whole_campaign():
    faults = [*kill_all(34), *flip_bits(510), *machine_faults(), crafted_files(), evil_pages()]
    for fault in faults:
        assert fault.silent == 0, fault
        assert fault.detected == fault.recovered == fault.trials, fault
