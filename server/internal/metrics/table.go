package metrics

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"
)

// family is a metric, with labels if there are any.
type family struct {
	*prometheus.Desc
	kind prometheus.ValueType
	name string
}

// families are all metrics, in the order of their declaration.
var families []*family

func newFamily(kind prometheus.ValueType, name, help string, labels ...string) *family {
	f := &family{prometheus.NewDesc(name, help, labels, nil), kind, name}
	families = append(families, f)
	return f
}

// declared reports whether a member has a metric of its own with a name, with a value now or without.
func declared(name string) bool {
	return slices.ContainsFunc(families, func(f *family) bool { return f.name == name })
}

// Emit gets the value of a metric, with its labels.
type Emit func(f *family, value float64, labels ...string)

// table is metrics that are read of one value, a row each. All have the same labels.
type table[T any] []row[T]

type row[T any] struct {
	*family
	kind       prometheus.ValueType
	name, help string
	read       func(T) float64
}

func counter[T any](name, help string, read func(T) float64) row[T] {
	return row[T]{kind: prometheus.CounterValue, name: name, help: help, read: read}
}

func gauge[T any](name, help string, read func(T) float64) row[T] {
	return row[T]{kind: prometheus.GaugeValue, name: name, help: help, read: read}
}

func newTable[T any](labels []string, rows ...row[T]) table[T] {
	for i := range rows {
		rows[i].family = newFamily(rows[i].kind, rows[i].name, rows[i].help, labels...)
	}
	return rows
}

// collect emits all metrics of a value.
func (t table[T]) collect(of T, emit Emit, labels ...string) {
	for i := range t {
		emit(t[i].family, t[i].read(of), labels...)
	}
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
