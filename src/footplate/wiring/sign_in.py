"""Builds the client of the identity provider through which people sign in, if one is configured."""

from footplate.config import Settings
from footplate.domain.organisations.single_sign_on import SingleSignOn
from footplate.store.database import Database
from footplate.store.resources.api_keys import ApiKeys
from footplate.store.sign_in.browser_sessions import BrowserSessionStore
from footplate.store.sign_in.failures import SignInFailures
from footplate.store.sign_in.single_sign_on import SingleSignOnDatabase


def create_single_sign_on(
    settings: Settings, database: Database, keys: ApiKeys, sessions: BrowserSessionStore, failures: SignInFailures
) -> SingleSignOn | None:
    if settings.oidc_issuer is None:
        return None
    from footplate.api.sign_in.oidc_provider import OidcConfig, OidcProvider  # loads cryptography

    assert settings.oidc_client_id is not None
    assert settings.public_url is not None
    secret = settings.oidc_client_secret
    provider = OidcProvider(
        OidcConfig(
            issuer=settings.oidc_issuer,
            client_id=settings.oidc_client_id,
            client_secret=None if secret is None else secret.get_secret_value(),
            name=settings.oidc_name,
            scopes=settings.oidc_scopes,
            groups_claim=settings.oidc_groups_claim,
            clock_skew=settings.oidc_clock_skew,
            base_url=settings.public_url.rstrip("/"),
        )
    )
    store = SingleSignOnDatabase(database, keys, sessions, failures, settings.group_mapping, settings.oidc_organisation)
    return SingleSignOn(provider, store)
