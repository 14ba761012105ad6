package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// look is how a browser shows a page.
type look struct {
	width, height int64 // pixels of CSS
	dark          bool
}

var (
	desk  = look{width: 1400, height: 900}
	night = look{width: 1400, height: 900, dark: true}
	phone = look{width: 390, height: 844}
)

// page is a page in a headless browser.
type page struct {
	ctx context.Context

	mu     sync.Mutex
	errors []string // that the browser reported
}

// openPage opens a page in a browser of its own, which ends with close.
func openPage(ctx context.Context, url string, l look) (p *page, closeIt func(), err error) {
	ctx, stop := chromedp.NewExecAllocator(ctx, append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox)...)
	ctx, closeTab := chromedp.NewContext(ctx)
	closeIt = func() { closeTab(); stop() }
	p = &page{ctx: ctx}
	messages := chromedp.Console(ctx)
	go func() {
		for m, err := range messages {
			if err != nil {
				return
			}
			if m.IsException() || m.Type == "error" || m.Type == "warning" {
				p.note(m.String())
			}
		}
	}()
	if err = p.dress(l); err == nil {
		err = chromedp.Do(ctx, chromedp.Navigate(url))
	}
	if err != nil {
		closeIt()
		return nil, nil, err
	}
	return p, closeIt, nil
}

func (p *page) note(message string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.errors = append(p.errors, message)
}

// complaints are what the browser reported since the last call.
func (p *page) complaints() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := p.errors
	p.errors = nil
	return out
}

// dress changes the look.
func (p *page) dress(l look) error {
	scheme := "light"
	if l.dark {
		scheme = "dark"
	}
	_, err := chromedp.Call(p.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
	if err != nil {
		return err
	}
	return chromedp.Do(p.ctx, chromedp.EmulateViewport(l.width, l.height))
}

// await waits until an expression of JavaScript is true.
func (p *page) await(expression string, patience time.Duration) error {
	_, err := chromedp.Run(p.ctx, chromedp.Poll[bool]("!!("+expression+")", chromedp.WithPollingTimeout(patience),
		chromedp.WithPollingInterval(100*time.Millisecond)))
	if err != nil {
		shown, _ := chromedp.Run(p.ctx, chromedp.Evaluate[string]("document.body.innerText.slice(0, 3000)"))
		return fmt.Errorf("the page did not come to %s: %w; it reported %q, and shows:\n%s", expression, err,
			p.complaints(), shown)
	}
	return nil
}

// click clicks the first element of a CSS selector.
func (p *page) click(selector string) error {
	ctx, cancel := context.WithTimeout(p.ctx, 10*time.Second)
	defer cancel()
	if err := chromedp.Do(ctx, chromedp.Click(chromedp.CSS(selector), chromedp.NodeVisible)); err != nil {
		return fmt.Errorf("a click on %s: %w", selector, err)
	}
	return nil
}

// eval evaluates JavaScript.
func eval[T any](p *page, expression string) (T, error) {
	return chromedp.Run(p.ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
}

// Expressions for await.
const loaded = `/: [1-9][\d.]*\s?k?\/s writes/.test(document.querySelector("#loading").textContent)`

// shows is true once an element of a CSS selector has a text.
func shows(selector, text string) string {
	return fmt.Sprintf(`(document.querySelector(%q)?.textContent || "").includes(%q)`, selector, text)
}

// serving is true once n members serve, and one leads.
func serving(n int) string {
	return fmt.Sprintf(`/^%d of \d members? serves?.* leads?/.test(document.querySelector("#sentence").textContent)`, n)
}

// press presses keys.
func (p *page) press(keys string) error { return chromedp.Do(p.ctx, chromedp.KeyEvent(keys)) }
