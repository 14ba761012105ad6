package multipaxos

import (
	"github.com/braidlog/braid/internal/protocol/paxos/relay"
	"github.com/braidlog/braid/protocol/quorum"
	"github.com/braidlog/braid/protocol/setting"
)

// Settings are those of multi-Paxos alone.
var Settings = setting.Table{Rows: []setting.Any{quorum.Setting, relay.Groups}}
