// Light or dark: what the system says, until the button says otherwise.
const themeListeners = [];

function isDark() { return document.documentElement.dataset.theme === "dark"; }

// Colours of the page by name, as canvases want them.
function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

function startTheme(button) {
  let chosen = false;
  const show = (dark) => {
    document.documentElement.dataset.theme = dark ? "dark" : "light";
    button.textContent = dark ? "Light" : "Dark";
    for (const listener of themeListeners) listener();
  };
  button.addEventListener("click", () => { chosen = true; show(!isDark()); });
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", (event) => {
    if (!chosen) show(event.matches);
  });
  show(isDark());
}
