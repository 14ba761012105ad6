package datadir

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/braidlog/braid/internal/durable"
	"github.com/braidlog/braid/internal/member"
	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/internal/vfs"
	"github.com/braidlog/braid/protocol"
)

// A snapshot file has: magic, length and CRC of the meta, the meta as JSON, the state as the state
// machine wrote it, the state's length and CRC. A state machine that keeps its own state on disk has
// checkpoints: snapshot files without state.
//
// A snapshot with sections has another magic: earlier programs would ignore the sections.
//
//	magic 8 | meta length 4 | meta crc 4 | meta … | state … | state length 8 | state crc 4 | end 4
const (
	snapMagic   = "braidsn1"
	snapMagic2  = "braidsn2" // there are sections
	snapEnd     = 0x62726469
	snapTrailer = 16
	snapBuffer  = 64 << 10
	snapSuffix  = ".snap"
	badSuffix   = ".bad" // of a file that a start found damaged; the next start removes it
)

// SnapshotHeader is the beginning of a snapshot file.
type SnapshotHeader struct {
	member.Meta
	// HasState is false for a checkpoint of a state machine that keeps its own state.
	HasState bool `json:"has_state"`
}

// Snapshots is the directory of a member's snapshot files. The newest complete one counts.
//
// Its methods are safe for concurrent use.
type Snapshots struct {
	fs     vfs.FS
	dir    string
	writes atomic.Uint64            // numbers the temporary files
	before func(*member.Meta) error // called before a snapshot is written; nil: nothing is to be done
	// Sync makes a file durable, of a snapshot that was received or of one of this member; nil: by its Sync alone.
	Sync func(f vfs.File, received bool) error
	// Damaged are the errors of the damaged snapshots that Restore skipped.
	Damaged []error
	mu      sync.Mutex                        // held while a complete file is renamed
	proven  atomic.Pointer[protocol.Position] // position of the last file if it was received, and verified then; nil: none
}

// OpenSnapshots creates the directory if it is missing. It removes files that are incomplete after a crash, and files
// that an earlier start found damaged. The names of the others are durable when it returns: the process may have been
// killed while the machine ran on, and what the log drops because of a snapshot is durable at once.
func OpenSnapshots(fs vfs.FS, dir string) (*Snapshots, error) {
	if err := durable.MakeDir(fs, dir, 0o700); err != nil {
		return nil, err
	}
	s := &Snapshots{fs: fs, dir: dir}
	names, err := fs.List(dir)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if strings.HasSuffix(name, ".tmp") || strings.HasSuffix(name, badSuffix) {
			if err := fs.Remove(filepath.Join(dir, name)); err != nil {
				return nil, err
			}
		}
	}
	return s, syncDir(fs, dir)
}

