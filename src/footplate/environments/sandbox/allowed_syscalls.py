"""The system calls that programs in a sandbox or container may make; all other system calls fail.

The list omits calls that administer the machine, such as mounts, kernel modules, reboot, swap and setting clocks. It
also omits obsolete calls and powerful kernel features such as keyrings, bpf, perf events, userfaultfd and io_uring. The
old asynchronous I/O (`io_setup`) is omitted because all users of the machine share its limited number of queues.
`ptrace` is allowed for debuggers and leak checkers. It can reach only processes that the sandbox's user started inside
the sandbox.
"""

from typing import Final

_FILES: Final = """
access cachestat chdir chmod chown close close_range copy_file_range creat dup dup2 dup3 faccessat faccessat2
fadvise64 fallocate fchdir fchmod fchmodat fchmodat2 fchown fchownat fcntl fdatasync fgetxattr flistxattr flock
fremovexattr fsetxattr fstat fstatfs fsync ftruncate futimesat getcwd getdents getdents64 getxattr inotify_add_watch
inotify_init inotify_init1 inotify_rm_watch ioctl landlock_add_rule landlock_create_ruleset landlock_restrict_self
lchown lgetxattr link linkat listxattr llistxattr lremovexattr lseek lsetxattr lstat memfd_create mkdir mkdirat mknod
mknodat name_to_handle_at newfstatat open openat openat2 pipe pipe2 pread64 preadv preadv2 pwrite64 pwritev pwritev2
read readahead readlink readlinkat readv removexattr rename renameat renameat2 rmdir sendfile setxattr splice stat
statfs statx symlink symlinkat sync sync_file_range syncfs tee truncate umask unlink unlinkat utime utimensat utimes
vmsplice write writev
"""
_MEMORY: Final = """
brk madvise map_shadow_stack membarrier memfd_secret mincore mlock mlock2 mlockall mmap mprotect mremap mseal msync
munlock munlockall munmap pkey_alloc pkey_free pkey_mprotect process_madvise process_mrelease process_vm_readv
process_vm_writev remap_file_pages
"""
_PROCESSES: Final = """
arch_prctl capget capset clone clone3 execve execveat exit exit_group fork get_robust_list get_thread_area getcpu
getegid geteuid getgid getgroups getitimer getpgid getpgrp getpid getppid getpriority getresgid getresuid getrlimit
getrusage getsid gettid getuid ioprio_get ioprio_set kcmp pidfd_getfd pidfd_open pidfd_send_signal prctl prlimit64
ptrace rseq sched_get_priority_max sched_get_priority_min sched_getaffinity sched_getattr sched_getparam
sched_getscheduler sched_rr_get_interval sched_setaffinity sched_setattr sched_setparam sched_setscheduler sched_yield
seccomp set_robust_list set_thread_area set_tid_address setfsgid setfsuid setgid setgroups setitimer setpgid
setpriority setregid setresgid setresuid setreuid setrlimit setsid setuid sysinfo uname vfork wait4 waitid
"""
_SIGNALS_AND_TIME: Final = """
alarm clock_getres clock_gettime clock_nanosleep getrandom gettimeofday kill nanosleep pause restart_syscall
rt_sigaction rt_sigpending rt_sigprocmask rt_sigqueueinfo rt_sigreturn rt_sigsuspend rt_sigtimedwait rt_tgsigqueueinfo
sigaltstack signalfd signalfd4 tgkill time timer_create timer_delete timer_getoverrun timer_gettime timer_settime
timerfd_create timerfd_gettime timerfd_settime times tkill
"""
_WAITING: Final = """
epoll_create epoll_create1 epoll_ctl epoll_ctl_old epoll_pwait epoll_pwait2 epoll_wait epoll_wait_old eventfd eventfd2
futex futex_requeue futex_wait futex_waitv futex_wake poll ppoll pselect6 select
"""
_COMMUNICATION: Final = """
accept accept4 bind connect getpeername getsockname getsockopt listen mq_getsetattr mq_notify mq_open mq_timedreceive
mq_timedsend mq_unlink msgctl msgget msgrcv msgsnd recvfrom recvmmsg recvmsg semctl semget semop semtimedop sendmmsg
sendmsg sendto setsockopt shmat shmctl shmdt shmget shutdown socketpair
"""

_GROUPS: Final = (_FILES, _MEMORY, _PROCESSES, _SIGNALS_AND_TIME, _WAITING, _COMMUNICATION)
ALLOWED_SYSCALLS: Final = tuple(sorted({name for group in _GROUPS for name in group.split()}))
"""`socket` and `personality` are allowed only for some arguments: see `seccomp`."""
