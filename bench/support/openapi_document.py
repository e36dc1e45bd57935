"""Writes the OpenAPI document of the API to a file, without a server: `python -m bench.support.openapi_document FILE`.

The dashboard's types are generated from it. Building the document needs none of the services.
"""

import sys
from pathlib import Path
from typing import cast

import orjson

from footplate.api.app import create_app
from footplate.api.service_container import ApiServices
from footplate.domain.network.host_and_origin_check import RequestGuard


class _NoServices:
    request_guard = RequestGuard()


def build_document() -> bytes:
    app = create_app(cast("ApiServices", _NoServices()))
    return orjson.dumps(app.openapi(), option=orjson.OPT_SORT_KEYS)


if __name__ == "__main__":
    Path(sys.argv[1]).write_bytes(build_document())
