// Package mutant is how rules are broken on purpose. A mutant is a deliberately unsafe variant of one rule, in the code
// that ships. Tests and the simulator must find each of them; production names none.
//
// Each package that has rules lists its mutants in a file mutant.go, in the order of their rules: their names as
// constants, and a row of [Info] for each. Package sim joins these lists and searches for each mutant.
//
// File mutant.go has the types.
//
// May import: protocol/setting.
package mutant
