// The dashboard: it requests the state of the cluster once a second, and shows it.
import {byId, show} from "./dom.js"
import {model} from "./state.js"
import {poll} from "./poll.js"
import * as header from "./header.js"
import * as tiles from "./tiles.js"
import * as picture from "./picture.js"
import * as protocol from "./protocol.js"
import * as cards from "./cards.js"
import * as charts from "./charts.js"
import * as events from "./events.js"
import * as profile from "./profile.js"
import * as table from "./table.js"
import * as controls from "./controls.js"
import * as login from "./login.js"
import * as look from "./look.js"

const parts = [tiles, picture, protocol, cards, charts, events, profile, table, controls]
let stranger = false // the user has to sign in

function update() {
  const there = model.members.length > 0
  if (there) stranger = false
  login.update(stranger)
  header.update(stranger)
  show(byId("board"), there)
  if (there) for (const p of parts) p.update()
}

login.start()
controls.start()
cards.start()
events.start()
picture.start()
charts.start()
look.start(charts.restyle)
poll(update, () => {
  stranger = true
})
setInterval(() => {
  if (!document.hidden && model.failure) header.update(stranger)
}, 1000)
