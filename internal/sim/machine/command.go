package machine

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/braidlog/braid/internal/check"
)

// Token returns the token that represents this command's body in a value.
func Token(number int) string { return fmt.Sprintf("<%d>", number) }

// Tokens returns the numbers of the bodies in a value.
func Tokens(text string) (numbers []int) {
	for part := range strings.SplitSeq(text, "<") {
		if digits, _, found := strings.Cut(part, ">"); found {
			n, err := strconv.Atoi(digits)
			if err != nil {
				panic(err) // only Token writes tokens
			}
			numbers = append(numbers, n)
		}
	}
	return numbers
}

// Command is an operation as it is in the log: number, kind, key, value and expected Value, separated by spaces.
// After a bar comes padding.
func Command(number int, op check.Operation, padding int) []byte {
	b := fmt.Appendf(nil, "%d %d %s %s %s|", number, op.Kind, op.Key, op.Value, op.Expect)
	for range padding {
		b = append(b, '.')
	}
	return b
}

// ParseCommand parses a command in the log.
func ParseCommand(b []byte) (number int, op check.Operation, err error) {
	text, _, _ := bytes.Cut(b, []byte{'|'})
	f := strings.Split(string(text), " ")
	if len(f) != 5 {
		return 0, op, fmt.Errorf("command %q: %d fields", b, len(f))
	}
	number, err = strconv.Atoi(f[0])
	if err != nil {
		return 0, op, err
	}
	kind, err := strconv.Atoi(f[1])
	return number, check.Operation{Kind: check.Kind(kind), Key: f[2], Value: f[3], Expect: f[4]}, err
}
