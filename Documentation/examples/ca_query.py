#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Channel-adapter requests from Python: shows a device with its ports and GIDs."""
import array
import errno
import fcntl
import struct
import sys

VERSION, OPEN, CLOSE, QUERY_CA = 1, 1, 2, 3


def request(ca, op, handle=0, out=array.array("B")):
    """struct kverbs_ca_request, by ioctl(2). Returns the handle, which OPEN fills in."""
    address, length = out.buffer_info()
    req = bytearray(struct.pack("=4I4Q2IQ", 64, VERSION, 0, 0, handle, 0, 0,
                                address if length else 0, 0, length, 0))
    fcntl.ioctl(ca, 0xCAC0 + op, req)
    return struct.unpack_from("=Q", req, 16)[0]


def query(ca, handle):
    """All of the answer: its second member tells how long it is, and it may have grown."""
    out = array.array("B", bytes(8))
    while True:
        try:
            request(ca, QUERY_CA, handle, out)
            return out.tobytes()
        except OSError as error:
            if error.errno != errno.EOVERFLOW:
                raise
        out = array.array("B", bytes(struct.unpack_from("=I", out, 4)[0]))


def show(attr):
    """Places are those of struct kverbs_ca_attr, kverbs_ca_port_attr and kverbs_ca_gid."""
    offset, ports = struct.unpack_from("=2I", attr, 12)
    name = attr[232:296].split(b"\0")[0].decode()
    print(f"{name}: GUID {attr[32:40].hex()}, {ports} ports")
    for _ in range(ports):
        port = attr[offset:]
        size, number, state, lid = (struct.unpack_from("=I", port, at)[0] for at in (4, 12, 40, 88))
        print(f" port {number}: state {state}, LID {lid}")
        gids, count, each = struct.unpack_from("=3I", port, 116)
        for i in range(count):
            gid, kind = struct.unpack_from("=16sI", port, gids + i * each)
            if kind:
                print(f"  GID {i}: {gid.hex(':', 2)}, type {kind}")
        offset += size


def main():
    path = f"/dev/infiniband/ca/{sys.argv[1] if len(sys.argv) > 1 else 'emu0'}"
    with open(path, "rb", buffering=0) as ca:
        handle = request(ca, OPEN)
        show(query(ca, handle))
        request(ca, CLOSE, handle)


main()
