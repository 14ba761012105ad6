package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/braidlog/braid/internal/testsize"
)

// day is a cluster that operators change while clients use it.
type day struct {
	t       *testing.T
	flags   []serveFlags
	members []*dayMember // in the order of flags; nil: it does not run
	load    *steady
}

// dayMember is a member with its program, variables and flags.
type dayMember struct {
	program string
	env     []string
	args    []string
	*invocation
}

// newDay starts the first members with these flags, and clients with the endpoints of all members, including those that
// are added later.
func newDay(t *testing.T, first, all int, more ...string) *day {
	t.Helper()
	d := &day{t: t, flags: memberFlags(t, all), members: make([]*dayMember, all)}
	for i := range first {
		d.start(i, &dayMember{program: os.Args[0], args: append([]string{"--name", d.flags[i].name, "--initial-cluster",
			initialCluster(d.flags[:first]), "--initial-advertise-peer-urls", "http://" + d.flags[i].peer}, more...)})
	}
	var endpoints []string
	for i, f := range d.flags {
		endpoints = append(endpoints, f.client)
		if i < first {
			d.ready(i)
		}
	}
	d.load = startSteady(t, endpoints)
	d.load.continues("at the beginning")
	d.load.next()
	return d
}

// start starts a member.
func (d *day) start(i int, m *dayMember) {
	d.t.Helper()
	f := d.flags[i]
	args := append([]string{"serve", "--data-dir", f.dir, "--listen-client-urls", "http://" + f.client,
		"--advertise-client-urls", "http://" + f.client, "--listen-peer-urls", "http://" + f.peer}, m.args...)
	c, lines := beginBuild(d.t, m.program, m.env, "", args...)
	go func() {
		for range lines { // ends with the process
		}
	}()
	m.invocation, d.members[i] = c, m
	d.t.Cleanup(func() {
		if d.t.Failed() && d.members[i] == m {
			d.t.Logf("%s said: %s", f.name, tail(c.stderr.String()))
		}
	})
}

// ready waits until a member is ready, as an operator does between two restarts.
func (d *day) ready(i int) {
	d.t.Helper()
	eventually(d.t, d.flags[i].name+" is ready", func(ctx context.Context) bool {
		select {
		case <-d.members[i].ended:
			require.Fail(d.t, "a member ended", "%s: %s", d.flags[i].name, tail(d.members[i].stderr.String()))
		default:
		}
		return answersOK(ctx, d.flags[i].client, "/readyz")
	})
}

// present returns the numbers of the members that run.
func (d *day) present() (all []int) {
	for i, m := range d.members {
		if m != nil {
			all = append(all, i)
		}
	}
	return all
}

// endpoints returns the endpoints of the members that run, as a flag.
func (d *day) endpoints() string {
	var all []string
	for _, i := range d.present() {
		all = append(all, d.flags[i].client)
	}
	return strings.Join(all, ",")
}

// step calls do while clients use the cluster. repeats: clients may have to repeat requests, because a member dies or
// is removed.
func (d *day) step(name string, repeats bool, do func()) {
	d.t.Helper()
	do()
	d.load.continues(name)
	l := d.load.next()
	d.t.Logf("%-44s %s", name, &l)
	if !repeats && l.repeated > 0 {
		d.t.Errorf("%s: %d attempts failed, the last one with: %v", name, l.repeated, l.why)
	}
}

// voters waits until all members that run know that they are the voters.
func (d *day) voters() {
	d.t.Helper()
	for _, i := range d.present() {
		eventually(d.t, d.flags[i].name+" knows the voters", func(ctx context.Context) bool {
			return votersAt(ctx, d.t, d.flags[i].client, len(d.present()))
		})
	}
}

// joins starts a member with the variables that a command printed.
func (d *day) joins(i int, stdout string) {
	d.t.Helper()
	env := printed(stdout)
	require.Len(d.t, env, 4, stdout)
	d.start(i, &dayMember{program: os.Args[0], env: env})
	d.ready(i)
	d.voters()
}

