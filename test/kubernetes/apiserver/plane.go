package main

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/braidlog/braid/bench"
)

// The control plane's programs start and stop within these times.
const (
	startTimeout = 3 * time.Minute
	stopTimeout  = 20 * time.Second
)

// plane is a control plane: kube-apiserver and kube-controller-manager.
type plane struct {
	*client
	server, manager *bench.Process
	cancel          context.CancelFunc
	supervised      sync.WaitGroup
	restarts        int    // of the controller manager; read after stop
	logs            string // folder for the logs
}

// startPlane starts a control plane on endpoints of etcd's API, and waits until both programs serve. Port 0 is a free
// one. Files are in dir, logs in logs.
func startPlane(ctx context.Context, p *programs, endpoints []string, port int, dir, logs string) (*plane, error) {
	ports, err := freePorts(2)
	if err != nil {
		return nil, err
	}
	if port == 0 {
		port = ports[0]
	}
	token, url := rand.Text(), fmt.Sprintf("https://127.0.0.1:%d", port)
	k, err := writeKeys(dir, url, token)
	if err != nil {
		return nil, err
	}
	pl := &plane{client: &client{url: url, token: token, http: &http.Client{}}, cancel: func() {}, logs: logs}
	pl.server, err = bench.StartProcess(p.apiserver, serverFlags(k, endpoints, port),
		filepath.Join(logs, "kube-apiserver.log"))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := pl.awaitServer(ctx, k); err != nil {
		pl.stop()
		return nil, err
	}
	pl.manager, err = bench.StartProcess(p.manager, managerFlags(k, ports[1]),
		filepath.Join(logs, "kube-controller-manager.log"))
	if err != nil {
		pl.stop()
		return nil, err
	}
	pl.supervise()
	return pl, nil
}

func serverFlags(k *keys, endpoints []string, port int) []string {
	urls := make([]string, len(endpoints))
	for i, e := range endpoints {
		urls[i] = "http://" + e
	}
	return []string{
		"--etcd-servers=" + strings.Join(urls, ","), "--cert-dir=" + k.certificates, "--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", port), "--service-cluster-ip-range=10.0.0.0/24", "--authorization-mode=RBAC",
		"--external-hostname=127.0.0.1",
		"--advertise-address=192.0.2.1", // must not be on loopback; there are no connections to it
		"--service-account-issuer=https://kubernetes.default.svc", "--service-account-key-file=" + k.serviceAccounts,
		"--service-account-signing-key-file=" + k.serviceAccounts, "--token-auth-file=" + k.tokens,
	}
}

func managerFlags(k *keys, port int) []string {
	return []string{
		"--kubeconfig=" + k.config, "--service-account-private-key-file=" + k.serviceAccounts,
		"--root-ca-file=" + k.certificate(), "--cert-dir=" + filepath.Join(k.certificates, "manager"),
		"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", port),
	}
}

// awaitServer waits until kube-apiserver is ready, and makes the client trust its certificate.
func (p *plane) awaitServer(ctx context.Context, k *keys) error {
	const pause = 200 * time.Millisecond
	for {
		certificate, err := os.ReadFile(k.certificate())
		if pool := x509.NewCertPool(); err == nil && pool.AppendCertsFromPEM(certificate) {
			p.http.Transport = &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: true}
			err = p.do(ctx, http.MethodGet, "/readyz", nil, nil)
		} else if err == nil {
			err = fmt.Errorf("%s holds no certificate", k.certificate())
		}
		if err == nil {
			return nil
		}
		if failed := p.failed(); failed != nil {
			return failed
		}
		if !sleep(ctx, pause) {
			return fmt.Errorf("kube-apiserver was not ready: %w", err)
		}
	}
}

// failed returns an error if kube-apiserver has ended.
func (p *plane) failed() error {
	if err := p.server.Failed(); err != nil {
		return fmt.Errorf("kube-apiserver %w", err)
	}
	return nil
}

// supervise starts the controller manager again after it has ended, as it does when it loses its election.
func (p *plane) supervise() {
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel = cancel
	p.supervised.Go(func() {
		const pause = time.Second
		for {
			select {
			case <-ctx.Done():
				return
			case <-p.manager.Ended():
			}
			if !sleep(ctx, pause) || p.manager.Restart() != nil {
				return
			}
			p.restarts++
		}
	})
}

// stop ends both programs, and waits for that.
func (p *plane) stop() {
	p.cancel()
	p.supervised.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	if p.manager != nil {
		p.manager.Stop(ctx)
	}
	p.server.Stop(ctx)
}

// freePorts returns ports of loopback that were free.
func freePorts(n int) (ports []int, err error) {
	listeners, err := bench.ListenLoopback(n)
	if err != nil {
		return nil, err
	}
	for _, l := range listeners {
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
		err = errors.Join(err, l.Close())
	}
	return ports, err
}
