"""Odd command lines, and what becomes of them: exit code 2 and one line, or the work is done."""

from pathlib import Path

import numpy as np
import torch

WORKS = None
NETS = """
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 3))
training = nn.Sequential(nn.Linear(4, 3), nn.Dropout(0.5)).train()
inplace = nn.Sequential(nn.ReLU(inplace=True), nn.Linear(4, 3))
number = 3
nothing = None


def factory():
    return net


def needs(width):
    return nn.Linear(width, 3)


def both(width, depth):
    return nn.Linear(width, depth)


def fails():
    return 1 / 0


def function(x):
    return x[:, :3]


def packed(x):
    return (net(x), None)


def words(x):
    return "cat"


def nan(x):
    return net(x) * float("nan")


class Net(nn.Linear):
    def __init__(self):
        super().__init__(4, 3)


class Wide(nn.Linear):
    def __init__(self, width):
        super().__init__(width, 3)
"""

QUICK = "--eps 0.1 --attack fgm --no-checks --no-certificates"
A = f"attack nets.py:net data.npz {QUICK}"
ATTACK = {
    "plain": (A, WORKS), "fraction": (A.replace("0.1", "8/255"), WORKS),
    "eps 0": (A.replace("0.1", "0"), WORKS), "json": (f"{A} --json", WORKS),
    "eps 1e400": (A.replace("0.1", "1e400"), "eps of at least 0, and finite; got 1e400"),
    "eps 1e999999999": (A.replace("0.1", "1e999999999"), "and finite"),
    "eps nan": (A.replace("0.1", "nan"), "and finite; got nan"),
    "eps inf": (A.replace("0.1", "inf"), "and finite; got inf"),
    "eps -1": (A.replace("0.1", "-1"), "eps of at least 0"),
    "eps 1/0": (A.replace("0.1", "1/0"), "eps as a number such as"),
    "eps word": (A.replace("0.1", "small"), "eps as a number such as"),
    "eps empty": (A.replace("0.1", "''"), "eps as a number such as"),
    "eps left out": ("attack nets.py:net data.npz", "eps"),
    "norm unknown": (f"{A} --norm l3", "norm"), "norm l2": (f"{A} --norm l2", WORKS),
    "box": (f"{A} --box 0,1", WORKS), "box none": (f"{A} --box none", WORKS),
    "box words": (f"{A} --box a,b", "a box as LOW,HIGH"),
    "box of one": (f"{A} --box 1", "a box as LOW,HIGH"),
    "box of three": (f"{A} --box 0,1,2", "a box as LOW,HIGH"),
    "box reversed": (f"{A} --box 1,0", "low end is below"),
    "box infinite": (f"{A} --box 0,1e400", "a finite box"),
    "box nan": (f"{A} --box nan,1", "a finite box"),
    "box too small": (f"{A} --box 0,0.1", "declared box"),
    "attack unknown": (A.replace("fgm", "nope"), "there are fast, standard"),
    "attack needs settings": (A.replace("fgm", "gta"), "gta needs surrogate"),
    "n negative": (f"{A} --n -1", "n"), "n word": (f"{A} --n few", "n"),
    "n 0": (f"{A} --n 0", WORKS), "n large": (f"{A} --n 1000000", WORKS),
    "batch 0": (f"{A} --batch 0", "batch"), "batch -5": (f"{A} --batch -5", "batch"),
    "batch 3": (f"{A} --batch 3", WORKS), "seed -1": (f"{A} --seed -1", "seed"),
    "seed real": (f"{A} --seed 0.5", "seed"), "split unknown": (f"{A} --split dev", "split"),
    "unknown option": (f"{A} --fast", "--fast"), "too many words": (f"{A} more", "more"),
    "no data": ("attack nets.py:net", "DATA|data"), "nothing": ("attack", "MODEL|model"),
    "out is a file": (f"{A} --out data.npz", "data.npz.*choose another|data.npz"),
    "out": (f"{A} --out here/there", WORKS),
    "data missing": (A.replace("data.npz", "no.npz"), "does not exist"),
    "data a folder": (A.replace("data.npz", "folder.npz"), "folder of images"),
    "data text": (A.replace("data.npz", "nets.py"), "an .npz file, a folder"),
    "data damaged": (A.replace("data.npz", "damaged.npz"), "npz file of plain numbers"),
    "data other keys": (A.replace("data.npz", "keys.npz"), "keys x and y"),
    "data NaN": (A.replace("data.npz", "nan.npz"), "finite numbers in x"),
    "data objects": (A.replace("data.npz", "objects.npz"), "npz file of plain numbers"),
    "data lengths": (A.replace("data.npz", "lengths.npz"), "as many answers as inputs"),
    "data labels": (A.replace("data.npz", "labels.npz"), "labels must be 0"),
    "data bytes": (A.replace("data.npz", "bytes.npz"), WORKS),
    "data pickle": (A.replace("data.npz", "data.pkl"), "a pickle"),
    "mnist absent": (A.replace("data.npz", "mnist --data-dir none"), "advlab data fetch mnist"),
    "transfer": (f"{A} --transfer nets.py:factory", WORKS),
    "transfer missing": (f"{A} --transfer no.py:net", "no.py"),
    "architecture of an object": (f"{A} --architecture nets.py:Net", "only with a model.s folder"),
}  # fmt: skip

