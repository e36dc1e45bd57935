"""Defines `footplate config`, which manages server profiles. A profile contains a server's address, an API key and
defaults.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated

import typer

from footplate.cli import options
from footplate.cli.commands.help_formatter import GroupedHelp
from footplate.cli.profile import server_profiles
from footplate.cli.profile.server_profiles import LOCAL_PROFILE, PROFILE_KEYS, ProfileConfig
from footplate.cli.render import terminal_io

app = typer.Typer(
    help="Manage profiles for several servers. They are stored in a file that only you can read.",
    no_args_is_help=True,
    cls=GroupedHelp,
    epilog=f"Keys: {', '.join(PROFILE_KEYS)}. FOOTPLATE_BASE_URL and FOOTPLATE_API_KEY in the environment "
    f"override a profile.",
)
Key = Annotated[str, typer.Argument(metavar="KEY", help=f"One of {', '.join(PROFILE_KEYS)}.")]
TargetProfile = Annotated[
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
    profile: TargetProfile = None,
) -> None:
    """Set a value in a profile. Creates the profile if it is new. The first profile becomes the current one."""
    config = _load_config()
    name = _profile_name(config, profile)
    _check_key(key)
    new_value = value if value is not None else terminal_io.prompt_value(key, hidden=key == "api_key")
    if key == "timeout" and new_value and server_profiles.parse_timeout(new_value) is None:
        raise typer.BadParameter("timeout is a number of seconds, or 0 for none.", param_hint="VALUE")
    fields = {**config.profiles.get(name, {}), key: new_value}
    if not new_value:
        fields.pop(key)
    _save_config(replace(config, current=config.current or name, profiles={**config.profiles, name: fields}))


@app.command("get")
def get_value(key: Key, profile: TargetProfile = None) -> None:
    """Print a value of a profile. Exits with 1 if it is not set."""
    config = _load_config()
    _check_key(key)
    value = config.profiles.get(_profile_name(config, profile), {}).get(key)
    if value is None:
        terminal_io.print_error(f"{key} is not set in the profile {_profile_name(config, profile)!r}.")
        raise typer.Exit(terminal_io.Exit.FAILED)
    terminal_io.print_result(value)


@app.command("use")
def use(
    profile: Annotated[str, typer.Argument(metavar="PROFILE", help="Name of the profile.")],
) -> None:
    """Select the profile that commands use from now on. `local` is the `footplate dev` on this machine."""
    config = _load_config()
    if profile != LOCAL_PROFILE and profile not in config.profiles:
        terminal_io.print_error(
            f"There is no profile {profile!r}.",
            f"Create it with: footplate config set base_url URL --profile {profile}",
        )
        raise typer.Exit(terminal_io.Exit.FAILED)
    _save_config(replace(config, current=profile))


@app.command("list")
def list_profiles(as_json: options.Json = False) -> None:
    """List the profiles. The current profile is marked with `*`."""
    config = _load_config()
    current = config.current or LOCAL_PROFILE
    named = {**config.profiles, LOCAL_PROFILE: _local_fields()}
    if as_json:
        from footplate.cli.render.terminal_io import print_json

        print_json([_to_json(name, fields, current=name == current) for name, fields in named.items()])
        return
    from footplate.cli.render import resource_tables

    rows = [
        (
            "*" if name == current else "",
            name,
            fields.get("base_url", "not running" if name == LOCAL_PROFILE else "not set"),
            _mask_secret(fields.get("api_key")) or "",
            " ".join(f"{key}={fields[key]}" for key in PROFILE_KEYS[2:] if key in fields),
        )
        for name, fields in named.items()
    ]
    resource_tables.print_plain_table(rows, "", "PROFILE", "SERVER", "KEY", "DEFAULTS")


@app.command("rm")
def remove(
    profile: Annotated[str, typer.Argument(metavar="PROFILE", help="Name of the profile.")],
) -> None:
    """Remove a profile."""
    config = _load_config()
    if profile not in config.profiles:
        terminal_io.print_error(f"There is no profile {profile!r}.", "`footplate config list` shows the profiles.")
        raise typer.Exit(terminal_io.Exit.FAILED)
    rest = {name: fields for name, fields in config.profiles.items() if name != profile}
    _save_config(ProfileConfig(None if config.current == profile else config.current, rest))


def _load_config() -> ProfileConfig:
    try:
        return server_profiles.load_config()
    except server_profiles.NoServerSelected as error:
        terminal_io.print_error(str(error))
        raise typer.Exit(terminal_io.Exit.FAILED) from None


def _save_config(config: ProfileConfig) -> None:
    server_profiles.save_config(config)


def _profile_name(config: ProfileConfig, given: str | None) -> str:
    name = given or config.current or "default"
    if name == LOCAL_PROFILE:
        raise typer.BadParameter(
            f"The profile `{LOCAL_PROFILE}` refers to `footplate dev` on this machine and needs no settings. "
            "Choose another profile with --profile."
        )
    return name


def _check_key(key: str) -> None:
    if key not in PROFILE_KEYS:
        raise typer.BadParameter(
            f"{key!r} is not a valid key. Valid keys: {', '.join(PROFILE_KEYS)}.", param_hint="KEY"
        )


def _local_fields() -> dict[str, str]:
    try:
        found = server_profiles.local_server()
    except server_profiles.NoServerSelected:
        return {}
    fields = {"base_url": found.base_url, "api_key": found.api_key}
    return {**fields, "model": found.model} if found.model else fields


def _mask_secret(secret: str | None) -> str | None:
    return f"…{secret[-4:]}" if secret else None


def _to_json(name: str, fields: Mapping[str, str], *, current: bool) -> dict[str, object]:
    from footplate.cli.json_output_models import ProfileAnswer

    shown = {**{key: fields.get(key) for key in PROFILE_KEYS}, "api_key": _mask_secret(fields.get("api_key"))}
    return ProfileAnswer(name=name, current=current, **shown).model_dump()
