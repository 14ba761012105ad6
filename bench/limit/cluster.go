package limit

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// maxMembers is the maximal number of members.
	maxMembers = 15
	// dialTimeout bounds the time in which the leader connects to a follower, and writeTimeout that of a write to a
	// connection.
	dialTimeout, writeTimeout = 5 * time.Second, 10 * time.Second
)

// Config is the configuration of a cluster.
type Config struct {
	// Dir is an existing directory. Member i, from 1, creates the directory m<i> in it for its log.
	Dir string
	// Listeners are the members' own, one for each of 1 to 15 members. The leader, which is the first one, connects to
	// the others. Open closes all of them.
	Listeners []net.Listener
	// Apply are the members' state machines: each is called with commands in their order, by one goroutine at a time.
	// The commands are valid during the call.
	Apply []func(commands [][]byte)
	// CommandBytes is the size of the largest command, and LogBytes that of a member's log, in bytes. LogBytes is
	// larger than MaxBatch and CommandBytes together.
	CommandBytes int
	LogBytes     int64
	// CommitInterval is the time after which followers learn the last committed batch if no command follows; positive.
	CommitInterval time.Duration
}

// ErrClosed is the error of commands after Close, and of those that Close found without an answer: those may be in
// the logs.
var ErrClosed = errors.New("limit: the cluster is closed")

// BrokenError is the failure of a member. It ends the cluster: no more commands are accepted, and those without an
// answer may be in the logs.
type BrokenError struct {
	Member int // from 0
	Err    error
}

// Error implements error.
func (e *BrokenError) Error() string { return fmt.Sprintf("limit: member %d: %v", e.Member+1, e.Err) }

// Unwrap returns the cause.
func (e *BrokenError) Unwrap() error { return e.Err }

// Cluster is a leader and its followers in this process. Its methods are safe for concurrent use.
type Cluster struct {
	leader    *leader
	followers []*follower
	members   []*member  // the leader is the first one
	conns     []net.Conn // both ends
	running   sync.WaitGroup
	quit      chan struct{} // closed when the cluster begins to end
	ended     chan struct{} // closed when it has ended
	ending    sync.Once
	err       error // of the end; set before ended is closed
}

// member is the part that the leader and the followers share.
type member struct {
	log     *logFile
	apply   func([][]byte)
	egress  atomic.Int64 // bytes sent
	scratch [][]byte
}

// applyBatch applies the commands of a batch.
func (m *member) applyBatch(b *batch) {
	m.scratch = b.split(m.scratch[:0])
	m.apply(m.scratch)
}

// transmit writes bytes to a connection.
func (m *member) transmit(conn net.Conn, p []byte) error {
	_ = conn.SetWriteDeadline(time.Now().Add(writeTimeout)) // fails if the connection is closed, as Write then does
	n, err := conn.Write(p)
	m.egress.Add(int64(n))
	return err
}

// Open starts a cluster. If it returns an error, for a member a [BrokenError], nothing of the cluster runs.
func Open(config Config) (*Cluster, error) {
	defer func() {
		for _, l := range config.Listeners {
			_ = l.Close()
		}
	}()
	n := len(config.Listeners)
	if n < 1 || n > maxMembers || n != len(config.Apply) {
		return nil, fmt.Errorf("limit: %d members with %d state machines: there must be between 1 and %d of both", n,
			len(config.Apply), maxMembers)
	}
	c := &Cluster{quit: make(chan struct{}), ended: make(chan struct{})}
	for i := range n {
		if err := c.add(&config, i); err != nil {
			c.closeFiles()
			return nil, &BrokenError{i, err}
		}
	}
	c.start(config.CommitInterval)
	return c, nil
}

// add makes a member and connects it to the leader, which is made first.
func (c *Cluster) add(config *Config, i int) error {
	dir := filepath.Join(config.Dir, fmt.Sprintf("m%d", i+1))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	log, err := createLog(filepath.Join(dir, "log"), config.LogBytes, config.CommandBytes)
	if err != nil {
		return err
	}
	m := &member{log: log, apply: config.Apply[i]}
	c.members = append(c.members, m)
	if i == 0 {
		c.leader = &leader{member: m, wake: make(chan struct{}, 1), onDisk: make([]uint64, len(config.Listeners))}
		return nil
	}
	f := &follower{member: m, write: make(chan *batch, ahead)}
	c.followers = append(c.followers, f)
	dialled, err := net.DialTimeout("tcp", config.Listeners[i].Addr().String(), dialTimeout)
	if err != nil {
		return err
	}
	c.leader.followers, c.conns = append(c.leader.followers, dialled), append(c.conns, dialled)
	if f.conn, err = config.Listeners[i].Accept(); err != nil { // the connection is established
		return err
	}
	c.conns = append(c.conns, f.conn)
	return nil
}

// start starts all goroutines.
func (c *Cluster) start(interval time.Duration) {
	c.run(0, func() error { return c.leader.run(c.quit, interval) })
	for i, f := range c.followers {
		conn := c.leader.followers[i]
		c.run(0, func() error { return c.leader.receiveAcks(i+1, conn) })
		c.run(i+1, func() error { return f.receive(c.quit) })
		c.run(i+1, f.store)
	}
	go func() {
		c.running.Wait()
		for _, b := range slices.Concat(c.leader.sent, c.leader.proposed) {
			b.answer(c.leader.err)
		}
		c.err = errors.Join(c.err, c.closeFiles())
		close(c.ended)
	}()
}

// run runs a part of a member. Its error ends the cluster.
func (c *Cluster) run(member int, part func() error) {
	c.running.Go(func() {
		if err := part(); err != nil {
			broken := &BrokenError{member, err}
			c.end(broken, broken)
		}
	})
}

// end stops all goroutines. Commands fail with the error answer, and Close returns err. Only the first call has an
// effect.
func (c *Cluster) end(answer, err error) {
	c.ending.Do(func() {
		c.err = err
		c.leader.mu.Lock()
		c.leader.err = answer
		c.leader.mu.Unlock()
		close(c.quit)
		for _, conn := range c.conns {
			_ = conn.Close()
		}
	})
}

func (c *Cluster) closeFiles() error {
	var errs []error
	for _, m := range c.members {
		errs = append(errs, m.log.file.Close())
	}
	return errors.Join(errs...)
}

// ProposeAsync replicates a copy of a command. answer is called once: when the leader has applied the command, or with
// [ErrClosed] or a [BrokenError]. answer must not block. If ProposeAsync itself returns one of these errors, the
// command is not proposed and answer is not called.
func (c *Cluster) ProposeAsync(command []byte, answer func(result any, err error)) error {
	return c.leader.propose(command, answer)
}

// Totals returns the number of bytes that each member has sent, and the number of syncs of all members.
func (c *Cluster) Totals() (sent []int64, syncs int64) {
	for _, m := range c.members {
		sent, syncs = append(sent, m.egress.Load()), syncs+m.log.syncs.Load()
	}
	return sent, syncs
}

// Close ends all members. It returns the error that ended the cluster before, if there is one.
func (c *Cluster) Close() error {
	c.end(ErrClosed, nil)
	<-c.ended
	return c.err
}
