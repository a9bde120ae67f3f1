"""The version of matnb; the build reads it here."""

VERSION = "0.1.0"
