package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/braidlog/braid/internal/testsize"
)

// flipValue changes a bit at every place of a value in a member's database, the valid one and older ones.
func flipValue(t *testing.T, dir, name, value string) {
	t.Helper()
	path := filepath.Join(dir, name, storeDir, "db")
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	require.NoError(t, err)
	defer f.Close()
	found := 0
	for from := 0; ; {
		i := strings.Index(string(data[from:]), value)
		if i < 0 {
			break
		}
		at := from + i + len(value)/2
		_, err := f.WriteAt([]byte{data[at] ^ 4}, int64(at))
		require.NoError(t, err)
		from, found = at, found+1
	}
	require.NotZero(t, found, "the value is not in the database")
}

// databaseOfThree is a cluster with some keys, whose databases have them.
func databaseOfThree(t *testing.T, env []string, args ...string) (*cluster, map[string]string) {
	t.Helper()
	c := upWith(t, env, dataDir(t), args...)
	client, values := c.client(), map[string]string{}
	for i := range 50 {
		key, value := fmt.Sprintf("key-%02d", i), fmt.Sprintf("value-of-%02d-%s", i, letters(40, uint64(i)))
		_, err := client.Put(t.Context(), key, value)
		require.NoError(t, err)
		values[key] = value
	}
	for _, endpoint := range c.endpoints {
		_, err := c.client(endpoint).Get(t.Context(), "key-49")
		require.NoError(t, err)
	}
	return c, values
}

// alarmed waits until the alarm CORRUPT is raised or not, according to a member.
func (c *cluster) alarmed(by string, yes bool) {
	c.t.Helper()
	client := c.client(by)
	eventually(c.t, fmt.Sprintf("alarm CORRUPT: %t", yes), func(ctx context.Context) bool {
		r, err := client.AlarmList(ctx)
		return err == nil && yes == (len(r.Alarms) == 1 && r.Alarms[0].Alarm == pb.AlarmType_CORRUPT)
	})
}

// wasAlarmed waits until the alarm CORRUPT of a member is raised, according to another one. On a slow machine it may be
// over before a client asks: then the member's log has it.
func (c *cluster) wasAlarmed(by, name string) {
	c.t.Helper()
	client := c.client(by)
	eventually(c.t, "alarm CORRUPT of "+name, func(ctx context.Context) bool {
		r, err := client.AlarmList(ctx)
		if err == nil && len(r.Alarms) == 1 && r.Alarms[0].Alarm == pb.AlarmType_CORRUPT {
			return true
		}
		log, err := os.ReadFile(filepath.Join(c.dir, name+".log"))
		return err == nil && strings.Contains(string(log), "alarm CORRUPT for this member") &&
			strings.Contains(string(log), "DEACTIVATE")
	})
}

// same requires that all members have the same history.
func (c *cluster) same(endpoints []string) {
	c.t.Helper()
	eventually(c.t, "equal hashes", func(ctx context.Context) bool {
		hashes := map[uint32]bool{}
		last, err := c.client(endpoints...).Get(ctx, "key-00")
		if err != nil {
			return false
		}
		for _, endpoint := range endpoints {
			r, err := c.client(endpoint).HashKV(ctx, endpoint, last.Header.Revision)
			if err != nil {
				return false
			}
			hashes[r.Hash] = true
		}
		return len(hashes) == 1
	})
}

// TestDamagedDatabaseIsRepairedAtStart flips a byte of a value in the database of a stopped member. It never serves
// that value: it reports corruption, fetches the state of another member and equals the others.
func TestDamagedDatabaseIsRepairedAtStart(t *testing.T) {
	t.Parallel()
	c, values := databaseOfThree(t, nil)
	bad := strings.TrimPrefix(c.clients["m2"], "http://")
	other := strings.TrimPrefix(c.clients["m1"], "http://")
	c.stop()
	flipValue(t, c.dir, "m2", values["key-17"])

	again := launched(t, nil, c.dir)
	seen := make(chan error, 1)
	client := again.client(bad)
	go func() { seen <- right(t.Context(), client, "key-17", values["key-17"]) }()
	again.wasAlarmed(other, "m2")
	require.NoError(t, <-seen)
	again.alarmed(other, false)
	again.reads(map[string]string{"m2": bad}, values)
	again.same(c.endpoints)
	_, err := again.client(bad).Put(t.Context(), "after", "repair")
	require.NoError(t, err)
}

