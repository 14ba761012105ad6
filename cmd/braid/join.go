package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/braidlog/braid"
	"github.com/braidlog/braid/internal/settings"
	"github.com/braidlog/braid/internal/status"
	"github.com/braidlog/braid/server"
)

// joiner finds the running cluster that a member joins. It asks the other members at their addresses for members: a
// process with valid TLS that was added by its peer URLs gets its identity and the members. That needs no rights of a
// client.
type joiner struct {
	s                  *settings.Settings
	peerTLS, clientTLS *tls.Config
	alone              *identity // that of a cluster which began with --force-new-cluster; nil: there is none
}

const (
	askTime  = 2 * time.Second        // for the members to answer
	lagTime  = 2 * time.Second        // after member add, for all members to learn of it
	askPause = 100 * time.Millisecond // before all are asked again
	moreTime = 200 * time.Millisecond // after an answer, for one of a member that knows more
)

// urls are addresses of other members: those of --join, and the others of --initial-cluster.
func (j *joiner) urls() []string {
	out := slices.Clone(j.s.Join)
	peers, err := j.s.Peers()
	if err != nil {
		return out // check refused it
	}
	for _, p := range peers {
		if !settings.SameURLs(p.URLs, j.s.AdvertisePeer) {
			out = append(out, p.URLs...)
		}
	}
	return out
}

