package fit

// Fitter decides, with patience, which change to make. The zero value is ready. It is a pure rule; not safe for
// concurrent use.
type Fitter struct{}

// Step takes in what is known now. It is called once a second on the member that leads the global log; a member that
// begins to lead begins with a new Fitter.
func (f *Fitter) Step(v *View) Decision { return Decision{} }
