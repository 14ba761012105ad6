package setting

// Error indicates a setting that does not exist, or a value that it does not allow. Nothing was started. A retry gets
// the same answer.
type Error struct {
	Name, Text string
	Detail     string
}

func (e *Error) Error() string {
	if e.Text == "" {
		return e.Name + ": " + e.Detail
	}
	return e.Name + " " + e.Text + ": " + e.Detail
}
