package server

import (
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"go.etcd.io/etcd/api/v3/version"

	"github.com/braidlog/braid"
	"github.com/braidlog/braid/internal/sys"
)

// metrics counts what the services do. What happens once per request is a plain atomic counter
// here; it becomes a Prometheus metric when metrics are asked for. The rest is read from the log
// and the store at that moment.
type metrics struct {
	pending, failed    atomic.Int64
	leaderChanges      atomic.Int64
	slowReads          atomic.Int64
	healthOK, healthNo atomic.Int64
	expired            atomic.Int64
	accepted, tokens   atomic.Int64 // puts answered before they were applied; calls with tokens
	watchStreams       atomic.Int64
	events             atomic.Int64

	// methods by full name: fixed once the services are registered.
	methods map[string]*methodCount
	// clients counts requests by kind and client version.
	clients sync.Map // clientKind → *atomic.Int64
	// last is the entry of clients used last: mostly all clients are of one version.
	last [2]atomic.Pointer[clientCount]
}

// methodCount counts the calls of one method by outcome.
type methodCount struct {
	service, method, kind string

	started        atomic.Int64
	handled        [codes.Unauthenticated + 1]atomic.Int64
	received, sent atomic.Int64
}

type clientKind struct {
	stream  bool
	version string
}

type clientCount struct {
	version string
	n       *atomic.Int64
}

func newMetrics() *metrics { return &metrics{methods: map[string]*methodCount{}} }

// register makes a counter for every method of a server. It comes before serving.
func (m *metrics) register(s *grpc.Server) {
	for service, info := range s.GetServiceInfo() {
		for _, method := range info.Methods {
			kind := "unary"
			switch {
			case method.IsClientStream && method.IsServerStream:
				kind = "bidi_stream"
			case method.IsClientStream:
				kind = "client_stream"
			case method.IsServerStream:
				kind = "server_stream"
			}
			m.methods["/"+service+"/"+method.Name] = &methodCount{service: service, method: method.Name, kind: kind}
		}
	}
}

func (c *methodCount) end(err error) {
	code := status.Code(err)
	if int(code) >= len(c.handled) {
		code = codes.Unknown
	}
	c.handled[code].Add(1)
}

// client counts a request of a client of some version.
func (m *metrics) client(stream bool, version string) {
	slot := &m.last[0]
	if stream {
		slot = &m.last[1]
	}
	if last := slot.Load(); last != nil && last.version == version {
		last.n.Add(1)
		return
	}
	const versionsKept = 64 // the version is the client's word: do not let it grow us
	key := clientKind{stream, strings.Clone(version)}
	n, known := m.clients.Load(key)
	if !known {
		kept := 0
		m.clients.Range(func(any, any) bool { kept++; return kept < versionsKept })
		if kept >= versionsKept {
			key.version = "other"
		}
		n, _ = m.clients.LoadOrStore(key, new(atomic.Int64))
	}
	slot.Store(&clientCount{key.version, n.(*atomic.Int64)})
	n.(*atomic.Int64).Add(1)
}

// desc is a metric that collector reads when asked.
type desc struct {
	*prometheus.Desc
	kind prometheus.ValueType
}

func newDesc(kind prometheus.ValueType, name, help string, labels ...string) desc {
	return desc{prometheus.NewDesc(name, help, labels, nil), kind}
}

const (
	counter = prometheus.CounterValue
	gauge   = prometheus.GaugeValue
)

// collector implements prometheus.Collector for a server.
type collector struct {
	s     *Server
	start time.Time

	hasLeader, isLeader, isLearner, leaderChanges, id, version               desc
	committed, applied, pending, failed, slowReads, expired                  desc
	accepted, tokens                                                         desc
	healthOK, healthNo, quota, dbTotal, dbInUse                              desc
	logBytes, memberCount, commitGap, watchStreams, watchEvents, since       desc
	clients, started, handled, received, sent                                desc
	peerMatch, peerInflight, peerLacking                                     desc
	codeK, preparing, restriping, held, missing, short, liveBytes, fileBytes desc
	fetched, served, corrupt, repaired, trimmed                              desc
	scrubRounds, scrubbed, damaged, mended                                   desc
	fsync, linkSent, linkReceived, linkDrops, linkQueue, logRecords          desc
	logWaits, logWaiting, starved, connections, connLimit                    desc

	instances instanceDescs
}

