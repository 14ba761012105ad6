package braid

import (
	"cmp"
	"errors"
	"reflect"
	"strings"

	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/internal/registry"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/common"
	"github.com/braidlog/braid/protocol/setting"
)

// Protocol is the protocol by which the members of a cluster agree on their log, with its settings: [Raft], [CRaft],
// [LCR], [Niagara], [MultiPaxos] or [ISS], or any protocol by its name with [Named]. Other types do not implement it.
// The zero value of each is a protocol with its defaults, and that of a field is the default of a setting.
//
// The first members of a cluster must have the same protocol, and mostly the same settings: they compare what must be
// equal when they connect. From then on the log has the settings, see [Node.Tune]: a member that joins or starts again
// uses those. It may have any of Raft, CRaft, LCR and Niagara then, whichever of them the cluster began with.
// https://github.com/braidlog/braid/blob/main/docs/using/settings.md says for each setting how it can be changed.
type Protocol interface {
	// chosen returns the protocol's name and what is set. The error is a [*SettingError].
	chosen() (name string, v setting.Values, err error)
}

// Raft has one leader, and every member keeps everything. It is the default.
type Raft struct{}

// CRaft is Raft with coded bodies: each member keeps a fragment of the body of a command ([Node.ProposeBody]) in place
// of the whole body (https://github.com/braidlog/braid/blob/main/docs/using/craft.md). That takes a quarter to a half
// of the bytes on disks and links, and tolerates the same crashes.
//
// [Node.Tune] changes a running cluster from Raft to CRaft and back: setting "placement" is "code" or "copy".
type CRaft struct {
	// K is how many fragments make a body whole, at most 64. 0: as many as possible while a write need not wait for the
	// slowest member. It must be the same on all first members.
	K int `setting:"code-k"`
	// ExtraWhole is how many members more than needed get whole bodies where fragments cannot be used, 0…64. Members
	// may differ in it.
	ExtraWhole int `setting:"extra-whole"`
	// TrimWhole cuts this member's whole copies of bodies down to its fragment once enough other members hold theirs.
	// Members may differ in it.
	TrimWhole bool `setting:"trim-whole"`
}

// LCR is Raft whose followers spread commands themselves, and whose leader only confirms them
// (https://github.com/braidlog/braid/blob/main/docs/using/lcr.md).
type LCR struct {
	Coded *CRaft // bodies are coded, as in CRaft; nil: every member keeps them whole
}

// Niagara merges several instances of Raft into one log
// (https://github.com/braidlog/braid/blob/main/docs/using/niagara.md). Each has an event loop and connections of its
// own, so that more than one core and network card replicate.
type Niagara struct {
	// Instances is the number of instances with which a new cluster begins, 1…[MaxInstances]; 0: 4. It must be the
	// same on all first members. A member that joins later is told the number by the others (Status.Begun), and a
	// member that has data finds it there. [Node.Reshape] changes the number of a running cluster.
	Instances int `setting:"instances"`
	// Leaders are the members that should lead the instances: [LeadersTogether] or [LeadersSpread]. "": LeadersSpread
	// with coded bodies, where bytes count most, else LeadersTogether. It must be the same on all first members.
	Leaders string `setting:"leaders"`
	Coded   *CRaft // bodies are coded, as in CRaft; nil: every member keeps them whole
}

// MultiPaxos has one leader at a time, which any majority can replace
// (https://github.com/braidlog/braid/blob/main/docs/using/multi-paxos.md).
type MultiPaxos struct {
	// Quorums are the voters that elect and those that decide: "majority", the default; "ELECT/DECIDE" as in "4/2";
	// "grid:ROWS" as in "grid:2"; "zones:COUNT/LOST/DOWN" as in "zones:3/0/1". It must be the same on all members, and
	// never changes. The resulting tolerance is logged when a member starts.
	Quorums string `setting:"quorums"`
	// Relays is for clusters of many members: into how many groups a member that proposes divides the others, 0…64. It
	// sends to one member of each group, which passes it on. 0: it sends to all. Members may differ in it.
	Relays int `setting:"relays"`
}

// ISS has many leaders at a time. Each proposes in slots of its own
// (https://github.com/braidlog/braid/blob/main/docs/using/iss.md).
type ISS struct {
	// Instances is the number of instances of ISS, 1…[MaxInstances], whose logs are merged into one; 0: 1. Each has an
	// event loop and connections of its own, and all members lead in each. It must be the same on all first members. A
	// member that joins later is told the number by the others, and a member that has data finds it there. Only
	// [Node.Switch] changes it.
	Instances int    `setting:"instances"`
	Quorums   string `setting:"quorums"` // as in MultiPaxos
	Relays    int    `setting:"relays"`  // as in MultiPaxos
	// Epochs says how the log is cut into epochs, and which members lead in them. It must be the same on all members,
	// and never changes: a directory that was created with other epochs is not opened.
	Epochs EpochSettings `setting:"epochs"`
}

// Protocols returns the names that [Named] knows, those included that are for comparison only.
func Protocols() []string { return registry.Names() }