// find determines the id under which the cluster expects this member. It asks all members that may know, repeatedly
// while one of them may still learn of it.
func (j *joiner) find(ctx context.Context, limit time.Duration) (identity, error) {
	urls := j.urls()
	if len(urls) == 0 {
		return identity{},
			errors.New("a new member of a running cluster needs --initial-cluster with the peer URLs of its members, " +
				"or --join with some")
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	began := time.Now()
	for {
		who, err := j.askAll(ctx, urls)
		final := errors.Is(err, errAuthOn) || errors.Is(err, braid.ErrNotAdded) && time.Since(began) > lagTime
		if err == nil || final || ctx.Err() != nil {
			return who, err
		}
		select {
		case <-time.After(askPause):
		case <-ctx.Done():
			return who, err
		}
	}
}

// joinAnswer is the result for one URL.
type joinAnswer struct {
	who identity
	err error
}

// askAll asks all at once, until one knows this member, and takes answers that come soon after it.
func (j *joiner) askAll(ctx context.Context, urls []string) (identity, error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	answers := make(chan joinAnswer, len(urls))
	for _, url := range urls {
		go func() {
			who, err := j.ask(ctx, url)
			answers <- joinAnswer{who, err} // each ends with ctx
		}()
	}
	who, err := latest(answers, len(urls), func() <-chan time.Time { return time.After(moreTime) })
	if err != nil {
		return identity{}, j.explain(urls, err)
	}
	return who, nil
}

// latest takes count answers, but after the first good one only those that come before enough, and returns the good
// one with the latest membership: a member that lags may know only a removed one that this one replaces.
func latest(answers <-chan joinAnswer, count int, enough func() <-chan time.Time) (identity, error) {
	var errs []error
	var best *identity
	var over <-chan time.Time
	for range count {
		select {
		case a := <-answers:
			switch {
			case a.err != nil:
				errs = append(errs, a.err)
			case best == nil:
				best, over = &a.who, enough()
			case best.told.Before(&a.who.told):
				best = &a.who
			}
		case <-over:
			return *best, nil
		}
	}
	if best == nil {
		return identity{}, errors.Join(errs...)
	}
	return *best, nil
}

func (j *joiner) explain(urls []string, err error) error {
	if errors.Is(err, braid.ErrNotAdded) {
		return fmt.Errorf("the cluster at %s has no member with the peer URLs %s: first run \"braid ctl member add %s "+
			"--peer-urls …\" (%w)",
			strings.Join(urls, ","), strings.Join(j.s.AdvertisePeer, ","), j.s.Name, err)
	}
	return fmt.Errorf("no member at %s tells who the members are: %w", strings.Join(urls, ","), err)
}

// ask asks at a URL: a member's address for members, or, of --join, one for clients.
func (j *joiner) ask(ctx context.Context, url string) (identity, error) {
	asMember, cancel := context.WithTimeout(ctx, askTime/2)
	defer cancel()
	peerTLS := j.peerTLS
	if j.s.PeerTLSByURL && strings.HasPrefix(url, "http://") {
		peerTLS = nil
	}
	found, err := braid.FindRunning(asMember, url, peerTLS, j.s.AdvertisePeer)
	if err == nil {
		return j.know(found)
	}
	if errors.Is(err, braid.ErrNotAdded) || !slices.Contains(j.s.Join, url) {
		return identity{}, err
	}
	who, asClient := j.askAsClient(ctx, url)
	if asClient == nil || errors.Is(asClient, braid.ErrNotAdded) {
		return who, asClient
	}
	return who, fmt.Errorf("as a member: %w; as a client: %w", err, asClient)
}

func (j *joiner) know(found *braid.Running) (identity, error) {
	if j.s.Merges() && found.Begun == 0 && found.Kind.IsZero() {
		return identity{}, errors.New("the cluster does not run --protocol niagara")
	}
	who := identity{self: found.Self, cluster: found.Cluster, members: found.Members, join: true, begun: found.Begun,
		told: *found}
	j.name(&who)
	return who, nil
}

// name sets this member's name, which the cluster may not know before it has started.
func (j *joiner) name(who *identity) {
	for i := range who.members {
		if who.members[i].ID == who.self {
			who.members[i].Name = j.s.Name
		}
	}
}

// askAsClient asks at a member's address for clients, which answers without authentication while auth is off.
func (j *joiner) askAsClient(ctx context.Context, url string) (identity, error) {
	config := j.clientTLS
	if config != nil {
		config = config.Clone()
		config.RootCAs, config.VerifyPeerCertificate = config.ClientCAs, nil // those are for clients' certificates
	}
	client, err := clientv3.New(clientv3.Config{Context: ctx, Endpoints: []string{url}, TLS: config, Logger: zap.NewNop()})
	if err != nil {
		return identity{}, err
	}
	defer client.Close()
	list, err := memberList(ctx, client, askTime/2)
	if errors.Is(err, rpctypes.ErrUserEmpty) {
		return identity{}, errAuthOn
	}
	if err != nil {
		return identity{}, err
	}
	who := identity{cluster: list.Header.ClusterId, join: true}
	for _, m := range list.Members {
		who.members = append(who.members, braid.Member{ID: braid.MemberID(m.ID), Name: m.Name, PeerURLs: m.PeerURLs,
			Learner: m.IsLearner})
		if settings.SameURLs(m.PeerURLs, j.s.AdvertisePeer) {
			who.self = braid.MemberID(m.ID)
		}
	}
	if who.self == 0 {
		return identity{}, fmt.Errorf("%s: %w", url, braid.ErrNotAdded)
	}
	j.name(&who)
	if j.s.Merges() {
		who.begun, err = askBegun(ctx, url, config)
	}
	return who, err
}

// errAuthOn is the result of asking at an address for clients while auth is on.
var errAuthOn = errors.New("auth is on, and only users are told who the members are: give --join the peer URLs of " +
	"members, or --initial-cluster")

// memberList requests the members. If no majority answers, it requests what one member knows; a member that joins
// learns the active members from the log later.
func memberList(ctx context.Context, client *clientv3.Client,
	limit time.Duration) (*clientv3.MemberListResponse, error) {
	first, cancel := context.WithTimeout(ctx, limit/2)
	defer cancel()
	list, err := client.MemberList(first)
	if err == nil {
		return list, nil
	}
	if known, serializable := client.MemberList(ctx, clientv3.WithSerializable()); serializable == nil {
		return known, nil
	}
	return nil, err
}

// askBegun asks for the number of instances with which a running cluster began, because a member that joins must use
// the same number.
func askBegun(ctx context.Context, url string, config *tls.Config) (n int, err error) {
	for _, m := range status.Ask(ctx, status.Options{Endpoints: []string{url}, Only: true, TLS: config,
		Timeout: askTime}) {
		switch {
		case m.Error != "":
			err = fmt.Errorf("ask %s for its instances: %s", m.Endpoint, m.Error)
		case m.Order != braid.OrderNiagara && m.Profile == 0:
			return 0, fmt.Errorf("the cluster at %s does not run --protocol niagara", m.Endpoint)
		default:
			return m.Begun, nil
		}
	}
	return 0, err
}

// rejoin continues with the ids in the directory. The log there names the other members, unless this one stopped
// before it got any of it: so the cluster is asked too, but it need not answer.
func (j *joiner) rejoin(ctx context.Context, kept identity) identity {
	kept.join = true
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if asked, err := j.askAll(ctx, j.urls()); err == nil && asked.cluster == kept.cluster {
		kept.members, kept.begun = asked.members, asked.begun
	}
	return kept
}

// maxSuccessors bounds the successive members with the same peer URLs that joinedAs distinguishes.
const maxSuccessors = 64

// joinedAs reports whether a directory belongs to the member that joined with these peer URLs. Such a member starts
// with any flags for the initial cluster, because it was not part of it. etcd ignores these flags too once a directory
// has data, and deployment manifests rely on that.
func joinedAs(s *settings.Settings, kept identity) bool {
	var earlier []braid.MemberID
	for range maxSuccessors {
		id := server.JoinedMemberID(s.AdvertisePeer, s.Token, earlier...)
		if id == kept.self {
			return true
		}
		earlier = append(earlier, id)
	}
	return false
}
