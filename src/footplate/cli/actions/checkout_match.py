"""Decides which sessions may change the user's checkout: those that started from a commit of its repository.

Without this check, `apply` would write the changes of the last used session into an unrelated repository.
"""

from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from footplate.cli.actions.apply_to_checkout import UserCheckout
from footplate.cli.profile import saved_ids
from footplate.cli.profile.server_profiles import Server
from footplate.client import AsyncFootplate, ClientError, InvalidRequest, NotFound, Session

_MAX_SEARCHED: Final = 100


@dataclass(frozen=True, slots=True)
class CheckoutMatcher:
    checkout: UserCheckout
    project_id: str | None
    """The project at the path of the checkout, on a server on this machine."""

    @classmethod
    async def create(cls, client: AsyncFootplate, server: Server, checkout: UserCheckout) -> "CheckoutMatcher":
        if not server.is_local:
            return cls(checkout, None)
        try:
            found = (await client.projects.list(path=str(checkout.root), limit=1).page()).data
        except InvalidRequest:  # not below the server's projects root
            return cls(checkout, None)
        return cls(checkout, found[0].id if found else None)

    async def find_session(self, client: AsyncFootplate, wanted: str) -> Session:
        """Returns the session. `last` is the session last used from this machine if it belongs to this checkout, or
        else the newest one that does.
        """
        if wanted != "last":
            return await client.sessions.retrieve(wanted)
        sessions = (await client.sessions.list(limit=_MAX_SEARCHED).page()).data
        if known := saved_ids.recall_id(client.base_url, "session"):
            with suppress(NotFound):
                sessions = [await client.sessions.retrieve(known), *sessions]
        commits = [_base_commit(session, project_id) for session in sessions for project_id in session.project_ids]
        present = self.checkout.find_commits(filter(None, commits))
        for session in sessions:
            if any(self._fits(session, project_id, present) for project_id in session.project_ids):
                return session
        raise ClientError(
            f"None of the last {_MAX_SEARCHED} sessions started from a commit of the repository {self.checkout.root}.",
            help_text="Change to the checkout of a session's project, or pass the ID of a session. `footplate ls` "
            "lists the sessions.",
        )

    def check_base(self, session: Session, project_id: str | None) -> None:
        """Raises `ClientError` if the repository does not have the commit that the session started from. A session
        without a project has none: all its files are new.
        """
        if project_id is None:
            return
        commit = _base_commit(session, project_id)
        if self._fits(session, project_id, self.checkout.find_commits([commit] if commit else [])):
            return
        missing = "have the commit that the session started from" if commit else "belong to the session's project"
        title = f" ({session.title})" if session.title else ""
        raise ClientError(
            f"The repository {self.checkout.root} does not {missing}. The session is {session.id}{title}.",
            help_text="Nothing was changed. Run the command in a checkout of the session's project, after `git fetch`, "
            "or pass the ID of another session. `footplate export --patch FILE` writes a patch without this check.",
        )

    def _fits(self, session: Session, project_id: str, present: set[str]) -> bool:
        """Returns whether the session's tree of the project started from this repository. If it started without a
        commit, the checkout must be the project itself.
        """
        commit = _base_commit(session, project_id)
        return project_id == self.project_id if commit is None else commit in present


def _base_commit(session: Session, project_id: str) -> str | None:
    return session.bases.get(project_id, {}).get("commit")
