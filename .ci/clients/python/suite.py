"""Python's etcd3 against every member: put, get, delete, transaction, watch, lease, lock, and braid's stream of puts."""
import os
import threading

import etcd3
from etcd3.etcdrpc import rpc_pb2 as rpc


def put_all(client, pairs):
    """Puts pairs of keys and values, 100 in a message, and returns the revision of the last put."""
    def messages():
        for i in range(0, len(pairs), 100):
            yield rpc.TxnRequest(success=[rpc.RequestOp(request_put=rpc.PutRequest(key=k, value=v))
                                          for k, v in pairs[i:i + 100]])
    puts = client.channel.stream_stream("/braid.KV/Puts", request_serializer=rpc.TxnRequest.SerializeToString,
                                        response_deserializer=rpc.TxnResponse.FromString)
    return [answer.header.revision for answer in puts(messages())][-1]


def suite(client, prefix):
    key = prefix + "/key"
    client.put(key, "one")
    value, meta = client.get(key)
    assert value == b"one", value

    swapped, _ = client.transaction(
        compare=[client.transactions.value(key) == "one", client.transactions.mod(key) == meta.mod_revision],
        success=[client.transactions.put(key, "two")],
        failure=[client.transactions.put(key, "wrong")],
    )
    assert swapped and client.get(key)[0] == b"two"
    assert not client.replace(key, "one", "three")
    assert not client.put_if_not_exists(key, "four")

    events, cancel = client.watch(key, start_revision=meta.mod_revision)
    assert client.delete(key)
    seen = [next(events) for _ in range(3)]
    cancel()
    assert [type(e).__name__ for e in seen] == ["PutEvent", "PutEvent", "DeleteEvent"], seen
    assert [e.value for e in seen] == [b"one", b"two", b""], seen
    assert client.get(key) == (None, None)

    lease = client.lease(60)
    client.put(key, "leased", lease=lease)
    assert lease.granted_ttl == 60 and 0 < lease.remaining_ttl <= 60
    list(lease.refresh())
    lease.revoke()
    assert client.get(key)[0] is None

    for i in range(100):
        client.put(f"{prefix}/many/{i:03}", str(i))
    found = [v for v, _ in client.get_prefix(prefix + "/many/", sort_order="descend")]
    assert found == [str(i).encode() for i in reversed(range(100))], found
    assert client.delete_prefix(prefix + "/many/").deleted == 100

    pairs = [(f"{prefix}/stream/{i:03}".encode(), str(i).encode()) for i in range(250)]
    revision = put_all(client, pairs)
    found = list(client.get_prefix(prefix + "/stream/"))
    assert [(meta.key, value) for value, meta in found] == pairs, found
    assert found[-1][1].mod_revision == revision, (found[-1], revision)
    assert client.delete_prefix(prefix + "/stream/").deleted == 250

    with client.lock(prefix + "/lock", ttl=30) as lock:
        assert lock.is_acquired()


def quiet(failure):
    """The thread in which etcd3 watches has no end: when its client is closed, it asks once
    more, and fails. Anything else is reported as usual."""
    watching = failure.thread is not None and failure.thread.name.startswith("etcd3_watch_")
    if not (watching and isinstance(failure.exc_value, ValueError) and "Channel closed" in str(failure.exc_value)):
        threading.__excepthook__(failure)


def main():
    threading.excepthook = quiet
    endpoints = os.environ["ENDPOINTS"].split(",")
    for endpoint in endpoints:
        host, port = endpoint.rsplit(":", 1)
        with etcd3.client(host=host, port=int(port), timeout=20) as client:
            suite(client, "python/" + endpoint)
            assert len(list(client.members)) == len(endpoints)
            assert client.status().leader is not None
    print("python:", len(endpoints), "endpoints")


main()
