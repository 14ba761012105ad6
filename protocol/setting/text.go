package setting

import (
	"errors"
	"fmt"
	"strconv"
	"time"
)

// Text is the text format of a type. Parse must read the output of Format.
type Text[T any] struct {
	Name   string // of the type, in help: int, bool, string, duration …
	Parse  func(string) (T, error)
	Format func(T) string
}

// text is the setting's own text, or that of its type.
func (s *Setting[T]) text() *Text[T] {
	if s.Text != nil {
		return s.Text
	}
	var zero T
	switch any(zero).(type) {
	case int:
		return any(&ints).(*Text[T])
	case bool:
		return any(&bools).(*Text[T])
	case string:
		return any(&texts).(*Text[T])
	case time.Duration:
		return any(&durations).(*Text[T])
	}
	panic(fmt.Sprintf("setting %s: values of type %T have no text", s.Name, zero))
}

// Words is the text format of a type of words.
func Words[T ~string]() *Text[T] {
	return &Text[T]{"string", func(s string) (T, error) { return T(s), nil }, func(t T) string { return string(t) }}
}

var (
	ints  = Text[int]{"int", parseInt, strconv.Itoa}
	bools = Text[bool]{"bool", parseBool, strconv.FormatBool}
	texts = Text[string]{"string", func(s string) (string, error) { return s, nil },
		func(s string) string { return s }}
	durations = Text[time.Duration]{"duration", parseDuration, time.Duration.String}
)

func parseInt(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0, errors.New("not a number")
	}
	return n, nil
}

func parseBool(text string) (bool, error) {
	b, err := strconv.ParseBool(text)
	if err != nil {
		return false, errors.New("neither true nor false")
	}
	return b, nil
}

func parseDuration(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if n, isNumber := strconv.Atoi(text); d < 0 || isNumber == nil && n < 0 {
		return 0, errors.New("a duration is not negative")
	}
	if err != nil {
		return 0, errors.New("not a duration such as 1s or 250ms")
	}
	return d, nil
}
