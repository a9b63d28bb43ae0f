"""Every rule can fail: nulls, controls and planted bugs do not pass for the real thing."""

import pytest
from nulls import faults
from specimens import SPECIMENS

from advlab import lab
from advlab.papers import EXPERIMENTS


def test_every_experiment_has_a_specimen():
    assert sorted(SPECIMENS) == sorted(EXPERIMENTS)


@pytest.mark.parametrize("name", sorted(SPECIMENS))
def test_no_rule_passes_what_it_must_not(name):
    experiment = lab.load(name)
    assert not faults(SPECIMENS[name](), experiment.verdicts, experiment.about.claims)