MODELS = {
    "factory": ("nets.py:factory", WORKS),
    "class": ("nets.py:Net", WORKS),
    "function": ("nets.py:function", WORKS),
    "tuple": ("nets.py:packed", WORKS),
    "in-place ReLU": ("nets.py:inplace", WORKS),
    "train mode": ("nets.py:training", WORKS),
    "factory with an argument": ("nets.py:needs", "a model that takes inputs of shape"),
    "factory with arguments": ("nets.py:both", "nets.py:both needs width, depth"),
    "class with arguments": ("nets.py:Wide", "nets.py:Wide needs width"),
    "factory that fails": ("nets.py:fails", "ZeroDivisionError"),
    "number": ("nets.py:number", "a model or a function that makes one"),
    "None": ("nets.py:nothing", "a model or a function that makes one"),
    "words": ("nets.py:words", "returns a tensor of scores"),
    "NaN": ("nets.py:nan", "finite"),
    "absent": ("nets.py:absent", "a module without 'absent'"),
    "no file": ("no.py:net", "no.py"),
    "no module": ("nowhere:net", "no module 'nowhere'"),
    "no object": ("nets.py:", "nets.py"),
    "no colon": ("nets", "which is no file"),
    "a folder": ("folder.npz", "which is no file"),
    "empty": ("''", "no file"),
    "weights alone": ("net.safetensors", "no --architecture"),
    "weights missing": ("no.safetensors", "does not exist"),
    "weights": ("net.safetensors --architecture nets.py:Net", WORKS),
    "weights of others": ("net.safetensors --architecture nets.py:training", "fit"),
    "architecture with arguments": ("net.safetensors --architecture nets.py:Wide", "needs width"),
    "architecture a function": ("net.safetensors --architecture nets.py:number", "nets.py:number"),
    "state dict": ("net.pth --architecture nets.py:Net", WORKS),
    "damaged weights": ("bad.safetensors --architecture nets.py:Net", "bad.safetensors"),
}

OTHERS = {
    "no verb": ("bogus", "bogus"), "unknown option": ("--nope", "--nope"),
    "version": ("--version", WORKS), "list unknown": ("list nope", "nope"),
    "list one": ("list generalization/fig5", WORKS),
    "report of nothing": ("report --out empty", "results in empty; got none"),
    "report of a file": ("report --out data.npz", "results in data.npz"),
    "report scale": ("report --scale huge", "scale"),
    "report to a folder": ("report --out runs --to .", "--to as the page to write"),
    "report into a file": ("report --out runs --to data.npz/page.html", "data.npz"),
    "data path": ("data path --data .", WORKS), "data json": ("data path --json", WORKS),
    "data fetch unknown": ("data fetch imagenet", "a data set among mnist, cifar10"),
    "data fetch nothing": ("data fetch", "NAME|name"),
    "data fetch mirror": ("data fetch mnist --mirror ftp://x", "http or https"),
    "data fetch into a file": ("data fetch mnist --data data.npz", "can be written"),
    "data unknown verb": ("data drop", "drop"),
}  # fmt: skip


def rows() -> dict[str, tuple[str, str | None]]:
    """All command lines by name, with the words of the error, or WORKS."""
    found = {f"attack {name}": row for name, row in ATTACK.items()}
    for name, (model, says) in MODELS.items():
        found[f"model {name}"] = (f"attack {model} data.npz {QUICK}", says)
    return {**found, **OTHERS}


def prepare(folder: Path) -> None:
    """The files that the command lines name."""
    from safetensors.torch import save_file

    x = np.random.default_rng(0).random((12, 4)).astype(np.float32)
    y = np.arange(12) % 3
    arrays = {
        "data": (x, y), "nan": (x * np.nan, y), "lengths": (x, y[:5]), "labels": (x, y + 7),
        "bytes": (x, y.astype(np.uint8)), "objects": (x.astype(object), y),
    }  # fmt: skip
    for name, (inputs, labels) in arrays.items():
        np.savez(folder / f"{name}.npz", x=inputs, y=labels)
    np.savez(folder / "keys.npz", a=x, b=y)
    (folder / "damaged.npz").write_bytes((folder / "data.npz").read_bytes()[:200])
    (folder / "folder.npz").mkdir()
    (folder / "empty").mkdir()
    (folder / "nets.py").write_text(NETS)
    (folder / "data.pkl").write_bytes(b"\x80")
    weights = {"weight": torch.zeros(3, 4), "bias": torch.zeros(3)}
    save_file(weights, folder / "net.safetensors")
    torch.save(weights, folder / "net.pth")
    (folder / "bad.safetensors").write_bytes(b"\x08" * 40)
