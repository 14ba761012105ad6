package setting

import "slices"

// Table are the settings of a protocol, in the order of help and documentation.
type Table struct {
	Rows []Any
	// Fit returns the fault of values that are allowed individually; nil: there is none.
	Fit func(Values) error
}

// Find returns the setting with a name, or nil.
func (t Table) Find(name string) Any {
	for _, r := range t.Rows {
		if r.About().Name == name {
			return r
		}
	}
	return nil
}

// Has reports whether the table has a setting.
func (t Table) Has(s Any) bool { return slices.Contains(t.Rows, s) }

// Complete checks values and returns them in normal form. The error is an [*Error], or that of Fit.
func (t Table) Complete(v Values) (Values, error) {
	var out Values
	for name, text := range v.All() {
		r := t.Find(name)
		if r == nil {
			return v, &Error{name, text, "there is no such setting"}
		}
		canonical, isDefault, err := r.canonical(text)
		if err != nil {
			return v, err
		}
		if !isDefault {
			out = out.with(name, canonical)
		}
	}
	if t.Fit != nil {
		if err := t.Fit(out); err != nil {
			return v, err
		}
	}
	return out, nil
}

// Only returns the values of settings that the table has.
func (t Table) Only(v Values) Values {
	var out Values
	for name, text := range v.All() {
		if t.Find(name) != nil {
			out = out.with(name, text)
		}
	}
	return out
}

// Except returns the values of settings that the table does not have.
func (t Table) Except(v Values) Values {
	for _, r := range t.Rows {
		v = v.Without(r.About().Name)
	}
	return v
}

// Agreed returns the name and the text of each setting that members compare when they connect. The values must be
// complete.
func (t Table) Agreed(v Values) (all [][2]string) {
	for _, r := range t.Rows {
		a := r.About()
		text, given := v.Get(a.Name)
		if !a.Agree || a.Untold && !given {
			continue
		}
		if !given {
			text = a.Default
		}
		all = append(all, [2]string{a.Name, text})
	}
	return all
}

// Text is a setting's text, or that of its default; "" if the table does not have it. The values must be complete.
func (t Table) Text(name string, v Values) string {
	r := t.Find(name)
	if r == nil {
		return ""
	}
	if text, given := v.Get(name); given {
		return text
	}
	return r.About().Default
}

// Detours are the names of settings whose values make commands take another path or wait longer. See [Setting].
func (t Table) Detours(v Values) (names []string) {
	for _, r := range t.Rows {
		a := r.About()
		if _, given := v.Get(a.Name); given && a.Detour {
			names = append(names, a.Name)
		}
	}
	return names
}

// Draw returns the values that the simulator gives another member of a cluster with these values. Settings with their
// defaults are not drawn.
func (t Table) Draw(below func(int) int, v Values) Values {
	for _, r := range t.Rows {
		v = r.draw(below, v)
	}
	return v
}

// Union is the settings of several tables, each once.
func Union(tables ...Table) (all Table) {
	for _, t := range tables {
		for _, r := range t.Rows {
			if !all.Has(r) {
				all.Rows = append(all.Rows, r)
			}
		}
	}
	return all
}
