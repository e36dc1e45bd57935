"""Builds the ASGI application of the API from its routes and middleware, without global state."""

from importlib.metadata import version

from fastapi import FastAPI
from starlette.exceptions import HTTPException

from footplate.api import openapi
from footplate.api.middleware.error_handlers import on_footplate_error, on_http_exception
from footplate.api.middleware.host_and_origin_guard import ForeignRequestMiddleware
from footplate.api.middleware.request_context import RequestContextMiddleware
from footplate.api.routes import (
    agents,
    api_keys,
    approvals,
    audit,
    backends,
    dashboard,
    deployment_health,
    environments,
    feed,
    files,
    health,
    inbox,
    limits,
    members,
    models,
    notifications,
    policies,
    projects,
    questions,
    teams,
    unsupported,
    usage,
    webhooks,
    workspaces,
)
from footplate.api.routes.session import (
    batches,
    comments,
    delivery,
    deployments,
    diffs,
    events,
    forks,
    resources,
    session_templates,
    sessions,
    steps,
    terminal,
    threads,
    transcripts,
    triggers,
    turns,
    websocket,
)
from footplate.api.routes.sign_in import browser_sessions, device_authorizations, me, oidc
from footplate.api.service_container import ApiServices
from footplate.domain.errors import FootplateError


def create_app(services: ApiServices) -> FastAPI:
    app = FastAPI(
        title="Footplate",
        description="API for agents, environments, sessions and events.",
        version=version("footplate"),
        openapi_url=None,  # served by `create_document_route`
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        exception_handlers={FootplateError: on_footplate_error, HTTPException: on_http_exception},
        telemetry={"tracing": False, "metrics": False, "logs": False},  # the middleware records it
    )
    app.state.services = services
    app.add_middleware(ForeignRequestMiddleware, guard=services.request_guard)
    app.add_middleware(RequestContextMiddleware)
    for module in (
        *(
            events,
            transcripts,
            sessions,
            turns,
            steps,
            terminal,
            batches,
            deployments,
            triggers,
            agents,
            environments,
            forks,
            threads,
            projects,
            workspaces,
            usage,
            diffs,
            delivery,
            files,
            resources,
            policies,
            approvals,
            questions,
            inbox,
            comments,
            session_templates,
            audit,
            members,
            teams,
            api_keys,
            limits,
            backends,
            deployment_health,
            models,
            feed,
            webhooks,
            notifications,
            me,
            browser_sessions,
            oidc,
            device_authorizations,
        ),
        health,
        unsupported,
    ):
        # `include_router` would match each request twice. Matching is a linear search, so busy routes come first.
        app.router.routes.extend(module.router.routes)
    app.router.routes.extend([*terminal.socket_routes, *websocket.routes])
    app.router.routes.append(openapi.create_document_route(app))
    app.router.routes.append(dashboard.create_dashboard_route())
    app.openapi = openapi.make_document_function(app)  # pyrefly: ignore[method-assign]
    return app
