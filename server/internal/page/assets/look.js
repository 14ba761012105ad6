// The button that changes between dark and light colors.
import {attr, byId, s} from "./dom.js"

const system = matchMedia("(prefers-color-scheme: dark)")

const {dataset} = document.documentElement
const dark = () => (dataset.theme ? dataset.theme === "dark" : system.matches)

const sun =
  "M12 4V2m0 20v-2m8-8h2M2 12h2m13.7-5.7 1.4-1.4M4.9 19.1l1.4-1.4m0-11.4L4.9 4.9m14.2 14.2-1.4-1.4M12 8a4 " +
  "4 0 1 0 0 8 4 4 0 0 0 0-8z"
const moon = "M20 14.5A8.5 8.5 0 0 1 9.5 4a8.5 8.5 0 1 0 10.5 10.5z"

// start shows the button. changed is called now and whenever the theme changes.
export function start(changed) {
  const button = byId("theme"),
    path = s("path")
  button.append(s("svg", {viewBox: "0 0 24 24", width: 18, height: 18, class: "glyph", "aria-hidden": "true"}, path))
  const draw = () => {
    attr(path, "d", dark() ? sun : moon)
    attr(button, "aria-label", dark() ? "Use light colors" : "Use dark colors")
    changed()
  }
  button.addEventListener("click", () => {
    const next = dark() ? "light" : "dark"
    dataset.theme = next
    try {
      localStorage.setItem("braid-theme", next)
    } catch {
      /* it lasts until the reload */
    }
    draw()
  })
  system.addEventListener("change", draw)
  draw()
}
