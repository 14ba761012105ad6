package history

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
)

// Samples are in JSON an object with a column for each figure, besides "t" and "seconds". All columns are of one
// length.
type Samples []Sample

// MarshalJSON implements json.Marshaler.
func (s Samples) MarshalJSON() ([]byte, error) {
	out := append([]byte(nil), `{"t":`...)
	out = s.column(out, func(s *Sample) float64 { return s.At })
	out = append(out, `,"seconds":`...)
	out = s.column(out, func(s *Sample) float64 { return s.Seconds })
	for i := range columns {
		out = append(out, `,"`...)
		out = append(out, columns[i].name...)
		out = append(out, `":`...)
		out = s.column(out, func(s *Sample) float64 { return short(s.Values[i]) })
	}
	return append(out, '}'), nil
}

func (s Samples) column(out []byte, of func(*Sample) float64) []byte {
	out = append(out, '[')
	for i := range s {
		if i > 0 {
			out = append(out, ',')
		}
		if v := of(&s[i]); math.IsNaN(v) || math.IsInf(v, 0) {
			out = append(out, "null"...)
		} else {
			out = strconv.AppendFloat(out, v, 'f', -1, 64)
		}
	}
	return append(out, ']')
}

// short rounds a figure to what a chart shows: whole numbers from a hundred on, else thousandths.
func short(v float64) float64 {
	if math.Abs(v) >= 100 {
		return math.Round(v)
	}
	return math.Round(v*1000) / 1000
}

// UnmarshalJSON implements json.Unmarshaler. Columns that this version does not have are left out, and those that are
// missing are not known.
func (s *Samples) UnmarshalJSON(data []byte) error {
	var all map[string][]*float64
	if err := json.Unmarshal(data, &all); err != nil {
		return err
	}
	n := len(all["t"])
	for name, values := range all {
		if len(values) != n {
			return fmt.Errorf("samples: %d values of %q, and %d times", len(values), name, n)
		}
	}
	*s = make(Samples, n)
	for row := range n {
		value := func(name string) float64 {
			if values := all[name]; values != nil && values[row] != nil {
				return *values[row]
			}
			return math.NaN()
		}
		sample := Sample{At: value("t"), Seconds: value("seconds"), Values: make([]float64, len(columns))}
		for i := range columns {
			sample.Values[i] = value(columns[i].name)
		}
		(*s)[row] = sample
	}
	return nil
}