// add adds a member and starts it.
func (d *day) add(i int) {
	d.t.Helper()
	d.joins(i, ok(d.t, "ctl", "--endpoints", d.endpoints(), "member", "add", d.flags[i].name, "--peer-urls",
		"http://"+d.flags[i].peer))
}

// die kills a member and removes its directory.
func (d *day) die(i int) {
	d.t.Helper()
	kill(d.t, d.members[i].cmd.Process.Pid)
	<-d.members[i].ended
	d.members[i] = nil
	require.NoError(d.t, os.RemoveAll(d.flags[i].dir))
}

// replace replaces a member that died.
func (d *day) replace(i int) {
	d.t.Helper()
	var out string
	eventually(d.t, d.flags[i].name+" may be replaced", func(context.Context) bool {
		stdout, _, code := do(d.t, "", "replace", d.flags[i].name, "--endpoints", d.endpoints())
		out = stdout
		return code == 0
	})
	d.joins(i, out)
}

// remove removes a member, which ends by itself.
func (d *day) remove(i int) {
	d.t.Helper()
	removed := d.members[i]
	id := fmt.Sprintf("%x", d.id(i))
	d.members[i] = nil
	ok(d.t, "ctl", "--endpoints", d.endpoints(), "member", "remove", id)
	code, stderr := removed.exit()
	require.Equal(d.t, exitExpelled, code, stderr)
	d.voters()
}

// id returns the identifier of a member.
func (d *day) id(i int) uint64 {
	d.t.Helper()
	r, err := d.client().MemberList(d.t.Context())
	require.NoError(d.t, err)
	at := slices.IndexFunc(r.Members, func(m *pb.Member) bool { return m.Name == d.flags[i].name })
	require.GreaterOrEqual(d.t, at, 0, "%v", r.Members)
	return r.Members[at].ID
}

func (d *day) client() *clientv3.Client {
	d.t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: strings.Split(d.endpoints(), ","), Logger: zap.NewNop(),
		DialTimeout: testTimeout})
	require.NoError(d.t, err)
	d.t.Cleanup(func() { client.Close() })
	return client
}

// stop stops a member in order.
func (d *day) stop(i int) {
	d.t.Helper()
	require.NoError(d.t, d.members[i].cmd.Process.Signal(syscall.SIGTERM))
	code, stderr := d.members[i].exit()
	require.Zero(d.t, code, stderr)
}

// restart stops a member in order, and starts it as a program.
func (d *day) restart(i int, program string) {
	d.t.Helper()
	d.stop(i)
	was := d.members[i]
	d.start(i, &dayMember{program: program, env: was.env, args: was.args})
	d.ready(i)
}

// ends checks the history of the clients, and that all members have the same keys.
func (d *day) ends() {
	d.t.Helper()
	d.load.check()
	client := d.client()
	r, err := client.Put(d.t.Context(), "last", "x")
	require.NoError(d.t, err)
	var present []serveFlags
	for _, i := range d.present() {
		present = append(present, d.flags[i])
	}
	sameKeys(d.t, client, present, r.Header.Revision)
}

// TestADay: operators add, replace, remove and upgrade members and switch protocols under load. No request fails, the
// history is linearizable, and clients have to repeat requests only when a member dies or is removed.
func TestADay(t *testing.T) {
	testsize.Only(t, testsize.Processes)
	t.Parallel()
	later := laterBuild(t)
	d := newDay(t, 3, 5)
	d.step("three members become five", false, func() {
		d.add(3)
		d.add(4)
	})
	d.step("m2 dies for good", true, func() { d.die(1) })
	d.step("m2 is replaced", false, func() { d.replace(1) })
	d.step("five members become three", true, func() {
		d.remove(0)
		d.remove(3)
	})
	for _, i := range d.present() {
		d.step("upgrade of "+d.flags[i].name, false, func() { d.restart(i, later) })
	}
	for _, protocol := range []string{"niagara", "craft", "iss", "raft"} {
		d.step("switch to "+protocol, false, func() {
			ok(t, "switch", protocol, "--json", "--endpoints", d.endpoints())
		})
	}
	for _, i := range d.present() {
		written, _ := d.formats(i)
		require.Equal(t, laterFormat, written, d.flags[i].name)
	}
	d.ends()
}
