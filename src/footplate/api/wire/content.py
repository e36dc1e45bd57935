"""Content blocks that a person or a custom tool may send: text, images and documents whose bytes are inside.

Blocks that point elsewhere (a URL, a file) are refused until something fetches them under the operator's rules.
"""

import binascii
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StringConstraints

from footplate.api.wire.base import Body


def _base64(data: str) -> str:
    try:
        binascii.a2b_base64(data, strict_mode=True)
    except (binascii.Error, ValueError) as error:
        raise ValueError("is not valid base64") from error
    return data


Base64 = Annotated[
    str,
    StringConstraints(min_length=1),
    AfterValidator(_base64),
    Field(json_schema_extra={"contentEncoding": "base64"}),
]


class TextBlock(Body):
    type: Literal["text"]
    text: str


class ImageBytes(Body):
    type: Literal["base64"]
    media_type: Literal["image/png", "image/jpeg", "image/gif", "image/webp"]
    data: Base64


class ImageBlock(Body):
    type: Literal["image"]
    source: ImageBytes


class DocumentBytes(Body):
    type: Literal["base64"]
    media_type: Literal["application/pdf"]
    data: Base64


class DocumentText(Body):
    type: Literal["text"]
    media_type: Literal["text/plain"]
    data: str


class DocumentBlock(Body):
    type: Literal["document"]
    source: Annotated[DocumentBytes | DocumentText, Field(discriminator="type")]
    title: str | None = None
    context: str | None = None


Block = Annotated[TextBlock | ImageBlock | DocumentBlock, Field(discriminator="type")]


def _not_empty(blocks: list[Block]) -> list[Block]:
    for index, block in enumerate(blocks):
        if isinstance(block, TextBlock) and not block.text:
            raise ValueError(f"the text of block {index} is empty")
    return blocks


MessageContent = Annotated[list[Block], Field(min_length=1, max_length=1000), AfterValidator(_not_empty)]
ResultContent = Annotated[list[Block], Field(max_length=1000)]
