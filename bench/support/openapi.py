"""Reads the operations of an OpenAPI document and builds the smallest request that each accepts.

Claims generate their requests from it, so that they cover a new route without a change.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

_REF: Final = "#/components/schemas/"
_BODIES: Final = ("application/json", "application/x-ndjson")
"""Of an ndjson body, the schema describes the first line."""
_METHODS: Final = ("get", "post", "put", "patch", "delete")


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    method: str
    path: str
    path_parameters: Sequence[str]
    query_parameters: Mapping[str, Mapping[str, Any]]
    """Schemas by parameter name."""
    body: Mapping[str, Any] | None
    """The schema of the JSON body."""
    needs_key: bool

    def __str__(self) -> str:
        return f"{self.method} {self.path}"

    @property
    def is_list(self) -> bool:
        return "page" in self.query_parameters

    def url(self, ids: Mapping[str, str]) -> str:
        return self.path.format_map({name: ids[name] for name in self.path_parameters})


def is_supported(schema: Mapping[str, Any]) -> bool:
    """Returns whether a field is supported. Some fields exist only to be refused with a reason."""
    return "not supported" not in schema.get("description", "").lower()


class OpenApiDocument:
    def __init__(self, document: Mapping[str, Any]) -> None:
        self._document = document
        self._schemas: Mapping[str, Any] = document.get("components", {}).get("schemas", {})

    def operations(self) -> Iterator[Operation]:
        for path, item in self._document["paths"].items():
            for method in _METHODS:
                if method in item:
                    yield self._operation(method.upper(), path, item[method])

    def minimal_value(self, schema: Mapping[str, Any], given: Mapping[str, Any]) -> Any:
        """Returns the smallest valid value. Required properties that are in `given` take their value from there."""
        schema = self._resolve(schema)
        for keyword in ("const", "default"):
            if keyword in schema:
                return schema[keyword]
        if "enum" in schema:
            return schema["enum"][0]
        for keyword in ("anyOf", "oneOf", "allOf"):
            if keyword in schema:
                return self.minimal_value(schema[keyword][0], given)
        return self._by_type(schema, given)

    def property_paths(
        self, schema: Any, outer: tuple[str, ...] = (), seen: frozenset[str] = frozenset()
    ) -> Iterator[tuple[tuple[str, ...], Mapping[str, Any]]]:
        """Yields every property at any depth, with the names that lead to it. Lists and choices have no name."""
        if reference := schema.get("$ref"):
            if reference not in seen:
                yield from self.property_paths(self._resolve(schema), outer, seen | {reference})
            return
        for name, inner in schema.get("properties", {}).items():
            yield (*outer, name), inner
            yield from self.property_paths(inner, (*outer, name), seen)
        for inner in self._choices(schema):
            yield from self.property_paths(inner, outer, seen)

    def accepts_text(self, schema: Mapping[str, Any]) -> bool:
        """Returns whether a string, such as an id, is valid: alone, in a list, or as one of several choices."""
        schema = self._resolve(schema)
        return schema.get("type") == "string" or any(map(self.accepts_text, self._choices(schema)))

    def _operation(self, method: str, path: str, described: Mapping[str, Any]) -> Operation:
        parameters = described.get("parameters", [])
        content = described.get("requestBody", {}).get("content", {})
        body = next((content[kind].get("schema") for kind in _BODIES if kind in content), None)
        return Operation(
            method=method,
            path=path,
            path_parameters=[item["name"] for item in parameters if item["in"] == "path"],
            query_parameters={item["name"]: item.get("schema", {}) for item in parameters if item["in"] == "query"},
            body=body,
            needs_key=described.get("security", self._document.get("security")) != [],
        )

    def _by_type(self, schema: Mapping[str, Any], given: Mapping[str, Any]) -> Any:
        match schema.get("type"):
            case "object":
                properties = schema.get("properties", {})
                required = schema.get("required", ())
                return {
                    name: given[name] if name in given else self.minimal_value(properties[name], given)
                    for name in required
                }
            case "array":
                return [self.minimal_value(schema["items"], given)] * schema.get("minItems", 0)
            case "string":
                return "x" * max(1, schema.get("minLength", 0))
            case "integer" | "number":
                return max(1, schema.get("minimum", 0))
            case "boolean":
                return False
            case "null":
                return None
        raise ValueError(f"no example value is known for the schema {schema}")

    @staticmethod
    def _choices(schema: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        """Returns the schemas of an item, and of each choice."""
        choices = [each for keyword in ("anyOf", "oneOf", "allOf") for each in schema.get(keyword, ())]
        return [*choices, schema["items"]] if "items" in schema else choices

    def _resolve(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        while "$ref" in schema:
            schema = self._schemas[schema["$ref"].removeprefix(_REF)]
        return schema
