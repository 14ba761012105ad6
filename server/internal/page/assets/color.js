// Colors of members, and of the style sheet for a canvas.
import {h, style} from "./dom.js"
import {colorOf} from "./state.js"

const palette = 9 // colors: --m0 to --m8

const variable = id => `--m${colorOf(id) % palette}`

// shared reports whether a member has the color of another one, as there are more members than colors.
export const shared = id => colorOf(id) >= palette

// tint sets --c of an element to the color of a member; without a member it removes it.
export const tint = (node, id) => style(node, "--c", id ? `var(${variable(id)})` : "")

const probe = document.body.appendChild(h("i", {hidden: true}))

// resolve returns the color that a property of the style sheet has in the present theme, as rgb(…).
export function resolve(property) {
  style(probe, "color", `var(${property})`)
  return getComputedStyle(probe).color
}

// memberColor is the color of a member, as resolve returns it.
export const memberColor = id => resolve(variable(id))
