package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3compactor"

	"github.com/braidlog/braid"
	"github.com/braidlog/braid/internal/store"
	"github.com/braidlog/braid/server/internal/history"
	"github.com/braidlog/braid/server/internal/metrics"
)

// Server is a member of a cluster that serves the etcd API.
type Server struct {
	cfg    Config
	began  time.Time
	id     braid.MemberID
	logger *slog.Logger
	// timeout bounds every wait for the cluster.
	timeout time.Duration

	store   *store.Store
	log     Log
	metrics *metrics.Counts
	streams *openStreams
	// self is this member's view of itself and the leader; see follow.go.
	self atomic.Pointer[selfView]
	// election is the election timeout of the profile, in nanoseconds.
	election atomic.Int64

	services
	endpoints
	lifecycle

	asker     *asker
	early     *earlyAnswers
	slow      *slowRequests
	tracing   *tracing
	checks    *memberChecks
	hashes    *hashChecks
	damage    *damageWatch
	names     memberNames
	history   *history.History // of this member
	events    eventLog
	refusals  *refusals
	gatherer  *gatherer // of the reports of all
	reporter  reporter
	compactor v3compactor.Compactor // nil if history is kept
}

// services are those of etcd's API, and a client for those that etcd makes of others.
type services struct {
	kv          *kvService
	watch       *watchService
	lease       *leaseService
	cluster     *clusterService
	auth        *authService
	maintenance *maintenanceService
	client      *clientv3.Client
}

// endpoints are the servers to which clients connect.
type endpoints struct {
	grpc        *grpc.Server
	health      *health.Server
	intake      *intake
	unary       map[string]bool // by the name of a method
	http        *http.Server    // of clients
	metricsHTTP *http.Server
	gateway     *gateway
	listening   []net.Listener // for clients
	sniffers    []*sniffer
	clients     *connLimit
	rates       *rates // nil: no limits
}

// lifecycle is how far a server has started or stopped.
type lifecycle struct {
	// started is closed when log and services are set, joined when the membership has this member's name, stopping when
	// the server begins to stop, done when it has stopped. err is set before done is closed.
	started, joined, stopping, done chan struct{}
	stopOnce, dismissOnce           sync.Once
	err                             error
	// fatal holds the first error that the server cannot continue with.
	fatal chan error
	// background are goroutines that end by themselves once stopping is closed.
	background sync.WaitGroup
	// watching are goroutines of streams of watches and of puts, which may outlive the calls for a moment.
	watching sync.WaitGroup
	// scrubbing uses the store until endScrub.
	scrubbing sync.WaitGroup
	endScrub  context.CancelFunc
}

// Start opens the state machine and the log and serves clients. It returns as soon as it
// listens; the member joins its cluster in the background. The listeners are closed if it
// fails. It may be called for several members in one process, whose metrics of etcd's
// packages are then mixed.
func Start(cfg Config) (*Server, error) {
	s := &Server{
		lifecycle: lifecycle{
			started: make(chan struct{}), joined: make(chan struct{}), stopping: make(chan struct{}), done: make(chan struct{}),
			fatal: make(chan error, 1),
		},
		metrics: metrics.New(cfg.ExtensiveMetrics), streams: newOpenStreams(), id: cfg.Node.Self, began: time.Now(),
	}
	s.history, s.refusals = history.New(history.Boot(s.began)), newRefusals()
	s.names.learn(cfg.Node.Members)
	lines := cmp.Or(cfg.Logger, slog.Default()).Handler()
	cfg.Logger = slog.New(history.NewHandler(lines, s.history, uint64(s.id), s.names.name))
	err := cfg.complete()
	s.cfg, s.logger, s.timeout = cfg, cfg.Logger, cfg.RequestTimeout
	s.events.logger = s.logger
	s.slow = &slowRequests{logger: cfg.Logger, above: cfg.WarnRequestDuration, base: s.began}
	s.clients = newConnLimit(cfg.MaxConnections, cfg.MaxConnectionsPerClient, cfg.Logger)
	if err == nil {
		err = s.open()
	}
	if err != nil {
		for _, listeners := range [][]net.Listener{cfg.ListenClient, cfg.ListenPlain, cfg.ListenMetrics,
			cfg.Node.Listeners} {
			closeAll(listeners)
		}
		return nil, err
	}
	s.serve()
	s.logger.Info("the member is started", history.EventKey, "started", "version", braid.Version)
	if s.compactor != nil {
		s.compactor.Pause()
		s.compactor.Run()
	}
	s.runBackground()
	go s.supervise()
	return s, nil
}

