"""Resolved paths and the shell's directory, as processes inside the environment see them."""

from footplate.environments.guarded import GuardedEnvironment


async def test_links_are_followed_as_inside(environment: GuardedEnvironment) -> None:
    root = environment.root
    result = await environment.shell(
        "mkdir -p src && echo x > src/a && ln -s src/a link && ln -s /etc out && ln -s circle circle", timeout=10
    )
    assert result.exit_code == 0, result
    asked = [f"{root}/{name}" for name in ("link", "out/hosts", "src/../src/a", "not/there", "circle", "a\0b")]
    found = await environment.real(asked)
    assert found == [f"{root}/src/a", "/etc/hosts", f"{root}/src/a", f"{root}/not/there", None, None]
    assert await environment.real([]) == []


async def test_the_directory_of_the_shell(environment: GuardedEnvironment) -> None:
    root = environment.root
    assert await environment.directory() == root
    await environment.shell("mkdir -p 'deep er/x' && cd 'deep er/x'", timeout=10)
    assert await environment.directory() == f"{root}/deep er/x"
    await environment.shell("pwd() { echo /elsewhere; }; PWD=/elsewhere; cd /", timeout=10)
    assert await environment.directory() == "/"
    await environment.restart_shell()
    assert await environment.directory() == root