func newCollector(s *Server) *collector {
	method := []string{"grpc_type", "grpc_service", "grpc_method"}
	return &collector{
		s: s, start: time.Now(), instances: newInstanceDescs(),
		hasLeader:     newDesc(gauge, "etcd_server_has_leader", "Whether or not a leader exists. 1 is existence, 0 is not."),
		isLeader:      newDesc(gauge, "etcd_server_is_leader", "Whether or not this member is a leader. 1 if is, 0 otherwise."),
		isLearner:     newDesc(gauge, "etcd_server_is_learner", "Whether or not this member is a learner. 1 if is, 0 otherwise."),
		leaderChanges: newDesc(counter, "etcd_server_leader_changes_seen_total", "The number of leader changes seen."),
		id:            newDesc(gauge, "etcd_server_id", "Server or member ID in hexadecimal format. 1 for 'server_id' label with current ID.", "server_id"),
		version:       newDesc(gauge, "etcd_server_version", "Which version is running. 1 for 'server_version' label with current version.", "server_version"),
		committed:     newDesc(gauge, "etcd_server_proposals_committed_total", "The total number of consensus proposals committed."),
		applied:       newDesc(gauge, "etcd_server_proposals_applied_total", "The total number of consensus proposals applied."),
		pending:       newDesc(gauge, "etcd_server_proposals_pending", "The current number of pending proposals to commit."),
		failed:        newDesc(counter, "etcd_server_proposals_failed_total", "The total number of failed proposals seen."),
		slowReads:     newDesc(counter, "etcd_server_read_indexes_failed_total", "The total number of failed read indexes seen."),
		accepted:      newDesc(counter, "braid_accepted_puts_total", "Puts that were answered before they were applied."),
		tokens:        newDesc(counter, "braid_token_calls_total", "Calls with tokens of accepted puts, which they waited for."),
		expired:       newDesc(counter, "etcd_debugging_server_lease_expired_total", "The total number of expired leases."),
		healthOK:      newDesc(counter, "etcd_server_health_success", "The total number of successful health checks"),
		healthNo:      newDesc(counter, "etcd_server_health_failures", "The total number of failed health checks"),
		quota:         newDesc(gauge, "etcd_server_quota_backend_bytes", "Current backend storage quota size in bytes."),
		dbTotal:       newDesc(gauge, "braid_store_db_size_bytes", "Bytes of the state machine's database file."),
		dbInUse:       newDesc(gauge, "braid_store_db_in_use_bytes", "Bytes in use in the state machine's database file."),
		logBytes:      newDesc(gauge, "braid_log_bytes", "Bytes of log on disk."),
		memberCount:   newDesc(gauge, "braid_members", "Members of the cluster by role.", "role"),
		commitGap:     newDesc(gauge, "braid_apply_lag", "Entries committed and not yet applied here."),
		watchStreams:  newDesc(gauge, "braid_watch_streams", "Watch streams open."),
		watchEvents:   newDesc(counter, "braid_watch_events_sent_total", "Watch events sent to clients."),
		since:         newDesc(gauge, "braid_start_time_seconds", "When the server started, in seconds since 1970."),
		clients:       newDesc(counter, "etcd_server_client_requests_total", "The total number of client requests per client version.", "type", "client_api_version"),
		started:       newDesc(counter, "grpc_server_started_total", "Total number of RPCs started on the server.", method...),
		handled:       newDesc(counter, "grpc_server_handled_total", "Total number of RPCs completed on the server, regardless of success or failure.", append(method, "grpc_code")...),
		received:      newDesc(counter, "grpc_server_msg_received_total", "Total number of RPC stream messages received on the server.", method...),
		sent:          newDesc(counter, "grpc_server_msg_sent_total", "Total number of gRPC stream messages sent by the server.", method...),
		fsync:         newDesc(counter, "etcd_disk_wal_fsync_duration_seconds", "The latency distributions of fsync called by WAL."),
		logWaits:      newDesc(counter, "braid_log_waits_total", "How often the log began to wait because its disk had no space, or the process no descriptor."),
		logWaiting:    newDesc(gauge, "braid_log_waiting", "1 while the log waits for space on its disk, or for a descriptor.", "for"),
		starved:       newDesc(counter, "braid_descriptor_waits_total", "Steps beside the log that waited because the process had no descriptor."),
		connections:   newDesc(gauge, "braid_client_connections", "Connections of clients that are open."),
		connLimit:     newDesc(gauge, "braid_client_connections_limit", "How many connections of clients may be open; others wait."),
		logRecords:    newDesc(counter, "braid_log_records_total", "Records made durable in the log."),
		linkSent:      newDesc(counter, "etcd_network_peer_sent_bytes_total", "The total number of bytes sent to peers.", "To"),
		linkReceived:  newDesc(counter, "etcd_network_peer_received_bytes_total", "The total number of bytes received from peers.", "From"),
		linkDrops:     newDesc(counter, "braid_link_dropped_frames_total", "Frames to a member that were given up.", "to"),
		linkQueue:     newDesc(gauge, "braid_link_queue_bytes", "Bytes waiting to be sent to a member.", "to"),
		peerMatch:     newDesc(gauge, "braid_peer_match_index", "On the leader: the last index that a member is known to hold.", "instance", "member"),
		peerLacking:   newDesc(gauge, "braid_peer_lacking", "On the leader: 1 if large values are missing on a member.", "instance", "member"),
		codeK:         newDesc(gauge, "braid_code_k", "On the leader: fragments that make a large value whole that is written now; 1: it is not cut.", "instance"),
		preparing:     newDesc(gauge, "braid_preparing_bodies", "Large values that a new leader has to make whole before it leads.", "instance"),
		held:          newDesc(gauge, "braid_bodies_held", "Large values held here, whole or as a fragment."),
		short:         newDesc(gauge, "braid_bodies_short", "Large values held here as fragments that are being made whole."),
		restriping:    newDesc(gauge, "braid_restriping_members", "On the leader: members that must hold large values whole before members may leave.", "instance"),
		missing:       newDesc(gauge, "braid_bodies_missing", "Large values that should be held here and are being restored."),
		liveBytes:     newDesc(gauge, "braid_bodies_live_bytes", "Bytes of the large values held here, in the form held."),
		fileBytes:     newDesc(gauge, "braid_bodies_file_bytes", "Bytes of the files that hold large values."),
		fetched:       newDesc(counter, "braid_bodies_fetched_total", "Large values made whole from other members' fragments."),
		served:        newDesc(counter, "braid_bodies_served_total", "Fragments of large values given to other members."),
		corrupt:       newDesc(counter, "braid_bodies_corrupt_total", "Large values found damaged on disk."),
		repaired:      newDesc(counter, "braid_bodies_repaired_total", "Large values restored on disk."),
		trimmed:       newDesc(counter, "braid_bodies_trimmed_total", "Whole copies of large values cut to a fragment."),
		scrubRounds:   newDesc(counter, "braid_scrub_rounds_total", "How often everything on disk was read to find damage."),
		scrubbed:      newDesc(counter, "braid_scrub_bytes_total", "Bytes of the log and of snapshots read to find damage."),
		damaged:       newDesc(counter, "braid_disk_damaged_total", "Places of the log and of snapshots found damaged on disk."),
		mended:        newDesc(counter, "braid_disk_mended_total", "Damaged places of which nothing is needed any more."),
		peerInflight:  newDesc(gauge, "braid_peer_inflight_bytes", "On the leader: bytes sent to a member and not acknowledged.", "instance", "member"),
	}
}

