// Light or dark: as the reader's system has it, or as the button says.

const systemIsDark = matchMedia("(prefers-color-scheme: dark)");

/** Turn the page light or dark; null: as the system has it. Returns whether it is dark. */
function applyTheme(dark) {
  const now = dark ?? systemIsDark.matches;
  document.documentElement.classList.toggle("dark", now);
  return now;
}
