package setting

import (
	"fmt"
	"reflect"
)

// Of returns the values of a struct that has a field for each setting, with a tag `setting:"NAME"`. A field has the
// setting's type, or is its text; the field's zero value is the default. A field without a tag is ignored. The values
// are in normal form. The error is an [*Error].
func (t Table) Of(options any) (v Values, err error) {
	o := reflect.ValueOf(options)
	for field := range o.Type().Fields() {
		name, ok := field.Tag.Lookup("setting")
		if !ok {
			continue
		}
		r := t.Find(name)
		if r == nil {
			return v, &Error{name, "", fmt.Sprintf("%s has a field of a setting that does not exist", o.Type())}
		}
		if v, err = r.take(v, o.FieldByIndex(field.Index).Interface()); err != nil {
			return v, err
		}
	}
	return v, nil
}
