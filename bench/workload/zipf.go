package workload

import (
	"math"
	"math/rand/v2"
)

// zipf draws ranks 0 … n-1, rank k in proportion to 1/(k+1)^skew, for any skew ≥ 0, in
// constant time and without a table: by rejection-inversion (Hörmann and Derflinger,
// "Rejection-inversion to generate variates from monotone discrete distributions", 1996).
// math/rand's own needs a skew above 1, and most workloads have one just below.
type zipf struct {
	n    float64
	skew float64
	// The area under 1/x^skew is drawn from uniformly, from the largest rank's to the
	// first's.
	from, to float64
	// sure bounds the distance by which a rank is rounded up without computing its area.
	sure float64
}

func newZipf(n int, skew float64) zipf {
	z := zipf{n: float64(n), skew: skew}
	z.from = z.area(1.5) - 1
	z.to = z.area(z.n + 0.5)
	z.sure = 2 - z.inverse(z.area(2.5)-z.height(2))
	return z
}

// height is 1/x^skew.
func (z *zipf) height(x float64) float64 { return math.Exp(-z.skew * math.Log(x)) }

// area is the integral of height from 1 to x: (x^(1-skew) - 1) / (1-skew), in a form that
// holds near skew 1, where it becomes log x.
func (z *zipf) area(x float64) float64 {
	l := math.Log(x)
	return l * expm1Over((1-z.skew)*l)
}

// inverse is the x with that area.
func (z *zipf) inverse(area float64) float64 {
	t := max(-1, area*(1-z.skew)) // rounding may leave the domain
	return math.Exp(area * log1pOver(t))
}

// expm1Over is (e^x - 1) / x.
func expm1Over(x float64) float64 {
	if math.Abs(x) < 1e-8 {
		return 1 + x/2
	}
	return math.Expm1(x) / x
}

// log1pOver is log(1 + x) / x.
func log1pOver(x float64) float64 {
	if math.Abs(x) < 1e-8 {
		return 1 - x/2
	}
	return math.Log1p(x) / x
}

func (z *zipf) draw(r *rand.Rand) uint64 {
	for {
		u := z.to + r.Float64()*(z.from-z.to)
		x := z.inverse(u)
		k := min(max(math.Floor(x+0.5), 1), z.n)
		if k-x <= z.sure || u >= z.area(k+0.5)-z.height(k) {
			return uint64(k) - 1
		}
	}
}
