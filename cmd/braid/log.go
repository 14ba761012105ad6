package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/braidlog/braid/internal/vfs"
	"github.com/braidlog/braid/internal/wal"
)

func init() { commands = append(commands, newLogCommand) }

func newLogCommand() *cobra.Command {
	asJSON, data := false, false
	dump := &cobra.Command{
		Use:   "dump DIR",
		Short: "Print and check the segments and records of a log",
		Long: `dump reads the log of a member, which may be running, and changes nothing. DIR is a member's
data directory, or the directory of a log. It reads and checks the bodies next to the log too;
of several copies of a body the last one counts. A torn end is normal after a crash: the next
start truncates it. The exit code is 1 if a file's header, or a batch or a body elsewhere is
damaged.`,
		Example: `  braid log dump braid-data/m1
  braid log dump braid-data/m1 --json | head`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir, err := findLog(args[0])
			if err != nil {
				return err
			}
			return dumpLog(cmd.OutOrStdout(), dir, asJSON, data)
		},
	}
	dump.Flags().BoolVar(&asJSON, "json", false, "print a line of JSON per file, record and body")
	dump.Flags().BoolVar(&data, "data", false, "with --json, include the records' bytes")
	return group("log", "Inspect the log of a member", dump)
}

// findLog returns the directory of segments at or below dir.
func findLog(dir string) (string, error) {
	for _, d := range []string{filepath.Join(dir, logDir, "log"), filepath.Join(dir, "log"), dir} {
		info, err := os.Stat(d)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return "", err
		}
		if info.IsDir() {
			return d, nil
		}
	}
	return "", usagef("%s is no directory", dir)
}

// segmentView and recordView are lines of JSON.
type segmentView struct {
	File     string `json:"file"`
	Sequence uint64 `json:"sequence"`
	Bytes    int64  `json:"bytes"`
	Identity string `json:"identity"`
	Error    string `json:"error,omitempty"`
}

// bodyView is a line of JSON about a body, or about an offset without a valid one.
type bodyView struct {
	File     string `json:"file"`
	Offset   int64  `json:"offset"`
	Kind     string `json:"kind,omitempty"`
	Number   uint64 `json:"number,omitempty"`
	Instance uint32 `json:"instance,omitempty"`
	Index    uint64 `json:"index,omitempty"`
	Term     uint64 `json:"term,omitempty"`
	Form     uint8  `json:"form,omitempty"`
	K        uint8  `json:"k,omitempty"`
	Length   int    `json:"length,omitempty"`
	Size     uint32 `json:"size,omitempty"`
	Error    string `json:"error,omitempty"`
}

type recordView struct {
	Sequence uint64 `json:"sequence"`
	Offset   int64  `json:"offset"`
	Batch    uint64 `json:"batch,omitempty"`
	Life     uint32 `json:"life,omitempty"`
	Kind     string `json:"kind,omitempty"`
	Mark     string `json:"mark,omitempty"`
	Instance uint32 `json:"instance,omitempty"`
	Index    uint64 `json:"index,omitempty"`
	Length   int    `json:"length,omitempty"`
	Data     []byte `json:"data,omitempty"`
	Error    string `json:"error,omitempty"`
}

func dumpLog(w io.Writer, dir string, asJSON, withData bool) error {
	lines := json.NewEncoder(w)
	segments, damaged := 0, 0
	bad := uint64(0) // the segment of the last damage
	err := wal.Inspect(vfs.OS, dir, func(s wal.SegmentInfo) error {
		segments++
		if s.Err != nil {
			damaged++
		}
		if asJSON {
			return lines.Encode(segmentView{s.File, s.Sequence, s.Bytes, string(s.Identity), text(s.Err)})
		}
		_, err := fmt.Fprintf(w, "segment %s: %d bytes, %q%s\n", s.File, s.Bytes, s.Identity, after(": ", s.Err))
		return err
	}, func(r wal.RecordInfo) error {
		switch {
		case r.Err != nil:
			bad = r.Sequence
		case bad == r.Sequence: // later records follow, so that was no torn end
			damaged++
			bad = 0
		}
		if !asJSON {
			_, err := fmt.Fprintln(w, r)
			return err
		}
		v := recordView{Sequence: r.Sequence, Offset: r.Offset, Error: text(r.Err)}
		if r.Err == nil {
			v.Batch, v.Life, v.Kind, v.Mark = r.Batch, r.Incarnation, r.Kind.String(), r.Mark
			v.Instance, v.Index, v.Length = r.Instance, r.Index, r.Length
		}
		if withData {
			v.Data = r.Data
		}
		return lines.Encode(v)
	})
	if err != nil {
		return err
	}
	torn, err := dumpBodies(w, filepath.Join(filepath.Dir(dir), "bodies"), asJSON)
	if err != nil {
		return err
	}
	damaged += torn
	if segments == 0 {
		return usagef("%s holds no segments of a log", dir)
	}
	if damaged > 0 {
		return fmt.Errorf("damaged in %d places", damaged)
	}
	return nil
}

// dumpBodies prints the bodies of a directory, if there is one, and counts the damaged ones.
func dumpBodies(w io.Writer, dir string, asJSON bool) (damaged int, err error) {
	lines := json.NewEncoder(w)
	bad := 0 // damaged offsets: a torn end, unless something valid follows
	err = wal.InspectBodies(vfs.OS, dir, func(s wal.SegmentInfo) error {
		if s.Err != nil {
			damaged++
		}
		if asJSON {
			return lines.Encode(segmentView{s.File, s.Sequence, s.Bytes, string(s.Identity), text(s.Err)})
		}
		_, err := fmt.Fprintf(w, "bodies %s: %d bytes, %q%s\n", s.File, s.Bytes, s.Identity, after(": ", s.Err))
		return err
	}, func(i wal.BodyInfo) error {
		if i.Err != nil {
			bad++
		} else {
			damaged, bad = damaged+bad, 0
		}
		if !asJSON {
			_, err := fmt.Fprintln(w, i)
			return err
		}
		b := i.Body
		return lines.Encode(bodyView{i.File, i.Offset, i.Kind, i.Number, b.Instance, b.Index, b.Term, b.Form, b.K, i.Length,
			b.Size, text(i.Err)})
	})
	if errors.Is(err, fs.ErrNotExist) {
		err = nil // no body was ever written
	}
	return damaged, err
}

func text(err error) string { return after("", err) }

func after(prefix string, err error) string {
	if err == nil {
		return ""
	}
	return prefix + err.Error()
}
