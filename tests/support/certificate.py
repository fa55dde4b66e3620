"""A key and a certificate for servers of tests on 127.0.0.1."""

from datetime import timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from domain.cause import utc_now

DAY = timedelta(days=1)


def certificate(directory: Path, host: str | None = None) -> Path:
    """Write a key and a certificate of 127.0.0.1, or of a name, that it has signed itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "server")])
    local = x509.IPAddress(ip_address("127.0.0.1"))
    address = x509.SubjectAlternativeName([x509.DNSName(host) if host else local])
    made = x509.CertificateBuilder(name, name, key.public_key(), 1)
    made = made.not_valid_before(utc_now() - DAY).not_valid_after(utc_now() + DAY)
    signed = made.add_extension(address, critical=False).sign(key, hashes.SHA256())
    pem = serialization.Encoding.PEM
    form, none = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    file = directory / "server.pem"
    file.write_bytes(key.private_bytes(pem, form, none) + signed.public_bytes(pem))
    return file
