// The theme that the user chose, before the first paint.
try {
  const chosen = localStorage.getItem("braid-theme")
  if (chosen) document.documentElement.dataset.theme = chosen
} catch {
  /* storage is not allowed: the theme is that of the system */
}
