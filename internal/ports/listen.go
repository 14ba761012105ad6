package ports

import (
	"context"
	"net"
)

// Listen is net.Listen for TCP and sockets of Unix. An error about a port in use is a [BusyError]. If shared, other
// processes may listen on the same TCP port, if they ask for that, too; the system distributes connections among them.
func Listen(network, addr string, shared bool) (net.Listener, error) {
	var config net.ListenConfig
	if shared && network == "tcp" {
		config.Control = share
	}
	l, err := config.Listen(context.Background(), network, addr)
	if err != nil {
		return nil, Explain(err)
	}
	return l, nil
}
