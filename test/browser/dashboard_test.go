package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// patience is for what a busy machine does in a few seconds.
const patience = time.Minute

// program is braid, which TestMain builds.
var program string

func TestMain(m *testing.M) {
	work, err := os.MkdirTemp("", "braid-browser-")
	if err == nil {
		program, err = build(work)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(work)
	os.Exit(code)
}

// started is a cluster that ends with the test.
func started(t *testing.T, flags ...string) *cluster {
	t.Helper()
	c, err := startCluster(program, t.TempDir(), flags...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.stop()) })
	return c
}

// opened is a page that is closed with the test.
func opened(t *testing.T, url string, l look) *page {
	t.Helper()
	p, closePage, err := openPage(context.Background(), url, l)
	require.NoError(t, err)
	t.Cleanup(closePage)
	return p
}

func value[T any](t *testing.T, p *page, expression string) T {
	t.Helper()
	v, err := eval[T](p, expression)
	require.NoError(t, err)
	return v
}

// leader is the name of the member that the page shows as the leader.
func leader(t *testing.T, p *page) string {
	t.Helper()
	return value[string](t, p, leadsNow)
}

const leadsNow = `(document.querySelector(".card[data-leads]")?.dataset.member || "")`

// TestOperate: the page shows a cluster, and its controls operate it.
func TestOperate(t *testing.T) {
	p := opened(t, started(t, "--nodes", "3").dashboard, desk)
	require.NoError(t, p.await(serving(3), patience))
	require.Equal(t, 3, value[int](t, p, `document.querySelectorAll(".picture .member").length`))
	require.Equal(t, 3, value[int](t, p, `document.querySelectorAll("#table tbody tr").length`))
	require.Contains(t, value[string](t, p, `document.querySelector("#idea").textContent`), leader(t, p)+" leads")

	require.NoError(t, p.click("#load"))
	require.NoError(t, p.await(loaded, patience))
	require.NoError(t, p.await(writes, patience))

	t.Run("kill the leader", func(t *testing.T) { killAndStart(t, p) })
	for _, protocol := range []string{"niagara", "iss"} {
		t.Run("switch to "+protocol, func(t *testing.T) { changeProtocol(t, p, protocol) })
	}
	t.Run("links", func(t *testing.T) { cutAndHeal(t, p) })
	require.NoError(t, p.click("#load"))
	require.NoError(t, p.await(shows("#load", "Start load"), patience))
	require.Empty(t, p.complaints())
}

// writes is true while the tile of writes has a rate.
const writes = `/^[1-9]/.test(document.querySelector("#tiles b").textContent)`

func killAndStart(t *testing.T, p *page) {
	killed := leader(t, p)
	require.NoError(t, p.click(fmt.Sprintf(`[data-member=%s] [data-action=kill]`, killed)))
	require.NoError(t, p.await(serving(2), patience))
	require.NoError(t, p.await(fmt.Sprintf(leadsNow+" && "+leadsNow+" !== %q", killed), patience), "another one leads")
	require.NoError(t, p.await(loaded, patience), "the load has answers again")
	require.NoError(t, p.await(writes, patience))
	require.NoError(t, p.await(shows("#events", killed+" was killed from here"), patience))
	require.NoError(t, p.await(shows(fmt.Sprintf(".card[data-member=%s] .state", killed), "dead"), patience))
	require.NoError(t, p.click(fmt.Sprintf(`[data-member=%s] [data-action=start]`, killed)))
	require.NoError(t, p.await(serving(3), patience))
}

// drawn are selectors of what the page draws of a protocol.
var drawn = map[string]string{"niagara": "#drawing .strip.merged", "iss": "#drawing .strip:not(.merged)"}

