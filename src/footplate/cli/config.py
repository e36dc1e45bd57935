"""Defines `footplate config`, which manages the profiles of the servers that a user works with."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated

import typer

from footplate.cli import options, output, profiles
from footplate.cli.grouping import Grouped
from footplate.cli.profiles import KEYS, LOCAL, Config

app = typer.Typer(
    help="Manage profiles for several servers, in one file that only you can read.",
    no_args_is_help=True,
    cls=Grouped,
    epilog=f"Keys: {', '.join(KEYS)}. FOOTPLATE_BASE_URL and FOOTPLATE_API_KEY in the environment override a profile.",
)
Key = Annotated[str, typer.Argument(metavar="KEY", help=f"One of {', '.join(KEYS)}.")]
Into = Annotated[
    str | None,
    typer.Option(
        "--profile",
        metavar="NAME",
        help="The profile.  [default: the current one, else `default`]",
    ),
]


@app.command("set")
def set_value(
    key: Key,
    value: Annotated[
        str | None, typer.Argument(metavar="VALUE", help="The value. If omitted, you are prompted for it.")
    ] = None,
    profile: Into = None,
) -> None:
    """Set a value in a profile. A new profile is created; the first one becomes the current profile."""
    config = _load()
    name = _name(config, profile)
    _check(key)
    given = value if value is not None else output.prompt_value(key, hidden=key == "api_key")
    fields = {**config.profiles.get(name, {}), key: given}
    if not given:
        fields.pop(key)
    _save(replace(config, current=config.current or name, profiles={**config.profiles, name: fields}))


@app.command("get")
def get_value(key: Key, profile: Into = None) -> None:
    """Print a value of a profile. Exits with 1 if it is not set."""
    config = _load()
    _check(key)
    value = config.profiles.get(_name(config, profile), {}).get(key)
    if value is None:
        output.complain(f"{key} is not set in the profile {_name(config, profile)!r}.")
        raise typer.Exit(output.Exit.FAILED)
    output.print_result(value)


@app.command("use")
def use(
    profile: Annotated[str, typer.Argument(metavar="PROFILE", help="Name of the profile.")],
) -> None:
    """Select the profile that commands use from now on. `local` is a `footplate dev` on this machine."""
    config = _load()
    if profile != LOCAL and profile not in config.profiles:
        output.complain(
            f"There is no profile {profile!r}.",
            f"Create it with: footplate config set base_url URL --profile {profile}",
        )
        raise typer.Exit(output.Exit.FAILED)
    _save(replace(config, current=profile))


@app.command("list")
def list_profiles(as_json: options.Json = False) -> None:
    """List the profiles. The current one is marked with a star."""
    config = _load()
    current = config.current or LOCAL
    named = {**config.profiles, LOCAL: _local()}
    if as_json:
        from footplate.cli.output import print_json

        print_json([_answer(name, fields, current=name == current) for name, fields in named.items()])
        return
    from footplate.cli import tables

    rows = [
        (
            "*" if name == current else "",
            name,
            fields.get("base_url", "not running" if name == LOCAL else "not set"),
            _masked(fields.get("api_key")) or "",
            " ".join(f"{key}={fields[key]}" for key in KEYS[2:] if key in fields),
        )
        for name, fields in named.items()
    ]
    tables.plain(rows, "", "PROFILE", "SERVER", "KEY", "DEFAULTS")


@app.command("rm")
def remove(
    profile: Annotated[str, typer.Argument(metavar="PROFILE", help="Name of the profile.")],
) -> None:
    """Remove a profile."""
    config = _load()
    if profile not in config.profiles:
        output.complain(f"There is no profile {profile!r}.", "`footplate config list` shows the profiles.")
        raise typer.Exit(output.Exit.FAILED)
    rest = {name: fields for name, fields in config.profiles.items() if name != profile}
    _save(Config(None if config.current == profile else config.current, rest))


def _load() -> Config:
    try:
        return profiles.load()
    except profiles.NoServer as error:
        output.complain(str(error))
        raise typer.Exit(output.Exit.FAILED) from None


def _save(config: Config) -> None:
    profiles.save(config)


def _name(config: Config, given: str | None) -> str:
    name = given or config.current or "default"
    if name == LOCAL:
        raise typer.BadParameter(
            f"`{LOCAL}` is a `footplate dev` on this machine and needs no settings. Choose another with --profile."
        )
    return name


def _check(key: str) -> None:
    if key not in KEYS:
        raise typer.BadParameter(f"{key!r} is not a valid key. Valid keys: {', '.join(KEYS)}.", param_hint="KEY")


def _local() -> dict[str, str]:
    try:
        found = profiles.local_server()
    except profiles.NoServer:
        return {}
    fields = {"base_url": found.base_url, "api_key": found.api_key}
    return {**fields, "model": found.model} if found.model else fields


def _masked(secret: str | None) -> str | None:
    return f"…{secret[-4:]}" if secret else None


def _answer(name: str, fields: Mapping[str, str], *, current: bool) -> dict[str, object]:
    from footplate.cli.answers import ProfileAnswer

    shown = {**{key: fields.get(key) for key in KEYS}, "api_key": _masked(fields.get("api_key"))}
    return ProfileAnswer(name=name, current=current, **shown).model_dump()
