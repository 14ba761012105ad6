package server

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// The page about the stream of puts has this function as its example, and one of the suite of Python's client.

// example
// putAll puts keys and values, 100 in a message, and waits until all have taken effect.
func putAll(ctx context.Context, conn *grpc.ClientConn, keys, values []string) error {
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, "/braid.KV/Puts")
	if err != nil {
		return err
	}
	messages := 0
	for from := 0; from < len(keys); from += 100 {
		message := new(pb.TxnRequest)
		for i := from; i < min(from+100, len(keys)); i++ {
			put := &pb.PutRequest{Key: []byte(keys[i]), Value: []byte(values[i])}
			message.Success = append(message.Success,
				&pb.RequestOp{Request: &pb.RequestOp_RequestPut{RequestPut: put}})
		}
		if stream.SendMsg(message) != nil {
			break // the server ended the stream: RecvMsg returns the reason
		}
		messages++
	}
	_ = stream.CloseSend()
	for range messages {
		if err := stream.RecvMsg(new(pb.TxnResponse)); err != nil {
			return err
		}
	}
	return nil
}

// end of the example

func TestExampleOfThePageAboutPuts(t *testing.T) {
	source, err := os.ReadFile("puts_page_test.go")
	require.NoError(t, err)
	_, example, _ := strings.Cut(string(source), "// example\n")
	example, _, _ = strings.Cut(example, "\n\n// end of the example")
	page, err := os.ReadFile("../docs/using/put-stream.md")
	require.NoError(t, err)
	require.Contains(t, string(page), "```go\n"+example+"\n```\n")
	suite, err := os.ReadFile("../.ci/clients/python/suite.py")
	require.NoError(t, err)
	_, python, _ := strings.Cut(string(suite), "\ndef put_all(")
	python, _, _ = strings.Cut(python, "\n\n\n")
	require.Contains(t, string(page), "\ndef put_all("+python+"\n```\n")

	c := startReal(t, 3)
	client := c.client()
	var keys []string
	for i := range 250 {
		keys = append(keys, "key"+strings.Repeat("x", i))
	}
	require.NoError(t, putAll(testContext(t), client.ActiveConnection(), keys, keys))
	for _, key := range keys {
		got, err := client.Get(testContext(t), key)
		require.NoError(t, err)
		require.Equal(t, key, string(got.Kvs[0].Value))
	}
}
