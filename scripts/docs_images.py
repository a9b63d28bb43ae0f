"""Draw the pictures of docs/images anew from stored results.

    python scripts/docs_images.py STORE...

Each store is the folder that `advlab run --out` wrote; pictures without a result there stay.
"""

import json
import sys
from pathlib import Path

import vl_convert

from advlab.report.theme import theme

IMAGES = Path(__file__).parents[1] / "docs" / "images"
PICTURES = {
    "benign_fig1": "benign/fig1",
    "cgro_phases": "cgro/phases",
    "convergence_any_attack": "convergence/any_attack",
    "fig3": "generalization/fig3",
    "fig4": "generalization/fig4",
    "fig5": "generalization/fig5",
    "purification_neurons": "purification/clean_then_adversarial",
}


def main(stores: list[str]) -> None:
    for name, experiment in PICTURES.items():
        found = [Path(store) / experiment / "result-laptop.json" for store in stores]
        for file in filter(Path.is_file, found):
            chart = json.loads(file.read_text().split("\n#")[0])["chart"]
            spec = {**chart, "config": {**theme(), **chart.get("config", {})}}
            png = vl_convert.vegalite_to_png(json.dumps(spec), scale=1.2)
            (IMAGES / f"{name}.png").write_bytes(png)
            print(f"{name}.png from {experiment}, {len(png) // 1000} kB")


main(sys.argv[1:])
