"""Two processes of Fabric: the losses of one process; and mixed precision."""

import json
import os
import subprocess
import sys
import warnings

import pytest
import torch

PROGRAM = """
import json, sys, warnings
warnings.simplefilter("ignore")
import torch
from torch import nn
from lightning_fabric import Fabric
from advlab.core.errors import AdvlabError
from advlab.threats import Ball
from advlab.training import recipe, train


def run(seed=0, **more):
    rng = torch.Generator().manual_seed(0)
    y = torch.arange(48) % 3
    x = torch.rand(48, 1, 6, 6, generator=rng)
    x[torch.arange(48), 0, :, 2 * y] += 1.0
    torch.manual_seed(seed)
    net = nn.Sequential(
        nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(64, 3)
    )
    how = recipe("pgd", epochs=2.0, batch=12, lr=0.05, average="ema", attack={"steps": 2})
    done = train(net, more.pop("x", x), y, recipe=how, ball=Ball("linf", 0.1), rng=0,
                 validation=(x[:24], y[:24]), progress=False, **more)
    return done.log["objective"].to_list(), done.log["validation_robust_loss"].to_list()


# here the processes begin
fabric = Fabric(accelerator="cpu", devices=2, strategy="ddp")
fabric.launch()
# Each process draws a start of its own: that of the first counts.
two = run(seed=fabric.global_rank, fabric=fabric)
try:
    run(fabric=fabric, x=torch.rand(48, 1, 6, 6) + fabric.global_rank)
    said = ""
except AdvlabError as error:
    said = str(error)
if fabric.global_rank == 0:
    with open(sys.argv[1], "w") as file:
        json.dump([two, said], file)
# See test_processes: torch's own threads may abort a process that ends as usual.
import os, time
time.sleep(1)
os._exit(0)
"""


@pytest.mark.timeout(600)
def test_two_processes_of_fabric_have_the_losses_of_one(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pytest.importorskip("lightning_fabric")
    script, out = tmp_path / "program.py", tmp_path / "out.json"
    script.write_text(PROGRAM)
    about = {**os.environ, "OMP_NUM_THREADS": "1"}
    many = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    done = subprocess.run(
        [sys.executable, *many, str(script), str(out)],
        capture_output=True, text=True, env=about, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    two, said = json.loads(out.read_text())
    space: dict = {}
    exec(PROGRAM.split("# here")[0], space)
    one = space["run"](accumulate=2)
    for alone, both in zip(one, two, strict=True):
        assert both == pytest.approx(alone, rel=1e-3)
    assert alone[0] > alone[-1]
    assert "the same batches on every process" in said


BF16 = """
import sys, warnings
warnings.simplefilter("ignore")
exec(open(sys.argv[1]).read().split("# here")[0])
full = run()
half = run(fabric=Fabric(accelerator="cpu", devices=1, precision="bf16-mixed"))
print(*full[0], *half[0])
"""


def test_mixed_precision_is_close_to_full_precision(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pytest.importorskip("lightning_fabric")
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "half.py").write_text(BF16)
    # Some virtual machines announce bfloat16 products that they cannot run; this one is safe.
    about = {**os.environ, "ONEDNN_MAX_CPU_ISA": "AVX512_CORE_BF16", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(tmp_path / "half.py"), str(tmp_path / "program.py")]
    done = subprocess.run(command, capture_output=True, text=True, env=about, check=False)
    if done.returncode < 0:
        pytest.skip("this CPU cannot run bfloat16")
    assert done.returncode == 0, done.stderr[-3000:]
    values = torch.tensor([float(word) for word in done.stdout.split()])
    full, half = values.reshape(2, 2)
    assert torch.allclose(full, half, rtol=0.05)
    assert not torch.equal(full, half)
