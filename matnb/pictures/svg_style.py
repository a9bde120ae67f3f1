"""What SVG pictures share: colors of owners and kinds, and what one in a file of its own needs."""

from __future__ import annotations

NAMESPACE = ' xmlns="http://www.w3.org/2000/svg"'
THEMES = (
    "<style>svg{color:#1a1a1a;background:#fff}"
    "@media(prefers-color-scheme:dark){svg{color:#e8e8e8;background:#16181c}}</style>"
)
FONT = "system-ui,Helvetica,Arial,DejaVu Sans,sans-serif"
# Okabe and Ito's colors, distinct with any color vision, without those that vanish on white or on black.
COLORS = ("#0a7fc4", "#e08a00", "#009e73", "#cc6699", "#d55e00", "#56a8d8")


def color_of(owner: int) -> str:
    """Return the color of an owner; the seventh has the first one's again."""
    return COLORS[owner % len(COLORS)]
