package raft

// chance is a generator of random numbers.
type chance uint64

// feed adds the randomness of a tick.
func (c *chance) feed(fresh uint64) {
	*c ^= chance(fresh)
	c.draw()
}

// draw draws a number.
func (c *chance) draw() uint64 {
	*c += 0x9e3779b97f4a7c15
	z := uint64(*c)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
