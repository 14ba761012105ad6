package bench

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
)

// A load on servers that do not answer continues, and ends when it is stopped.
func TestEndlessLoadWithoutServers(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := kvLoad()
	c.Endpoints = []string{l.Addr().String()}
	c.KeyPrefix, c.KeySize, c.RemoveKeys = "x/", 8, true
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	load, err := StartKV(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); load.Counts().Failed == 0; <-time.After(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("no request fails")
		}
	}
	if n := load.Counts(); n.Reads+n.Writes != 0 || load.Err() == nil {
		t.Errorf("%+v, and the error is %v", n, load.Err())
	}
	select {
	case <-load.Done():
		t.Error("the load ended")
	default:
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := load.Stop(ctx); err == nil {
		t.Error("the keys were removed")
	}
	<-load.Done()

	c.Endpoints = nil
	if _, err := StartKV(t.Context(), c); err == nil || !strings.Contains(err.Error(), "no endpoints") {
		t.Errorf("the error is %v", err)
	}
	c.Clients = 0
	if _, err := StartKV(t.Context(), c); err == nil || !strings.Contains(err.Error(), "0 clients") {
		t.Errorf("the error is %v", err)
	}
}

// A load whose requests are refused permanently ends.
func TestEndlessLoadThatIsRefused(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	full := grpc.NewServer(grpc.UnknownServiceHandler(func(any, grpc.ServerStream) error {
		return rpctypes.ErrGRPCNoSpace
	}))
	go full.Serve(l)
	t.Cleanup(full.Stop)
	c := kvLoad()
	c.Endpoints = []string{l.Addr().String()}
	load, err := StartKV(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	<-load.Done()
	if refused := (*RefusedError)(nil); !errors.As(load.Err(), &refused) {
		t.Errorf("the error is %v", load.Err())
	}
	if err := load.Stop(context.Background()); err != nil {
		t.Error(err)
	}
}
