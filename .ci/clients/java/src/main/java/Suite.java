import io.etcd.jetcd.ByteSequence;
import io.etcd.jetcd.Client;
import io.etcd.jetcd.Watch;
import io.etcd.jetcd.kv.GetResponse;
import io.etcd.jetcd.op.Cmp;
import io.etcd.jetcd.op.CmpTarget;
import io.etcd.jetcd.op.Op;
import io.etcd.jetcd.options.DeleteOption;
import io.etcd.jetcd.options.GetOption;
import io.etcd.jetcd.options.PutOption;
import io.etcd.jetcd.options.WatchOption;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/** Java's jetcd against every member: put, get, delete, transaction, watch, lease, lock. */
public final class Suite {
  private static ByteSequence bytes(String text) {
    return ByteSequence.from(text.getBytes());
  }

  private static void expect(boolean ok, String what) {
    if (!ok) throw new AssertionError(what);
  }

  private static <T> T done(CompletableFuture<T> future) throws Exception {
    return future.get(20, TimeUnit.SECONDS);
  }

  private static void suite(Client client, String prefix) throws Exception {
    var kv = client.getKVClient();
    ByteSequence key = bytes(prefix + "/key");
    done(kv.put(key, bytes("one")));
    GetResponse got = done(kv.get(key));
    expect(got.getKvs().get(0).getValue().equals(bytes("one")), "get");
    long revision = got.getKvs().get(0).getModRevision();

    var txn = done(kv.txn()
        .If(new Cmp(key, Cmp.Op.EQUAL, CmpTarget.modRevision(revision)))
        .Then(Op.put(key, bytes("two"), PutOption.DEFAULT))
        .Else(Op.put(key, bytes("wrong"), PutOption.DEFAULT)).commit());
    expect(txn.isSucceeded(), "txn");

    List<String> seen = new CopyOnWriteArrayList<>();
    CountDownLatch all = new CountDownLatch(3);
    try (Watch.Watcher watcher = client.getWatchClient().watch(key, WatchOption.builder().withRevision(revision).build(),
        response -> response.getEvents().forEach(event -> {
          seen.add(event.getEventType() + " " + event.getKeyValue().getValue());
          all.countDown();
        }))) {
      expect(done(kv.delete(key)).getDeleted() == 1, "delete");
      expect(all.await(20, TimeUnit.SECONDS), "watch: " + seen);
    }
    expect(seen.equals(List.of("PUT one", "PUT two", "DELETE ")), "watch: " + seen);

    long lease = done(client.getLeaseClient().grant(60)).getID();
    done(kv.put(key, bytes("leased"), PutOption.builder().withLeaseId(lease).build()));
    expect(done(client.getLeaseClient().keepAliveOnce(lease)).getTTL() == 60, "keep-alive");
    done(client.getLeaseClient().revoke(lease));
    expect(done(kv.get(key)).getCount() == 0, "revoke");

    for (int i = 0; i < 50; i++) done(kv.put(bytes(prefix + "/many/" + i), bytes("" + i)));
    ByteSequence many = bytes(prefix + "/many/");
    expect(done(kv.get(many, GetOption.builder().isPrefix(true).withLimit(10).build())).getKvs().size() == 10, "limit");
    expect(done(kv.delete(many, DeleteOption.builder().isPrefix(true).build())).getDeleted() == 50, "delete of a prefix");

    long held = done(client.getLeaseClient().grant(60)).getID();
    ByteSequence lock = done(client.getLockClient().lock(bytes(prefix + "/lock"), held)).getKey();
    done(client.getLockClient().unlock(lock));
  }

  public static void main(String[] args) throws Exception {
    String[] endpoints = System.getenv("ENDPOINTS").split(",");
    for (String endpoint : endpoints) {
      try (Client client = Client.builder().endpoints("http://" + endpoint).build()) {
        suite(client, "java/" + endpoint);
        expect(done(client.getClusterClient().listMember()).getMembers().size() == endpoints.length, "members");
      }
    }
    System.out.println("java: " + endpoints.length + " endpoints");
    System.exit(0);
  }
}