func syncDir(fs vfs.FS, dir string) error {
	d, err := fs.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func (s *Snapshots) path(p protocol.Position) string {
	return filepath.Join(s.dir, fmt.Sprintf("%020d%s", uint64(p), snapSuffix))
}

// Positions returns the positions of the complete snapshots, ascending.
func (s *Snapshots) Positions() ([]protocol.Position, error) {
	names, err := s.fs.List(s.dir)
	if err != nil {
		return nil, err
	}
	var out []protocol.Position
	for _, name := range names {
		var p uint64
		if n, _ := fmt.Sscanf(name, "%020d.snap", &p); n == 1 && strings.HasSuffix(name, snapSuffix) {
			out = append(out, protocol.Position(p))
		}
	}
	slices.Sort(out)
	return out, nil
}

// Any reports whether there is a snapshot, damaged or not.
func (s *Snapshots) Any() (bool, error) {
	all, err := s.Positions()
	return len(all) > 0, err
}

// Newest returns the newest snapshot's header; ok is false if there is none.
func (s *Snapshots) Newest() (h SnapshotHeader, ok bool, err error) {
	all, err := s.Positions()
	if err != nil || len(all) == 0 {
		return h, false, err
	}
	f, err := s.Open(all[len(all)-1])
	if err != nil {
		return h, false, err
	}
	defer f.Close()
	return f.Header, true, nil
}

// Settled is the cursor of the oldest snapshot that a start may ever go back to. It returns an error if that is not
// known.
func (s *Snapshots) Settled() (order.Cursor, error) {
	if err := syncDir(s.fs, s.dir); err != nil { // so that a removed snapshot cannot reappear
		return order.Cursor{}, err
	}
	all, err := s.Positions()
	if err != nil || len(all) == 0 {
		return order.Cursor{}, err
	}
	f, err := s.Open(all[0])
	if err != nil {
		return order.Cursor{}, err
	}
	return f.Header.Cursor, f.Close()
}

// Prune removes all snapshots older than p.
func (s *Snapshots) Prune(p protocol.Position) error {
	all, err := s.Positions()
	if err != nil {
		return err
	}
	for _, old := range all {
		if old < p {
			if err := s.fs.Remove(s.path(old)); err != nil {
				return err
			}
		}
	}
	return nil
}

// Write makes a snapshot durable under its position, complete or not at all. Skips have no position, so several
// snapshots of merged instances may have the same one. Then the furthest snapshot counts, even if another one was
// written last.
func (s *Snapshots) Write(h SnapshotHeader, state func(io.Writer) error) error {
	return s.write(h, state, false)
}

// Receive is Write for a snapshot that comes from another member. It reads the whole file again and verifies it
// before the snapshot counts, because the cores drop their logs for it. In a keyed order it does not count: it waits
// in a file of its own until it is merged, see [Snapshots.Staged].
func (s *Snapshots) Receive(h SnapshotHeader, state func(io.Writer) error) error {
	if h.Cursor.Keyed {
		return s.stage(h, state)
	}
	return s.write(h, state, true)
}

func (s *Snapshots) write(h SnapshotHeader, state func(io.Writer) error, verify bool) (err error) {
	final := s.path(h.Cursor.Position)
	tmp := fmt.Sprintf("%s.%d.tmp", final, s.writes.Add(1))
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("snapshot %s: %w", final, err), s.discard(tmp))
		}
	}()
	if s.before != nil {
		if err = s.before(&h.Meta); err != nil {
			return err
		}
	}
	if err = s.fill(tmp, h, state, verify); err != nil {
		return err
	}
	if verify {
		if err = s.whole(tmp); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	behind, err := s.behind(&h.Cursor)
	if err != nil {
		return err
	}
	if behind {
		return s.fs.Remove(tmp)
	}
	names, err := s.fs.OpenDir(s.dir) // first, so that no descriptor is missing once the file has its name
	if err != nil {
		return err
	}
	s.proven.Store(nil)
	if err = s.fs.Rename(tmp, final); err != nil {
		return errors.Join(err, names.Close())
	}
	if verify {
		s.proven.Store(&h.Cursor.Position)
	}
	return errors.Join(names.Sync(), names.Close())
}

// stagedFile is the name of the one snapshot that waits to be merged. A start removes it.
const stagedFile = "staged.tmp"

// stage writes a snapshot of another member to a file that does not count as a snapshot of this one, and verifies it.
// It replaces the previous one.
func (s *Snapshots) stage(h SnapshotHeader, state func(io.Writer) error) (err error) {
	path := filepath.Join(s.dir, stagedFile)
	if err = s.fill(path, h, state, true); err == nil {
		err = s.whole(path)
	}
	if err != nil {
		err = errors.Join(fmt.Errorf("snapshot %s: %w", path, err), s.discard(path))
	}
	return err
}

// Staged opens the last received snapshot, which waits to be merged.
func (s *Snapshots) Staged() (*SnapshotReader, error) {
	return s.open(filepath.Join(s.dir, stagedFile))
}

// Unstage removes the staged snapshot, if there is one.
func (s *Snapshots) Unstage() error { return s.discard(filepath.Join(s.dir, stagedFile)) }

// fill writes a file with a snapshot durably.
func (s *Snapshots) fill(path string, h SnapshotHeader, state func(io.Writer) error, received bool) error {
	f, err := s.fs.Create(path)
	if err != nil {
		return err
	}
	if err = writeSnapshot(f, h, state); err == nil {
		err = s.sync(f, received)
	}
	return errors.Join(err, f.Close())
}

