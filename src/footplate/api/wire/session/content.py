"""Wire models of the content blocks that a user or a custom tool can send: text, images, documents and files.

In a message, an image, a document or a file is embedded, refers to an uploaded file or a file of a project, or has a
URL. The field `deliver`, a Footplate extension, selects whether it is sent to the model or written to the session's
files. Blocks of type `file` are an extension too. In the result of a custom tool, content is always embedded.
"""

import binascii
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from footplate.api.wire.request_base import Body, Id, Text

ImageMediaType = Literal["image/png", "image/jpeg", "image/gif", "image/webp"]
Deliver = Annotated[
    Literal["inline", "file", "url"],
    Field(
        description="`inline`: sent to the model. `file`: written to the session's files; the model gets the path. "
        "`url`: the model's provider fetches the URL."
    ),
]
_MAX_URLS = 20
_MAX_PATH = 4096
Title = Annotated[Text, StringConstraints(max_length=500)]


def _check_base64(data: str) -> str:
    try:
        binascii.a2b_base64(data, strict_mode=True)
    except (binascii.Error, ValueError) as error:
        raise ValueError("must be valid base64") from error
    return data


def _check_url(url: str) -> str:
    scheme, found, rest = url.partition("://")
    if scheme.lower() not in {"http", "https"} or not found or not rest or rest.startswith("/"):
        raise ValueError("must be an http or https URL")
    return url


def _check_path(path: str) -> str:
    if path.startswith(("/", "~")) or not path.strip("./") or ".." in path.split("/") or "\0" in path:
        raise ValueError("must be a path relative to the project, without `..`")
    return path


Base64 = Annotated[
    str,
    StringConstraints(min_length=1),
    AfterValidator(_check_base64),
    Field(json_schema_extra={"contentEncoding": "base64"}),
]


class TextBlock(Body):
    type: Literal["text"]
    text: str


class ImageBytes(Body):
    type: Literal["base64"]
    media_type: ImageMediaType
    data: Base64


class DocumentBytes(Body):
    type: Literal["base64"]
    media_type: Literal["application/pdf"]
    data: Base64


class AnyBytes(Body):
    """In a document, types other than PDF require `deliver: file`."""

    type: Literal["base64"]
    media_type: Annotated[str, StringConstraints(pattern=r"^[\w!#$&^.+-]{1,100}/[\w!#$&^.+-]{1,100}$")]
    data: Base64


class DocumentText(Body):
    type: Literal["text"]
    media_type: Literal["text/plain"]
    data: str


class OfUrl(Body):
    type: Literal["url"]
    url: Annotated[Text, StringConstraints(max_length=2048), AfterValidator(_check_url)]


class OfFile(Body):
    type: Literal["file"]
    file_id: Id


class OfProjectPath(Body):
    """A file in the tree of one of the session's projects, as it is when the message reaches the agent."""

    type: Literal["path"]
    path: Annotated[Text, StringConstraints(max_length=_MAX_PATH), AfterValidator(_check_path)]
    project_id: Annotated[Id | None, Field(description="Without it, the first project.")] = None


class _Attachment(Body):
    source: Body
    deliver: Deliver

    @model_validator(mode="after")
    def _check_url_delivery(self) -> Self:
        if self.deliver == "url" and not isinstance(self.source, OfUrl):
            raise ValueError("`deliver: url` requires a source of type `url`")
        return self


class ImageBlock(_Attachment):
    type: Literal["image"]
    source: Annotated[ImageBytes | OfUrl | OfFile | OfProjectPath, Field(discriminator="type")]
    deliver: Deliver = "inline"


class DocumentBlock(_Attachment):
    type: Literal["document"]
    source: Annotated[AnyBytes | DocumentText | OfUrl | OfFile | OfProjectPath, Field(discriminator="type")]
    title: Annotated[Title | None, Field(description="Also the file name if the document is written to a file.")] = None
    context: str | None = None
    deliver: Deliver = "inline"

    @model_validator(mode="after")
    def _check_delivery(self) -> Self:
        source = self.source
        if isinstance(source, AnyBytes) and self.deliver == "inline" and source.media_type != "application/pdf":
            raise ValueError(f"a document of type {source.media_type} requires `deliver: file`")
        return self


class FileBlock(_Attachment):
    """Any file. Unlike an image or a document, the model gets its content only with `deliver: inline`."""

    type: Literal["file"]
    source: Annotated[AnyBytes | DocumentText | OfUrl | OfFile | OfProjectPath, Field(discriminator="type")]
    title: Annotated[Title | None, Field(description="Also the file name.")] = None
    context: str | None = None
    deliver: Annotated[
        Literal["file", "inline"],
        Field(description="`file`: the model gets the path of the file. `inline`: it gets the content."),
    ] = "file"


class ResultImage(Body):
    type: Literal["image"]
    source: ImageBytes


class ResultDocument(Body):
    type: Literal["document"]
    source: Annotated[DocumentBytes | DocumentText, Field(discriminator="type")]
    title: str | None = None
    context: str | None = None


Block = Annotated[TextBlock | ImageBlock | DocumentBlock | FileBlock, Field(discriminator="type")]
ResultBlock = Annotated[TextBlock | ResultImage | ResultDocument, Field(discriminator="type")]


def _check_blocks(blocks: list[Block]) -> list[Block]:
    for index, block in enumerate(blocks):
        if isinstance(block, TextBlock) and not block.text:
            raise ValueError(f"the text of block {index} is empty")
    urls = sum(not isinstance(block, TextBlock) and isinstance(block.source, OfUrl) for block in blocks)
    if urls > _MAX_URLS:
        raise ValueError(f"has {urls} blocks with a URL; at most {_MAX_URLS} are allowed")
    return blocks


MessageContent = Annotated[list[Block], Field(min_length=1, max_length=1000), AfterValidator(_check_blocks)]
ResultContent = Annotated[list[ResultBlock], Field(max_length=1000)]
