package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/chromedp/chromedp"
)

// picture is a picture of the dashboard.
type picture struct {
	name string
	look look
	// do prepares the cluster and the page; nil: nothing.
	do func(p *page) error
	// selector is the part of the page that is shown; "": what fits the look.
	selector string
}

// settle is how long a cluster is watched before a picture, so that charts and figures have something to show.
const settle = 20 * time.Second

// set is pictures of one cluster.
type set struct {
	members  int
	flags    []string // of braid up, besides their number
	settle   time.Duration
	pictures []picture
}

var sets = []set{
	{3, nil, 3 * settle, slices.Concat(
		[]picture{
			{"dashboard", desk, load(100, 1024), ""},
			{"dashboard-dark", night, nil, ""},
			{"dashboard-phone", phone, nil, ""},
		},
		protocolPictures("raft", nil),
		[]picture{
			{"member-killed", desk, killLeader, ""},
			{"measurements", look{width: 1400, height: 2600}, startAgain, "#charts"},
		},
		protocolPictures("niagara", switchTo("niagara")),
		protocolPictures("iss", switchTo("iss")),
		protocolPictures("multi-paxos", switchTo("multi-paxos")),
	)},
	{3, []string{"--protocol", "lcr", "--lane-prefix", "braid-up-load/"}, settle,
		protocolPictures("lcr", load(50, 1024))},
	{5, []string{"--zones", "a,b,c", "--protocol", "craft"}, settle, protocolPictures("craft", load(10, 65536))},
}

// protocolPictures are the pictures of what a protocol does, in all looks.
func protocolPictures(protocol string, do func(p *page) error) []picture {
	const selector = "#protocol"
	return []picture{
		{"protocol-" + protocol, desk, do, selector},
		{"protocol-" + protocol + "-dark", night, nil, selector},
		{"protocol-" + protocol + "-phone", phone, nil, selector},
	}
}

// takePictures takes the pictures of all sets into dir, or only the one of a name.
func takePictures(ctx context.Context, program, work, dir, only string) error {
	for i, s := range sets {
		if only != "" && !slices.ContainsFunc(s.pictures, func(p picture) bool { return p.name == only }) {
			continue
		}
		flags := append([]string{"--nodes", strconv.Itoa(s.members)}, s.flags...)
		c, err := startCluster(program, filepath.Join(work, fmt.Sprint("cluster", i)), flags...)
		if err != nil {
			return err
		}
		if err := errors.Join(s.take(ctx, c, dir, only), c.stop()); err != nil {
			return err
		}
	}
	return nil
}

func (s *set) take(ctx context.Context, c *cluster, dir, only string) error {
	p, closePage, err := openPage(ctx, c.dashboard, desk)
	if err != nil {
		return err
	}
	defer closePage()
	if err := p.await(serving(s.members), time.Minute); err != nil {
		return err
	}
	for i := range s.pictures {
		pic := &s.pictures[i]
		if err := p.dress(pic.look); err != nil {
			return err
		}
		if pic.do != nil {
			if err := pic.do(p); err != nil {
				return fmt.Errorf("%s: %w", pic.name, err)
			}
			if i == 0 {
				time.Sleep(s.settle)
			}
		}
		time.Sleep(3 * time.Second) // the page is asked once a second
		if only != "" && pic.name != only {
			continue
		}
		if err := pic.save(p, dir); err != nil {
			return fmt.Errorf("%s: %w", pic.name, err)
		}
	}
	if all := p.complaints(); len(all) > 0 {
		return fmt.Errorf("the browser reported %q", all)
	}
	return nil
}

// save takes the picture, with 256 colors.
func (pic *picture) save(p *page, dir string) error {
	shot := chromedp.CaptureScreenshot()
	if pic.selector != "" {
		shot = chromedp.Screenshot(chromedp.CSS(pic.selector))
	}
	png, err := chromedp.Run(p.ctx, shot)
	if err != nil {
		return err
	}
	name := filepath.Join(dir, pic.name+".png")
	if err := os.WriteFile(name, png, 0o644); err != nil {
		return err
	}
	out, err := exec.Command("pngquant", "--force", "--ext", ".png", "--speed", "1", name).CombinedOutput()
	if errors.Is(err, exec.ErrNotFound) {
		return nil // it is larger than need be
	}
	if err != nil {
		return fmt.Errorf("pngquant: %w: %s", err, out)
	}
	return nil
}

func load(clients, size int) func(*page) error {
	return func(p *page) error {
		set := fmt.Sprintf(`(() => { const [n, v] = document.querySelectorAll("#load-form input, #load-form select")
n.value = %d; v.value = %d; document.querySelector("#load").click(); return true })()`, clients, size)
		if _, err := eval[bool](p, set); err != nil {
			return err
		}
		return p.await(loaded, 30*time.Second)
	}
}

func switchTo(protocol string) func(*page) error {
	return func(p *page) error {
		set := fmt.Sprintf(`(document.querySelector("#to-protocol").value = %q, true)`, protocol)
		if _, err := eval[bool](p, set); err != nil {
			return err
		}
		if err := p.await(`!document.querySelector("#switch").disabled`, time.Minute); err != nil {
			return err
		}
		if err := p.click("#switch"); err != nil {
			return err
		}
		if err := p.await(shows("#sentence", "· "+protocol+" ·"), time.Minute); err != nil {
			return err
		}
		time.Sleep(settle / 2) // the first rounds or epochs are not typical
		return nil
	}
}

func killLeader(p *page) error {
	if err := p.click(".card[data-leads] [data-action=kill]"); err != nil {
		return err
	}
	time.Sleep(settle / 2)
	return p.await(shows("#sentence", "2 of 3 members serve"), 30*time.Second)
}

func startAgain(p *page) error {
	if err := p.click(".card.bad [data-action=start]"); err != nil {
		return err
	}
	time.Sleep(settle)
	return p.await(serving(3), 30*time.Second)
}