func (s *Snapshots) sync(f vfs.File, received bool) error {
	if s.Sync != nil {
		return s.Sync(f, received)
	}
	return f.Sync()
}

// discard removes an incomplete file, if there is one.
func (s *Snapshots) discard(path string) error {
	if err := s.fs.Remove(path); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// behind reports whether there already is a further snapshot at the same position. A damaged one should be replaced.
func (s *Snapshots) behind(c *order.Cursor) (bool, error) {
	if !c.Merged() {
		return false, nil
	}
	f, err := s.Open(c.Position)
	switch {
	case errors.Is(err, os.ErrNotExist) || member.IsDamage(err):
		return false, nil
	case err != nil:
		return false, err
	}
	return c.Before(&f.Header.Cursor), f.Close()
}

func writeSnapshot(f io.Writer, h SnapshotHeader, state func(io.Writer) error) error {
	if err := h.ValidSections(); err != nil {
		return err
	}
	meta, err := json.Marshal(h)
	if err != nil {
		return err
	}
	magic := snapMagic
	if len(h.Sections) > 0 {
		magic = snapMagic2
	}
	w := bufio.NewWriterSize(f, snapBuffer)
	head := append([]byte(magic), make([]byte, 8)...)
	binary.LittleEndian.PutUint32(head[8:], uint32(len(meta)))
	binary.LittleEndian.PutUint32(head[12:], protocol.Digest(meta))
	if _, err := w.Write(append(head, meta...)); err != nil {
		return err
	}
	sum := &checksummer{w: w, crc: newCRC()}
	if state != nil {
		if err := state(sum); err != nil {
			return err
		}
	}
	tail := binary.LittleEndian.AppendUint64(nil, sum.n)
	tail = binary.LittleEndian.AppendUint32(tail, sum.crc.Sum32())
	tail = binary.LittleEndian.AppendUint32(tail, snapEnd)
	if _, err := w.Write(tail); err != nil {
		return err
	}
	return w.Flush()
}

func newCRC() hash.Hash32 { return crc32.New(crc32.MakeTable(crc32.Castagnoli)) }

// checksummer counts the bytes that go through it, and computes their checksum.
type checksummer struct {
	w   io.Writer
	r   io.Reader
	crc hash.Hash32
	n   uint64
}

func (s *checksummer) Write(b []byte) (int, error) {
	s.crc.Write(b) // before others see the bytes; after an error the checksum is not used
	n, err := s.w.Write(b)
	s.n += uint64(n)
	return n, err
}

func (s *checksummer) Read(b []byte) (int, error) {
	n, err := s.r.Read(b)
	s.crc.Write(b[:n])
	s.n += uint64(n)
	return n, err
}

// SnapshotReader reads a snapshot file. The header is already read; the state is next.
type SnapshotReader struct {
	Header SnapshotHeader
	file   vfs.File
	state  *checksummer
	size   uint64
	want   uint32
	path   string
}

// Open opens the snapshot at a position and verifies its header.
func (s *Snapshots) Open(p protocol.Position) (r *SnapshotReader, err error) {
	return s.open(s.path(p))
}

func (s *Snapshots) open(path string) (r *SnapshotReader, err error) {
	f, err := s.fs.Open(path)
	if err != nil {
		return nil, err
	}
	vfs.ReadAhead(f)
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close())
		}
	}()
	corrupt := func(detail string) error { return &protocol.CorruptError{What: "snapshot " + path, Detail: detail} }
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	var head [16]byte
	if _, err := f.ReadAt(head[:], 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read snapshot %s: %w", path, err)
	} else if err != nil || string(head[:8]) != snapMagic && string(head[:8]) != snapMagic2 {
		return nil, corrupt("not a snapshot")
	}
	metaLen := int64(binary.LittleEndian.Uint32(head[8:]))
	size := info.Size() - 16 - metaLen - snapTrailer
	if size < 0 {
		return nil, corrupt(fmt.Sprintf("%d bytes are too few", info.Size()))
	}
	meta := make([]byte, metaLen)
	if _, err := f.ReadAt(meta, 16); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read snapshot %s: %w", path, err)
	} else if err != nil || protocol.Digest(meta) != binary.LittleEndian.Uint32(head[12:]) {
		return nil, corrupt("meta checksum mismatch")
	}
	r = &SnapshotReader{file: f, size: uint64(size), path: path}
	if err := json.Unmarshal(meta, &r.Header); err != nil {
		return nil, corrupt(err.Error())
	}
	var tail [snapTrailer]byte
	if _, err := f.ReadAt(tail[:], 16+metaLen+size); err != nil {
		return nil, err
	}
	if binary.LittleEndian.Uint64(tail[:]) != r.size || binary.LittleEndian.Uint32(tail[12:]) != snapEnd {
		return nil, corrupt("trailer mismatch")
	}
	r.want = binary.LittleEndian.Uint32(tail[8:])
	r.state = &checksummer{r: bufio.NewReaderSize(io.NewSectionReader(f, 16+metaLen, size), snapBuffer), crc: newCRC()}
	return r, nil
}

