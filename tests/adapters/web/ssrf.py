"""Addresses and spellings that lead a client to this machine, its network or its cloud."""

from __future__ import annotations

ADDRESSES: dict[str, tuple[str, ...]] = {
    "loopback": ("127.0.0.1", "127.0.0.2", "127.1.2.3", "127.255.255.254", "::1"),
    "this network": ("0.0.0.0", "0.1.2.3", "::"),
    "private": ("10.0.0.1", "10.255.255.254", "172.16.0.1", "172.31.255.254", "192.168.0.1", "192.168.255.254"),
    "unique local": ("fc00::1", "fd00::1", "fd12:3456:789a::1", "fdff:ffff::1"),
    "link local": ("169.254.0.1", "169.254.255.254", "fe80::1", "febf::1"),
    "site local": ("fec0::1", "feff::1"),
    "shared": ("100.64.0.1", "100.127.255.254"),
    "benchmarks": ("198.18.0.1", "198.19.255.254", "2001:2::1"),
    "documentation": ("192.0.2.1", "198.51.100.7", "203.0.113.9", "2001:db8::1", "3fff::1", "3fff:fff::1"),
    "multicast": ("224.0.0.1", "239.255.255.250", "232.1.1.1", "ff02::1", "ff0e::1", "ff05::2"),
    "reserved": ("240.0.0.1", "255.255.255.255", "254.1.1.1", "4000::1", "8000::1", "e000::1", "100::1", "5f00::1"),
    "protocols": ("192.0.0.1", "192.0.0.9", "192.0.0.170", "2001:1::1", "2001:10::1", "2001:20::1", "2001:1ff::1"),
    "anycast": ("192.31.196.1", "192.52.193.1", "192.175.48.1", "192.88.99.1", "2620:4f:8000::1"),
    "metadata": (
        *("169.254.169.254", "169.254.170.2", "169.254.169.253", "100.100.100.200", "168.63.129.16", "192.0.0.192"),
        *("169.254.0.23", "fd00:ec2::254", "fd00:ec2::253", "fd20:ce::254"),
    ),
    "mapped": (
        "::ffff:127.0.0.1",
        "::ffff:10.0.0.1",
        "::ffff:169.254.169.254",
        "::ffff:168.63.129.16",
        "::ffff:8.8.8.8",
    ),
    "compatible": ("::127.0.0.1", "::10.0.0.1", "::169.254.169.254", "::8.8.8.8"),
    "translated": ("::ffff:0:127.0.0.1", "::ffff:0:10.0.0.1"),
    "nat64": (
        *("64:ff9b::7f00:1", "64:ff9b::a00:1", "64:ff9b::a9fe:a9fe", "64:ff9b::808:808", "64:ff9b:1::1"),
        *("64:ff9b:1::7f00:1", "64:ff9b:1:7f00:0:100::"),
    ),
    "6to4": ("2002:7f00:1::", "2002:a00:1::1", "2002:a9fe:a9fe::", "2002:c0a8:1::1", "2002:808:808::1"),
    "teredo": ("2001:0:7f00:1::1", "2001:0:4136:e378:8000:63bf:80ff:fffe", "2001::1"),
    "isatap": ("2606:4700::5efe:7f00:1", "2606:4700::200:5efe:a00:1"),
}
"""Addresses by purpose."""

SPELLINGS: dict[str, tuple[str, ...]] = {
    "plain": ("127.0.0.1:{port}", "localhost:{port}", "LOCALHOST:{port}", "[::1]:{port}", "[0:0:0:0:0:0:0:1]:{port}"),
    "short": ("127.1:{port}", "127.0.1:{port}", "0:{port}", "0.0.0.0:{port}", "127.000.000.001:{port}"),
    "number": ("2130706433:{port}", "0x7f000001:{port}", "0x7F.1:{port}", "017700000001:{port}", "0177.0.0.1:{port}"),
    "mixed": ("0x7f.0.0.1:{port}", "127.0.0x0.1:{port}", "0177.0.0.0x1:{port}", "127.0x1:{port}", "0x7f.0x1:{port}"),
    "in six": (
        *("[::ffff:127.0.0.1]:{port}", "[::ffff:7f00:1]:{port}", "[0:0:0:0:0:ffff:127.0.0.1]:{port}"),
        *("[::]:{port}", "[0000::ffff:7F00:0001]:{port}"),
    ),
    "dots": ("localhost.:{port}", "127.0.0.1.:{port}", "127。0。0。1:{port}", "127．0．0．1:{port}"),
    "letters": ("①②⑦.⓪.⓪.①:{port}", "１２７.0.0.1:{port}", "ｌｏｃａｌｈｏｓｔ:{port}", "ⓛⓞⓒⓐⓛⓗⓞⓢⓣ:{port}"),
    "userinfo": (
        *("good.example@127.0.0.1:{port}", "good.example:80@127.0.0.1:{port}", "a:b@localhost:{port}"),
        *("good.example%40x@127.0.0.1:{port}", "@127.0.0.1:{port}"),
    ),
}
"""Spellings of this machine. An unguarded client follows at least one of each class."""

CONFUSED: tuple[str, ...] = (
    "http://127.0.0.1:{port}\\@good.example/",
    "http://good.example\\@127.0.0.1:{port}/",
    "http://127.0.0.1\0.good.example:{port}/",
    "http://127.0.0.1%00.good.example:{port}/",
    "http://127.0.0.1%2f.good.example:{port}/",
    "http://127.0.0.1\t:{port}/",
    "http://127.0.0.1\n:{port}/",
    "http://127.0.0.1 :{port}/",
    "http:/127.0.0.1:{port}/",
    "http:127.0.0.1:{port}/",
    "//127.0.0.1:{port}/",
    "http:///127.0.0.1:{port}/",
    "http://[127.0.0.1]:{port}/",
    "http://[::1%25lo]:{port}/",
    "http://[::1%lo]:{port}/",
    "http://127.0.0.1:{port}:80/",
    "http://127.0.0.1:+{port}/",
    "ftp://127.0.0.1:{port}/",
    "file:///etc/passwd",
    "gopher://127.0.0.1:{port}/_GET",
    "dict://127.0.0.1:{port}/",
    "unix:///var/run/docker.sock",
    "jar:http://127.0.0.1:{port}/!/",
    "data:text/plain,x",
    "view-source:http://127.0.0.1:{port}/",
)
"""Spellings that parsers disagree about, and schemes that lead elsewhere."""
