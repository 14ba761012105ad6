package settings

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// Output is how and where a member logs.
type Output struct {
	LogLevel, LogFormat string
	// LogOutputs are [ToStderr], [ToStdout], [ToJournal] and files.
	LogOutputs []string
	// LogRotates: a file that is full is renamed, and another one begins.
	LogRotates bool
	rotation   string
}

// Outputs that are no files.
const (
	ToDefault = "default" // standard error
	ToStderr  = "stderr"
	ToStdout  = "stdout"
	ToJournal = "systemd/journal"
)

// Rotation is when a file of a log is full, and for how long it is kept then.
type Rotation struct {
	MaxSize    int  `json:"maxsize"`    // MiB
	MaxAge     int  `json:"maxage"`     // days; 0: no limit
	MaxBackups int  `json:"maxbackups"` // files; 0: no limit
	LocalTime  bool `json:"localtime"`  // in the names of files; else UTC
	Compress   bool `json:"compress"`
}

const defaultRotation = `{"maxsize": 100, "maxage": 0, "maxbackups": 0, "localtime": false, "compress": false}`

func (o *Output) flags(f *pflag.FlagSet) {
	f.StringVar(&o.LogLevel, "log-level", "info", "debug, info, warn or error; panic and fatal, which etcd has, are error")
	f.StringVar(&o.LogFormat, "log-format", "text", "text (also console, its name in etcd) or json")
	f.StringSliceVar(&o.LogOutputs, "log-outputs", []string{ToDefault}, "where to log: stderr, stdout, "+
		"systemd/journal, or names of files (default standard error)")
	f.BoolVar(&o.LogRotates, "enable-log-rotation", false, "begin another file when one of --log-outputs is full")
	f.StringVar(&o.rotation, "log-rotation-config-json", defaultRotation, "when a file is full (maxsize in MiB), and "+
		"which full ones are kept (maxage in days, maxbackups; 0: all)")
}

func (o *Output) check() error {
	var errs []error
	if !slices.Contains([]string{"text", "console", "json"}, o.LogFormat) {
		errs = append(errs, fmt.Errorf("--log-format %q: it is text or json", o.LogFormat))
	}
	if _, err := o.level(); err != nil {
		errs = append(errs, fmt.Errorf("--log-level %q: it is debug, info, warn or error", o.LogLevel))
	}
	if slices.Contains(o.LogOutputs, "") {
		errs = append(errs, errors.New("--log-outputs has an empty name"))
	}
	if o.LogRotates && len(o.LogFiles()) == 0 {
		errs = append(errs, errors.New("--enable-log-rotation has no meaning without a file in --log-outputs"))
	}
	_, err := o.Rotation()
	return errors.Join(append(errs, err)...)
}

// LogFiles are the files among LogOutputs.
func (o *Output) LogFiles() []string {
	return slices.DeleteFunc(slices.Clone(o.LogOutputs), func(to string) bool {
		return slices.Contains([]string{ToDefault, ToStderr, ToStdout, ToJournal}, to)
	})
}

// Rotation is that of the files.
func (o *Output) Rotation() (r Rotation, err error) {
	d := json.NewDecoder(strings.NewReader(o.rotation))
	d.DisallowUnknownFields()
	if err = d.Decode(&r); err != nil {
		return r, fmt.Errorf("--log-rotation-config-json: %w", err)
	}
	if r.MaxSize < 0 || r.MaxAge < 0 || r.MaxBackups < 0 {
		return r, errors.New("--log-rotation-config-json: a limit is negative")
	}
	return r, nil
}

// JSON reports whether the log is in JSON.
func (o *Output) JSON() bool { return o.LogFormat == "json" }

// Level is the log level as a number.
func (o *Output) Level() slog.Level {
	level, err := o.level()
	if err != nil {
		return slog.LevelInfo // check refused it
	}
	return level
}

func (o *Output) level() (level slog.Level, err error) {
	if slices.Contains([]string{"panic", "fatal"}, o.LogLevel) {
		return slog.LevelError, nil // a member that ends logs an error
	}
	err = level.UnmarshalText([]byte(o.LogLevel))
	return level, err
}