func changeProtocol(t *testing.T, p *page, protocol string) {
	require.Equal(t, 0, value[int](t, p, fmt.Sprintf(`document.querySelectorAll(%q).length`, drawn[protocol])))
	value[bool](t, p, fmt.Sprintf(`(document.querySelector("#to-protocol").value = %q, true)`, protocol))
	require.NoError(t, p.await(`!document.querySelector("#switch").disabled`, patience), "the switch before has ended")
	require.NoError(t, p.click("#switch"))
	require.NoError(t, p.await(shows("#sentence", "· "+protocol+" ·"), patience))
	require.NoError(t, p.await(fmt.Sprintf("document.querySelector(%q)", drawn[protocol]), patience))
	require.NoError(t, p.await(writes, patience))
}

func cutAndHeal(t *testing.T, p *page) {
	require.NoError(t, p.click(`[data-member=m1] [data-action=cut]`))
	require.NoError(t, p.await(`document.querySelector(".link.down")`, patience))
	require.NoError(t, p.await(shows(".card[data-member=m1]", "cut off"), patience))
	require.NoError(t, p.click(`[data-member=m1] [data-action=heal]`))
	require.NoError(t, p.await(`!document.querySelector(".link.down")`, patience))
	require.NoError(t, p.await(serving(3), patience))
}

// TestStrangers: with auth on, strangers see nothing of the cluster, and a user sees it after the login.
func TestStrangers(t *testing.T) {
	c, ctx := started(t, "--nodes", "3"), context.Background()
	for _, args := range [][]string{
		{"user", "add", "root:secret"}, {"user", "grant-role", "root", "root"}, {"auth", "enable"},
	} {
		require.NoError(t, c.ctl(ctx, args...))
	}
	for name, url := range map[string]string{"braid up": c.dashboard, "a member": c.urls["m1"] + "/"} {
		t.Run(name, func(t *testing.T) { signInAndOut(t, opened(t, url, desk)) })
	}
}

const strange = `!document.querySelector("#login").hidden && document.querySelector("#board").hidden`

func signInAndOut(t *testing.T, p *page) {
	seesNothing := func() {
		require.NoError(t, p.await(strange, patience))
		require.NotRegexp(t, `m[123]|127\.0\.0\.1`, value[string](t, p, `document.title + document.body.innerText`))
	}
	signIn := func(password string) {
		value[bool](t, p, fmt.Sprintf(`(document.querySelector("[name=user]").value = "root",
document.querySelector("[name=password]").value = %q, true)`, password))
		require.NoError(t, p.click("#login button"))
	}
	seesNothing()
	signIn("wrong")
	require.NoError(t, p.await(shows("#login", "is wrong"), patience))
	signIn("secret")
	require.NoError(t, p.await(serving(3), patience))
	require.NoError(t, p.click("#sign-out"))
	seesNothing()
}

// TestTheMemberOfThePageDies: the page says so, shows where the others' pages are, and continues when it is back.
func TestTheMemberOfThePageDies(t *testing.T) {
	c := started(t, "--nodes", "3")
	p, operator := opened(t, c.urls["m1"]+"/", desk), opened(t, c.dashboard, desk)
	require.NoError(t, p.await(serving(3), patience))
	require.True(t, value[bool](t, p, `document.querySelector("#controls").hidden`), "a member has no controls")
	require.Equal(t, 0, value[int](t, p, `[...document.querySelectorAll(".buttons")].filter(b => !b.hidden).length`))
	require.NoError(t, operator.await(serving(3), patience))
	require.NoError(t, operator.click(`[data-member=m1] [data-action=kill]`))
	require.NoError(t, p.await(shows("#banners", "m1 does not answer"), patience))
	require.Equal(t, []string{c.urls["m2"] + "/", c.urls["m3"] + "/"},
		value[[]string](t, p, `[...document.querySelectorAll("#banners a")].map(a => a.href)`))
	require.NoError(t, operator.click(`[data-member=m1] [data-action=start]`))
	require.NoError(t, p.await(serving(3)+` && !document.querySelector("#banners a")`, patience))
}