// Named returns the protocol with one of the names of [Protocols] and with settings of the form NAME=VALUE, as
// "relays=3" or "placement=code". The name "" leaves the protocol to the log: a new log is of [Raft], and a member that
// starts again or joins uses the protocol that its log has. All settings are listed in
// https://github.com/braidlog/braid/blob/main/docs/using/settings.md. Named is for programs with flags, and for
// protocols that are for comparison only. [Open] refuses a name, a setting or a value that does not exist.
//
//	braid.Named("niagara", "instances=8", "placement=code") // as braid.Niagara{Instances: 8, Coded: &braid.CRaft{}}
func Named(name string, settings ...string) Protocol {
	v, err := setting.Parse(settings...)
	return named{cmp.Or(name, registry.Default), v, err, name == ""}
}

// named is what [Named] returns.
type named struct {
	name   string
	values setting.Values
	err    error // what Parse returned
	empty  bool  // no name was given
}

// unnamed reports whether the options leave the protocol to the log.
func (o *Options) unnamed() bool {
	switch p := o.Protocol.(type) {
	case nil:
		return true
	case named:
		return p.empty
	case joining:
		return p.empty
	}
	return false
}

func (p named) chosen() (string, setting.Values, error) { return p.name, p.values, p.err }

func (Raft) chosen() (string, setting.Values, error) { return "raft", setting.Values{}, nil }

func (p CRaft) chosen() (string, setting.Values, error) { return of("craft", p) }

func (p LCR) chosen() (string, setting.Values, error) { return coded("lcr", p, p.Coded) }

func (p Niagara) chosen() (string, setting.Values, error) { return coded("niagara", p, p.Coded) }

func (p MultiPaxos) chosen() (string, setting.Values, error) { return of("multi-paxos", p) }

func (p ISS) chosen() (string, setting.Values, error) { return of("iss", p) }

// of returns what the fields of a struct that is named after a protocol say.
func of(name string, fields any) (string, setting.Values, error) {
	v, err := setting.Union(common.Settings, registry.Find(name).Core.Settings).Of(fields)
	return name, v, err
}

// coded is of with bodies that may be coded.
func coded(name string, fields any, how *CRaft) (string, setting.Values, error) {
	_, v, err := of(name, fields)
	if err != nil || how == nil {
		return name, v, err
	}
	_, code, err := how.chosen()
	return name, code.Over(common.Placement.Set(v, protocol.PlacementCode)), err
}

// Settings are those of a protocol that are not defaults, from a setting's name to its text; the zero value is every
// default. They are immutable and comparable, and encode themselves as JSON. See [Status].
//
//	All() iter.Seq2[string, string]             // by name
//	Get(name string) (text string, ok bool)     // ok is false if it has its default
//	IsZero() bool                               // every setting has its default
//	Over(base Settings) Settings                // these settings, and those of base that they do not have
//	Texts() []string                            // NAME=VALUE each, as Named takes them
//	Without(name string) Settings               // the others
//	Flat(object []byte) ([]byte, error)         // adds them to a JSON object, as members of it
type Settings = setting.Values

// SettingError indicates which setting does not exist, or does not allow its value. Nothing happened. Do not retry. An
// [OptionError] of Options.Protocol wraps it.
//
//	Name, Text string // the setting, and the value that it was to have
//	Detail     string // what is wrong
type SettingError = setting.Error

// What Status.Placement can be: every member keeps the bodies of commands whole, or a fragment of each. "rs" is
// RS-Raft, with which the paper compares CRaft.
const (
	PlacementCopy = string(protocol.PlacementCopy)
	PlacementCode = string(protocol.PlacementCode)
)

// What Status.Order can be: one instance makes the log, or several are merged into it. "keyed" is for comparison
// (protocol "multi-raft" or "wpaxos"): each instance is a group of keys with an order of its own, see [NewGroups].
const (
	OrderSingle  = string(order.KindSingle)
	OrderNiagara = string(order.KindNiagara)
)

// What Niagara.Leaders can be.
const (
	// LeadersTogether: one member leads all instances, so that a crash of any other one stops nothing.
	LeadersTogether = string(protocol.LeadersTogether)
	// LeadersSpread: each member leads some, so that each replicates its own clients' commands, and all network cards
	// send.
	LeadersSpread = string(protocol.LeadersSpread)
)

// MaxInstances bounds Niagara.Instances and ISS.Instances.
const MaxInstances = protocol.MaxInstances

// chosen returns the protocol's name and what is set.
func (o *Options) chosen() (name string, v setting.Values, err error) {
	if o.Protocol == nil {
		return Raft{}.chosen()
	}
	return o.Protocol.chosen()
}

// choose completes what is set of the protocol and of time. The error is an [*OptionError].
func (o *Options) choose() (registry.Choice, error) {
	name, v, err := o.chosen()
	if err != nil {
		return registry.Choice{}, o.optionError(err)
	}
	found := registry.Find(name)
	if found == nil {
		return registry.Choice{}, badOption("Protocol", "%q is none of %s", name, strings.Join(Protocols(), ", "))
	}
	shared, err := common.Settings.Of(*o)
	if err != nil {
		return registry.Choice{}, o.optionError(err)
	}
	c, err := found.Choose(shared.Over(v), len(o.Members))
	if err != nil {
		return registry.Choice{}, o.optionError(err)
	}
	return c, nil
}

// optionError names the option that has the setting which is wrong. Those without one are options of the protocol.
func (o *Options) optionError(err error) error {
	option := "Protocol"
	if wrong := (*SettingError)(nil); errors.As(err, &wrong) {
		for f := range reflect.TypeOf(*o).Fields() {
			if f.Tag.Get("setting") == wrong.Name {
				option = f.Name
			}
		}
	}
	return &OptionError{Option: option, Detail: err.Error(), err: err}
}
