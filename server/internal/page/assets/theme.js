// The theme that was chosen, before the first paint: light, dark, or that of the system.
;(() => {
  const kept = () => {
    try {
      return localStorage.getItem("braid-theme")
    } catch {
      return null
    }
  }
  const chosen = kept()
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen
})()
