// A page of tables and pictures.

let dark = applyTheme(null);
document.getElementById("theme").addEventListener("click", () => { dark = applyTheme(!dark); });
systemIsDark.addEventListener("change", () => { dark = applyTheme(null); });
listenToHeadings();