// TestNoMemberRuns: a page that is opened while all members are dead shows them, and starts them.
func TestNoMemberRuns(t *testing.T) {
	c := started(t, "--nodes", "3")
	p := opened(t, c.dashboard, desk)
	require.NoError(t, p.await(serving(3), patience))
	for _, name := range []string{"m1", "m2", "m3"} {
		require.NoError(t, p.click(fmt.Sprintf(`[data-member=%s] [data-action=kill]`, name)))
		require.NoError(t, p.await(shows(fmt.Sprintf(".card[data-member=%s] .state", name), "dead"), patience))
	}
	p = opened(t, c.dashboard, desk)
	require.NoError(t, p.await(shows("#banners", "no member answers: all are dead or paused"), patience))
	for _, name := range []string{"m1", "m2", "m3"} {
		require.NoError(t, p.await(shows(fmt.Sprintf(".card[data-member=%s] .state", name), "dead"), patience))
		require.NoError(t, p.click(fmt.Sprintf(`[data-member=%s] [data-action=start]`, name)))
	}
	require.NoError(t, p.await(serving(3), patience))
	require.Empty(t, exceptions(p))
}

// exceptions are the complaints of a browser besides those about requests without an answer.
func exceptions(p *page) (out []string) {
	for _, c := range p.complaints() {
		if !strings.Contains(c, "Failed to load resource") {
			out = append(out, c)
		}
	}
	return out
}

// TestAlarm: with an alarm that stops writes the page is red, and says what to do.
func TestAlarm(t *testing.T) {
	c := started(t, "--nodes", "3")
	p := opened(t, c.dashboard, desk)
	require.NoError(t, p.await(serving(3), patience))
	alarm := func(action string) {
		value[string](t, p, fmt.Sprintf(`(async () => {
	const member = BigInt("0x" + (await (await fetch("/braid/status")).json()).id).toString()
	const body = JSON.stringify({action: %q, memberID: member, alarm: "NOSPACE"})
	return (await fetch("/v3/maintenance/alarm", {method: "POST", body})).text()
})()`, action))
	}
	alarm("ACTIVATE")
	require.NoError(t, p.await(shows("#banners", "Alarm NOSPACE of m"), patience))
	require.NoError(t, p.await(shows("#banners", "braid ctl alarm disarm"), patience))
	require.NoError(t, p.await(shows("#sentence", "Only reads are served"), patience))
	require.NoError(t, p.await(`document.querySelector("#dot.bad")`, patience))
	alarm("DEACTIVATE")
	require.NoError(t, p.await(serving(3)+` && !document.querySelector("#banners").children.length`, patience))
	require.Empty(t, p.complaints())
}

// TestLooks: nothing is wider than the page on a phone or a desk, in light or dark colors, and the keyboard reaches
// the controls.
func TestLooks(t *testing.T) {
	const background = `getComputedStyle(document.body).backgroundColor`
	p := opened(t, started(t, "--nodes", "5").dashboard, phone)
	for _, l := range []look{phone, {width: 390, height: 844, dark: true}, {width: 820, height: 1180}, desk, night} {
		require.NoError(t, p.dress(l))
		require.NoError(t, p.await(serving(5), patience))
		require.NoError(t, p.await(`document.querySelector("#picture svg").getBoundingClientRect().right <= innerWidth`,
			patience))
		require.LessOrEqual(t, value[int](t, p, `document.documentElement.scrollWidth`), int(l.width))
		require.Equal(t, l.dark, value[string](t, p, background) == "rgb(14, 17, 22)")
	}
	before := value[string](t, p, background)
	require.NoError(t, p.click("#theme"))
	require.NotEqual(t, before, value[string](t, p, background))
	require.Zero(t, value[int](t, p, `[...document.querySelectorAll("button, a, input, select")].filter(
b => b.offsetParent && !(b.textContent.trim() || b.getAttribute("aria-label") || b.closest("label"))).length`),
		"each control has a name")
	reached := map[string]bool{}
	for range 40 {
		reached[value[string](t, p, `document.activeElement.id || document.activeElement.dataset.action || ""`)] = true
		require.NoError(t, p.press("\t"))
	}
	for _, control := range []string{"theme", "to-protocol", "switch", "load", "kill", "pause", "cut", "slow"} {
		require.True(t, reached[control], "%s is reached by the tab key; reached: %v", control, reached)
	}
	require.Empty(t, p.complaints())
}