// Describe implements prometheus.Collector; the metrics' names are in Collect.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []desc{
		c.hasLeader, c.isLeader, c.isLearner, c.leaderChanges, c.id, c.version, c.committed, c.applied, c.pending,
		c.failed, c.slowReads, c.expired, c.accepted, c.tokens, c.healthOK, c.healthNo, c.quota, c.dbTotal, c.dbInUse, c.logBytes,
		c.memberCount, c.commitGap, c.watchStreams, c.watchEvents, c.since, c.clients, c.started, c.handled, c.received,
		c.sent, c.peerMatch, c.peerInflight, c.fsync, c.linkSent, c.linkReceived, c.linkDrops, c.linkQueue, c.logRecords,
		c.logWaits, c.logWaiting, c.starved, c.connections, c.connLimit,
		c.peerLacking, c.codeK, c.preparing, c.restriping, c.held, c.missing, c.short, c.liveBytes, c.fileBytes, c.fetched, c.served, c.corrupt,
		c.repaired, c.trimmed, c.scrubRounds, c.scrubbed, c.damaged, c.mended,
	} {
		ch <- d.Desc
	}
	c.instances.describe(ch)
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	emit := func(d desc, value float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d.Desc, d.kind, value, labels...)
	}
	st := c.s.log.Status()
	c.collectCluster(&st, emit)
	c.collectLog(&st, ch, emit)
	c.collectBodies(&st, emit)
	c.collectStore(emit)
	c.collectRequests(emit)
}

