"""The public interface for packages that offer server-side tools: Python functions that the worker calls for an agent.

A package creates a `Toolset`, adds functions with the decorator `Toolset.tool`, and names the toolset in an entry point
of the group `footplate.tools`. An agent enables it in its field `server_toolsets`.
"""

import inspect
import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar, get_type_hints, overload

from pydantic import BaseModel, ConfigDict, create_model

from footplate.domain.json import JsonObject
from footplate.domain.organisations.principals import Author

__all__ = ["ENTRY_POINT_GROUP", "Author", "Tool", "ToolContext", "ToolError", "Toolset"]

ENTRY_POINT_GROUP: Final = "footplate.tools"
DEFAULT_TIMEOUT_SECONDS: Final = 60.0
_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")

AnyFunction = TypeVar("AnyFunction", bound=Callable[..., Any])


class ToolError(Exception):
    """The call failed. The model receives the message, so it must not contain a secret."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolContext:
    """The call that a tool serves. A function receives it if it has a parameter with this type."""

    organisation: str
    session_id: str
    turn_id: str
    call_id: str
    """The ID of the call's event in the log. It is unique, so it can be an idempotency key for other services."""
    principal: Author | None = None
    """Who sent the message or added the step that the turn runs. None: unknown."""
    context: JsonObject = field(default_factory=dict)
    """The `context` of the session and of the message, without Footplate's own keys such as `directory`."""
    settings: JsonObject = field(default_factory=dict)
    """The `settings` of the toolset in the agent's definition."""
    working_directory: str | None = None
    """The path of the working directory inside the session's environment, which is not a path of the worker."""
    cancelled: threading.Event = field(default_factory=threading.Event)
    """Set when the result is no longer needed: after the timeout, an interrupt, or the loss of the turn. A function
    that is not async should check it and return, because a thread cannot be ended from outside."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One function of a toolset."""

    name: str
    description: str
    function: Callable[..., Any]
    input_model: type[BaseModel]
    """Validates the input of a call, with one field for each parameter of the function."""
    context_parameter: str | None
    timeout_seconds: float

    @property
    def is_async(self) -> bool:
        return bool(inspect.iscoroutinefunction(self.function))

    @property
    def input_schema(self) -> dict[str, Any]:
        schema = self.input_model.model_json_schema()
        return {"properties": {}, **{key: value for key, value in schema.items() if key != "title"}}

    def bind_arguments(self, arguments: JsonObject, context: ToolContext) -> dict[str, Any]:
        """Return the function's keyword arguments. Raises `pydantic.ValidationError` if the input is not valid."""
        bound = dict(self.input_model.model_validate(arguments))
        return bound if self.context_parameter is None else {**bound, self.context_parameter: context}


class Toolset:
    """A set of tools. Its name for agents is the name of its entry point."""

    def __init__(self) -> None:
        self._tools: dict[str, Tool] = {}

    @property
    def tools(self) -> Mapping[str, Tool]:
        """The tools by name."""
        return self._tools

    @overload
    def tool(self, function: AnyFunction, /) -> AnyFunction: ...

    @overload
    def tool(
        self, /, *, name: str | None = None, timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS
    ) -> Callable[[AnyFunction], AnyFunction]: ...

    def tool(
        self,
        function: AnyFunction | None = None,
        /,
        *,
        name: str | None = None,
        timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS,
    ) -> AnyFunction | Callable[[AnyFunction], AnyFunction]:
        """Add a function as a tool. Its docstring describes the tool to the model, and its annotated parameters are the
        input. The function itself stays as it is.

        `name`: the tool's name, if it differs from the function's. `timeout_seconds`: how long a call may take.
        """

        def add(function: AnyFunction) -> AnyFunction:
            tool = _create_tool(function, name or function.__name__, timeout_seconds)
            if tool.name in self._tools:
                raise ValueError(f"Two tools of the toolset are named {tool.name!r}.")
            self._tools[tool.name] = tool
            return function

        return add if function is None else add(function)


def _create_tool(function: Callable[..., Any], name: str, timeout_seconds: float) -> Tool:
    if not _NAME.fullmatch(name):
        raise ValueError(f"The tool name {name!r} is not valid. Use up to 64 letters, digits, `_` and `-`.")
    if not (description := inspect.getdoc(function)):
        raise ValueError(f"The tool {name!r} has no docstring. Describe it there, because the model reads it.")
    if timeout_seconds <= 0:
        raise ValueError(f"`timeout_seconds` of the tool {name!r} must be greater than 0.")
    hints = get_type_hints(function, include_extras=True)
    fields: dict[str, Any] = {}
    context_parameter: str | None = None
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind not in {parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY}:
            raise ValueError(f"The tool {name!r} must have parameters with names only, not {parameter}.")
        if parameter.name not in hints:
            raise ValueError(f"The parameter {parameter.name!r} of the tool {name!r} has no type.")
        if hints[parameter.name] is ToolContext:
            context_parameter = parameter.name
            continue
        default = ... if parameter.default is parameter.empty else parameter.default
        fields[parameter.name] = (hints[parameter.name], default)
    config = ConfigDict(extra="forbid", protected_namespaces=())
    return Tool(
        name=name,
        description=description,
        function=function,
        input_model=create_model(name, __config__=config, **fields),
        context_parameter=context_parameter,
        timeout_seconds=timeout_seconds,
    )
