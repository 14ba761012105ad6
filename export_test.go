package braid

// With returns a protocol with further settings.
func With(p Protocol, settings ...string) Protocol {
	if p == nil {
		p = Raft{}
	}
	name, v, err := p.chosen()
	if err != nil {
		return named{name: name, values: v, err: err}
	}
	return Named(name, append(v.Texts(), settings...)...)
}

// NameOf is a protocol's name.
func NameOf(p Protocol) string {
	name, _, _ := p.chosen()
	return name
}
