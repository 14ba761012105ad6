package member

import (
	"github.com/braidlog/braid/internal/order"
	"github.com/braidlog/braid/protocol"
)

func metaAt(position protocol.Position, index protocol.Index, term protocol.Term) Meta {
	return Meta{
		Cursor: order.Cursor{Position: position, Points: []order.Point{{Instance: 1, Index: index, Term: term}}},
		Config: protocol.Config{Members: []protocol.Member{{ID: 1}}},
	}
}
