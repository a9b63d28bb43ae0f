"""What the faults strike: a small experiment, a training and an attack, each in a process."""

import os
import subprocess
import sys
from pathlib import Path

EXPERIMENT = '''
"""Powers of random matrices."""
import time
import numpy as np, polars as pl, altair as alt
from advlab import lab
from advlab.report import Claims

ABOUT = lab.About(paper="own", item="0", title="Powers", seconds={"laptop": 1},
                  claims={"growth": "a power's norm is below the norm's power"})

class Case(lab.Case):
    size: int

def recipe(scale, seeds=None):
    return [Case(size=size, **block) for size in (20, 30) for block in lab.blocks(seeds or 6, 2)]

def compute(case):
    time.sleep(0.05)
    a = np.stack([np.random.default_rng([case.size, s]).standard_normal((case.size,) * 2)
                  for s in case.seeds])
    largest = np.linalg.norm(a, 2, axis=(1, 2))
    ratio = np.linalg.norm(a @ a, 2, axis=(1, 2)) / largest**2
    return lab.Computed(pl.DataFrame({"seed": list(case.seeds), "ratio": ratio}), {"a": a})

def figure(table):
    return alt.Chart(table).mark_point().encode(x="size:Q", y="ratio:Q")

def verdicts(table):
    return [Claims(ABOUT.claims).below("growth", float(table["ratio"].max()), 1.0001, what="ratio")]
'''

TRAINING = """
import sys, time, torch
from torch import nn
from advlab.threats import Ball
from advlab.training import Checkpoint, Hook, fit

class Slow(Hook):
    def after_step(self, run):
        time.sleep(0.002)

torch.manual_seed(0)
x, y = torch.randn(60, 5), torch.arange(60) % 2
net = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Dropout(0.1), nn.Linear(8, 2))
fit(net, x, y, steps=200, lr=0.1, batch=16, ball=Ball("linf", 0.1),
    hooks=[Slow(), Checkpoint(sys.argv[1], every=5)])
print(torch.cat([p.flatten() for p in net.parameters()]).double().tolist())
"""

NET = """
import time, torch
from torch import nn

def net():
    torch.manual_seed(0)
    inner = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3))
    class Slow(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = inner
        def forward(self, x):
            time.sleep(0.002)
            return self.inner(x)
    return Slow()
"""


def prepare(folder: Path) -> None:
    """Put the subjects' files in a folder."""
    import numpy as np

    folder.mkdir(parents=True, exist_ok=True)
    (folder / "powers.py").write_text(EXPERIMENT)
    (folder / "training.py").write_text(TRAINING)
    (folder / "own_net.py").write_text(NET)
    rng = np.random.default_rng(0)
    np.savez(folder / "data.npz", x=rng.random((40, 6), np.float32), y=np.arange(40) % 3)


def run_command(out: Path) -> list[str]:
    command = [sys.executable, "-m", "advlab", "run", "powers.py", "--jobs", "2", "--json"]
    return [*command, "--out", str(out)]


def fit_command(checkpoint: Path) -> list[str]:
    return [sys.executable, "training.py", str(checkpoint)]


def attack_command(out: Path, *more: str) -> list[str]:
    command = [sys.executable, "-m", "advlab", "attack", "own_net:net", "data.npz", "--eps", "0.05"]
    command += ["--attack", "pgd", "--batch", "10", "--no-checks", "--no-certificates", "--json"]
    return [*command, "--out", str(out), *more]


def start(command: list[str], folder: Path) -> subprocess.Popen:
    return subprocess.Popen(
        command,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )


def finished(command: list[str], folder: Path) -> tuple[int, str, str]:
    process = start(command, folder)
    out, errors = process.communicate(timeout=600)
    return process.returncode, out, errors