type emitFunc func(d desc, value float64, labels ...string)

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func (c *collector) collectCluster(st *braid.Status, emit emitFunc) {
	self := c.s.self.Load()
	emit(c.hasLeader, truth(self.led))
	emit(c.isLeader, truth(self.isLeader()))
	emit(c.isLearner, truth(self.learner))
	emit(c.leaderChanges, float64(c.s.metrics.leaderChanges.Load()))
	emit(c.id, 1, c.s.id.String())
	emit(c.version, 1, version.Version)
	committed, applied := logIndexes(st)
	emit(c.committed, float64(committed))
	emit(c.applied, float64(applied))
	emit(c.commitGap, float64(committed-applied))
	emit(c.instances.position, float64(st.Applied))
	emit(c.logBytes, float64(st.LogBytes))
	emit(c.since, float64(c.start.UnixNano())/1e9)
	learners := 0
	for i := range st.Members {
		if st.Members[i].Learner && !st.Members[i].Joining {
			learners++
		}
	}
	emit(c.memberCount, float64(len(st.Members)-learners), "voter")
	emit(c.memberCount, float64(learners), "learner")
	for i := range st.Instances {
		in := &st.Instances[i]
		name := strconv.FormatUint(uint64(in.Instance), 10)
		c.instances.collect(st, i, name, emit)
		emit(c.preparing, float64(in.Preparing), name)
		emit(c.restriping, float64(in.Restriping), name)
		if in.K > 0 {
			emit(c.codeK, float64(in.K), name)
		}
		for _, p := range in.Peers {
			emit(c.peerMatch, float64(p.Match), name, p.ID.String())
			emit(c.peerInflight, float64(p.InflightBytes), name, p.ID.String())
			emit(c.peerLacking, truth(p.Lacking), name, p.ID.String())
		}
	}
}

// collectLog tells what disk and links of the log did.
func (c *collector) collectLog(st *braid.Status, ch chan<- prometheus.Metric, emit emitFunc) {
	disk := &st.Log
	buckets, count := map[float64]uint64{}, uint64(0)
	for i, n := range disk.SyncLatency {
		count += n
		if i < len(disk.SyncLatency)-1 { // the last has no upper bound
			buckets[(time.Duration(1<<i) * time.Microsecond).Seconds()] = count
		}
	}
	ch <- prometheus.MustNewConstHistogram(c.fsync.Desc, count, disk.SyncTime.Seconds(), buckets)
	emit(c.logRecords, float64(disk.Records))
	emit(c.logWaits, float64(disk.Waits))
	emit(c.starved, float64(st.Starved))
	noDescriptor := disk.Full != nil && sys.NoDescriptor(disk.Full)
	emit(c.logWaiting, truth(disk.Full != nil && !noDescriptor), "space")
	emit(c.logWaiting, truth(noDescriptor), "descriptor")
	for i := range st.Links.Peers {
		p := &st.Links.Peers[i]
		id := braid.MemberID(p.ID).String()
		emit(c.linkSent, float64(p.BytesOut), id)
		emit(c.linkReceived, float64(p.BytesIn), id)
		emit(c.linkDrops, float64(p.Drops), id)
		emit(c.linkQueue, float64(p.QueueBytes), id)
	}
}

