package settings

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"github.com/braidlog/braid/internal/registry"
	"github.com/braidlog/braid/internal/transport/netspec"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/setting"
)

// What the flags --placement and --leaders can say.
const (
	PlacementCopy = string(protocol.PlacementCopy)
	PlacementCode = string(protocol.PlacementCode)

	LeadersTogether = string(protocol.LeadersTogether)
	LeadersSpread   = string(protocol.LeadersSpread)
)

// defaultProtocol is the protocol if none is given.
const defaultProtocol = "raft"

// Log is how a cluster keeps its log. Protocol, Placement and CodeK are the same on all
// members, and so are Instances and Leaders as long as the cluster is new; the rest may
// differ. Sizes are in bytes.
type Log struct {
	Protocol  string
	Placement string // "": the protocol's own, until it is completed
	Instances int    // what a new cluster begins with; 0: the protocol's own, until it is completed
	Leaders   string // who leads the instances; "" until it is completed, and where there is one

	Own setting.Values // the protocol's own settings

	CodeK      int // fragments that make a value whole, at most; 0: a majority of the members less one
	ExtraWhole int // whole copies beyond those that are needed, where any are

	MaxRequestBytes uint
	LargeValueBytes int // 0: default; negative: none is large
	BodyCacheBytes  int
	ScrubRate       int // a second; 0: never
	TrimWhole       bool
	Net             string // link emulation
	LanePrefixes    []string
}

// Flags registers the flags; parsing them fills in l.
func (l *Log) Flags(f *pflag.FlagSet) {
	f.StringVar(&l.Protocol, "protocol", defaultProtocol, "protocol of the log: "+served())
	f.StringVar(&l.Placement, "placement", "", "where large values live: copy, whole on every member; code, a fragment on each (default what the protocol says)")
	f.IntVar(&l.Instances, "instances", 0, "with niagara: with how many instances a new cluster begins, 1 to 64 (0: 4)")
	f.StringVar(&l.Leaders, "leaders", "", "with niagara: who leads the instances: together, one member all of them; spread, each member some (default together, with placement code spread)")
	OwnFlags(f, registry.ServerSettings(), registry.ServersHaving, false, &l.Own)
	f.IntVar(&l.CodeK, "code-k", 0, "with placement code: how many fragments make a value whole, at most, 1 to 64; never more than a majority of the members (0: a majority less one, which waits for no slow member)")
	f.IntVar(&l.ExtraWhole, "extra-whole", 0, "with placement code: while members are down, how many more than needed get values whole")
	f.IntVar(&l.LargeValueBytes, "large-value-bytes", 0, "size in bytes from which on values are kept outside of the database (0: 64 KiB, with placement code 16 KiB; negative: none is)")
	f.UintVar(&l.MaxRequestBytes, "max-request-bytes", 32<<20, "largest request of a client, in bytes; clients have a limit of their own (2 MiB in etcdctl's --max-request-bytes)")
	f.IntVar(&l.BodyCacheBytes, "body-cache-bytes", 64<<20, "bytes of large values kept whole in memory for reading")
	f.IntVar(&l.ScrubRate, "scrub-rate", 4<<20, "bytes a second at which everything on disk is read to find and repair damage (0: never)")
	f.BoolVar(&l.TrimWhole, "trim-whole", false, "with placement code: cut whole copies down to a fragment once enough members hold theirs")
	f.StringArrayVar(&l.LanePrefixes, "lane-prefix", nil, "KEY, KEY=confirmed or KEY=accepted: puts of keys with this prefix, without lease and previous value, may take a lane, and are answered when they are applied, or accepted; may be repeated")
	f.StringVar(&l.Net, "net", "", netspec.Usage)
}

// served tells what each protocol does that can serve.
func served() string {
	var all []string
	for _, p := range registry.All() {
		if p.Serves() {
			all = append(all, p.Name+", "+p.Does)
		}
	}
	return strings.Join(all, "; ")
}

// Cuts reports whether placement code is asked for, by its name or the protocol's.
func (l *Log) Cuts() bool {
	p := l.protocol()
	return l.Placement == PlacementCode || l.Placement == "" && p != nil && p.Placements[0] == protocol.PlacementCode
}

// Weaves reports whether the protocol makes one log of several instances.
func (l *Log) Weaves() bool {
	p := l.protocol()
	return p != nil && p.Weaves()
}

// Order is the order in which the protocol runs. The protocol must be a known one.
func (l *Log) Order() string { return string(l.protocol().Orders[0]) }

func (l *Log) protocol() *registry.Protocol { return registry.Find(l.Protocol) }

// Complete fills in protocol and placement, and says what is wrong.
func (l *Log) Complete() error {
	if err := l.choose(); err != nil {
		return err
	}
	l.weave()
	return errors.Join(l.checkInstances(), l.checkCode(), l.checkBytes())
}