// runBackground starts what runs besides the requests of clients.
func (s *Server) runBackground() {
	s.background.Go(s.follow)
	for i, p := range s.publications() {
		s.background.Go(func() {
			if s.publish(p) && i == 0 {
				close(s.joined)
			}
		})
	}
	s.background.Go(func() { s.intake.run(s.stopping) })
	s.background.Go(s.orderWanted)
	s.background.Go(s.watchTrips)
	s.background.Go(s.sample)
	s.background.Go(s.damage.run)
	ctx, cancel := context.WithCancel(context.Background())
	s.endScrub = cancel
	s.scrubbing.Go(func() {
		s.defragment(ctx)
		s.scrubState(ctx)
	})
	kept := func() (store.HashKV, bool, error) {
		h, ok := s.store.KeptHash(0)
		return h, ok, nil
	}
	s.scrubbing.Go(func() { s.hashes.run(s.cfg.CompactHashCheckTime, kept, askKeptHash) })
	fresh := func() (store.HashKV, bool, error) { return s.store.FreshHash(ctx) }
	s.scrubbing.Go(func() { s.hashes.run(s.cfg.CorruptCheckTime, fresh, askHash) })
}

func closeAll(listeners []net.Listener) {
	for _, l := range listeners {
		l.Close()
	}
}

// open opens store and log and makes the services.
func (s *Server) open() error {
	s.self.Store(&selfView{id: s.id, replaced: make(chan struct{})})
	s.cfg.Store.OnFatal = s.fail
	s.cfg.Store.Bodies, s.cfg.Store.Repairable = bodies{s}, true
	s.cfg.Store.Reserve, s.cfg.Store.Client = s.diskNeed, clientNamed
	if err := s.cfg.checkDir(s.cfg.Node); err != nil {
		return err // before the store changes anything
	}
	st, err := store.Open(s.cfg.Store)
	if err != nil {
		return fmt.Errorf("server: open the store: %w", err)
	}
	s.store = st
	s.asker = &asker{id: s.id, timeout: s.timeout, started: s.started, stopping: s.stopping, serve: s.serveAsked}
	s.cfg.Node.Answer = s.asker.answer
	s.log, err = s.cfg.openLog(s.cfg.Node, &machine{store: st})
	if err != nil {
		s.begin() // the store waits for the log no more
		st.Close()
		return err
	}
	s.asker.log = s.log
	s.updateSelf()
	s.services = newServices(s)
	s.openParts()
	close(s.started)
	st.StartReleasing()
	s.compactor, err = s.newCompactor()
	if err == nil {
		err = s.cfg.Registry.Register(metrics.NewCollector(s.metrics, s.measured))
	}
	if err == nil {
		s.tracing, err = newTracing(s.cfg.Tracing, s.logger)
	}
	if err == nil {
		s.intake = newIntake(s.cfg.largestMessage(), s.cfg.MaxRequestsPerClient)
		s.rates = newRates(s.cfg.UserRates, s.cfg.PrefixRates, st.Rights())
		s.grpc = s.newGRPC()
		s.unary = unaryMethods(s.grpc)
		s.gateway, err = s.newGateway()
	}
	if err != nil {
		return errors.Join(err, s.log.Close(), st.Close(), s.tracing.close())
	}
	s.http, s.metricsHTTP = s.newHTTP(), s.newMetricsHTTP()
	return nil
}

// newServices makes the services of a server whose store and log are open.
func newServices(s *Server) services {
	v := services{
		kv: &kvService{s: s}, watch: &watchService{s: s}, lease: &leaseService{s: s},
		cluster: &clusterService{s: s}, auth: &authService{s: s}, maintenance: &maintenanceService{s: s},
	}
	v.client = v.newClient()
	return v
}

// openParts creates the parts that use the store, the log and the services.
func (s *Server) openParts() {
	s.early = &earlyAnswers{
		fresh: newFreshness(s.readBarrier, cmp.Or(s.cfg.earlyFor, earlyFor)), store: s.store, log: s.log, asker: s.asker,
		metrics: s.metrics, timeout: s.timeout,
	}
	s.checks = &memberChecks{
		id: s.id, store: s.store, log: s.log, kv: s.kv, self: &s.self, metrics: s.metrics, timeout: s.timeout,
	}
	s.gatherer = newGatherer(s)
	s.damage = &damageWatch{
		store: s.store, log: s.log, streams: s.streams, self: &s.self, logger: s.logger, timeout: s.timeout,
		stopping: s.stopping, background: &s.background,
	}
	s.hashes = &hashChecks{
		id: s.id, store: s.store, log: s.log, asker: s.asker, logger: s.logger, timeout: s.timeout, stopping: s.stopping,
		raise: func() error { return s.damage.orderAlarm(pb.AlarmRequest_ACTIVATE) },
	}
}

// diskNeed is how much disk space the log needs, once it is open.
func (s *Server) diskNeed() int64 {
	select {
	case <-s.started:
		return s.log.DiskNeed()
	default:
		return 0
	}
}

// serve begins to accept clients.
func (s *Server) serve() {
	all, ways := s.cfg.clientListeners()
	s.listening = s.clients.listeners(all)
	s.cfg.ListenMetrics = newConnLimit(s.cfg.metricsConnections, 0, s.logger).listeners(s.cfg.ListenMetrics)
	for i, l := range s.listening {
		sniff := newSniffer(ways[i], l.Addr(), s.intake, s.refusals)
		s.sniffers = append(s.sniffers, sniff)
		s.background.Go(func() { sniff.serve(l) })
		s.background.Go(func() { s.grpc.Serve(sniff.grpc) })
		s.background.Go(func() { s.http.Serve(sniff.http) })
	}
	for _, l := range s.cfg.ListenMetrics {
		s.background.Go(func() { s.metricsHTTP.Serve(l) })
	}
	s.health.SetServingStatus("", healthpb.HealthCheckResponse_SERVING)
}

