"""What SVG pictures share: colors of owners and kinds, and what one in a file of its own needs."""

from __future__ import annotations

NAMESPACE = ' xmlns="http://www.w3.org/2000/svg"'
THEMES = (
    "<style>svg{color:#1a1a1a;background:#fff}"
    "@media(prefers-color-scheme:dark){svg{color:#e8e8e8;background:#16181c}}</style>"
)
FONT = "system-ui,Helvetica,Arial,DejaVu Sans,sans-serif"
# Eight that people of any color vision distinguish, the first ones best, and that stand out 3 to 1 on white
# and on black; found by a search for the largest least difference.
COLORS = ("#0a7fc4", "#cc7a00", "#825a64", "#aa4600", "#7832fa", "#dc0aa0", "#969678", "#0096fa")


def color_of(owner: int) -> str:
    """Return the color of an owner; the ninth has the first one's again."""
    return COLORS[owner % len(COLORS)]
