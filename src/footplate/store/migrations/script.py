"""Runs a migration's SQL file as it stands: a revision is plain SQL, Alembic keeps the order and the record."""

from importlib.resources import files

from alembic import op  # pyrefly: ignore[implicit-reexport]  # its public name


def run_sql(name: str) -> None:
    sql = files("footplate.store.migrations.versions").joinpath(name).read_text()
    # The driver's own execute takes a whole script; SQLAlchemy's would prepare it as one statement.
    op.get_bind().connection.dbapi_connection.run_async(lambda connection: connection.execute(sql))  # pyrefly: ignore[missing-attribute]
