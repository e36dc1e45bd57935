"""Downloads of recordings over HTTP."""

import httpx2

from .conftest import Api, make_client
from .test_transcripts import LINES, _first, _import


async def test_recordings_are_listed_and_downloaded(http: httpx2.AsyncClient, api: Api) -> None:
    session = (await _import(http, await _first(http), *LINES)).json()["id"]
    path = f"/v1/sessions/{session}/terminal/recordings"
    assert (await http.get(path)).json() == {"data": [], "next_page": None}
    api.recordings.stored["org_a", session] = {"sevt_1": b'{"version": 2}\n'}
    (found,) = (await http.get(path)).json()["data"]
    assert (found["id"], found["type"], found["session_id"], found["size_bytes"]) == (
        "sevt_1",
        "terminal_recording",
        session,
        15,
    )
    downloaded = await http.get(f"{path}/sevt_1")
    assert downloaded.content == b'{"version": 2}\n'
    assert downloaded.headers["content-type"] == "application/x-asciicast"
    assert downloaded.headers["content-disposition"] == 'attachment; filename="sevt_1.cast"'
    assert downloaded.headers["x-content-type-options"] == "nosniff"
    for wrong in ("sevt_2", "..%2F..%2Fother", "sevt_1.cast"):
        assert (await http.get(f"{path}/{wrong}")).status_code == 404
    async with make_client(api.app, "secret-b") as stranger:
        assert (await stranger.get(path)).status_code == 404
        assert (await stranger.get(f"{path}/sevt_1")).status_code == 404
