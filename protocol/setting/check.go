package setting

import (
	"cmp"
	"fmt"
)

// Check is the set of values that a setting allows.
type Check[T any] struct {
	Range string // for help and documentation: 0…64
	// Refuse returns the fault of a value; nil: none is refused.
	Refuse func(T) error
}

func (c Check[T]) err(t T) error {
	if c.Refuse == nil {
		return nil
	}
	return c.Refuse(t)
}

// Range allows values from least to most.
func Range[T cmp.Ordered](least, most T) Check[T] {
	text := fmt.Sprintf("%v…%v", least, most)
	return Check[T]{text, func(t T) error {
		if t < least || t > most {
			return fmt.Errorf("not in %s", text)
		}
		return nil
	}}
}

// AtLeast allows values from least on.
func AtLeast[T cmp.Ordered](least T) Check[T] {
	text := fmt.Sprintf("at least %v", least)
	return Check[T]{text, func(t T) error {
		if t < least {
			return fmt.Errorf("not %s", text)
		}
		return nil
	}}
}
