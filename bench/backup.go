package bench

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	bolt "go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/protobuf/proto"

	"github.com/braidlog/braid/bench/workload"
)

// BackupConfig measures backups of a member and restoring them: first of all keys, and again after some were changed.
// "braid backup" makes a whole backup and then an increment, and "braid restore" restores them. The other servers use
// "etcdctl snapshot save" and "etcdutl snapshot restore" both times.
type BackupConfig struct {
	Contest
	MiB      int            // of values
	Sizes    workload.Sizes // of values
	Change   int            // percent of the keys that are put again before the second backup
	Progress func(Progress)
}

const (
	// backupFillers is the number of clients that fill the servers.
	backupFillers = 8
	// measuredEvery is the interval at which the memory of processes is read.
	measuredEvery = 5 * time.Millisecond
)

// Validate returns an error if a value is out of its range.
func (c *BackupConfig) Validate() error {
	switch {
	case c.MiB < 1 || c.MiB > 6000:
		return fmt.Errorf("%d MiB: must be between 1 and 6000", c.MiB)
	case c.Sizes.Max > 1<<20:
		return fmt.Errorf("values of up to %d bytes: must be at most %d", c.Sizes.Max, 1<<20)
	case c.Change < 0 || c.Change > 100:
		return fmt.Errorf("%d %% of the keys: must be between 0 and 100", c.Change)
	}
	return errors.Join(c.Sizes.Validate(), c.ValidateEtcd())
}

// RunBackup runs the servers in rounds. When ctx ends, or a run fails, the result is of the runs before, nil if there
// are none.
func RunBackup(ctx context.Context, c BackupConfig) (*BackupContest, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	runs, err := Alternate(ctx, len(c.Servers), c.Rounds, func(ctx context.Context, i int) (*BackupResult, error) {
		return c.runOne(ctx, c.Servers[i])
	})
	return newBackupContest(&c, runs), err
}

func (c *BackupConfig) runOne(ctx context.Context, name string) (*BackupResult, error) {
	r := &backupRun{BackupConfig: c, name: name, out: &BackupResult{Protocol: name, Nodes: c.Nodes}}
	meter := StartCPUMeter()
	err := c.With(ctx, name, largeQuota, func(servers *Servers) (err error) {
		if r.target, err = newTarget(EtcdAPI, servers.Endpoints[0], nil); err != nil {
			return err
		}
		defer r.target.close()
		if r.work, err = os.MkdirTemp(c.Dir, "backups-"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(r.work)) }()
		r.member, r.endpoint = servers.PIDs[0], servers.Endpoints[0]
		return r.run(ctx)
	})
	r.out.CPUShares = meter.Shares() // the servers have ended
	return r.out, err
}

// backupRun is a run on one cluster, whose first member is backed up.
type backupRun struct {
	*BackupConfig
	name     string
	target   *kvTarget
	member   int // process id
	endpoint string
	work     string // directory for backups and restored data
	out      *BackupResult
}

func (r *backupRun) run(ctx context.Context) error {
	r.show("filling")
	sizes := r.sizes()
	all := make([]int, len(sizes))
	for i := range all {
		all[i] = i
	}
	if err := r.put(ctx, sizes, all); err != nil {
		return fmt.Errorf("fill the servers: %w", err)
	}
	r.out.Keys = float64(len(sizes))
	if err := r.round(ctx, "first", &r.out.First); err != nil {
		return err
	}
	var changed []int
	for i := range sizes {
		if (i+1)*r.Change/100 > i*r.Change/100 {
			changed = append(changed, i)
		}
	}
	if err := r.put(ctx, sizes, changed); err != nil {
		return fmt.Errorf("change keys: %w", err)
	}
	return r.round(ctx, "again", &r.out.Again)
}

func (r *backupRun) show(phase string) {
	if r.Progress != nil {
		r.Progress(Progress{Protocol: r.name, Phase: phase})
	}
}

// sizes returns the sizes of the values. They are the same for all servers and rounds.
func (r *backupRun) sizes() (sizes []int) {
	draw := rand.New(rand.NewPCG(1, 1))
	for total := 0; total < r.MiB<<20; total += sizes[len(sizes)-1] {
		sizes = append(sizes, r.Sizes.Draw(draw))
	}
	return sizes
}

// put puts some of the keys, with random values.
func (r *backupRun) put(ctx context.Context, sizes, keys []int) error {
	var fillers sync.WaitGroup
	errs := make([]error, backupFillers)
	for f := range backupFillers {
		fillers.Go(func() {
			draw := rand.NewChaCha8([32]byte{byte(f)})
			for i := f; i < len(keys) && errs[f] == nil; i += backupFillers {
				value := make([]byte, sizes[keys[i]])
				_, _ = draw.Read(value) // it does not fail
				_, errs[f] = r.target.kv.Put(ctx, &etcdserverpb.PutRequest{
					Key: fmt.Appendf(nil, "backup/%09d", keys[i]), Value: value})
			}
		})
	}
	fillers.Wait()
	return errors.Join(errs...)
}

