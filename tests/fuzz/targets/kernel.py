"""Files of the kernel and of the host, which hold names that containers chose."""

from __future__ import annotations

from glasslet.host import kernel_text
from glasslet.host.addresses import default_routes
from glasslet.host.cgroups import figures_v1 as cgroup_v1
from glasslet.host.cgroups import figures_v2 as cgroup_v2
from glasslet.host.files.env_files import EnvFileUnusable, parse_env_file
from glasslet.host.machine import _count_cpus, _memory_info
from glasslet.host.mounts.table import MountTable, MountTableUnreadable
from glasslet.host.resolver import ResolverUnreadable, parse_resolver, resolver_limits
from glasslet.host.user_ids import SubordinateIdsUnusable, parse_ids
from glasslet.stats.network import interfaces
from tests.fuzz.engine import Target
from tests.fuzz.targets.making import bytes_target

MOUNTS = (
    b"22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
    b"44 22 0:40 / /var/lib/kubelet/pods/u/volumes/a\\040b rw shared:9 - tmpfs tmpfs rw,size=1024k\n"
    b"45 22 0:41 / /mnt\\012x ro - nfs4 server:/export rw,vers=4.2\n"
)
RESOLVER = (
    b"# comment\nnameserver 10.0.0.1\nnameserver fd00::1\nsearch a.example b.example.\noptions ndots:5 timeout:2\n"
)
PRESSURE = b"some avg10=0.00 avg60=1.50 avg300=0.00 total=123\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=7\n"
IO_STAT = b"8:0 rbytes=1459200 wbytes=314773504 rios=192 wios=353 dbytes=0 dios=0\n"
BLKIO = b"8:0 Read 4096\n8:0 Write 0\n8:0 Total 4096\nTotal 4096\n"
NET = (
    b"Inter-|   Receive                                                |  Transmit\n"
    b" face |bytes    packets errs drop|bytes    packets errs drop\n"
    b"    lo: 1 1 0 0 0 0 0 0 1 1 0 0 0 0 0 0\n  eth0: 100 2 0 0 0 0 0 0 300 4 0 0 0 0 0 0\n"
)
ROUTES = (
    b"Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\n"
    b"eth0\t00000000\t0100000A\t0003\t0\t0\t0\t00000000\n"
)
ENV_FILE = b"A=one\n# note\nLONG=two \\\nthree\nB = x\n"


def targets() -> list[Target]:
    """All kinds."""
    return [
        bytes_target(
            "mountinfo",
            _mounts,
            [MOUNTS],
            errors=(MountTableUnreadable,),
            words=(b"\\040", b"\\134", b"\\777", b" - ", b"\n"),
        ),
        bytes_target(
            "resolv.conf",
            _resolver,
            [RESOLVER],
            errors=(ResolverUnreadable,),
            words=(b"nameserver", b"search", b"options"),
        ),
        bytes_target("pressure", kernel_text.pressure, [PRESSURE], words=(b"avg10=", b"nan", b"inf", b"total=")),
        bytes_target("cgroup numbers", _numbers, [b"123\n", b"max\n", b"-1\n", b"user 1\nsystem 2\n"]),
        bytes_target("io.stat", cgroup_v2._transfers, [IO_STAT]),
        bytes_target("blkio", cgroup_v1._by_device, [BLKIO]),
        bytes_target("net/dev", interfaces, [NET], words=(b"eth0:", b"lo:", b":")),
        bytes_target("variables of a file", _variables, [ENV_FILE], errors=(EnvFileUnusable, UnicodeDecodeError)),
        bytes_target("default routes", lambda data: default_routes(text(data), text(data)), [ROUTES]),
        bytes_target("meminfo", lambda data: _memory_info(text(data)), [b"MemTotal:       2048 kB\nMemFree: 1 kB\n"]),
        bytes_target("list of CPUs", lambda data: _count_cpus(text(data)), [b"0-3,8"]),
        bytes_target(
            "subordinate ids",
            lambda data: parse_ids(data.decode()),
            [b"0: kubelet 65536 7208960"],
            errors=(SubordinateIdsUnusable, UnicodeDecodeError),
        ),
    ]


def text(data: bytes) -> str:
    """As files of the kernel are read."""
    return data.decode("utf-8", "surrogateescape")


def _mounts(data: bytes) -> object:
    table = MountTable(data)
    return table.entries, table.at_or_below("/"), table.at("/mnt\nx")


def _resolver(data: bytes) -> object:
    return resolver_limits(parse_resolver(data.decode("utf-8", "replace")), "/etc/resolv.conf", cluster_domain="c")


def _numbers(data: bytes) -> object:
    return kernel_text.number(data), kernel_text.limit(data), kernel_text.keyed(data), kernel_text.lines(data)


def _variables(data: bytes) -> object:
    found = parse_env_file(data.decode(), {"A", "B", "LONG"})
    return found.value("A")
