package server

import (
	"context"
	"errors"
	"io"
	"sync/atomic"
	"time"

	"github.com/coreos/go-semver/semver"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.etcd.io/etcd/api/v3/version"
	etcderrors "go.etcd.io/etcd/server/v3/etcdserver/errors"

	"github.com/braidlog/braid"
	"github.com/braidlog/braid/server/internal/history"
)

// maintenanceService implements pb.MaintenanceServer.
type maintenanceService struct {
	pb.UnsafeMaintenanceServer
	s *Server
}

// Status implements pb.MaintenanceServer.
func (m *maintenanceService) Status(ctx context.Context, _ *pb.StatusRequest) (*pb.StatusResponse, error) {
	if err := m.s.store.Rights().RequireAuth(ctx); err != nil {
		return nil, toStatus(err)
	}
	st, self := m.s.log.Status(), m.s.self.Load()
	resp := &pb.StatusResponse{
		Header: m.s.header(m.s.store.Revision()), Version: version.Version, StorageVersion: m.s.store.StorageVersion(),
		Leader: uint64(self.leader), RaftTerm: self.term, IsLearner: self.learner,
		DbSize: m.s.store.DBSize(), DbSizeInUse: m.s.store.DBSizeInUse(), DbSizeQuota: m.s.store.QuotaBytes(),
		DowngradeInfo: &pb.DowngradeInfo{},
	}
	resp.RaftIndex, resp.RaftAppliedIndex = logIndexes(&st)
	if !self.led {
		resp.Errors = append(resp.Errors, etcderrors.ErrNoLeader.Error())
	}
	for _, a := range m.s.store.Alarms() {
		resp.Errors = append(resp.Errors, a.String())
	}
	return resp, nil
}

// logIndexes are what etcd's API calls the committed and the applied index. Neither ever falls. With merged instances
// they are the position that is applied, and the position that can at least be reached with the committed entries.
func logIndexes(st *braid.Status) (committed, applied uint64) {
	if st.Order == braid.OrderNiagara {
		committed = uint64(st.Applied)
		for i := range st.Progress {
			committed += st.Progress[i].Waiting
		}
		return committed, uint64(st.Applied)
	}
	if len(st.Progress) > 0 {
		applied = uint64(st.Progress[0].Applied)
		committed = max(uint64(st.Instances[0].Commit), applied)
	}
	return committed, applied
}

// Alarm implements pb.MaintenanceServer.
func (m *maintenanceService) Alarm(ctx context.Context, r *pb.AlarmRequest) (*pb.AlarmResponse, error) {
	permitted := m.s.needAdmin
	if r.Action == pb.AlarmRequest_GET {
		permitted = m.s.needUser
	}
	if err := permitted(ctx); err != nil {
		return nil, err
	}
	if _, known := pb.AlarmRequest_AlarmAction_name[int32(r.Action)]; !known {
		return nil, status.Error(codes.InvalidArgument, "etcdserver: unknown alarm action")
	}
	resp, err := propose[*pb.AlarmResponse](ctx, m.s, &pb.InternalRaftRequest{Alarm: r})
	if err != nil {
		return nil, err
	}
	resp.Header = m.s.fill(resp.Header)
	return resp, nil
}

// longestDefragmentation is how long a defragmentation may wait for snapshots that are sent meanwhile.
const longestDefragmentation = time.Hour

// Defragment implements pb.MaintenanceServer. It rewrites this member's database, and the member serves meanwhile. As
// in etcd, it is completed also if its client no longer waits.
func (m *maintenanceService) Defragment(ctx context.Context, _ *pb.DefragmentRequest) (*pb.DefragmentResponse, error) {
	if err := m.s.needAdminHere(ctx); err != nil {
		return nil, err
	}
	err := m.s.detached(ctx, longestDefragmentation, m.s.defragmentNow)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return nil, status.Error(codes.Unavailable, "etcdserver: "+err.Error())
	}
	if err != nil {
		return nil, toStatus(err)
	}
	return &pb.DefragmentResponse{}, nil // without a header, as in etcd
}

// defragment makes the database smaller if that frees enough. It may fail for lack of space.
func (s *Server) defragment(ctx context.Context) {
	free := s.store.DBSize() - s.store.DBSizeInUse()
	if s.cfg.DefragmentBytes <= 0 || free < s.cfg.DefragmentBytes || s.store.Damage().Err() != nil {
		return
	}
	s.logger.Info("defragmenting the database", "bytes", free)
	_ = s.defragmentNow(ctx) // it is logged, and the member serves as before
}

// defragmentNow defragments the database, and logs how that ended.
func (s *Server) defragmentNow(ctx context.Context) error {
	before := s.store.DBSize()
	if err := s.store.Defragment(ctx); err != nil {
		s.logger.Error("defragmentation failed", history.EventKey, "defragment-failed", "err", err)
		return err
	}
	s.logger.Info("the database is defragmented", history.EventKey, "defragmented", "before", before,
		"after", s.store.DBSize())
	return nil
}

// Hash implements pb.MaintenanceServer.
func (m *maintenanceService) Hash(ctx context.Context, _ *pb.HashRequest) (*pb.HashResponse, error) {
	if err := m.s.needAdminHere(ctx); err != nil {
		return nil, err
	}
	hash, revision, err := m.s.store.Hash()
	if err != nil {
		return nil, toStatus(err)
	}
	return &pb.HashResponse{Header: m.s.header(revision), Hash: hash}, nil
}

// HashKV implements pb.MaintenanceServer.
func (m *maintenanceService) HashKV(ctx context.Context, r *pb.HashKVRequest) (*pb.HashKVResponse, error) {
	if err := m.s.needAdminHere(ctx); err != nil {
		return nil, err
	}
	hash, err := m.s.store.HashKV(ctx, r.Revision)
	if err != nil {
		return nil, toStatus(err)
	}
	resp := hashResponse(&hash)
	resp.Header = m.s.header(hash.Revision)
	return resp, nil
}

