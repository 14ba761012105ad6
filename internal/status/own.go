package status

import (
	"encoding/json"
	"reflect"
	"strings"

	"github.com/braidlog/braid/protocol/setting"
)

// plain is a Member without the methods of this file.
type plain Member

// MarshalJSON adds the settings.
func (m Member) MarshalJSON() ([]byte, error) {
	object, err := json.Marshal(plain(m))
	if err != nil {
		return nil, err
	}
	return m.Settings.Flat(object)
}

// UnmarshalJSON takes unknown members for settings: versions have different settings.
func (m *Member) UnmarshalJSON(data []byte) error {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(data, &all); err != nil {
		return err
	}
	if err := json.Unmarshal(data, (*plain)(m)); err != nil {
		return err
	}
	for f := range reflect.TypeFor[Member]().Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		delete(all, name)
	}
	for name, value := range all {
		if value[0] == '{' || value[0] == '[' || value[0] == 'n' {
			delete(all, name)
		}
	}
	rest, err := json.Marshal(all)
	if err != nil {
		return err
	}
	m.Settings = setting.Values{}
	return m.Settings.UnmarshalJSON(rest)
}
