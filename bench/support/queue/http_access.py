"""Changes a queue over HTTP. A request that gets no response is repeated, with the same idempotency key."""

import asyncio
import secrets
from typing import Any, Final, Self

import httpx2

from footplate.domain.errors import Conflict

_PATIENCE: Final = 120.0
_REFUSALS: Final = frozenset({400, 404, 409})


class HttpQueue:
    def __init__(self, base_url: str, key: str, session_id: str) -> None:
        self._http = httpx2.AsyncClient(base_url=base_url, headers={"x-api-key": key}, timeout=30)
        self._path = f"/v1/sessions/{session_id}"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.aclose()

    async def add(self, step: dict[str, Any], before: str | None = None) -> str:
        body = {"steps": [step], **({} if before is None else {"before": before})}
        return str((await self._send("POST", "/steps", body))["data"][0]["id"])

    async def edit(self, step_id: str, fields: dict[str, Any]) -> None:
        await self._send("POST", f"/steps/{step_id}", fields)

    async def move(self, step_id: str, before: str | None) -> None:
        await self._send("POST", f"/steps/{step_id}/move", {"before": before})

    async def remove(self, step_id: str) -> None:
        await self._send("DELETE", f"/steps/{step_id}")

    async def retry(self, step_id: str) -> str:
        return str((await self._send("POST", f"/steps/{step_id}/retry", {}))["id"])

    async def change_playback(self, action: str) -> None:
        await self._send("POST", f"/{action}")

    async def submit_result(self, step_id: str, result: dict[str, Any]) -> None:
        await self._send("POST", f"/steps/{step_id}/result", result)

    async def step(self, step_id: str) -> dict[str, Any]:
        return await self._send("GET", f"/steps/{step_id}")

    async def steps(self, *states: str) -> list[dict[str, Any]]:
        query = "&".join(["limit=1000", *(f"states[]={state}" for state in states)])
        return [*(await self._send("GET", f"/steps?{query}"))["data"]]

    async def wait_for(self, step_id: str, *states: str, patience: float = _PATIENCE) -> dict[str, Any]:
        deadline = asyncio.get_running_loop().time() + patience
        while (found := await self.step(step_id))["state"] not in states:
            if asyncio.get_running_loop().time() > deadline:
                raise TimeoutError(f"step {found['name']} is still {found['state']}")
            await asyncio.sleep(0.05)
        return found

    async def wait_for_action(self, step_id: str) -> None:
        """Wait until an external step asks for its result."""
        deadline = asyncio.get_running_loop().time() + _PATIENCE
        while (found := await self.step(step_id))["waiting_for"] != "action":
            if asyncio.get_running_loop().time() > deadline:
                raise TimeoutError(f"step {found['name']} is {found['state']}")
            await asyncio.sleep(0.02)

    async def run_to_end(self, patience: float = _PATIENCE) -> None:
        """Play the session, also after failed steps, until no step is pending or running."""
        deadline = asyncio.get_running_loop().time() + patience
        while await self.steps("pending", "running"):
            await self.change_playback("play")
            if asyncio.get_running_loop().time() > deadline:
                raise TimeoutError("steps are still pending or running")
            await asyncio.sleep(0.2)

    async def _send(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        headers = {} if method == "GET" else {"idempotency-key": secrets.token_hex(16)}
        deadline = asyncio.get_running_loop().time() + _PATIENCE
        while True:
            try:
                response = await self._http.request(method, self._path + path, json=body, headers=headers)
            except httpx2.TransportError:
                if asyncio.get_running_loop().time() > deadline:
                    raise
            else:
                if response.status_code in _REFUSALS:
                    raise Conflict(response.json()["error"]["message"])
                if response.status_code < 500 and response.status_code != 429:
                    response.raise_for_status()
                    return dict(response.json())
            await asyncio.sleep(0.2)
