"""Fills this network namespace's connection table: `fill_conntrack.py FREE` leaves FREE entries, `fill_conntrack.py empty` all of them.

The limit itself is the whole machine's, and stays as it is. Entries are of UDP between two addresses that nobody has, and ASSURED, so that the
kernel throws none of them out for a new one (struct layouts: linux/netfilter/nfnetlink.h, nfnetlink_conntrack.h)."""
import socket
import struct
import sys

NETLINK_NETFILTER = 12
CREATE, DELETE = 1 << 8, 1 << 8 | 2  # NFNL_SUBSYS_CTNETLINK, IPCTNL_MSG_CT_NEW and _DELETE
REQUEST, REQUEST_CREATE = 0x001, 0x001 | 0x400
NESTED = 0x8000
TUPLE_ORIG, TUPLE_REPLY, STATUS, TIMEOUT = 1, 2, 3, 7
IP, PROTO, SOURCE, TARGET = 1, 2, 1, 2
PROTO_NUMBER, SOURCE_PORT, TARGET_PORT = 1, 2, 3
UDP = 17
SEEN_REPLY_ASSURED_CONFIRMED = 0x2 | 0x4 | 0x8
LIFETIME_SECONDS = 120
PORTS = range(1024, 61024)
BATCH = 200


def attribute(kind, data):
    length = 4 + len(data)
    return struct.pack("=HH", length, kind) + data + bytes(-length % 4)


def connection(source, target, source_port, target_port):
    addresses = attribute(SOURCE, source) + attribute(TARGET, target)
    ports = attribute(SOURCE_PORT, struct.pack("!H", source_port)) + attribute(TARGET_PORT, struct.pack("!H", target_port))
    return attribute(NESTED | IP, addresses) + attribute(NESTED | PROTO, attribute(PROTO_NUMBER, bytes([UDP])) + ports)


def message(kind, flags, number, attributes=b""):
    body = struct.pack("=BBH", socket.AF_INET, 0, 0) + attributes
    return struct.pack("=IHHII", 16 + len(body), kind, flags, number, 0) + body


def new_entry(number):
    one, other = socket.inet_aton("198.19.254.1"), socket.inet_aton("198.19.254.2")
    port, far = PORTS[number % len(PORTS)], 1024 + number // len(PORTS)
    attributes = attribute(NESTED | TUPLE_ORIG, connection(one, other, port, far))
    attributes += attribute(NESTED | TUPLE_REPLY, connection(other, one, far, port))
    attributes += attribute(STATUS, struct.pack("!I", SEEN_REPLY_ASSURED_CONFIRMED))
    attributes += attribute(TIMEOUT, struct.pack("!I", LIFETIME_SECONDS))
    return message(CREATE, REQUEST_CREATE, number, attributes)


def setting(name):
    with open(f"/proc/sys/net/netfilter/nf_conntrack_{name}") as file:
        return int(file.read())


def main():
    kernel = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_NETFILTER)
    kernel.bind((0, 0))
    if sys.argv[1] == "empty":
        kernel.send(message(DELETE, REQUEST, 0))
    else:
        wanted = setting("max") - setting("count") - int(sys.argv[1])
        for first in range(0, wanted, BATCH):
            numbers = range(first, min(first + BATCH, wanted))
            kernel.send(b"".join(new_entry(number) for number in numbers))
    print(f"{setting('count')} of {setting('max')} entries")


main()
