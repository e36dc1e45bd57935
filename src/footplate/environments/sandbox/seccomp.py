"""Builds the two seccomp filters of a sandbox or container, as BPF programs.

The first filter allows the listed system calls. Other calls fail as on a kernel that does not implement them, so
programs use their fallbacks. The second filter rejects certain arguments of allowed calls. A program for another
architecture, such as 32-bit, is killed at its first system call.
"""

import errno
import os
import resource
import socket
import stat
import tempfile
from functools import cache
from typing import TYPE_CHECKING, Final

from footplate.environments.sandbox.allowed_syscalls import ALLOWED_SYSCALLS

if TYPE_CHECKING:
    import pyseccomp

_SOCKET_PROTOCOLS: Final = {
    socket.AF_UNIX: (0, socket.AF_UNIX),
    socket.AF_INET: (0, socket.IPPROTO_ICMP, socket.IPPROTO_TCP, socket.IPPROTO_UDP),
    socket.AF_INET6: (0, socket.IPPROTO_ICMPV6, socket.IPPROTO_TCP, socket.IPPROTO_UDP),
    socket.AF_NETLINK: (socket.NETLINK_ROUTE,),
}
"""The allowed socket families and protocols. For any other one the kernel could load a module on demand. AF_VSOCK is
excluded: it reaches the host of a virtual machine, regardless of the network namespace.
"""
_PERSONALITIES: Final = (0x0, 0x8, 0x20000, 0x20008, 0xFFFFFFFF)
_BINARY_TREE: Final = 2
_NETLINK_AUDIT: Final = 9
_LOW_32_BITS: Final = 0xFFFFFFFF
_TERMINAL_INPUT: Final = (0x5412, 0x541C)
"""TIOCSTI and TIOCLINUX, which inject input into a terminal that another process reads."""
_NAMESPACES: Final = {
    "CLONE_NEWTIME": 0x00000080,
    "CLONE_NEWNS": 0x00020000,
    "CLONE_NEWCGROUP": 0x02000000,
    "CLONE_NEWUTS": 0x04000000,
    "CLONE_NEWIPC": 0x08000000,
    "CLONE_NEWUSER": 0x10000000,
    "CLONE_NEWPID": 0x20000000,
    "CLONE_NEWNET": 0x40000000,
}
_MODE_ARGUMENTS: Final = {
    "chmod": 1, "fchmod": 1, "fchmodat": 2, "fchmodat2": 2, "creat": 1, "open": 2, "openat": 3, "mkdir": 1,
    "mkdirat": 2, "mknod": 1, "mknodat": 2,
}  # fmt: skip
"""System calls with a mode, and the index of that argument."""


@cache
def build_filters(*, allow_setuid: bool = False) -> tuple[bytes, bytes]:
    """Returns both filters, which are built once per worker. There are two because one libseccomp filter cannot express
    both kinds of rules for the same call. The kernel evaluates both, and the stricter result applies.

    With `allow_setuid`, setuid and setgid bits may be set, because package managers install such programs into an
    image. There they give no process the rights of root.
    """
    return _export_filter(_allow_list()), _export_filter(_refused_arguments(allow_setuid=allow_setuid))


def _allow_list() -> "pyseccomp.SyscallFilter":
    import pyseccomp  # importing it loads libseccomp, which only workers with a sandbox need

    allow = pyseccomp.SyscallFilter(pyseccomp.ERRNO(errno.ENOSYS))
    allow.set_attr(pyseccomp.Attr.CTL_OPTIMIZE, _BINARY_TREE)
    for name in ALLOWED_SYSCALLS:
        if _syscall_exists(name):
            allow.add_rule(pyseccomp.ALLOW, name)
    for family, protocols in _SOCKET_PROTOCOLS.items():
        for protocol in protocols:
            arguments = pyseccomp.Arg(0, pyseccomp.EQ, family), pyseccomp.Arg(2, pyseccomp.EQ, protocol)
            allow.add_rule(pyseccomp.ALLOW, "socket", *arguments)
    for persona in _PERSONALITIES:
        allow.add_rule(pyseccomp.ALLOW, "personality", pyseccomp.Arg(0, pyseccomp.EQ, persona))
    return allow


def _refused_arguments(*, allow_setuid: bool) -> "pyseccomp.SyscallFilter":
    import pyseccomp

    refuse = pyseccomp.SyscallFilter(pyseccomp.ALLOW)
    for request in _TERMINAL_INPUT:
        refuse.add_rule(
            pyseccomp.ERRNO(errno.EPERM), "ioctl", pyseccomp.Arg(1, pyseccomp.MASKED_EQ, _LOW_32_BITS, request)
        )
    for flag in _NAMESPACES.values():
        refuse.add_rule(pyseccomp.ERRNO(errno.EPERM), "clone", pyseccomp.Arg(0, pyseccomp.MASKED_EQ, flag, flag))
    # A core limit of 0 would start a core handler of the machine (see `limits`). Nothing is dumped anyway, which is
    # what a program that sets this limit wants, so the call reports success without an effect.
    for name, index, *more in (("setrlimit", 0), ("prlimit64", 1, pyseccomp.Arg(2, pyseccomp.NE, 0))):
        core = pyseccomp.Arg(index, pyseccomp.MASKED_EQ, _LOW_32_BITS, resource.RLIMIT_CORE)
        refuse.add_rule(pyseccomp.ERRNO(0), name, core, *more)
    # It allocates disk space faster than the disk watch can measure. Libraries fall back to writing.
    refuse.add_rule(pyseccomp.ERRNO(errno.EOPNOTSUPP), "fallocate")
    # In a directory that root owns, commands of a root worker could create setuid-root programs.
    for name, mode in () if allow_setuid else _MODE_ARGUMENTS.items():
        if _syscall_exists(name):
            for bit in (stat.S_ISUID, stat.S_ISGID):
                refuse.add_rule(pyseccomp.ERRNO(errno.EPERM), name, pyseccomp.Arg(mode, pyseccomp.MASKED_EQ, bit, bit))
    # Programs that add users would fail otherwise. With the error of a kernel without audit they continue.
    audit = pyseccomp.Arg(0, pyseccomp.EQ, socket.AF_NETLINK), pyseccomp.Arg(2, pyseccomp.EQ, _NETLINK_AUDIT)
    refuse.add_rule(pyseccomp.ERRNO(errno.EPROTONOSUPPORT), "socket", *audit)
    # A filter cannot read their arguments, which are in memory. On ENOSYS, libraries fall back to the older calls.
    for name in ("clone3", "openat2"):
        refuse.add_rule(pyseccomp.ERRNO(errno.ENOSYS), name)
    return refuse


def _syscall_exists(name: str) -> bool:
    """Returns whether the call exists on this architecture and the installed libseccomp knows it."""
    import pyseccomp

    return int(pyseccomp.resolve_syscall(pyseccomp.Arch.NATIVE, name)) >= 0


def _export_filter(rules: "pyseccomp.SyscallFilter") -> bytes:
    with tempfile.TemporaryFile() as file:
        rules.export_bpf(file)
        return os.pread(file.fileno(), 1 << 20, 0)