// collectBodies tells what became of large values, and of damage to the rest.
func (c *collector) collectBodies(st *braid.Status, emit emitFunc) {
	b := &st.Bodies
	emit(c.held, float64(b.Held))
	emit(c.missing, float64(b.Missing))
	emit(c.short, float64(b.Short))
	emit(c.liveBytes, float64(b.LiveBytes))
	emit(c.fileBytes, float64(b.TotalBytes))
	emit(c.fetched, float64(b.Fetched))
	emit(c.served, float64(b.Served))
	emit(c.corrupt, float64(b.Corrupt))
	emit(c.repaired, float64(b.Repaired))
	emit(c.trimmed, float64(b.Trimmed))
	d := &st.Disk
	emit(c.scrubRounds, float64(d.Rounds))
	emit(c.scrubbed, float64(d.Scrubbed))
	emit(c.damaged, float64(d.Damaged))
	emit(c.mended, float64(d.Mended))
}

func (c *collector) collectStore(emit emitFunc) {
	emit(c.quota, float64(c.s.store.QuotaBytes()))
	emit(c.dbTotal, float64(c.s.store.DBSize()))
	emit(c.dbInUse, float64(c.s.store.DBSizeInUse()))
}

func (c *collector) collectRequests(emit emitFunc) {
	m := c.s.metrics
	emit(c.connections, float64(c.s.clients.Open()))
	emit(c.connLimit, float64(c.s.clients.most))
	emit(c.pending, float64(m.pending.Load()))
	emit(c.failed, float64(m.failed.Load()))
	emit(c.slowReads, float64(m.slowReads.Load()))
	emit(c.expired, float64(m.expired.Load()))
	emit(c.accepted, float64(m.accepted.Load()))
	emit(c.tokens, float64(m.tokens.Load()))
	emit(c.healthOK, float64(m.healthOK.Load()))
	emit(c.healthNo, float64(m.healthNo.Load()))
	emit(c.watchStreams, float64(m.watchStreams.Load()))
	emit(c.watchEvents, float64(m.events.Load()))
	m.clients.Range(func(key, n any) bool {
		kind, k := "unary", key.(clientKind)
		if k.stream {
			kind = "stream"
		}
		emit(c.clients, float64(n.(*atomic.Int64).Load()), kind, k.version)
		return true
	})
	for _, count := range m.methods {
		labels := []string{count.kind, count.service, count.method}
		emit(c.started, float64(count.started.Load()), labels...)
		total := int64(0)
		for code := range count.handled {
			n := count.handled[code].Load()
			total += n
			if n > 0 || code == int(codes.OK) {
				emit(c.handled, float64(n), append(labels, codes.Code(code).String())...)
			}
		}
		received, sent := count.received.Load(), count.sent.Load()
		if count.kind == "unary" { // one message each way, a failed call answers none
			received, sent = count.started.Load(), count.handled[codes.OK].Load()
		}
		emit(c.received, float64(received), labels...)
		emit(c.sent, float64(sent), labels...)
	}
}

// gatherer gathers a server's own metrics and, below them, what the packages of etcd's
// state machine keep in the process's default registry.
type gatherer struct{ own, process prometheus.Gatherer }

// Gather implements prometheus.Gatherer.
func (g gatherer) Gather() ([]*dto.MetricFamily, error) {
	families, err := g.own.Gather()
	if g.process == nil {
		return families, err
	}
	taken := make(map[string]bool, len(families))
	for _, f := range families {
		taken[f.GetName()] = true
	}
	rest, restErr := g.process.Gather()
	for _, f := range rest {
		if !taken[f.GetName()] {
			families = append(families, f)
		}
	}
	if err == nil {
		err = restErr
	}
	return families, err
}
