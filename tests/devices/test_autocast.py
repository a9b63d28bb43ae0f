"""Mixed precision: attacks, evaluations and training of a model that runs under autocast."""

import os
import subprocess
import sys
from pathlib import Path

import torch
from torch import nn

from advlab.core.autocast import Autocast, outside_autocast
from advlab.losses import ModelLoss, margin, outputs_of


def test_models_under_autocast_are_attacked_evaluated_and_trained():
    # Some virtual machines announce bfloat16 products that they cannot run; this one is safe.
    about = {**os.environ, "ONEDNN_MAX_CPU_ISA": "AVX512_CORE_BF16", "OMP_NUM_THREADS": "1"}
    script = Path(__file__).with_name("under_autocast.py")
    found = subprocess.run(
        [sys.executable, str(script)], env=about, capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stderr
    assert found.stdout == "done\n"


def test_autocast_is_off_around_the_model_and_on_inside_it():
    x = torch.zeros(1)

    def on(x: torch.Tensor) -> bool:
        return torch.is_autocast_enabled("cpu")

    with torch.autocast("cpu", dtype=torch.bfloat16):
        with outside_autocast(on) as model:
            assert isinstance(model, Autocast)
            assert not on(x)
            assert model(x)
        assert on(x)
    with outside_autocast(on) as model:
        assert model is on


def test_scores_of_half_precision_are_judged_in_float32():
    x, y = torch.zeros(2, 3), torch.tensor([0, 1])
    for dtype in (torch.float16, torch.bfloat16):
        model = nn.Sequential(nn.Identity())
        model.register_forward_hook(lambda _, __, out, d=dtype: out.to(d))
        assert outputs_of(model, x).dtype == torch.float32
        assert ModelLoss(model, y, margin)(x).dtype == torch.float32
    assert outputs_of(nn.Identity(), x.double()).dtype == torch.float64
