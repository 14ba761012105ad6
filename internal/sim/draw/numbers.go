package draw

// number identifies a source's numbers: a stream of the generator, and a salt that is mixed into the seed.
type number struct{ stream, salt uint64 }

// first is the first of the generator's streams. If it changes, every seed means another run.
const first = 0x6272616964

// numbers are those of the sources that are older than the rule that a source's stream follows from its name. They do
// not change: otherwise every saved seed would mean another run. Nothing is added here.
var numbers = map[string]number{
	"run":                   {stream: first},
	"bodies":                {stream: first + 1},
	"instances":             {stream: first + 2},
	"freeze":                {stream: first + 3},
	"rot":                   {stream: first + 5},
	"full-disk":             {stream: first + 6},
	"backlog":               {stream: first + 7},
	"wipe":                  {stream: first + 14},
	"losses":                {stream: first + 15},
	"identities":            {stream: first + 16},
	"lines":                 {stream: first + 17},
	"hops":                  {stream: first + 17, salt: 0x5bd1e995},
	"load":                  {stream: first + 18},
	"unequal members":       {stream: first + 19},
	"meeting faults":        {stream: first + 20},
	"io-error":              {stream: first + 21},
	"large commands":        {stream: first + 22},
	"turn limits":           {stream: first + 23},
	"brief leaders":         {stream: first + 24},
	"hot-copy":              {stream: first + 25},
	"writer":                {stream: first + 30},
	"pauses":                {stream: first + 30, salt: 0x2545f491},
	"state-damage":          {stream: first + 31},
	"pipes":                 {stream: first + 32},
	"pipe clients":          {stream: first + 33},
	"early answers":         {stream: first + 34},
	"early writes":          {stream: first + 34, salt: 0x51ab7c3d},
	"epochs":                {stream: first + 35},
	"pace":                  {stream: first + 36},
	"busy pace":             {stream: first + 37},
	"body limits":           {stream: first + 38},
	"aimed faults":          {stream: first + 39},
	"straggle":              {stream: first + 40},
	"straggling":            {stream: first + 41},
	"hold":                  {stream: first + 42},
	"hubs":                  {stream: first + 43},
	"withdrawals":           {stream: first + 47},
	"withdrawn writes":      {stream: first + 47, salt: 0x2f1e7a91},
	"astray state machines": {stream: first + 48},
	"astray lives":          {stream: first + 48, salt: 0x7d01c2b5},
	"promise":               {stream: first + 49},
	"promising":             {stream: first + 50},
	"births":                {stream: first + 51},
	"births in a run":       {stream: first + 52},
	"founded apart":         {stream: first + 53},
	"apart in a run":        {stream: first + 54},
	"move":                  {stream: first + 61},
	"namesakes":             {stream: first + 64},
	"mistaken members":      {stream: first + 65},
}
