package settings

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"
)

// Limits bound what this member takes from its clients.
type Limits struct {
	MaxConnections          int // 0: what the process's descriptors allow
	MaxConnectionsPerClient int // 0: no limit
	MaxRequestsPerClient    int
	UserRates, PrefixRates  []string
}

func (l *Limits) flags(f *pflag.FlagSet) {
	f.IntVar(&l.MaxConnections, "max-connections", 0, "maximal number of connections of clients; further ones wait "+
		"(0: what the limit of descriptors leaves)")
	f.IntVar(&l.MaxConnectionsPerClient, "max-connections-per-client", 0, "maximal number of connections from one "+
		"address of IPv4, or network /64 of IPv6; further ones are closed (0: no limit)")
	f.IntVar(&l.MaxRequestsPerClient, "max-requests-per-client", 32768, "maximal number of calls and streams in "+
		"progress from one address of IPv4, or network /64 of IPv6; further ones are refused")
	f.StringArrayVar(&l.UserRates, "user-request-rate", nil, "USER=REQUESTS: requests a second that this member takes "+
		"from a user, * for each user without a limit of its own; further ones are refused (may be repeated)")
	f.StringArrayVar(&l.PrefixRates, "prefix-request-rate", nil, "PREFIX=REQUESTS: requests a second for keys with a "+
		"prefix that this member takes; further ones are refused (may be repeated)")
}

func (l *Limits) check() error {
	var errs []error
	for _, n := range []struct {
		flag         string
		value, least int
	}{
		{"max-connections", l.MaxConnections, 0}, {"max-connections-per-client", l.MaxConnectionsPerClient, 0},
		{"max-requests-per-client", l.MaxRequestsPerClient, 1},
	} {
		if n.value < n.least {
			errs = append(errs, fmt.Errorf("--%s %d: it is at least %d", n.flag, n.value, n.least))
		}
	}
	return errors.Join(errs...)
}
