"""The colors of workers: told apart with any color vision, and seen on light and dark pages."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from matnb.pictures.svg_style import COLORS, color_of

Colors = npt.NDArray[np.float64]
# What people see who lack a kind of cone: Machado, Oliveira and Fernandes 2009, severity 1, of linear RGB.
VISIONS = {
    "usual": np.eye(3),
    "without long": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "without medium": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "without short": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}
PAGES = ("#ffffff", "#111111", "#16181c")  # JupyterLab's, and that of a picture alone


def linear(colors: list[str]) -> Colors:
    shares = np.array([[int(one[place : place + 2], 16) for place in (1, 3, 5)] for one in colors]) / 255
    return np.where(shares <= 0.04045, shares / 12.92, ((shares + 0.055) / 1.055) ** 2.4)


def oklab(rgb: Colors) -> Colors:
    """Return colors in a space where distances are as they are seen: Ottosson 2020."""
    cones = [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
    opponents = [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
    return np.cbrt(np.clip(rgb, 0, 1) @ np.transpose(cones)) @ np.transpose(opponents)


def test_eight_workers_have_eight_colors_that_anyone_distinguishes() -> None:
    assert len({color_of(owner) for owner in range(8)}) == 8
    for name, vision in VISIONS.items():
        seen = oklab(linear(list(COLORS)) @ np.transpose(vision))
        apart = np.linalg.norm(seen[:, None] - seen, axis=-1) + 9 * np.eye(len(COLORS))
        assert apart.min() > 0.09, name  # of Okabe and Ito's eight it is 0.02
        assert apart[:3, :3].min() > 0.14, name


def test_each_stands_out_on_light_and_dark_pages() -> None:
    weights = [0.2126, 0.7152, 0.0722]  # WCAG 2: parts of pictures stand out 3 to 1
    own = linear(list(COLORS)) @ weights
    for page in linear(list(PAGES)) @ weights:
        contrast = (np.maximum(own, page) + 0.05) / (np.minimum(own, page) + 0.05)
        assert contrast.min() >= 3
