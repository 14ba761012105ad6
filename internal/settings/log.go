package settings

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/internal/registry"
	"github.com/braidlog/braid/internal/transport/netspec"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/common"
	"github.com/braidlog/braid/protocol/setting"
)

// The values of the flags --placement and --leaders.
const (
	PlacementCopy = string(protocol.PlacementCopy)
	PlacementCode = string(protocol.PlacementCode)

	LeadersTogether = string(protocol.LeadersTogether)
	LeadersSpread   = string(protocol.LeadersSpread)
)

// Log configures a cluster's log. Sizes are in bytes.
type Log struct {
	Protocol string
	// Values are the settings that all protocols have, and the protocol's own.
	Values setting.Values

	MaxRequestBytes uint
	LargeValueBytes int // 0: default; negative: no value is large
	BodyCacheBytes  int
	ScrubRate       int    // a second; 0: never
	Net             string // link emulation
	LanePrefixes    []string
}

// Layout are the settings of package common that have a flag, except for those of timing. The order is given by the
// protocol, and fit-avoid by the leader.
var Layout = setting.Table{Rows: []setting.Any{common.Placement, common.Instances, common.Leaders, common.CodeK,
	common.ExtraWhole, common.TrimWhole, common.Fit}}

// Flags registers the flags; parsing them fills in l.
func (l *Log) Flags(f *pflag.FlagSet) {
	f.StringVar(&l.Protocol, "protocol", registry.Default, "protocol of the log: "+served())
	CommonFlags(f, Layout, &l.Values)
	OwnFlags(f, registry.ServerSettings(), registry.ServersHaving, false, &l.Values)
	f.IntVar(&l.LargeValueBytes, "large-value-bytes", 0, "size in bytes from which on values are kept outside of the "+
		"database (0: 64 KiB, with placement code 16 KiB; negative: never)")
	f.UintVar(&l.MaxRequestBytes, "max-request-bytes", 32<<20,
		"maximal size of a client's request, in bytes; clients have their own limit (2 MiB in etcdctl's --max-request-bytes)")
	f.IntVar(&l.BodyCacheBytes, "body-cache-bytes", 0, "bytes of large values kept whole in memory for "+
		"reading (0: 64 MiB, or a sixteenth of the memory limit if that is less)")
	f.IntVar(&l.ScrubRate, "scrub-rate", 4<<20, "rate in bytes a second of reading everything on disk to find and "+
		"repair damage (0: never)")
	f.StringArrayVar(&l.LanePrefixes, "lane-prefix", nil, "KEY, KEY=confirmed or KEY=accepted: puts of keys with this "+
		"prefix, without lease and previous value, may take a lane, and are answered when they are applied, or "+
		"accepted; may be repeated")
	f.StringVar(&l.Net, "net", "", netspec.Usage)
}

// served describes each protocol that can serve.
func served() string {
	var all []string
	for _, p := range registry.All() {
		if p.Serves() {
			all = append(all, p.Name+", "+p.Does)
		}
	}
	return strings.Join(all, "; ")
}

// Cuts reports whether placement code was requested, by its name or the protocol's.
func (l *Log) Cuts() bool {
	p, place := l.protocol(), l.Placement()
	return place == PlacementCode || place == "" && p != nil && p.Placements[0] == protocol.PlacementCode
}

// Merges reports whether several instances are merged into one log: the protocol's name says it, or once the settings
// are complete their order.
func (l *Log) Merges() bool {
	p := l.protocol()
	return p != nil && (p.Merges() || order.Kind(common.Order.In(l.Values)) == order.KindNiagara)
}

// NamedProtocol is the name of the protocol, if one was given; "": a log that exists keeps its own.
func (s *Settings) NamedProtocol() string {
	if !s.protocolGiven {
		return ""
	}
	return s.Protocol
}

func (l *Log) protocol() *registry.Protocol { return registry.Find(l.Protocol) }

// early reports whether commands may be answered before they are applied.
func (l *Log) early(p *registry.Protocol) bool {
	return p.Core.Proposing.With(p.Core.Settings.Only(l.Values).Over(p.Own)).Accepted
}

// Placement is where large values are kept; "" until it is completed: the protocol's own.
func (l *Log) Placement() string { return string(common.Placement.In(l.Values)) }

// Instances is the number of instances with which a new cluster begins, once the settings are complete.
func (l *Log) Instances() int { return max(1, common.Instances.In(l.Values)) }

// Leaders are the members that lead the instances; "" until it is completed, and where there is one instance.
func (l *Log) Leaders() string { return string(common.Leaders.In(l.Values)) }

// CodeK is the maximal number of fragments that make a value whole; 0: a majority of the members less one.
func (l *Log) CodeK() int { return common.CodeK.In(l.Values) }

// Complete sets values that depend on the protocol, and validates. Equivalent settings give the same protocol: raft
// with placement code is craft.
func (l *Log) Complete() error {
	return errors.Join(l.choose(), l.checkBytes())
}

func (l *Log) choose() error {
	p, has := l.protocol(), "this version has "+registry.List(registry.Serving())
	switch {
	case p == nil:
		return fmt.Errorf("--protocol %q: %s", l.Protocol, has)
	case !p.Serves():
		return fmt.Errorf(`--protocol %q is for "braid bench" and "braid sim" alone, for %s: %s`, l.Protocol, p.OnlyFor, has)
	}
	c, err := p.Choose(l.Values, 0)
	if err != nil {
		return FlagError(err)
	}
	l.Protocol, l.Values = p.Canonical(c.Order, c.Placement, c.Own()).Name, c.Values
	return nil
}

func (l *Log) checkBytes() error {
	var errs []error
	if l.MaxRequestBytes == 0 || l.MaxRequestBytes > 1<<30 {
		errs = append(errs, fmt.Errorf("--max-request-bytes must be 1 to %d", 1<<30))
	}
	if l.LargeValueBytes > 0 && l.LargeValueBytes < 1<<10 {
		errs = append(errs, errors.New("--large-value-bytes must be at least 1024"))
	}
	if l.BodyCacheBytes < 0 {
		errs = append(errs, errors.New("--body-cache-bytes is negative"))
	}
	if l.ScrubRate < 0 {
		errs = append(errs, errors.New("--scrub-rate is negative: 0 turns it off"))
	}
	return errors.Join(errs...)
}

// Fragments is the number of fragments that make a value whole while all of this number of members are up. 1: values
// are not cut.
func (l *Log) Fragments(members int) int {
	if l.Placement() != PlacementCode {
		return 1
	}
	majority := members/2 + 1
	most := l.CodeK()
	if most == 0 {
		most = majority - 1
	}
	return max(1, min(most, majority))
}
