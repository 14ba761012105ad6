package setting

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// In JSON, values are members of an object: code-k is code_k. A text that is a number or a boolean is one there.

// MarshalJSON writes an object with a member for each setting that differs from its default.
func (v Values) MarshalJSON() ([]byte, error) {
	out := []byte("{")
	for name, text := range v.All() {
		if len(out) > 1 {
			out = append(out, ',')
		}
		key, err := json.Marshal(strings.ReplaceAll(name, "-", "_"))
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(text)
		if err != nil {
			return nil, err
		}
		if n, err := strconv.Atoi(text); err == nil && strconv.Itoa(n) == text || text == "true" || text == "false" {
			value = []byte(text)
		}
		out = append(append(append(out, key...), ':'), value...)
	}
	return append(out, '}'), nil
}

// UnmarshalJSON reads the output of MarshalJSON. It only checks that each member is a text, a number or a boolean.
func (v *Values) UnmarshalJSON(data []byte) error {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(data, &all); err != nil {
		return err
	}
	var out Values
	for _, key := range slices.Sorted(maps.Keys(all)) {
		value := all[key]
		text := string(value)
		switch value[0] {
		case '"':
			if err := json.Unmarshal(value, &text); err != nil {
				return err
			}
		case '{', '[', 'n':
			return &Error{key, text, "neither a text nor a number nor a truth value"}
		}
		out = out.with(strings.ReplaceAll(key, "_", "-"), text)
	}
	*v = out
	return nil
}

// Flat adds the values to a JSON object, as members of it. It returns an error for anything but an object.
func (v Values) Flat(object []byte) ([]byte, error) {
	body, ok := bytes.CutSuffix(bytes.TrimSpace(object), []byte("}"))
	if !ok {
		return nil, errors.New("settings are added to what is no JSON object")
	}
	own, err := v.MarshalJSON()
	if err != nil || v.IsZero() {
		return object, err
	}
	out := bytes.Clone(body)
	if len(bytes.TrimSpace(out)) > 1 {
		out = append(out, ',')
	}
	return append(out, own[1:]...), nil
}
