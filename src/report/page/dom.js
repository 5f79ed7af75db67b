// Elements. Text is always text: nothing that a file says becomes markup.
function byId(id) { return document.getElementById(id); }

function element(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name === "class") made.className = value;
    else if (name === "style") Object.assign(made.style, value);
    else if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value);
  }
  for (const child of children) if (child !== null && child !== undefined) made.append(child);
  return made;
}

function swatch(ink) {
  return element("span", { class: "swatch", style: { background: `var(--${ink})` } });
}
