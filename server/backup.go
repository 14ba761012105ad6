package server

import (
	"encoding/json"
	"errors"
	"io"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/braidlog/braid/internal/store/increment"
)

// backupQuestion asks for an increment that continues a backup.
type backupQuestion struct {
	// Since is where the backup ends, and Base its SHA-256 in hexadecimal.
	Since increment.Point `json:"since"`
	Base  string          `json:"base"`
}

// serveBackup is the handler of the stream.
func serveBackup(srv any, stream grpc.ServerStream) error {
	question := new(wrapperspb.BytesValue)
	if err := stream.RecvMsg(question); err != nil {
		return err
	}
	return srv.(adminServer).backup(question, stream)
}

func (s *Server) backup(question *wrapperspb.BytesValue, pieces grpc.ServerStream) error {
	ctx := pieces.Context()
	if err := s.needAdmin(ctx); err != nil { // behind a barrier: everything acknowledged before is there
		return err
	}
	var q backupQuestion
	if err := json.Unmarshal(question.Value, &q); err != nil {
		return status.Error(codes.InvalidArgument, "braid: backup: "+err.Error())
	}
	view, err := s.store.Increment(ctx, q.Since)
	if err != nil {
		return toStatus(err)
	}
	header := increment.Header{Cluster: s.header(0).ClusterId, Base: q.Base, Time: time.Now().UTC()}
	return s.sendPieces(func(piece []byte) error {
		return pieces.SendMsg(wrapperspb.Bytes(piece))
	}, func(out io.Writer) error {
		return errors.Join(view.WriteTo(ctx, out, header), view.Close())
	})
}