// Meta returns the snapshot's meta.
func (r *SnapshotReader) Meta() member.Meta { return r.Header.Meta }

// Read reads the state, as the state machine wrote it. It returns EOF only if all bytes are verified, because a state
// machine may keep what it has read once it has seen EOF. Otherwise it returns a [*protocol.CorruptError] in place of
// EOF.
func (r *SnapshotReader) Read(b []byte) (int, error) {
	n, err := r.state.Read(b)
	if err == io.EOF {
		if damage := r.judge(); damage != nil {
			err = damage
		}
	}
	return n, err
}

// Verify reads the rest of the state. It returns an error if the state is damaged.
func (r *SnapshotReader) Verify() error {
	if _, err := io.Copy(io.Discard, r.state); err != nil {
		return err
	}
	return r.judge()
}

// judge verifies the checksum. All of the state must have been read.
func (r *SnapshotReader) judge() error {
	if r.state.n != r.size || r.state.crc.Sum32() != r.want {
		return &protocol.CorruptError{What: "snapshot " + r.path, Detail: "state checksum mismatch"}
	}
	return nil
}

// Close closes the file.
func (r *SnapshotReader) Close() error { return r.file.Close() }

// At opens the newest snapshot with a state that reaches base in an instance. It may go further, because everything
// in a snapshot is committed. All its bytes were verified: a state machine may keep its state on disk, and must not
// see a damaged one. At skips snapshots that are damaged or cannot be read, and reports them only if there is no
// other one.
func (s *Snapshots) At(base protocol.Base, instance protocol.InstanceID) (*SnapshotReader, error) {
	all, err := s.Positions()
	if err != nil {
		return nil, err
	}
	var damaged []error
	for i := len(all) - 1; i >= 0; i-- {
		f, err := s.Open(all[i])
		if err != nil {
			damaged = append(damaged, err)
			continue
		}
		if f.Header.HasState && f.Header.Covers(instance, base.Index) {
			if err := s.verified(all[i]); err != nil {
				damaged = append(damaged, errors.Join(err, f.Close()))
				continue
			}
			return f, nil
		}
		if err := f.Close(); err != nil {
			return nil, err
		}
	}
	missing := fmt.Errorf("braid: no snapshot at index %d of instance %d in %s", base.Index, instance, s.dir)
	return nil, errors.Join(append(damaged, missing)...)
}

// verified verifies a snapshot, unless that was done when it was received.
func (s *Snapshots) verified(p protocol.Position) error {
	if at := s.proven.Load(); at != nil && *at == p {
		return nil
	}
	return s.Whole(p)
}

// Find opens the snapshot at a position; it returns nil if it was removed.
func (s *Snapshots) Find(p protocol.Position) (member.ReceivedSnapshot, error) {
	f, err := s.Open(p)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return f, nil
}

// Whole reads the snapshot at a position and verifies it.
func (s *Snapshots) Whole(p protocol.Position) error { return s.whole(s.path(p)) }

func (s *Snapshots) whole(path string) error {
	f, err := s.open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Verify(), f.Close())
}

// Remove removes the snapshot at a position.
func (s *Snapshots) Remove(p protocol.Position) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fs.Remove(s.path(p))
}
