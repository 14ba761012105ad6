package settings

import (
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/spf13/pflag"
)

// Access is how clients may connect, and what they see over HTTP besides the API.
type Access struct {
	Hosts, Origins []string
	Profiling      bool // serve /debug/pprof/
	// Times of pings on connections of gRPC.
	PingMinTime, PingInterval, PingTimeout time.Duration
}

func (a *Access) flags(f *pflag.FlagSet) {
	f.StringSliceVar(&a.Hosts, "host-whitelist", []string{"*"},
		"names by which requests over plain HTTP may address this member, against rebinding of DNS names (*: any)")
	f.StringSliceVar(&a.Origins, "cors", []string{"*"},
		"sites whose pages may call this member from browsers, as https://example.com (*: all)")
	f.BoolVar(&a.Profiling, "enable-pprof", false, "serve profiles of this process under /debug/pprof/ of client URLs")
	f.DurationVar(&a.PingMinTime, "grpc-keepalive-min-time", 5*time.Second,
		"least interval of a client's pings; a client that pings more often is cut off")
	f.DurationVar(&a.PingInterval, "grpc-keepalive-interval", 2*time.Hour, "silence after which a client is pinged")
	f.DurationVar(&a.PingTimeout, "grpc-keepalive-timeout", 20*time.Second,
		"time for a client to answer a ping, after which its connection is closed")
}

func (a *Access) check() error {
	var errs []error
	for _, origin := range a.Origins {
		u, err := url.Parse(origin)
		if origin != "*" && (err != nil || u.Scheme == "" || u.Host == "" || u.Scheme+"://"+u.Host != origin) {
			errs = append(errs, fmt.Errorf("--cors: %q is not a site, as https://example.com, or *", origin))
		}
	}
	for _, p := range []struct {
		flag string
		d    time.Duration
	}{{"min-time", a.PingMinTime}, {"interval", a.PingInterval}, {"timeout", a.PingTimeout}} {
		if p.d <= 0 {
			errs = append(errs, fmt.Errorf("--grpc-keepalive-%s %s: it is more than 0", p.flag, p.d))
		}
	}
	return errors.Join(errs...)
}
