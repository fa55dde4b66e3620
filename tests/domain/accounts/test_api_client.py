"""An API client: two secrets at most, scopes, and a revocation that is final."""

from datetime import timedelta

from domain.accounts.organization import ENDLESS_ENDS, FIRST_SCOPES, NAMED_ONLY, SCOPES, ApiClient
from tests.domain.build import ORGANIZATION, cause
from tests.story import Story, fact


def registered(*scopes: str) -> Story[ApiClient]:
    return Story(
        ApiClient.register(
            "partner-1", cause(), organization_id=ORGANIZATION, scopes=scopes, secret_hash="hash-1"
        )
    )


def test_a_client_without_a_list_of_scopes_has_all_that_need_no_naming() -> None:
    everything = [each for each in SCOPES if each not in NAMED_ONLY]
    registered().then(fact(ApiClient.Registered, scopes=FIRST_SCOPES), scopes=everything)


def test_a_list_of_exactly_the_first_scopes_is_that_of_a_client_without_a_list() -> None:
    """So it was written before there were others."""
    assert registered(*FIRST_SCOPES).aggregate.scopes == registered().aggregate.scopes
    for fewer_or_more in (FIRST_SCOPES[:3], [*FIRST_SCOPES, "webhooks"], ["webhooks"]):
        assert registered(*fewer_or_more).aggregate.scopes == fewer_or_more


def test_an_old_secret_ends_when_its_rotation_said() -> None:
    story = registered().given()
    asked = cause()
    story.when(lambda client: client.rotate_secret("hash-2", asked, timedelta(hours=2)))
    end = asked.at + timedelta(hours=2)
    story.then(fact(ApiClient.SecretRotated, kept_until=end), old_until=end)
    client = story.aggregate
    assert client.hashes_at(end - timedelta(seconds=1)) == ["hash-2", "hash-1"]
    assert client.hashes_at(end) == ["hash-2"]
    story.when(lambda client: client.rotate_secret("hash-3", asked))
    story.then(fact(ApiClient.SecretRotated, kept_hashes=["hash-2"]))
    assert client.hashes_at(asked.at) == ["hash-3", "hash-2"]
    story.when(lambda client: client.rotate_secret("hash-4", asked, timedelta(0)))
    story.then(fact(ApiClient.SecretRotated, kept_hashes=[], kept_until=None))
    assert client.hashes_at(asked.at) == ["hash-4"]


def test_an_old_secret_of_before_ends_existed_ends_too() -> None:
    """So a rotation of a release before 1.0.0 was stored: it named no end."""
    client, asked = registered().aggregate, cause()
    facts = {"client_id": "partner-1", "secret_hash": "hash-2", "kept_hashes": ["hash-1"]}
    client.record(ApiClient.SecretRotated, asked, **facts)
    end = asked.at + ENDLESS_ENDS
    assert client.hashes_at(end - timedelta(seconds=1)) == ["hash-2", "hash-1"]
    assert client.hashes_at(end) == ["hash-2"]


def test_a_used_secret_is_kept_under_a_newer_pepper_unless_it_was_replaced() -> None:
    story = registered().given(lambda client: client.rotate_secret("hash-2", cause()))
    story.when(lambda client: client.rehash_secret("hash-1", "p:hash-1", cause()))
    story.then(
        fact(ApiClient.SecretRehashed, old_hash="hash-1", secret_hash="p:hash-1"),
        secret_hashes=["hash-2", "p:hash-1"],
    )
    story.when(lambda client: client.rehash_secret("hash-1", "q:hash-1", cause()))
    story.then(secret_hashes=["hash-2", "p:hash-1"])