// snapshotChunk is how many bytes of a snapshot are in one message.
const snapshotChunk = 64 << 10

// Snapshot implements pb.MaintenanceServer: the database as it is now, then its digest.
func (m *maintenanceService) Snapshot(_ *pb.SnapshotRequest, stream pb.Maintenance_SnapshotServer) error {
	ctx := stream.Context()
	if err := m.s.needAdminHere(ctx); err != nil {
		return err
	}
	snapshot, err := m.s.store.SnapshotForClients(ctx)
	if err != nil {
		return toStatus(err)
	}
	left, version := snapshot.Size(), m.s.store.StorageVersion()
	return m.s.sendPieces(func(piece []byte) error {
		left -= int64(len(piece))
		return stream.Send(&pb.SnapshotResponse{RemainingBytes: uint64(max(left, 0)), Blob: piece, Version: version})
	}, func(out io.Writer) error {
		return errors.Join(snapshot.WriteTo(ctx, out), snapshot.Close())
	})
}

// sendPieces calls write, and sends the written bytes in messages of snapshotChunk bytes, which own their bytes.
func (s *Server) sendPieces(send func(piece []byte) error, write func(io.Writer) error) error {
	out := &pieceSender{send: send}
	done := make(chan error, 1)
	go func() {
		err := write(out)
		if err == nil {
			err = out.flush()
		}
		done <- err
	}()
	return toStatus(s.awaitProgress(done, &out.sent))
}

// errSnapshotStalled ends the stream of a client that does not read it: an open snapshot keeps the
// database from shrinking and from being defragmented. A retry is safe.
var errSnapshotStalled = status.Error(codes.DeadlineExceeded,
	"etcdserver: the client did not take the snapshot for too long")

// awaitProgress waits for a stream that counts what it sends. It returns an error when the stream
// sends nothing for too long. Then the call ends, so sending fails.
func (s *Server) awaitProgress(done <-chan error, sent *atomic.Int64) error {
	timeout := time.NewTicker(s.cfg.SnapshotStallTimeout)
	defer timeout.Stop()
	for last := int64(-1); ; {
		select {
		case err := <-done:
			return err
		case <-timeout.C:
			now := sent.Load()
			if now == last {
				return errSnapshotStalled
			}
			last = now
		}
	}
}

// pieceSender sends what is written to it in messages of snapshotChunk bytes.
type pieceSender struct {
	send func(piece []byte) error
	sent atomic.Int64 // bytes that the transport took
	buf  []byte
}

// Write implements io.Writer. Messages own their bytes: sending one continues after Send.
func (w *pieceSender) Write(p []byte) (int, error) {
	written := len(p)
	for len(p) > 0 {
		if w.buf == nil {
			w.buf = make([]byte, 0, snapshotChunk)
		}
		n := min(cap(w.buf)-len(w.buf), len(p))
		w.buf, p = append(w.buf, p[:n]...), p[n:]
		if len(w.buf) == cap(w.buf) {
			if err := w.flush(); err != nil {
				return 0, err
			}
		}
	}
	return written, nil
}

func (w *pieceSender) flush() error {
	if len(w.buf) == 0 {
		return nil
	}
	piece := w.buf
	w.buf = nil
	err := w.send(piece)
	w.sent.Add(int64(len(piece)))
	return err
}

// MoveLeader implements pb.MaintenanceServer. As in etcd, only the leader can be asked.
func (m *maintenanceService) MoveLeader(ctx context.Context, r *pb.MoveLeaderRequest) (*pb.MoveLeaderResponse, error) {
	if err := m.s.needAdmin(ctx); err != nil {
		return nil, err
	}
	if !m.s.self.Load().isLeader() {
		return nil, rpctypes.ErrGRPCNotLeader
	}
	target := m.s.cluster.find(r.TargetID)
	if target == nil || target.Learner {
		return nil, rpctypes.ErrGRPCBadLeaderTransferee
	}
	ctx, cancel := context.WithTimeout(ctx, m.s.timeout)
	defer cancel()
	if err := m.s.log.TransferLeader(ctx, braid.MemberID(r.TargetID)); err != nil {
		return nil, toStatus(err)
	}
	return &pb.MoveLeaderResponse{Header: m.s.header(m.s.store.Revision())}, nil
}

// Downgrade implements pb.MaintenanceServer. No downgrade is ever in progress: there is no older version of the layout
// that this one can write. So etcd's answers for that are true: every target is an invalid one, and there is nothing to
// cancel, which etcd answers with success.
func (m *maintenanceService) Downgrade(ctx context.Context, r *pb.DowngradeRequest) (*pb.DowngradeResponse, error) {
	if err := m.s.needAdmin(ctx); err != nil {
		return nil, err
	}
	switch r.Action {
	case pb.DowngradeRequest_CANCEL:
		header := m.s.header(m.s.store.Revision())
		return &pb.DowngradeResponse{Header: header, Version: m.s.store.ClusterVersion()}, nil
	case pb.DowngradeRequest_VALIDATE, pb.DowngradeRequest_ENABLE:
		if !isVersion(r.Version) {
			return nil, rpctypes.ErrGRPCWrongDowngradeVersionFormat
		}
		return nil, rpctypes.ErrGRPCInvalidDowngradeTargetVersion
	}
	return nil, toStatus(etcderrors.ErrUnknownMethod)
}

// isVersion reports whether a text is a version, with or without its last number.
func isVersion(text string) bool {
	_, whole := semver.NewVersion(text)
	_, short := semver.NewVersion(text + ".0")
	return whole == nil || short == nil
}
