"""The real networks that a device of the simulator may be served by, chosen by seed."""

from typing import Final

from app.providers.simulated_network.identifiers import Identifiers
from domain.network import ServingNetwork

# Codes of ITU-T E.212, each of them also in the shipped table of networks. The code of test
# networks, 001-01, would be nobody's answer to where a device is.
NETWORKS: Final = tuple(
    ServingNetwork(country_code, operator, mcc, mnc, radio)
    for country_code, operator, mcc, mnc, radio in (
        ("AE", "Etisalat", "424", "02", "5G"),
        ("AU", "Telstra", "505", "01", "5G"),
        ("BR", "Claro", "724", "05", "4G"),
        ("DE", "Telekom", "262", "01", "5G"),
        ("ES", "Movistar", "214", "07", "4G"),
        ("FR", "Orange", "208", "01", "5G"),
        ("GB", "Vodafone", "234", "15", "4G"),
        ("IT", "TIM", "222", "01", "4G"),
        ("JP", "NTT Docomo", "440", "10", "5G"),
        ("KE", "Safaricom", "639", "02", "4G"),
        ("NL", "Vodafone", "204", "04", "4G"),
        ("NZ", "One NZ", "530", "01", "5G"),
        ("SE", "Telia", "240", "01", "5G"),
        ("TH", "AIS", "520", "03", "4G"),
        ("ZA", "Vodacom", "655", "01", "4G"),
    )
)


def network_for(identifiers: Identifiers, iccid: str) -> ServingNetwork:
    """Return where the device of an eSIM is; it does not travel."""
    return NETWORKS[int(identifiers.roll("network", iccid) * len(NETWORKS))]
