// Package same compares braid's server with etcd's. Both get the same random requests, one after the other, and their
// answers must be equal: responses, codes and texts of errors, events of watches, and hashes of the database.
//
//   - pair.go sends a request to both and compares what comes back.
//   - normal.go takes out of answers what is of one cluster: ids, terms, tokens, seconds of a lease.
//   - generate.go draws requests, with kv.go, leases.go, users.go and others.go by service.
//   - purpose.go lists the differences that are meant.
//   - watches.go compares what watches send.
//   - command.go runs commands of etcdctl on both.
//
// A list of requests as JSON over HTTP is sent to both, too (json_test.go).
//
// Other tests use etcd's client package on both: sessions, locks, elections, queues, caches.
//
// The tests start both servers as processes. "go test ./same -v -operations 10000 -protocols raft,iss" compares more of
// them, with other protocols; -seed begins with other requests.
package same