// fail makes the server stop because of an error.
func (l *lifecycle) fail(err error) {
	select {
	case l.fatal <- err:
	default:
	}
}

// supervise stops the server when Close begins, or when a part of it cannot continue.
func (s *Server) supervise() {
	select {
	case <-s.stopping:
	case err := <-s.fatal:
		s.err = err
	case <-s.log.Done():
		s.err = s.log.Err()
	}
	if s.err != nil {
		s.logger.Error("the member cannot continue", history.EventKey, "failed", "err", s.err)
	}
	s.begin()
	s.stop()
	close(s.done)
}

// begin ends everything that waits.
func (l *lifecycle) begin() { l.stopOnce.Do(func() { close(l.stopping) }) }

// stop ends everything in the order in which one part uses the next.
func (s *Server) stop() {
	s.health.Shutdown()
	if s.compactor != nil {
		s.compactor.Stop()
	}
	closeAll(s.listening)
	closeAll(s.cfg.ListenMetrics)
	s.streams.stop(rpctypes.ErrGRPCStopped)
	s.http.Close()
	s.metricsHTTP.Close()
	s.gateway.close()
	s.store.Interrupt()
	logErr := s.log.Close() // ends the proposals and reads that calls wait for
	if errors.Is(s.err, logErr) {
		logErr = nil // it is why the server stops
	}
	for _, sniff := range s.sniffers {
		sniff.stop()
	}
	s.grpc.Stop()
	s.client.Close()
	s.watching.Wait()
	s.endScrub()
	s.scrubbing.Wait()
	storeErr := s.store.Close() // also ends orderWanted
	s.background.Wait()
	s.err = errors.Join(s.err, logErr, storeErr, s.tracing.close())
}

// How long Close may wait: for another leader, and for requests in progress. removedTime is what the latter get on a
// member that was removed: most of them cannot complete there any more.
const (
	handOverTime = 3 * time.Second
	dismissTime  = time.Second
	removedTime  = 100 * time.Millisecond
)

// prepareStop prepares a stop by Close. First this member transfers its leadership, while it still answers.
func (s *Server) prepareStop() {
	s.logger.Info("the member stops", history.EventKey, "stopping")
	s.health.Shutdown()
	ctx, cancel := context.WithTimeout(context.Background(), handOverTime)
	s.log.HandOver(ctx)
	cancel()
	s.dismiss(dismissTime)
}

// leave sends the clients of a member that was removed to others. The member stops by itself later, because others may
// need it until then.
func (s *Server) leave() {
	s.health.Shutdown()
	s.dismiss(removedTime)
	s.http.Close()
	s.grpc.Stop()
}

// dismiss accepts no new requests, ends the streams, so that their clients connect to another member, and completes
// requests in progress within a time.
func (s *Server) dismiss(within time.Duration) {
	closeAll(s.listening)
	s.streams.stop(rpctypes.ErrGRPCStopped)
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.http.Shutdown(ctx) // requests in JSON first: they become calls of gRPC
		s.grpc.GracefulStop()
	}()
	select { // stop ends what has not ended in time
	case <-ended:
	case <-ctx.Done():
	case <-s.done:
	}
}

// Close transfers leadership, completes requests in progress, stops serving and waits until store and log are closed.
// What was acknowledged is durable already.
func (s *Server) Close() error {
	s.dismissOnce.Do(s.prepareStop)
	s.begin()
	<-s.done
	return s.err
}

// Joined is closed once the membership that this member has applied shows its name and client URLs: it takes part in
// its cluster.
func (s *Server) Joined() <-chan struct{} { return s.joined }

// Done is closed when the server has stopped.
func (s *Server) Done() <-chan struct{} { return s.done }

// Err returns why the server stopped: nil while it runs and after a clean Close.
func (s *Server) Err() error {
	select {
	case <-s.done:
		return s.err
	default:
		return nil
	}
}

// ID returns the member's id.
func (s *Server) ID() braid.MemberID { return s.id }

// Status describes the member as the log sees it.
func (s *Server) Status() braid.Status { return s.log.Status() }

// SetNet changes how this member's links are emulated: see [braid.Node.SetNet].
func (s *Server) SetNet(net string) error { return s.log.SetNet(net) }

// header makes a response's header at a revision.
func (s *Server) header(revision int64) *pb.ResponseHeader {
	return &pb.ResponseHeader{
		ClusterId: s.cfg.Node.Cluster, MemberId: uint64(s.id), RaftTerm: s.self.Load().term, Revision: revision,
	}
}

// fill completes a header that the state machine made.
func (s *Server) fill(h *pb.ResponseHeader) *pb.ResponseHeader {
	if h == nil {
		return s.header(s.store.Revision())
	}
	h.ClusterId, h.MemberId, h.RaftTerm = s.cfg.Node.Cluster, uint64(s.id), s.self.Load().term
	if h.Revision == 0 {
		h.Revision = s.store.Revision()
	}
	return h
}
