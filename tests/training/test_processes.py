"""Several processes: the same run as one, and a run that goes on with another number of them."""

import json
import shutil
import subprocess
import sys

import pytest
import torch

PROGRAM = """
import json, os, sys, time
import torch
import torch.distributed as dist
from torch import nn
from advlab.core.randomness import generator
from advlab.threats import Ball
from advlab.training import Checkpoint, Hook, fit


class EndAt(Hook):
    def before_step(self, run):
        if run.step == int(sys.argv[2]):
            os._exit(0)

    def settings(self):
        return None


if int(os.environ.get("WORLD_SIZE", 1)) > 1:
    dist.init_process_group("gloo")
rng = generator("processes")
x, y = torch.rand(48, 1, 6, 6, generator=rng).double(), torch.randint(3, (48,), generator=rng)
torch.manual_seed(0)
net = nn.Sequential(
    nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(64, 3)
)
done = fit(net.double(), x, y, epochs=3, batch=12, lr=0.1, ball=Ball("linf", 0.1), accumulate=4,
           rng=0, hooks=[EndAt(), Checkpoint(sys.argv[1], every=5)])
if int(os.environ.get("RANK", 0)) == 0:
    state = torch.cat([v.double().flatten() for v in net.state_dict().values()])
    with open(sys.argv[3], "w") as out:
        json.dump([done.log.losses().flatten().tolist(), state.tolist()], out)
if dist.is_initialized():
    # Torch's own threads now and then abort a process that ends as usual ("terminate called without
    # an active exception"), with destroy_process_group too: this is about training.
    time.sleep(1)
    os._exit(0)
"""


def run(folder, count, file, end_at=-1):
    script, out = folder / "program.py", folder / "out.json"
    script.write_text(PROGRAM)
    many = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={count}"]
    arguments = [str(script), str(folder / file), str(end_at), str(out)]
    command = [sys.executable, *(many if count > 1 else []), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[:4000] + done.stderr[-2000:]
    if end_at >= 0:
        return None
    return [torch.tensor(part, dtype=torch.float64) for part in json.loads(out.read_text())]


@pytest.mark.timeout(600)
def test_two_processes_are_one_and_either_goes_on_for_the_other(tmp_path):
    alone = run(tmp_path, 1, "one")
    run(tmp_path, 2, "two", end_at=7)
    shutil.copy(tmp_path / "two", tmp_path / "mixed")
    pair = run(tmp_path, 2, "two")
    mixed = run(tmp_path, 1, "mixed")
    for one, two, both in zip(alone, pair, mixed, strict=True):
        assert torch.allclose(one, two, rtol=0, atol=1e-10)
        assert torch.allclose(one, both, rtol=0, atol=1e-10)
    assert alone[0][0] > alone[0][-1]
