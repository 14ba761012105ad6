package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/braidlog/braid/internal/launch"
	"github.com/braidlog/braid/internal/settings"
	"github.com/braidlog/braid/protocol"
	"github.com/braidlog/braid/protocol/common"
	"github.com/braidlog/braid/protocol/setting"
)

// printEvents prints events as text. dash is the dashboard's URL, of Ready.
func printEvents(w io.Writer) func(e launch.Event, dash string) {
	return func(e launch.Event, dash string) {
		name := e.Member.Name
		switch e.Kind {
		case launch.Prepared:
			did, with := "new cluster", "protocol"
			if e.Resumed { // the protocol may have changed since
				did, with = "resuming the cluster", "begun with protocol"
			}
			m := e.Manifest
			fmt.Fprintf(w, "%s in %s: %d members, %s %s, %s\n", did, e.Dir, len(m.Members), with, protocolOf(m),
				placementOf(m))
			if line, err := settings.Tolerance(m.Protocol, settings.Quorums(m.Quorums), len(m.Members), m.Zones()); err == nil &&
				line != "" {
				fmt.Fprintln(w, line)
			}
			if m.Net != "" {
				fmt.Fprintf(w, "links are emulated: %s\n", m.Net)
			}
		case launch.Started:
			fmt.Fprintf(w, "%s  pid %-7d clients %s  members %s  log %s\n", name, e.PID, e.Member.ClientURL(),
				strings.Join(e.Member.PeerAddrs(), ","), e.LogFile)
		case launch.Ready:
			fmt.Fprintf(w, "endpoints %s\ndashboard %s\nready\n", strings.Join(e.Manifest.Endpoints(), ","), dash)
		case launch.Died:
			fmt.Fprintf(w, "%s  pid %d %s\n", name, e.PID, e.How)
			if len(e.Log) > 0 {
				fmt.Fprintf(w, "  the end of %s:\n    %s\n", e.LogFile, strings.Join(e.Log, "\n    "))
			}
		case launch.Serving:
			fmt.Fprintf(w, "%s  pid %d serves again\n", name, e.PID)
		case launch.Replaced:
			fmt.Fprintf(w, "%s  was replaced: it starts empty, as the member that was added in its place%s\n", name,
				asideText(e.Aside))
		case launch.Left:
			fmt.Fprintf(w, "%s  is not started: %s\n", name, e.How)
		case launch.Paused:
			fmt.Fprintf(w, "%s  pid %d is paused\n", name, e.PID)
		case launch.Resumed:
			fmt.Fprintf(w, "%s  pid %d is resumed\n", name, e.PID)
		case launch.Relinked:
			fmt.Fprintf(w, "%s  %s\n", name, e.How)
		case launch.Stopping:
			fmt.Fprintln(w, "stopping")
		case launch.Stopped:
			fmt.Fprintln(w, "stopped")
		}
	}
}

func asideText(aside string) string {
	if aside == "" {
		return ""
	}
	return "; what it had is now in " + aside + ", and no longer needed"
}

// protocolOf describes the protocol in words.
func protocolOf(m *launch.Manifest) string {
	if l := (settings.Log{Protocol: m.Protocol}); !l.Merges() && m.Instances < 2 {
		return m.Protocol
	}
	return fmt.Sprintf("%s with %d instances at first", m.Protocol, m.Instances)
}

// placementOf describes the placement of large values in words.
func placementOf(m *launch.Manifest) string {
	l := settings.Log{Values: common.CodeK.Set(common.Placement.Set(setting.Values{}, protocol.Placement(m.Placement)),
		m.CodeK)}
	k := l.Fragments(len(m.Members))
	switch {
	case m.Placement != settings.PlacementCode:
		return "placement " + m.Placement
	case k > 1:
		return fmt.Sprintf("placement code: 1/%d of each large value on each follower", k)
	}
	return "placement code: large values whole on each member, as these are too few to cut values for (see --code-k)"
}

// eventView is an event as a line of JSON.
type eventView struct {
	Event     launch.EventKind `json:"event"`
	Dir       string           `json:"dir,omitempty"`
	Resumed   bool             `json:"resumed,omitempty"`
	Protocol  string           `json:"protocol,omitempty"` // as the cluster began, like the fields up to Net
	Placement string           `json:"placement,omitempty"`
	CodeK     int              `json:"code_k,omitempty"`
	Instances int              `json:"instances,omitempty"`
	Quorums   string           `json:"quorums,omitempty"`
	Net       string           `json:"net,omitempty"`
	Endpoints []string         `json:"endpoints,omitempty"`
	Dashboard string           `json:"dashboard,omitempty"` // the URL
	Member    string           `json:"member,omitempty"`
	PID       int              `json:"pid,omitempty"`
	Client    string           `json:"client_url,omitempty"`
	Peer      string           `json:"peer_url,omitempty"` // the first of Peers
	Peers     []string         `json:"peer_urls,omitempty"`
	LogFile   string           `json:"log_file,omitempty"`
	How       string           `json:"how,omitempty"`
	Aside     string           `json:"aside,omitempty"`
	Log       []string         `json:"log,omitempty"`
}

func printEventsJSON(w io.Writer) func(e launch.Event, dash string) {
	lines := json.NewEncoder(w)
	return func(e launch.Event, dash string) {
		v := eventView{Event: e.Kind, Dir: e.Dir, Resumed: e.Resumed, Member: e.Member.Name, PID: e.PID, LogFile: e.LogFile,
			How: e.How, Aside: e.Aside, Log: e.Log, Dashboard: dash}
		if e.Manifest != nil {
			v.Endpoints = e.Manifest.Endpoints()
			v.Protocol, v.Placement, v.CodeK, v.Instances, v.Net = e.Manifest.Protocol, e.Manifest.Placement, e.Manifest.CodeK,
				e.Manifest.Instances, e.Manifest.Net
			v.Quorums = e.Manifest.Quorums
		}
		if v.Member != "" {
			v.Client, v.Peers = e.Member.ClientURL(), e.Member.PeerURLs()
			v.Peer = v.Peers[0]
		}
		if err := lines.Encode(v); err != nil {
			return // the reader of the events is gone; the cluster runs on
		}
	}
}
