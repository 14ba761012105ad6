// JavaScript's etcd3 against every member: put, get, delete, transaction, watch, lease, lock.
const assert = require("node:assert");
const { Etcd3 } = require("etcd3");

async function suite(client, prefix) {
  const key = prefix + "/key";
  await client.put(key).value("one");
  assert.equal(await client.get(key).string(), "one");

  const watcher = await client.watch().key(key).create();
  const seen = [];
  const all = new Promise((resolve) => {
    watcher.on("put", (kv) => seen.push("put " + kv.value));
    watcher.on("delete", () => { seen.push("delete"); resolve(); });
  });
  const swapped = await client.if(key, "Value", "==", "one")
    .then(client.put(key).value("two")).else(client.put(key).value("wrong")).commit();
  assert.equal(swapped.succeeded, true);
  assert.equal(await client.get(key).string(), "two");
  assert.equal((await client.delete().key(key)).deleted, "1");
  await all;
  assert.deepEqual(seen, ["put two", "delete"]);
  await watcher.cancel();

  const lease = client.lease(60);
  await lease.put(key).value("leased");
  await lease.keepaliveOnce();
  assert.equal(await client.get(key).string(), "leased");
  await lease.revoke();
  assert.equal(await client.get(key).string(), null);

  for (let i = 0; i < 50; i++) await client.put(`${prefix}/many/${i}`).value(i);
  assert.equal((await client.getAll().prefix(prefix + "/many/").keys()).length, 50);
  assert.equal((await client.delete().prefix(prefix + "/many/")).deleted, "50");
  await client.lock(prefix + "/lock").do(async () => {});
}

async function main() {
  const endpoints = process.env.ENDPOINTS.split(",");
  for (const endpoint of endpoints) {
    const client = new Etcd3({ hosts: "http://" + endpoint });
    await suite(client, "node/" + endpoint);
    client.close();
  }
  console.log("node:", endpoints.length, "endpoints");
}

main().then(() => process.exit(0), (err) => { console.error(err); process.exit(1); });
setTimeout(() => { console.error("node: not done in two minutes"); process.exit(1); }, 120000);
