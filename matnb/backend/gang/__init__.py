"""The gang: workers that run a program together and exchange blocks directly."""
