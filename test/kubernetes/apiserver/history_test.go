package main

import (
	"slices"
	"testing"
)

// example is the history of an object that is created, updated and deleted.
func example() *history {
	return &history{name: "a", writes: []write{
		{added, "1", 10, true}, {modified, "2", 12, true}, {deleted, "2", 0, true},
	}}
}

// exampleEvents are the events of example.
func exampleEvents() []event {
	return []event{{added, "a", "1", 10}, {modified, "a", "2", 12}, {deleted, "a", "2", 15}}
}

func TestEventsAreComparedWithWrites(t *testing.T) {
	unsure, e := example(), exampleEvents()
	unsure.writes[2].sure = false
	for name, c := range map[string]struct {
		of     *history
		events []event
		gaps   []gap
		wrong  int
	}{
		"all":              {example(), e, nil, 0},
		"lost update":      {example(), []event{e[0], e[2]}, nil, 1},
		"lost deletion":    {example(), e[:2], nil, 1},
		"unsure deletion":  {unsure, e[:2], nil, 0},
		"unsure, happened": {unsure, e, nil, 0},
		// the version comes twice, and the write has one event
		"doubled": {example(), []event{e[0], e[0], e[1], e[2]}, nil, 2},
		// version 10 comes after 12, which comes too early and not again
		"order":            {example(), []event{e[1], e[0], e[2]}, nil, 3},
		"another value":    {example(), []event{e[0], {modified, "a", "x", 12}, e[2]}, nil, 2},
		"no such object":   {example(), append(slices.Clone(e), event{added, "b", "1", 20}), nil, 1},
		"gap":              {example(), e[:1], []gap{{10, 20, nil}}, 0},
		"gap before":       {example(), e[:1], []gap{{10, 11, map[string]bool{"a": true}}}, 2},
		"gap, still there": {example(), e[:1], []gap{{10, 20, map[string]bool{"a": true}}}, 1},
	} {
		if wrong := wrongEvents([]*history{c.of}, c.events, c.gaps); len(wrong) != c.wrong {
			t.Errorf("%s: %d wrong, not %d: %q", name, len(wrong), c.wrong, wrong)
		}
	}
}

func TestObjectsAreComparedWithWrites(t *testing.T) {
	alive, unsure, never := example(), example(), &history{name: "a", writes: []write{{added, "1", 0, false}}}
	alive.writes, unsure.writes[2].sure = alive.writes[:2], false
	none, first, second := map[string]string{}, map[string]string{"a": "1"}, map[string]string{"a": "2"}
	for name, c := range map[string]struct {
		of      *history
		present map[string]string
		wrong   int
	}{
		"deleted":               {example(), none, 0},
		"deleted, but present":  {example(), second, 1},
		"alive":                 {alive, second, 0},
		"absent":                {alive, none, 1},
		"lost update":           {alive, first, 1},
		"unsure, without":       {unsure, second, 0},
		"unsure, with":          {unsure, none, 0},
		"unsure, lost update":   {unsure, first, 1},
		"never sure":            {never, none, 0},
		"never sure, but there": {never, first, 0},
		"another":               {example(), map[string]string{"b": "1"}, 1},
	} {
		if wrong := lostWrites([]*history{c.of}, c.present); len(wrong) != c.wrong {
			t.Errorf("%s: %d wrong, not %d: %q", name, len(wrong), c.wrong, wrong)
		}
	}
}

func TestTheStoreIsComparedWithObjects(t *testing.T) {
	present := map[string]string{"a": "1", "b": "2", "c": "3"}
	stored := map[string][]byte{"a": []byte("x1x"), "b": []byte("x3x"), "d": nil}
	if wrong := differences(present, stored); len(wrong) != 3 {
		t.Errorf("b has another value, c and d are in one alone: %q", wrong)
	}
}
