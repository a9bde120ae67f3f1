"""Names that a file or a user made up to do harm."""

from __future__ import annotations

HARM = "<img src=x onerror=window.harmed=1><script>window.harmed=2<\\script>"
QUOTED = "\"'><svg onload='window.harmed=3'>&amp;\\\""
COLUMNS = [
    "<script>window.harmed=4</script>",
    "say 'so' & \"more\"",
    "\u202eright to left\u05d0\u0627",
    "🐍 emoji",
]
LONG = "x" * 10_000
RIGHT_TO_LEFT = "שלום_مرحبا"