// right asks a member for a key until it answers, and returns an error for a wrong answer.
func right(ctx context.Context, client *clientv3.Client, key, want string) error {
	for ctx.Err() == nil {
		r, err := client.Get(ctx, key, clientv3.WithSerializable())
		if err != nil {
			continue
		}
		if len(r.Kvs) != 1 || string(r.Kvs[0].Value) != want {
			return fmt.Errorf("%q was served in place of %q", r.Kvs, want)
		}
		return nil
	}
	return ctx.Err()
}

// TestDamagedDatabaseIsRepairedWhileRunning flips a byte in the file of a running member. No client reads it: the
// scrub finds it.
func TestDamagedDatabaseIsRepairedWhileRunning(t *testing.T) {
	testsize.Only(t, testsize.Processes)
	t.Parallel()
	c, values := databaseOfThree(t, nil, "--scrub-rate=67108864")
	for _, name := range []string{c.leader(), "m3"} {
		bad := strings.TrimPrefix(c.clients[name], "http://")
		other := strings.TrimPrefix(c.clients[map[bool]string{true: "m2", false: "m1"}[name == "m1"]], "http://")
		c.same(c.endpoints)
		snapshot, err := c.client(bad).Snapshot(t.Context()) // earlier puts are in the file then
		require.NoError(t, err)
		_, err = io.Copy(io.Discard, snapshot)
		require.NoError(t, err)
		flipValue(t, c.dir, name, values["key-23"])
		c.alarmed(other, true)
		c.alarmed(other, false)
		c.reads(map[string]string{name: bad}, values)
		c.same(c.endpoints)
	}
}

// TestMemberThatDiffersIsRepaired changes a value in the database of a stopped member, with valid checksums, as if
// the member had computed another value. It is found by comparing hashes.
func TestMemberThatDiffersIsRepaired(t *testing.T) {
	testsize.Only(t, testsize.Processes)
	t.Parallel()
	env := []string{"ETCD_CORRUPT_CHECK_TIME=500ms"}
	c, values := databaseOfThree(t, env)
	bad := strings.TrimPrefix(c.clients["m2"], "http://")
	other := strings.TrimPrefix(c.clients["m1"], "http://")
	c.stop()
	changeValue(t, filepath.Join(c.dir, "m2", storeDir, "db"), values["key-31"])

	again := launched(t, env, c.dir)
	again.alarmed(other, true)
	again.alarmed(other, false)
	again.reads(map[string]string{"m2": bad}, values)
	again.same(c.endpoints)
}

// changeValue changes a value by bbolt. The database has no checksums then, like an old one.
func changeValue(t *testing.T, path, value string) {
	t.Helper()
	db, err := bolt.Open(path, 0o600, nil)
	require.NoError(t, err)
	changed := false
	require.NoError(t, db.Update(func(tx *bolt.Tx) error {
		keys := tx.Bucket([]byte("key"))
		err := keys.ForEach(func(k, v []byte) error {
			if i := strings.Index(string(v), value); i >= 0 {
				changed = true
				v = bytes.Clone(v)
				v[i+len(value)/2] ^= 4
				return keys.Put(bytes.Clone(k), v)
			}
			return nil
		})
		return errors.Join(err, tx.Bucket([]byte("meta")).Delete([]byte("braidSums")))
	}))
	require.True(t, changed)
	require.NoError(t, db.Close())
}
