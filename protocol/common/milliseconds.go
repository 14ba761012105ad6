package common

import (
	"errors"
	"strconv"
	"time"

	"github.com/braidlog/braid/protocol/setting"
)

// milliseconds returns the flag of a duration that has etcd's name and its unit, milliseconds.
func milliseconds(name, help string, standard time.Duration) []setting.Part[time.Duration] {
	text := func(d time.Duration) string {
		if d%time.Millisecond != 0 {
			return d.String()
		}
		return strconv.FormatInt(d.Milliseconds(), 10)
	}
	set := func(d *time.Duration, s string) error {
		if s == "" {
			*d = standard
			return nil
		}
		n, err := strconv.ParseUint(s, 10, 32)
		if err != nil {
			return errors.New("not a number of milliseconds")
		}
		*d = time.Duration(n) * time.Millisecond
		return nil
	}
	return []setting.Part[time.Duration]{{Name: name, Help: help, Default: text(standard), Text: "uint",
		Get: text, Set: set}}
}
