const root = document.documentElement;
const byId = (id) => document.getElementById(id);

// Theme: the system's choice until the button is used.
const dark = matchMedia("(prefers-color-scheme: dark)");
const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : dark.matches);
const themeButton = byId("theme");
const redraws = [];
function themeChanged() {
  themeButton.textContent = isDark() ? "Light" : "Dark";
  themeButton.setAttribute("aria-label", "Switch to " + (isDark() ? "light" : "dark") + " colours");
  redraws.forEach((draw) => draw());
}
themeButton.hidden = false;
themeButton.addEventListener("click", () => { root.dataset.theme = isDark() ? "light" : "dark"; themeChanged(); });
dark.addEventListener("change", themeChanged);

// Printing shows all findings.
addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((d) => { d.open = true; }));

// A link to a finding opens it.
function openTarget() {
  const target = location.hash.length > 1 && byId(location.hash.slice(1));
  if (target && target.tagName === "DETAILS") target.open = true;
}
addEventListener("hashchange", openTarget);
openTarget();

// A table that goes on to the right says so.
document.querySelectorAll(".scroll").forEach((box) => {
  const hint = document.createElement("p");
  hint.className = "sideways";
  hint.setAttribute("aria-hidden", "true");
  hint.textContent = "More columns to the right \u2192";
  box.after(hint);
  const look = () => box.classList.toggle("more", box.scrollWidth - box.clientWidth - box.scrollLeft > 4);
  box.addEventListener("scroll", look, { passive: true });
  new ResizeObserver(look).observe(box);
});

// Tables: a button in each sortable heading.
const collator = new Intl.Collator("en", { numeric: true });
document.querySelectorAll("table.sortable").forEach((table) => {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    if (!head.dataset.kind) return;
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const up = head.getAttribute("aria-sort") !== "ascending";
      heads.forEach((h) => h.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const value = (row) => { const c = row.cells[column]; return c.dataset.v === undefined ? (c.firstChild || c).textContent : Number(c.dataset.v); };
      const rows = [...table.tBodies[0].rows];
      rows.sort((a, b) => {
        const x = value(a), y = value(b);
        return (up ? 1 : -1) * (typeof x === "number" ? x - y : collator.compare(x, y));
      });
      table.tBodies[0].append(...rows);
    });
  });
});

// Elements.
const namespace = document.querySelector("svg").namespaceURI;
function svg(name, attributes, parent, text) {
  const node = document.createElementNS(namespace, name);
  for (const key in attributes) node.setAttribute(key, attributes[key]);
  if (text !== undefined) node.textContent = text;
  if (parent) parent.append(node);
  return node;
}
function element(name, text, parent, kind) {
  const node = document.createElement(name);
  if (text !== undefined) node.textContent = text;
  if (kind) node.className = kind;
  if (parent) parent.append(node);
  return node;
}

// The tip next to a place in the window.
const tip = byId("tip");
function showTip(text, x, y) {
  tip.textContent = text;
  tip.hidden = false;
  const flip = x > innerWidth - 260;
  tip.style.left = flip ? "" : x + 14 + "px";
  tip.style.right = flip ? innerWidth - x + 14 + "px" : "";
  tip.style.top = Math.min(y + 16, innerHeight - 70) + "px";
}

// RFC 4648.
function bytes(text) { return Uint8Array.from(atob(text), (c) => c.charCodeAt(0)); }

// Colours are interpolated in OKLab, in which equal steps look equal; dark to light in one, orange to blue in the
// other, so that neither needs red against green.
function palette(darkTheme) {
  const rate = ramp([[0.28, 0.08, 285], [0.43, 0.11, 264], [0.58, 0.11, 236], [0.73, 0.1, 204], [0.88, 0.085, 172]]);
  const middle = darkTheme ? [0.4, 0.008, 240] : [0.93, 0.006, 240];
  const ratio = darkTheme
    ? ramp([[0.82, 0.15, 65], [0.68, 0.17, 48], middle, [0.62, 0.13, 245], [0.8, 0.1, 235]])
    : ramp([[0.42, 0.13, 38], [0.66, 0.16, 50], middle, [0.62, 0.13, 245], [0.38, 0.12, 255]]);
  return darkTheme
    ? { rate, ratio, worse: ratio.slice(0, 128).reverse(), card: [25, 29, 33], hatch: [154, 165, 174], soft: [154, 165, 174], ink: [230, 233, 235], self: [74, 82, 90] }
    : { rate, ratio, worse: ratio.slice(0, 128).reverse(), card: [255, 255, 255], hatch: [140, 150, 158], soft: [92, 102, 112], ink: [27, 32, 38], self: [186, 192, 197] };
}
function ramp(stops) {
  const lab = stops.map(([l, c, h]) => [l, c * Math.cos(h * Math.PI / 180), c * Math.sin(h * Math.PI / 180)]);
  return Array.from({ length: 256 }, (_, i) => {
    const t = i / 255 * (lab.length - 1), k = Math.min(lab.length - 2, Math.floor(t)), f = t - k;
    return srgb(lab[k].map((v, j) => v + (lab[k + 1][j] - v) * f));
  });
}
// OKLab to sRGB: Bjorn Ottosson's matrices, and the transfer function of IEC 61966-2-1.
function srgb([L, a, b]) {
  const l = (L + 0.3963377774 * a + 0.2158037573 * b) ** 3, m = (L - 0.1055613458 * a - 0.0638541728 * b) ** 3, s = (L - 0.0894841775 * a - 1.291485548 * b) ** 3;
  return [4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s, -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s, -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s]
    .map((v) => Math.round(255 * Math.max(0, Math.min(1, v <= 0.0031308 ? 12.92 * v : 1.055 * Math.pow(v, 1 / 2.4) - 0.055))));
}
const css = (c) => "rgb(" + c.join(",") + ")";

// The end is kept: names share their beginnings.
function fit(ctx, text, room) {
  if (ctx.measureText(text).width <= room) return text;
  let cut = 1;
  while (cut < text.length && ctx.measureText("\u2026" + text.slice(cut)).width > room) cut++;
  return cut < text.length ? "\u2026" + text.slice(cut) : "";
}
const digits = (v) => v.toFixed(v >= 99.95 ? 0 : v >= 9.995 ? 1 : 2);
function rate(v) {
  if (v !== v) return "-";
  for (const [unit, size] of [["T", 1e12], ["G", 1e9], ["M", 1e6], ["k", 1e3]]) if (v >= 0.9995 * size) return digits(v / size) + " " + unit + "b/s";
  return v ? digits(v) + " b/s" : "0 b/s";
}
const percent = (v) => (v === v ? (v * 100).toFixed(v >= 0.1 ? 0 : 1) + "%" : "-");
const plain = (v) => (v === v ? String(Math.round(v)) : "-");
const micros = (v) => (v !== v ? "-" : v >= 1000 ? digits(v / 1000) + " ms" : Math.round(v) + " \u00b5s");
const count = (v) => (v !== v ? "-" : v >= 9.995 ? String(Math.round(v)) : String(+v.toFixed(1)));
const short = (text) => text.replace(/\.0+(?=[ %])|(\.\d*?)0+(?=[ %])/, "$1").replace(" /s", "");
// 1, 2 or 5 times a power of ten.
function niceStep(span, steps) {
  if (!(span > 0)) return 1;
  const raw = span / steps, power = Math.pow(10, Math.floor(Math.log10(raw)));
  return power * [1, 2, 5, 10].find((f) => f * power >= raw * 0.999);
}
themeChanged();
