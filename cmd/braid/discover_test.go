package main

import (
	"context"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"golang.org/x/net/dns/dnsmessage"

	"github.com/braidlog/braid/internal/settings"
)

// zone is what a server of DNS knows, by name.
type zone map[string][]dnsmessage.ResourceBody

// serveDNS answers with what is in the zone, and returns a resolver that asks there.
func serveDNS(t *testing.T, z zone) *net.Resolver {
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	require.NoError(t, err)
	ended := make(chan struct{})
	t.Cleanup(func() {
		conn.Close()
		<-ended
	})
	go func() {
		defer close(ended)
		buf := make([]byte, 1<<16)
		for {
			n, from, err := conn.ReadFrom(buf)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if m.Unpack(buf[:n]) != nil {
				continue
			}
			answer, err := z.answer(&m)
			if err != nil {
				continue
			}
			if _, err := conn.WriteTo(answer, from); err != nil {
				return
			}
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
}

func (z zone) answer(m *dnsmessage.Message) ([]byte, error) {
	q := m.Questions[0]
	out := dnsmessage.Message{Header: dnsmessage.Header{ID: m.ID, Response: true, Authoritative: true,
		RecursionAvailable: true}, Questions: m.Questions}
	bodies, known := z[q.Name.String()]
	switch {
	case !known:
		out.RCode = dnsmessage.RCodeNameError
	case bodies == nil:
		out.RCode = dnsmessage.RCodeServerFailure
	}
	for _, body := range bodies {
		typ := dnsmessage.TypeA
		if _, ok := body.(*dnsmessage.SRVResource); ok {
			typ = dnsmessage.TypeSRV
		}
		if typ == q.Type {
			out.Answers = append(out.Answers, dnsmessage.Resource{
				Header: dnsmessage.ResourceHeader{Name: q.Name, Type: typ, Class: q.Class}, Body: body})
		}
	}
	return out.Pack()
}

func srv(target string, port uint16) *dnsmessage.SRVResource {
	return &dnsmessage.SRVResource{Target: dnsmessage.MustNewName(target), Port: port}
}

// discovers is who a member is that discovers the others.
func discovers(t *testing.T, dns resolver, args ...string) (identity, *settings.Settings, error) {
	t.Helper()
	s := &settings.Settings{}
	f := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	s.Flags(f)
	require.NoError(t, f.Parse(args))
	require.NoError(t, s.Load(f, nil))
	who, err := identify(t.Context(), s, &discoverer{s: s, dns: dns, logger: zap.NewNop()}, &joiner{s: s})
	return who, s, err
}

// TestMembersInDNS: members that find each other in SRV records agree who they are, whatever each is named.
func TestMembersInDNS(t *testing.T) {
	t.Parallel()
	z := zone{
		"_etcd-server._tcp.example.com.": {srv("A.example.com.", 2380), srv("b.example.com.", 2380),
			srv("gone.example.com.", 2380)},
		"_etcd-server-shop._tcp.example.com.":      {srv("a.example.com.", 7)},
		"_etcd-server-ssl-mixed._tcp.example.com.": {srv("a.example.com.", 1)},
		"_etcd-server-mixed._tcp.example.com.":     {srv("b.example.com.", 2)},
		"_etcd-server-twice._tcp.example.com.":     {srv("a.example.com.", 1), srv("b.example.com.", 1)},
		"a.example.com.":                           {&dnsmessage.AResource{A: [4]byte{127, 0, 0, 1}}},
		"b.example.com.":                           {&dnsmessage.AResource{A: [4]byte{127, 0, 0, 2}}},
	}
	dns := serveDNS(t, z)
	dir := t.TempDir()
	member := func(name, url string, more ...string) (identity, *settings.Settings, error) {
		return discovers(t, dns, append([]string{"--name=" + name, "--data-dir=" + filepath.Join(dir, name),
			"--initial-advertise-peer-urls=" + url, "--discovery-srv=example.com"}, more...)...)
	}
	a, s, err := member("m1", "http://a.example.com:2380")
	require.NoError(t, err)
	require.Equal(t, "a.example.com:2380=http://a.example.com:2380,b.example.com:2380=http://b.example.com:2380,"+
		"gone.example.com:2380=http://gone.example.com:2380", s.InitialCluster)
	b, s, err := member("m2", "http://127.0.0.2:2380")
	require.NoError(t, err)
	require.Equal(t, []string{"http://b.example.com:2380"}, s.AdvertisePeer, "as the others know it")
	require.Equal(t, a.cluster, b.cluster)
	require.Equal(t, a.members, b.members)
	require.NotEqual(t, a.self, b.self)

	one, _, err := member("m3", "http://a.example.com:7", "--discovery-srv-name=shop")
	require.NoError(t, err)
	require.Len(t, one.members, 1)
	for _, c := range []struct{ name, url, service, want string }{
		{"m4", "http://c.example.com:2380", "", "0 of the SRV records of example.com are of this member"},
		{"m5", "http://a.example.com:1", "mixed", "0 of the SRV records"},
		{"m6", "http://a.example.com:1,http://b.example.com:1", "twice", "2 of the SRV records"},
		{"m7", "http://b.example.com:2", "mixed", "mixes http and https"},
		{"m8", "http://b.example.com:2", "none", "no such host"},
	} {
		_, _, err := member(c.name, c.url, "--discovery-srv-name="+c.service)
		require.ErrorContains(t, err, c.want, c.name)
	}
}

// TestNoPartOfTheMembers: a service that cannot be asked for is not one without records.
func TestNoPartOfTheMembers(t *testing.T) {
	t.Parallel()
	z := zone{
		"_etcd-server._tcp.example.com.":     {srv("a.example.com.", 1)},
		"_etcd-server-ssl._tcp.example.com.": nil, // the server fails
		"a.example.com.":                     {&dnsmessage.AResource{A: [4]byte{127, 0, 0, 1}}},
	}
	_, _, err := discovers(t, serveDNS(t, z), "--data-dir="+t.TempDir(),
		"--initial-advertise-peer-urls=http://127.0.0.1:1", "--discovery-srv=example.com")
	require.ErrorContains(t, err, "server misbehaving")
}

// TestDiscoveredOnce: a member with data is who it was, whatever the records are then.
func TestDiscoveredOnce(t *testing.T) {
	t.Parallel()
	z := zone{
		"_etcd-server._tcp.example.com.": {srv("a.example.com.", 1), srv("b.example.com.", 1)},
		"a.example.com.":                 {&dnsmessage.AResource{A: [4]byte{127, 0, 0, 1}}},
		"b.example.com.":                 {&dnsmessage.AResource{A: [4]byte{127, 0, 0, 2}}},
	}
	args := []string{"--data-dir=" + t.TempDir(), "--initial-advertise-peer-urls=http://127.0.0.1:1",
		"--discovery-srv=example.com"}
	first, _, err := discovers(t, serveDNS(t, z), args...)
	require.NoError(t, err)
	writeIdentity(t, args[0][len("--data-dir="):], first)
	again, _, err := discovers(t, serveDNS(t, zone{}), args...)
	require.NoError(t, err)
	require.Equal(t, first, again)
	// Nor is a member asked which was founded otherwise.
	other := first
	other.cluster++
	writeIdentity(t, args[0][len("--data-dir="):], other)
	kept, _, err := discovers(t, serveDNS(t, zone{}), args...)
	require.NoError(t, err)
	require.Equal(t, []uint64{other.cluster, uint64(other.self)}, []uint64{kept.cluster, uint64(kept.self)})
	require.True(t, kept.join)
}

// writeIdentity makes a directory that of a member.
func writeIdentity(t *testing.T, dir string, who identity) {
	t.Helper()
	content, err := json.Marshal(map[string]any{"cluster": who.cluster, "member": who.self})
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(filepath.Join(dir, logDir), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, logDir, "member.json"), content, 0o600))
}
