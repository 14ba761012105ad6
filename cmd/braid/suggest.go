package main

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/braidlog/braid/internal/status"
)

// flagError names the flag that was probably meant.
func flagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return usageError{err}
	}
	name := strings.TrimLeft(unknown.GetSpecifiedName(), "-")
	best, bestDistance := "", len(name)/2+1
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if d := distance(name, f.Name); !f.Hidden && d < bestDistance {
			best, bestDistance = f.Name, d
		}
	})
	if best == "" {
		return usageError{err}
	}
	return usageError{fmt.Errorf("%w; did you mean --%s?", err, best)}
}

// explain returns the text of an error, with a remedy if the library that made it names none.
func explain(err error) string {
	var invalid *pflag.InvalidValueError
	if errors.As(err, &invalid) {
		if bytes, ok := sizeOf(invalid.GetValue()); ok && wholeNumber(invalid.GetFlag()) {
			return fmt.Sprintf("--%s %s: it is a number without a unit: write %d", invalid.GetFlag().Name,
				invalid.GetValue(), bytes)
		}
	}
	if hint := status.Hint(err.Error()); hint != "" {
		return strings.TrimRight(err.Error(), "\n") + "; " + hint
	}
	return err.Error()
}

// wholeNumber reports whether a flag is a whole number.
func wholeNumber(f *pflag.Flag) bool {
	return strings.HasPrefix(f.Value.Type(), "int") || strings.HasPrefix(f.Value.Type(), "uint")
}

// sizeOf parses a size with a unit, as 8GiB, or 8GB in powers of 1000, and returns it in bytes.
func sizeOf(text string) (bytes int64, ok bool) {
	digits := strings.TrimRight(text, "kmgtibKMGTIB")
	number, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
	at := strings.ToUpper(strings.TrimSuffix(strings.ToLower(text[len(digits):]), "b"))
	if err != nil || at == "" {
		return 0, false
	}
	power, base := strings.Index("KMGT", at[:1])+1, 1000.0
	if at[1:] == "I" {
		base = 1024
	} else if at[1:] != "" {
		return 0, false
	}
	size := number * math.Pow(base, float64(power))
	return int64(size), power > 0 && size >= 0 && size < math.MaxInt64/2
}

// distance is the number of letters to add, drop or change to make a out of b.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			next := min(row[j+1]+1, row[j]+1, diagonal+cost)
			diagonal, row[j+1] = row[j+1], next
		}
	}
	return row[len(b)]
}