// round makes a backup, restores it, and compares the restored keys with the member's.
func (r *backupRun) round(ctx context.Context, name string, out *BackupFigures) error {
	own := serverKinds[r.name].Protocol != ""
	to, restored := filepath.Join(r.work, "backups"), filepath.Join(r.work, name)
	save := []string{"backup", to, "--endpoints", r.endpoint}
	restore := []string{"restore", to, "--data-dir", restored, "--bump-revision", "0"}
	database := filepath.Join(restored, "store", "db")
	if !own {
		to = filepath.Join(r.work, name+".db")
		save = []string{"ctl", "--endpoints", r.endpoint, "snapshot", "save", to}
		restore = []string{"utl", "snapshot", "restore", to, "--data-dir", restored}
		database = filepath.Join(restored, "member", "snap", "db")
	}
	before, err := bytesIn(r.work)
	if err != nil {
		return err
	}
	r.show("backup " + name)
	saved, err := r.command(ctx, save)
	if err != nil {
		return err
	}
	after, err := bytesIn(r.work)
	if err != nil {
		return err
	}
	r.show("restore " + name)
	back, err := r.command(ctx, restore)
	if err != nil {
		return err
	}
	*out = BackupFigures{BackupS: saved.seconds, BackupMiB: saved.peak, MemberMiB: saved.member,
		FileMiB: float64(after-before) / (1 << 20), RestoreS: back.seconds, RestoreMiB: back.peak}
	err = r.compare(ctx, name, database)
	return errors.Join(err, os.RemoveAll(restored))
}

// bytesIn returns the bytes of all files in a directory.
func bytesIn(dir string) (n int64, err error) {
	err = filepath.Walk(dir, func(_ string, info os.FileInfo, err error) error {
		if err == nil && info.Mode().IsRegular() {
			n += info.Size()
		}
		return err
	})
	return n, err
}

// keyHash is a digest of the value, the revisions, the version and the lease of a key.
type keyHash [sha256.Size]byte

func hashOf(kv *mvccpb.KeyValue) keyHash {
	value := sha256.Sum256(kv.Value)
	return sha256.Sum256(fmt.Appendf(nil, "%x %d %d %d %d", value, kv.CreateRevision, kv.ModRevision, kv.Version,
		kv.Lease))
}

// compare compares the keys of a restored database with the member's.
func (r *backupRun) compare(ctx context.Context, name, database string) error {
	r.show("comparing")
	want, err := r.keys(ctx)
	if err != nil {
		return err
	}
	got, err := restoredKeys(database)
	if err != nil {
		return fmt.Errorf("read %s: %w", database, err)
	}
	if !maps.Equal(want, got) {
		r.out.Violations = append(r.out.Violations, fmt.Sprintf("%s: the %d restored keys are not the %d of the "+
			"member", name, len(got), len(want)))
	}
	return nil
}

// keys returns the keys of the member.
func (r *backupRun) keys(ctx context.Context) (map[string]keyHash, error) {
	const some = 100 // at most 100 MiB
	out := map[string]keyHash{}
	for from := []byte{0}; ; {
		got, err := r.target.kv.Range(ctx, &etcdserverpb.RangeRequest{Key: from, RangeEnd: []byte{0}, Limit: some})
		if err != nil {
			return nil, err
		}
		for _, kv := range got.Kvs {
			out[string(kv.Key)] = hashOf(kv)
			from = append(bytes.Clone(kv.Key), 0)
		}
		if !got.More {
			return out, nil
		}
	}
}

// restoredKeys returns the keys of a database of etcd's format: its bucket "key" has each change by its revision. The
// revision of a deletion has a mark at its end.
func restoredKeys(database string) (map[string]keyHash, error) {
	db, err := bolt.Open(database, 0o600, &bolt.Options{ReadOnly: true, Timeout: time.Second})
	if err != nil {
		return nil, err
	}
	const revision = 17
	out := map[string]keyHash{}
	err = db.View(func(tx *bolt.Tx) error {
		return tx.Bucket([]byte("key")).ForEach(func(at, data []byte) error {
			kv := new(mvccpb.KeyValue)
			if err := proto.Unmarshal(data, kv); err != nil {
				return err
			}
			if out[string(kv.Key)] = hashOf(kv); len(at) > revision {
				delete(out, string(kv.Key))
			}
			return nil
		})
	})
	return out, errors.Join(err, db.Close())
}

// commandRun has the figures of a command.
type commandRun struct {
	seconds      float64
	peak, member float64 // MiB of memory, of the command and of the member meanwhile
}

// command runs braid with some arguments, and measures the process.
func (r *backupRun) command(ctx context.Context, args []string) (out commandRun, err error) {
	cmd := exec.CommandContext(ctx, r.Executable, args...)
	log, err := os.Create(filepath.Join(r.work, "log"))
	if err != nil {
		return out, err
	}
	defer os.Remove(log.Name())
	cmd.Stdout, cmd.Stderr = log, log
	began := time.Now()
	if err := errors.Join(cmd.Start(), log.Close()); err != nil {
		return out, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for tick := time.NewTicker(measuredEvery); ; {
		select {
		case err := <-ended:
			tick.Stop()
			out.seconds = time.Since(began).Seconds()
			if err != nil {
				err = fmt.Errorf("%v: %w: %s", args, err, lastLines(log.Name()))
			}
			return out, err
		case <-tick.C:
			peak := procField(procFile(cmd.Process.Pid, "status"), "VmHWM:") << 10
			out.peak = max(out.peak, float64(peak)/(1<<20))
			out.member = max(out.member, float64(residentBytes(r.member))/(1<<20))
		}
	}
}
