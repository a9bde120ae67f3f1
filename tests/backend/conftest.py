"""What the tests of the backend share: certificates for clusters behind TLS."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from distributed import Security


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Security:
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl is not installed, and nothing else here makes certificates")
    folder = tmp_path_factory.mktemp("certificates")
    key, certificate = str(folder / "key.pem"), str(folder / "certificate.pem")
    options = ["-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    subprocess.run(
        [openssl, "req", "-x509", *options, "-keyout", key, "-out", certificate],
        check=True,
        capture_output=True,
    )
    pairs = {f"tls_{role}_{part}": path for role in ("client", "scheduler", "worker")
             for part, path in (("key", key), ("cert", certificate))}  # fmt: skip
    return Security(tls_ca_file=certificate, require_encryption=True, **pairs)