// choose checks protocol and placement, and fills in the protocol's own placement. Two ways to ask
// for one thing give the same protocol: raft with placement code is craft.
func (l *Log) choose() error {
	p, has := l.protocol(), "this version has "+list(registry.Serving())
	switch {
	case p == nil:
		return fmt.Errorf("--protocol %q: %s", l.Protocol, has)
	case !p.Serves():
		return fmt.Errorf(`--protocol %q is for "braid bench" and "braid sim" alone, for %s: %s`, l.Protocol, p.OnlyFor, has)
	case l.Placement != "" && l.Placement != PlacementCopy && l.Placement != PlacementCode:
		return fmt.Errorf("--placement %q: this version has copy and code", l.Placement)
	}
	place, err := p.Placement(protocol.Placement(l.Placement))
	if err != nil {
		return fmt.Errorf("--protocol %s is placement %s, and not --placement %s: leave one of them out", p.Name, p.Placements[0], l.Placement)
	}
	if l.Own, err = p.Complete(l.Own); err != nil {
		return OwnError(err)
	}
	l.Protocol, l.Placement = p.Canonical(p.Orders[0], place).Name, string(place)
	return nil
}

// list joins names as a sentence does.
func list(names []string) string {
	last := len(names) - 1
	if last < 1 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

// weave fills in instances and leaders.
func (l *Log) weave() {
	if !l.Weaves() {
		l.Instances = cmp.Or(l.Instances, 1)
		return
	}
	l.Instances = cmp.Or(l.Instances, defaultInstances)
	if l.Leaders == "" && l.Placement == PlacementCode {
		l.Leaders = LeadersSpread
	}
	l.Leaders = cmp.Or(l.Leaders, LeadersTogether)
}

// Also the library's default and bound.
const defaultInstances, maxInstances = 4, 64

func (l *Log) checkInstances() error {
	var errs []error
	if l.Weaves() {
		if l.Instances < 1 || l.Instances > maxInstances {
			errs = append(errs, fmt.Errorf("--instances %d: it is 1 to %d", l.Instances, maxInstances))
		}
		if l.Leaders != LeadersTogether && l.Leaders != LeadersSpread {
			errs = append(errs, fmt.Errorf("--leaders %q: it is together or spread", l.Leaders))
		}
		return errors.Join(errs...)
	}
	if l.Instances != 1 {
		errs = append(errs, fmt.Errorf("--instances %d: %s runs 1 instance; --protocol niagara weaves several", l.Instances, l.Protocol))
	}
	if l.Leaders != "" {
		errs = append(errs, fmt.Errorf("--leaders has a meaning only with --protocol niagara: %s has one leader", l.Protocol))
	}
	return errors.Join(errs...)
}

// maxCodeK is also the library's bound.
const maxCodeK = 64

func (l *Log) checkCode() error {
	var errs []error
	if l.CodeK < 0 || l.CodeK > maxCodeK {
		errs = append(errs, fmt.Errorf("--code-k %d: it is 0 to %d", l.CodeK, maxCodeK))
	}
	if l.ExtraWhole < 0 || l.ExtraWhole > maxCodeK {
		errs = append(errs, fmt.Errorf("--extra-whole %d: it is 0 to %d", l.ExtraWhole, maxCodeK))
	}
	if l.Placement == PlacementCode {
		return errors.Join(errs...)
	}
	for _, f := range []struct {
		flag  string
		given bool
	}{{"--code-k", l.CodeK != 0}, {"--extra-whole", l.ExtraWhole != 0}, {"--trim-whole", l.TrimWhole}} {
		if f.given {
			errs = append(errs, fmt.Errorf("%s has a meaning only with --protocol craft, or niagara with --placement code: placement copy knows no fragments", f.flag))
		}
	}
	return errors.Join(errs...)
}

func (l *Log) checkBytes() error {
	var errs []error
	if l.MaxRequestBytes == 0 || l.MaxRequestBytes > 1<<30 {
		errs = append(errs, fmt.Errorf("--max-request-bytes must be 1 to %d", 1<<30))
	}
	if l.LargeValueBytes > 0 && l.LargeValueBytes < 1<<10 {
		errs = append(errs, errors.New("--large-value-bytes must be at least 1024"))
	}
	if l.BodyCacheBytes <= 0 {
		errs = append(errs, errors.New("--body-cache-bytes must be positive"))
	}
	if l.ScrubRate < 0 {
		errs = append(errs, errors.New("--scrub-rate is negative: 0 turns it off"))
	}
	return errors.Join(errs...)
}

// Fragments is how many fragments make a value whole while all of so many members are up.
// 1: values are not cut.
func (l *Log) Fragments(members int) int {
	if l.Placement != PlacementCode {
		return 1
	}
	majority := members/2 + 1
	most := l.CodeK
	if most == 0 {
		most = majority - 1
	}
	return max(1, min(most, majority))
}
