package bench

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"strconv"
)

// RivalsProgram is the program of the libraries and servers that braid is compared with. They are in a module of
// their own, bench/rivals, so that a program with braid does not require them. A run of one of them is in that
// program's process, with the members and the load, as this process has those of braid's own protocols.
const RivalsProgram = "braid-rivals"

// rivals are the libraries that the log benchmark can run.
var rivals = []string{"etcd-raft", "etcd-raft-packed", "hashicorp-raft"}

// RivalsMissingError indicates that a contestant needs the program of rivals, which was not found. Nothing was started.
type RivalsMissingError struct {
	Contestant string
	Path       string // as given; "": none was
	Build      string // the command that builds it, in braid's source
}

// Error implements error.
func (e *RivalsMissingError) Error() string {
	where := RivalsProgram + " is neither beside this program nor in PATH"
	if e.Path != "" {
		where = "there is no program " + e.Path
	}
	const text = "%s runs in a program of its own, and %s: in a checkout of braid, build it with\n  %s"
	return fmt.Sprintf(text, e.Contestant, where, e.Build)
}

// FindRivals returns the path of the program that runs the rivals among some contestants, or "" if there are none.
// given is the path from the user, or "": then the program is next to this one or in PATH. The error is a
// [*RivalsMissingError].
func FindRivals(given string, contestants []string) (string, error) {
	at := slices.IndexFunc(contestants, isRival)
	if at < 0 {
		return "", nil
	}
	here := RivalsProgram
	if self, err := os.Executable(); err == nil {
		here = filepath.Join(filepath.Dir(self), RivalsProgram)
	}
	tried := []string{given}
	if given == "" {
		tried = []string{here, RivalsProgram}
	}
	for _, path := range tried {
		if found, err := exec.LookPath(path); err == nil {
			return filepath.Abs(found)
		}
	}
	target := cmp.Or(given, here)
	if abs, err := filepath.Abs(target); err == nil {
		target = abs
	}
	return "", &RivalsMissingError{contestants[at], given, "go -C bench/rivals build -o " + target + " ."}
}

// isRival reports whether a contestant of either benchmark is started by the program of rivals.
func isRival(name string) bool { return slices.Contains(rivals, name) || serverKinds[name].Rival }

// rivalLine is one line of a rival's output. The last has a result or an error.
type rivalLine struct {
	Progress *Progress  `json:"progress,omitempty"`
	Result   *LogResult `json:"result,omitempty"`
	Error    string     `json:"error,omitempty"`
}

// ServeRival makes one run of the log benchmark in a process that [RunLog] started. in has its LogConfig as a line of
// JSON; its end, or ctx's, interrupts the run. The progress and the result are written to out.
func ServeRival(ctx context.Context, in io.Reader, out io.Writer, open map[string]Opener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r := bufio.NewReader(in)
	line, err := r.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("reading what to run: %w", err)
	}
	var c LogConfig
	if err := decodeStrict(line, &c); err != nil {
		return fmt.Errorf("reading what to run: %w", err)
	}
	go func() {
		_, _ = io.Copy(io.Discard, r)
		cancel()
	}()
	encode := json.NewEncoder(out).Encode
	c.Progress = func(p Progress) { _ = encode(rivalLine{Progress: &p}) } // the result's encoding reports a closed pipe
	if open[c.Protocol] == nil {
		return encode(rivalLine{Error: fmt.Sprintf("%s has no %q", RivalsProgram, c.Protocol)})
	}
	result, err := RunLogOn(ctx, c, open[c.Protocol])
	if err != nil {
		return encode(rivalLine{Error: err.Error()})
	}
	return encode(rivalLine{Result: result})
}

// runRival is [RunLog] on a rival.
func runRival(ctx context.Context, c LogConfig) (*LogResult, error) {
	if c.Rivals == "" {
		return nil, fmt.Errorf("%s: nothing says where its program is", c.Protocol)
	}
	debug.FreeOSMemory() // the garbage of the last contestant must not slow this one
	// No other phase of the process takes longer than these at the ends of the load.
	const atEnds = startTimeout + stallTimeout + convergeTimeout
	ctx, cancel := context.WithTimeout(ctx, c.Load.Warmup+c.Load.Duration+atEnds)
	defer cancel()
	config, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, c.Rivals, "log")
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	if os.Getenv("GOGC") == "" {
		cmd.Env = append(os.Environ(), "GOGC="+strconv.FormatUint(gcPercent(), 10))
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	cmd.Cancel, cmd.WaitDelay = in.Close, atEnds // its result covers the time until then
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", c.Protocol, err)
	}
	_, err = in.Write(append(config, '\n'))
	last, rerr := c.readRival(out)
	_ = in.Close() // closed already if ctx has ended
	werr := cmd.Wait()
	switch {
	case last.Result != nil:
		return last.Result, nil
	case last.Error != "":
		return nil, errors.New(last.Error)
	}
	err = errors.Join(err, rerr, werr)
	return nil, fmt.Errorf("%s: %s ended without a result: %w: %s", c.Protocol, c.Rivals, err,
		lastOf(complaints.Bytes()))
}

// readRival reads a rival's output until its last line.
func (c *LogConfig) readRival(out io.Reader) (last rivalLine, err error) {
	lines := json.NewDecoder(out)
	lines.DisallowUnknownFields() // the program is of another version
	for last.Result == nil && last.Error == "" {
		last = rivalLine{}
		if err := lines.Decode(&last); err != nil {
			return rivalLine{}, fmt.Errorf("reading its result: %w", err)
		}
		if last.Progress != nil && c.Progress != nil {
			c.Progress(*last.Progress)
		}
	}
	return last, nil
}

func decodeStrict(data []byte, to any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	return d.Decode(to)
}

// gcPercent is the growth of this process's heap between garbage collections, in percent; 0: not known.
func gcPercent() uint64 {
	gc := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	if metrics.Read(gc); gc[0].Value.Kind() == metrics.KindUint64 {
		return gc[0].Value.Uint64()
	}
	return 0
}
