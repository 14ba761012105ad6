// Package server is the etcd v3 API on top of a replicated log: gRPC services, the same
// services as JSON, health, metrics and a dashboard.
//
// A request is checked (check.go), encoded once and proposed (propose.go), applied on every member by store/
// (machine.go is the joint between the two) and answered with the result that this member computed. Reads wait for a
// read barrier that the log has many of them share and then read locally (kv.go). rights.go decides where a user's
// rights are checked, and by which state. What a client asks for besides etcd's API is in the metadata of its call:
// lanes for its puts, tokens and barriers (lanes.go; early.go decides which puts are answered before they are
// applied). What only one member knows, for example the remaining time of a lease, is asked over the link between
// members (ask.go).
//
// How to read it: server.go (start and stop), log.go (what it needs of the log), then a file per service: kv.go,
// watch.go (watchone.go has one watch, watchpieces.go what it sends, watchprogress.go progress), lease.go,
// keepalive.go, cluster.go with reconfig.go, auth.go, maintenance.go, locks.go, and for the service that etcd does not
// have admin.go, reshape.go, tune.go, switch.go, advise.go, zones.go, replace.go, drain.go, prefixquota.go, backup.go.
// puts.go is the service for streams of puts.
// backups.go is for programs that make and restore backups. frames.go, call.go, body.go and intake.go bound the memory
// of requests while they are received, and codec.go that of responses until they are sent; codecput.go decodes puts.
// limit.go bounds connections, rate.go requests a second, listen.go distinguishes gRPC from HTTP on one port; grpc.go
// and http.go set the two up, access.go checks HTTP requests and has what developers look at, salvage.go saves what is
// left of a cluster without a majority, and httpauth.go checks the user of HTTP requests. passage.go notes when a call
// passed which stage, and slow.go logs requests that take long, tracing.go sends spans. health.go, hashcheck.go and
// damage.go check this member, follow.go acts on changes of leader, trips.go counts round trips to the others,
// publish.go sets this member's name, client URLs and zone in the membership, names.go has all members' names, and
// views.go has the input of internal/metrics and internal/page.
//
// events.go logs changes of the status as events, leaderevents.go those of leaders, sampling.go reads the figures for
// internal/history, tally.go counts refused logins and handshakes. report.go has this member's report of them, and
// gather.go gathers those of all members for the dashboard. bare.go is a server without a log and a store, to measure
// the cost of gRPC itself. zap.go forwards the log lines of etcd's packages.
//
// May import: the root package, store and internal/sys.
package server
