package sim

import (
	"math/rand/v2"
	"time"
)

// All chance of a run follows from its seed. Each purpose has a source of its own, by name, so that a
// new one changes nothing in what others draw, and no two draw the same numbers.

// source is a source of chance: the stream of the generator, and what is mixed into its seed.
type source struct{ stream, salt uint64 }

// stream is the first of the generator's streams. If it changes, every seed means another run.
const stream = 0x6272616964

// sources are all of them. The numbers only have to differ. They stay as they are because every seed
// means another run if they change.
var sources = map[string]source{
	"run": {stream: stream}, // all that happens, where nothing else is said

	// settings
	"bodies":                {stream: stream + 1},
	"body limits":           {stream: stream + 38},
	"instances":             {stream: stream + 2},
	"turns":                 {stream: stream + 3},
	"turn limits":           {stream: stream + 23},
	"rot":                   {stream: stream + 5},
	"full disks":            {stream: stream + 6},
	"backlog":               {stream: stream + 7},
	"lost disks":            {stream: stream + 14},
	"lines":                 {stream: stream + 17},
	"load":                  {stream: stream + 18},
	"unequal members":       {stream: stream + 19},
	"meeting faults":        {stream: stream + 20},
	"I/O errors":            {stream: stream + 21},
	"large commands":        {stream: stream + 22},
	"brief leaders":         {stream: stream + 24},
	"hot copies":            {stream: stream + 25},
	"writer":                {stream: stream + 30},
	"damaged states":        {stream: stream + 31},
	"aimed faults":          {stream: stream + 39},
	"pipes":                 {stream: stream + 32},
	"early answers":         {stream: stream + 34},
	"epochs":                {stream: stream + 35},
	"stragglers":            {stream: stream + 40},
	"withdrawals":           {stream: stream + 47},
	"astray state machines": {stream: stream + 48},
	"births":                {stream: stream + 51},
	"holds":                 {stream: stream + 42},
	"hubs":                  {stream: stream + 43},
	"promises":              {stream: stream + 49},
	"moves":                 {stream: stream + 61},
	"namesakes":             {stream: stream + 64},

	// what happens in a run
	"losses":           {stream: stream + 15},
	"identities":       {stream: stream + 16},
	"hops":             {stream: stream + 17, salt: 0x5bd1e995},
	"pauses":           {stream: stream + 30, salt: 0x2545f491},
	"pipe clients":     {stream: stream + 33},
	"early writes":     {stream: stream + 34, salt: 0x51ab7c3d},
	"straggling":       {stream: stream + 41},
	"promising":        {stream: stream + 50},
	"withdrawn writes": {stream: stream + 47, salt: 0x2f1e7a91},
	"astray lives":     {stream: stream + 48, salt: 0x7d01c2b5},
	"founded apart":    {stream: stream + 53},
	"apart in a run":   {stream: stream + 54},
	"births in a run":  {stream: stream + 52},
	"mistaken members": {stream: stream + 65},
	"pace":             {stream: stream + 36},
	"busy pace":        {stream: stream + 37},
}

// chanceOf is the source of that name in the run of a seed.
func chanceOf(seed uint64, name string) chance {
	s, known := sources[name]
	if !known {
		panic("sim: there is no source of chance for " + name)
	}
	return chance{rand.New(rand.NewPCG(seed^s.salt, s.stream))}
}

// chance draws settings.
type chance struct{ rng *rand.Rand }

func (d chance) below(n int) int { return d.rng.IntN(n) }

func (d chance) yes(p float64) bool { return d.rng.Float64() < p }

func (d chance) share() float64 { return d.rng.Float64() }

// rate draws a probability below most: often none, usually small.
func (d chance) rate(most float64) float64 {
	if d.yes(0.4) {
		return 0
	}
	f := d.share()
	return f * f * f * most
}

func (d chance) duration(lo, hi time.Duration) time.Duration {
	return lo + time.Duration(d.share()*float64(hi-lo))
}

// limit draws one of three sizes: tiny, small, large.
func (d chance) limit(tiny, small, large int) int {
	return [...]int{tiny, small, large}[d.below(3)]
}

// chanceOfRun is the chance of all that happens in a world.
func chanceOfRun(seed uint64) chance { return chanceOf(seed, "run") }
