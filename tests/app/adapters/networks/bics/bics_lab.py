"""The settings of an installation that sells on a scripted BICS."""

from tests.support.providers import bics
from tests.support.providers.bics import BicsServer


def environment_of(server: BicsServer) -> dict[str, str]:
    """Return the settings of an installation that sells on this account."""
    return {
        "NETWORK_PROVIDER": "bics",
        "SANDBOX": "false",
        "NETWORK_BASE_PLAN": bics.BASE_PLAN,
        "BICS_URL": server.url,
        "BICS_USERNAME": bics.USERNAME,
        "BICS_PASSWORD": bics.PASSWORD,
        "BICS_ROAMING_PROFILE": bics.ROAMING_PROFILE,
        "BICS_APN_GROUP": bics.APN_GROUP,
    }
