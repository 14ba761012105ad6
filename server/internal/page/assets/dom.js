// Elements, made and changed without HTML text: data becomes text nodes and attributes only.

const space = "http://www.w3.org/2000/svg"

function fill(node, attrs, children) {
  for (const [name, value] of Object.entries(attrs || {}))
    if (typeof value === "function") node.addEventListener(name.slice(2), value)
    else attr(node, name, value)
  node.append(...children.flat().filter(c => c != null && c !== false))
  return node
}

// h makes an element of HTML. An attribute that is a function is a listener, as in {onclick: f}.
export const h = (name, attrs, ...children) => fill(document.createElement(name), attrs, children)

// s makes an element of SVG.
export const s = (name, attrs, ...children) => fill(document.createElementNS(space, name), attrs, children)

// attr sets an attribute if its value differs; null, undefined and false remove it.
export function attr(node, name, value) {
  if (value == null || value === false) {
    if (node.hasAttribute(name)) node.removeAttribute(name)
    return
  }
  const text = value === true ? "" : String(value)
  if (node.getAttribute(name) !== text) node.setAttribute(name, text)
}

// text sets the text of a node if it differs.
export function text(node, value) {
  const t = value == null ? "" : String(value)
  if (node.textContent !== t) node.textContent = t
}

const styles = new WeakMap() // properties that style has set, by node

// style sets a property of a node's style if its value differs.
export function style(node, name, value) {
  const had = of(styles, node)
  if (had.get(name) !== value) {
    had.set(name, value)
    node.style.setProperty(name, value)
  }
}

function of(maps, node) {
  if (!maps.has(node)) maps.set(node, new Map())
  return maps.get(node)
}

export const show = (node, shown) => {
  if (node.hidden === !!shown) node.hidden = !shown
}

export const byId = id => document.getElementById(id)

const rows = new WeakMap() // the children that list made, by node

// list keeps the children of a node equal to items: make(item) returns the element of a new item, and
// update(element, item) fills it. key(item) identifies an item.
export function list(parent, items, key, make, update) {
  const had = of(rows, parent)
  const keys = new Set()
  let at = parent.firstChild
  for (const item of items) {
    const k = key(item)
    keys.add(k)
    let node = had.get(k)
    if (!node) had.set(k, (node = make(item)))
    if (node === at) at = at.nextSibling
    else parent.insertBefore(node, at)
    update?.(node, item)
  }
  for (const [k, node] of had)
    if (!keys.has(k)) {
      node.remove()
      had.delete(k)
    }
}

// choice makes a group of buttons, one of them pressed, from [[value, label]]. changed(value) is called on a click.
export function choice(parent, options, value, changed) {
  const press = pressed => {
    for (const [v, b] of buttons) attr(b, "aria-pressed", String(v === pressed))
  }
  const click = v => {
    press(v)
    changed(v)
  }
  const buttons = options.map(([v, label]) => [v, h("button", {type: "button", onclick: () => click(v)}, label)])
  press(value)
  parent.replaceChildren(...buttons.map(([, b]) => b))
}
