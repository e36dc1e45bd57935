"""Defines `footplate workers`, `footplate queues` and `footplate versions`."""

from footplate.cli import options


def workers(as_json: options.Json = False, profile: options.Profile = None) -> None:
    """List the workers of the deployment with their turns, and those that were lost within the last day.

    Requires the role admin.
    """
    from footplate.cli.actions import deployment_health

    deployment_health.list_workers(as_json=as_json, profile=profile)


def queues(as_json: options.Json = False, profile: options.Profile = None) -> None:
    """List the task queues of the deployment, with the tasks that wait for a worker. Requires the role admin."""
    from footplate.cli.actions import deployment_health

    deployment_health.list_queues(as_json=as_json, profile=profile)


def versions(as_json: options.Json = False, profile: options.Profile = None) -> None:
    """Show the versions of the server, its workers, and what they use."""
    from footplate.cli.actions import deployment_health

    deployment_health.show_versions(as_json=as_json, profile=profile)
