// Before anything is drawn: light or dark, as the system says.
document.documentElement.dataset.theme =
  window.matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
