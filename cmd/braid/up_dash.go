package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/braidlog/braid/internal/control"
	"github.com/braidlog/braid/internal/launch"
	"github.com/braidlog/braid/internal/ports"
	"github.com/braidlog/braid/server"
)

// dashHost is where the dashboard is served.
const dashHost = "127.0.0.1"

// dashOffset is the distance of the dashboard's port from the first member's client port. It is the last port of that
// member's ten, which its network cards use only if they are nine.
const dashOffset = 9

// listenDash opens the port of the dashboard: the one that --dash-port names, or one next to the members' if it is
// free, or any free one.
func (f *upFlags) listenDash(m *launch.Manifest, given bool) (net.Listener, error) {
	listen := func(port int) (net.Listener, error) {
		return ports.Listen("tcp", net.JoinHostPort(dashHost, strconv.Itoa(port)), false)
	}
	if given {
		l, err := listen(f.dashPort)
		if err != nil {
			return nil, fmt.Errorf("--dash-port: %w", err)
		}
		return l, nil
	}
	if f.basePort != 0 {
		if l, err := listen(m.Members[0].ClientPort + dashOffset); err == nil {
			return l, nil
		}
	}
	return listen(0)
}

// dashboard is the server of a cluster's dashboard.
type dashboard struct {
	url  string
	http http.Server
	op   *operator
	done chan error
}

// serveDash serves the dashboard of a cluster until close.
func serveDash(l net.Listener, c *launch.Cluster) *dashboard {
	op := newOperator(c)
	page := control.Page{Path: server.DashboardPath, Handler: server.Dashboard()}
	d := &dashboard{url: "http://" + l.Addr().String() + "/", op: op, done: make(chan error, 1), http: http.Server{
		Handler: control.New(op, page), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute}}
	go func() { d.done <- d.http.Serve(l) }()
	return d
}

// close ends the server. Requests in progress end.
func (d *dashboard) close() error {
	err := d.http.Close()
	if serve := <-d.done; !errors.Is(serve, http.ErrServerClosed) {
		err = errors.Join(err, serve)
	}
	return err
}

// runWithDash runs the cluster and its dashboard.
func (f *upFlags) runWithDash(ctx context.Context, o launch.Options, given bool,
	report func(e launch.Event, dash string),
) error {
	var d *dashboard // it is there before the first event
	o.Report = func(e launch.Event) {
		url := ""
		switch e.Kind {
		case launch.Ready:
			url = d.url
		case launch.Stopping:
			defer d.op.close() // while members still answer
		}
		report(e, url)
	}
	c, err := launch.Open(ctx, o)
	if err != nil {
		return err
	}
	l, err := f.listenDash(c.Manifest(), given)
	if err != nil {
		return errors.Join(err, c.Close())
	}
	d = serveDash(l, c)
	err = c.Run(ctx)
	return errors.Join(err, d.close())
}
