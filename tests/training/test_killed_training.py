"""A training killed at steps and resumed ends with the bits of one that nobody stopped."""

import json
import os
import subprocess
import sys

import pytest

PROGRAM = """
import json, os, sys
import torch
import torch._dynamo  # optimizers import it: once, and not in every child
from torch import nn
from advlab.threats import Ball
from advlab.training import recipe, train

FOLDER = sys.argv[1]
SETTINGS = {
    "pgd": {"average": "ema", "attack": {"steps": 2}},
    "trades": {"awp": 0.01, "average": "swa", "attack": {"steps": 2}},
    "free": {"m": 3, "patience": 2},
    "clean_then_adversarial": {"adversarial_epochs": 2.0, "attack": {"steps": 2}},
    "stages": {"layer": 2, "attack": {"steps": 2}},
}


def run(name, out, calls):
    # Called in every step that is taken; the process ends there as if the power were cut.
    def counted(clear=torch.clear_autocast_cache):
        global left
        left -= 1
        if left == 0:
            os._exit(9)
        clear()

    global left
    left = calls
    torch.clear_autocast_cache = counted
    torch.set_num_threads(1)
    rng = torch.Generator().manual_seed(0)
    y = torch.arange(60) % 3
    x = torch.rand(60, 1, 6, 6, generator=rng)
    x[torch.arange(60), 0, :, 2 * y] += 1.0
    torch.manual_seed(1)
    net = nn.Sequential(
        nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Dropout(0.2),
        nn.Linear(64, 3),
    )
    how = recipe(name, epochs=3.0, batch=20, lr=0.05, augment="crop_flip", **SETTINGS[name])
    done = train(net, x[:45], y[:45], recipe=how, ball=Ball("linf", 0.1), rng=3, out=out,
                 validation=(x[45:], y[45:]), progress=False)
    log = done.log.drop("seconds", "examples_per_second")
    state = {k: v.tolist() for k, v in net.state_dict().items()}
    with open(f"{out}.json", "w") as file:
        json.dump([log.to_dicts(), state, done.status, done.reason], file)


def in_child(*arguments):
    child = os.fork()  # before torch has computed anything here
    if child == 0:
        try:
            run(*arguments)
            os._exit(0)
        except BaseException as error:
            print(arguments, repr(error), file=sys.stderr, flush=True)
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


# In the first epochs, later on, and in each stage; AWP counts three times per step.
KILLS = {
    "pgd": (5,), "trades": (15,), "free": (12,), "clean_then_adversarial": (5, 9),
    "stages": (5, 10),
}
for name in SETTINGS:
    whole, cut = f"{FOLDER}/{name}-whole", f"{FOLDER}/{name}-cut"
    codes = [in_child(name, whole, 0)]
    codes += [in_child(name, cut, calls) for calls in KILLS[name]]
    codes += [in_child(name, cut, 0)]
    print(json.dumps([name, codes]), flush=True)
"""


@pytest.mark.timeout(600)
def test_killed_and_resumed_is_the_same_run(tmp_path):
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    about = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-W", "ignore", str(script), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, env=about, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    told = dict(json.loads(line) for line in done.stdout.splitlines())
    assert len(told) == 5
    for name, codes in told.items():
        assert codes in ([0, 9, 0], [0, 9, 9, 0]), (name, codes, done.stderr[-2000:])
        whole, cut = (
            json.loads((tmp_path / f"{name}-{kind}.json").read_text()) for kind in ("whole", "cut")
        )
        assert whole == cut, name
