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

const source = byId("matrix-data");
if (source) matrix(JSON.parse(source.textContent));
themeChanged();

function matrix(data) {
  const n = data.hosts.length;
  const decoded = decode(data, n);
  const cells = byId("cells"), overlay = byId("cursor"), map = byId("map"), out = byId("cell"), tip = byId("tip");
  const state = { mode: "relative", order: "rack", perm: [], x: -1, y: -1, size: 1, left: 0, top: 0, labels: false, zoom: 1, band: 0 };
  const range = positiveRange(decoded.rate);
  const slowest = slowestPair();
  // No expectation anywhere: only the rate can be shown.
  if (!decoded.ratio.some((r) => r === r)) {
    state.mode = "absolute";
    document.querySelectorAll("input[name=mode]").forEach((i) => { i.checked = i.value === "absolute"; i.disabled = i.value === "relative"; });
  }

  // Against its expectation where there is one; no pair when nothing was measured.
  function slowestPair() {
    let least = Infinity, found = null;
    const values = decoded.ratio.some((r) => r === r) ? decoded.ratio : decoded.rate;
    values.forEach((v, k) => { if (v < least) { least = v; found = [Math.floor(k / n), k % n]; } });
    return found;
  }

  function sort() {
    const ids = Array.from({ length: n }, (_, i) => i);
    const name = (a, b) => collator.compare(data.hosts[a], data.hosts[b]);
    const rack = (i) => (data.rack[i] < 0 ? data.racks.length : data.rack[i]);
    if (state.order === "name") ids.sort(name);
    else if (state.order === "rack") ids.sort((a, b) => rack(a) - rack(b) || name(a, b));
    else {
      const mean = side(decoded.rate, n, state.order === "rx");
      ids.sort((a, b) => mean[a] - mean[b] || name(a, b));
    }
    state.perm = ids;
  }

  function layout() {
    const style = getComputedStyle(map);
    const room = map.clientWidth - parseFloat(style.paddingLeft) * 2;
    const ctx = cells.getContext("2d");
    ctx.font = "12px " + getComputedStyle(document.body).fontFamily;
    const widest = Math.min(132, Math.max(...data.hosts.map((h) => ctx.measureText(h).width)));
    const withLabels = Math.floor((room - widest - 10 - (data.racks.length ? 16 : 0)) / n);
    const fitted = Math.max(n > 400 ? 2 : 3, Math.min(64, withLabels >= 13 ? withLabels : Math.floor((room - 21) / n)));
    // Browsers draw canvases of up to 16384 pixels a side.
    const most = Math.max(1, Math.min(64, Math.floor(16000 / n)));
    state.size = Math.max(1, Math.min(most, Math.round(fitted * state.zoom)));
    state.labels = state.size >= 13;
    state.band = state.labels && data.racks.length ? 16 : 0;
    const margin = (state.labels ? Math.ceil(widest) + 10 : 20) + state.band;
    state.left = margin;
    state.top = margin;
    for (const canvas of [cells, overlay]) {
      const w = margin + state.size * n + 1, h = w, scale = w > 3000 ? 1 : devicePixelRatio || 1;
      canvas.width = Math.round(w * scale);
      canvas.height = Math.round(h * scale);
      canvas.style.width = w + "px";
      canvas.style.height = h + "px";
      canvas.getContext("2d").setTransform(scale, 0, 0, scale, 0, 0);
    }
  }

  function draw() {
    const colors = palette(isDark()), ctx = cells.getContext("2d"), s = state.size;
    ctx.clearRect(0, 0, cells.width, cells.height);
    const image = new ImageData(n, n), missing = [];
    for (let r = 0; r < n; r++) {
      const base = state.perm[r] * n;
      for (let c = 0; c < n; c++) {
        const k = base + state.perm[c], o = (r * n + c) * 4;
        if (r === c) { image.data.set([...colors.self, 255], o); continue; }
        if (!decoded.planned[k]) continue;
        const v = state.mode === "absolute" ? position(decoded.rate[k], range) : relativePosition(decoded.ratio[k]);
        let rgb;
        if (v === v) rgb = (state.mode === "absolute" ? colors.rate : colors.ratio)[Math.round(v * 255)];
        else { rgb = s < 5 && (r + c) % 2 ? colors.hatch : colors.card; missing.push(r, c); }
        image.data[o] = rgb[0]; image.data[o + 1] = rgb[1]; image.data[o + 2] = rgb[2]; image.data[o + 3] = 255;
      }
    }
    const small = document.createElement("canvas");
    small.width = small.height = n;
    small.getContext("2d").putImageData(image, 0, 0);
    ctx.imageSmoothingEnabled = false;
    ctx.drawImage(small, state.left, state.top, s * n, s * n);
    if (s >= 5) hatch(ctx, missing, colors);
    grid(ctx, colors);
    labels(ctx, colors);
    legend(colors);
    cursor();
  }

  function hatch(ctx, missing, colors) {
    const s = state.size;
    ctx.strokeStyle = css(colors.hatch);
    ctx.lineWidth = 1;
    for (let i = 0; i < missing.length; i += 2) {
      const x = state.left + missing[i + 1] * s, y = state.top + missing[i] * s;
      ctx.save();
      ctx.beginPath(); ctx.rect(x, y, s, s); ctx.clip();
      ctx.beginPath();
      for (let d = 4; d < 2 * s; d += 5) { ctx.moveTo(x + d, y); ctx.lineTo(x, y + d); }
      ctx.stroke();
      ctx.restore();
    }
  }

  function grid(ctx, colors) {
    const s = state.size, end = s * n;
    ctx.fillStyle = css(colors.card);
    if (s >= 7) for (let i = 0; i <= n; i++) { ctx.fillRect(state.left + i * s, state.top, 1, end + 1); ctx.fillRect(state.left, state.top + i * s, end + 1, 1); }
    if (state.order !== "rack") return;
    const wide = s >= 12 ? 3 : s >= 5 ? 2 : 1;
    if (s < 5) { ctx.fillStyle = css(colors.ink); ctx.globalAlpha = 0.3; }
    for (const band of bands()) if (band.from > 0) {
      const at = band.from * s - Math.floor(wide / 2);
      ctx.fillRect(state.left + at, state.top, wide, end);
      ctx.fillRect(state.left, state.top + at, end, wide);
    }
    ctx.globalAlpha = 1;
  }

  function bands() {
    const list = [];
    state.perm.forEach((h, i) => {
      const rack = data.rack[h], last = list[list.length - 1];
      if (last && last.rack === rack) last.to = i + 1;
      else list.push({ rack, from: i, to: i + 1 });
    });
    return list;
  }

  function labels(ctx, colors) {
    const s = state.size;
    ctx.fillStyle = css(colors.soft);
    ctx.textBaseline = "middle";
    const family = getComputedStyle(document.body).fontFamily;
    ctx.font = (state.labels ? Math.min(12, s - 1) : 11) + "px " + family;
    if (state.labels) {
      state.perm.forEach((h, i) => {
        const mid = (i + 0.5) * s;
        ctx.textAlign = "right";
        ctx.fillText(fit(ctx, data.hosts[h], state.left - state.band - 10), state.left - 6, state.top + mid);
        ctx.save(); ctx.translate(state.left + mid, state.top - 6); ctx.rotate(-Math.PI / 2);
        ctx.textAlign = "left"; ctx.fillText(fit(ctx, data.hosts[h], state.top - state.band - 10), 0, 0); ctx.restore();
      });
    }
    if (state.order === "rack" && data.racks.length) {
      ctx.font = "11px " + family;
      const out = state.labels ? state.left - 8 : 11;
      for (const band of bands()) {
        const mid = (band.from + band.to) / 2 * s, room = (band.to - band.from) * s - 2;
        const name = fit(ctx, band.rack < 0 ? "no rack" : data.racks[band.rack], room);
        if (name.length < 2) continue;
        ctx.textAlign = "center";
        ctx.fillText(name, state.left + mid, state.top - out);
        ctx.save(); ctx.translate(state.left - out, state.top + mid); ctx.rotate(-Math.PI / 2); ctx.fillText(name, 0, 0); ctx.restore();
      }
    }
  }

  function legend(colors) {
    const scale = byId("scale"), ticks = byId("ticks"), ctx = scale.getContext("2d");
    scale.width = 256; scale.height = 1;
    const image = ctx.createImageData(256, 1), ramp = state.mode === "absolute" ? colors.rate : colors.ratio;
    for (let i = 0; i < 256; i++) image.data.set([...ramp[i], 255], i * 4);
    ctx.putImageData(image, 0, 0);
    const marks = state.mode === "absolute"
      ? [0, 0.5, 1].map((p) => [p, rate(range[1] * p)])
      : [[0.25, "25"], [0.5, "50"], [1, "100 %"], [2, "200"], [4, "400"]].map(([r, t]) => [relativePosition(r), t]);
    const limit = byId("limit");
    limit.hidden = byId("limit-note").hidden = state.mode === "absolute";
    limit.style.left = relativePosition(0.95) * 100 + "%";
    ticks.replaceChildren(...marks.map(([p, text]) => {
      const tick = document.createElement("span");
      tick.textContent = text;
      tick.style.left = p * 100 + "%";
      return tick;
    }));
  }

  function cursor() {
    const ctx = overlay.getContext("2d"), s = state.size;
    ctx.clearRect(0, 0, overlay.width, overlay.height);
    if (state.x < 0) return;
    const x = state.left + state.x * s, y = state.top + state.y * s, colors = palette(isDark());
    ctx.strokeStyle = css(colors.ink);
    ctx.globalAlpha = 0.35; ctx.lineWidth = 1;
    ctx.strokeRect(state.left + 0.5, y + 0.5, s * n, s);
    ctx.strokeRect(x + 0.5, state.top + 0.5, s, s * n);
    ctx.globalAlpha = 1; ctx.lineWidth = 2;
    ctx.strokeRect(x, y, s + 1, s + 1);
  }

  function choose(x, y) {
    if (x === state.x && y === state.y) return;
    state.x = x; state.y = y;
    cursor();
    const src = state.perm[y], dst = state.perm[x], k = src * n + dst;
    const title = document.createElement("h3");
    title.textContent = data.hosts[src] + " \u2192 " + data.hosts[dst];
    const list = document.createElement("dl");
    const row = (name, value) => {
      const dt = document.createElement("dt"), dd = document.createElement("dd");
      dt.textContent = name; dd.textContent = value;
      list.append(dt, dd);
    };
    if (slowest && slowest[0] === src && slowest[1] === dst) row("Note", "slowest pair");
    if (src === dst) { row("Rate", "a host is not measured against itself"); }
    else if (!decoded.planned[k]) { row("Rate", "not planned in this run"); }
    else {
      row("Rate", rate(decoded.rate[k]));
      row("Expected", rate(decoded.expected[k]));
      row("Of expected", percent(decoded.ratio[k]));
      row("Samples", plain(decoded.samples[k]));
      row("Retransmits", plain(decoded.retransmits[k]));
      row("RTT under load", micros(decoded.rtt_us[k]));
      const why = decoded.why(k);
      if (why) row("Why", why);
    }
    out.replaceChildren(title, list);
    let brief = "not planned";
    if (decoded.planned[k]) brief = decoded.rate[k] === decoded.rate[k] ? rate(decoded.rate[k]) + ", " + percent(decoded.ratio[k]) + " of expected" : "no figure" + (decoded.why(k) ? ": " + decoded.why(k) : "");
    tip.textContent = title.textContent + "\n" + brief;
  }

  cells.addEventListener("pointermove", (e) => {
    const box = cells.getBoundingClientRect();
    const x = Math.floor((e.clientX - box.left - state.left) / state.size), y = Math.floor((e.clientY - box.top - state.top) / state.size);
    if (x < 0 || y < 0 || x >= n || y >= n) { tip.hidden = true; return; }
    choose(x, y);
    tip.hidden = e.pointerType === "touch";
    const flip = e.clientX > innerWidth - 260;
    tip.style.left = flip ? "" : e.clientX + 14 + "px";
    tip.style.right = flip ? innerWidth - e.clientX + 14 + "px" : "";
    tip.style.top = Math.min(e.clientY + 16, innerHeight - 70) + "px";
  });
  cells.addEventListener("pointerdown", (e) => cells.dispatchEvent(new PointerEvent("pointermove", e)));
  cells.addEventListener("pointerleave", () => { tip.hidden = true; });
  cells.addEventListener("focus", () => { if (state.x < 0 && n > 1) choose(1, 0); });
  cells.addEventListener("keydown", (e) => {
    const clamp = (v) => Math.max(0, Math.min(n - 1, v));
    const moves = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1], PageUp: [0, -10], PageDown: [0, 10], Home: [-n, 0], End: [n, 0] };
    const move = moves[e.key];
    if (!move || e.altKey || e.ctrlKey || e.metaKey) return;
    e.preventDefault();
    choose(clamp(state.x + move[0]), clamp(state.y + move[1]));
    const s = state.size, x = state.left + state.x * s, y = state.top + state.y * s;
    if (x < map.scrollLeft || x + s > map.scrollLeft + map.clientWidth) map.scrollLeft = x - map.clientWidth / 2;
    if (y < map.scrollTop || y + s > map.scrollTop + map.clientHeight) map.scrollTop = y - map.clientHeight / 2;
  });
  document.querySelectorAll("input[name=mode]").forEach((input) => input.addEventListener("change", () => { state.mode = input.value; draw(); }));
  byId("order").addEventListener("change", (e) => { 
    const chosen = state.x < 0 ? null : [state.perm[state.y], state.perm[state.x]];
    state.order = e.target.value;
    sort();
    if (chosen) { state.y = state.perm.indexOf(chosen[0]); state.x = state.perm.indexOf(chosen[1]); }
    draw();
  });
  // A finding's evidence leads to its cell.
  document.querySelectorAll("a[data-pair]").forEach((link) => link.addEventListener("click", () => {
    const [src, dst] = link.dataset.pair.split(",").map(Number);
    choose(state.perm.indexOf(dst), state.perm.indexOf(src));
  }));
  function zoom(larger) {
    const before = state.size;
    for (let tries = 0; tries < 4 && state.size === before; tries++) { state.zoom *= larger ? 1.5 : 1 / 1.5; layout(); }
    state.zoom = Math.max(1 / 64, Math.min(64, state.zoom));
    draw();
  }
  byId("larger").addEventListener("click", () => zoom(true));
  byId("smaller").addEventListener("click", () => zoom(false));
  let width = 0;
  new ResizeObserver(() => {
    if (map.clientWidth === width) return;
    const first = width === 0;
    width = map.clientWidth;
    layout();
    draw();
    if (first && slowest) choose(state.perm.indexOf(slowest[1]), state.perm.indexOf(slowest[0]));
  }).observe(map);
  sort();
  redraws.push(() => { if (width) draw(); });
}

// RFC 4648.
function bytes(text) { return Uint8Array.from(atob(text), (c) => c.charCodeAt(0)); }

// The data: see matrix.rs for the layout.
function decode(data, n) {
  const at = new Uint32Array(data.count), packed = bytes(data.at);
  let position = 0, i = 0;
  for (let cell = 0; cell < data.count; cell++) {
    let value = 0, factor = 1, byte;
    do { byte = packed[i++]; value += (byte & 127) * factor; factor *= 128; } while (byte & 128);
    position += value;
    at[cell] = position;
  }
  const planned = new Uint8Array(n * n);
  at.forEach((k) => { planned[k] = 1; });
  function plane(p) {
    const values = new Float32Array(n * n).fill(NaN), raw = bytes(p.data);
    const step = Math.log(p.high / p.low) / 65533;
    for (let cell = 0; cell < data.count; cell++) {
      if (p.dict) { if (raw[cell] < 255) values[at[cell]] = p.dict[raw[cell]]; continue; }
      const code = raw[2 * cell] | raw[2 * cell + 1] << 8;
      if (code) values[at[cell]] = code === 1 ? 0 : p.low * Math.exp((code - 2) * step);
    }
    return values;
  }
  const rates = plane(data.rate), expected = plane(data.expected);
  const ratio = rates.map((r, k) => (expected[k] > 0 ? r / expected[k] : NaN));
  const reasons = bytes(data.missing.data), why = new Map();
  reasons.forEach((code, cell) => { if (code < 255) why.set(at[cell], data.missing.dict[code]); });
  return { planned, rate: rates, expected, ratio, samples: plane(data.samples), retransmits: plane(data.retransmits), rtt_us: plane(data.rtt_us), why: (k) => why.get(k) };
}

function side(values, n, receivers) {
  const mean = new Float64Array(n);
  for (let i = 0; i < n; i++) {
    let sum = 0, count = 0;
    for (let j = 0; j < n; j++) {
      const v = values[receivers ? j * n + i : i * n + j];
      if (v === v) { sum += v; count++; }
    }
    mean[i] = count ? sum / count : -1;
  }
  return mean;
}

function positiveRange(values) {
  let high = 0;
  for (const v of values) if (v > high) high = v;
  return [0, high || 1];
}
const position = (v, range) => (v === v ? Math.max(0, Math.min(1, v / range[1])) : NaN);
// A quarter to four times, logarithmic, with small deviations drawn out so that 10 % can be seen.
function relativePosition(ratio) {
  if (ratio !== ratio) return NaN;
  const octaves = Math.max(-1, Math.min(1, Math.log2(Math.max(ratio, 1e-9)) / 2));
  return 0.5 + 0.5 * Math.sign(octaves) * Math.pow(Math.abs(octaves), 0.8);
}

// Colours are interpolated in OKLab, in which equal steps look equal; dark to light in one, orange to blue in the
// other, so that neither needs red against green.
function palette(darkTheme) {
  const rate = ramp([[0.28, 0.08, 285], [0.43, 0.11, 264], [0.58, 0.11, 236], [0.73, 0.1, 204], [0.88, 0.085, 172]]);
  const middle = darkTheme ? [0.4, 0.008, 240] : [0.93, 0.006, 240];
  const ratio = darkTheme
    ? ramp([[0.82, 0.15, 65], [0.68, 0.17, 48], middle, [0.62, 0.13, 245], [0.8, 0.1, 235]])
    : ramp([[0.42, 0.13, 38], [0.66, 0.16, 50], middle, [0.62, 0.13, 245], [0.38, 0.12, 255]]);
  return darkTheme
    ? { rate, ratio, card: [25, 29, 33], hatch: [154, 165, 174], soft: [154, 165, 174], ink: [230, 233, 235], self: [74, 82, 90] }
    : { rate, ratio, card: [255, 255, 255], hatch: [140, 150, 158], soft: [92, 102, 112], ink: [27, 32, 38], self: [186, 192, 197] };
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
const percent = (v) => (v === v ? (v * 100).toFixed(v >= 0.1 ? 0 : 1) + " %" : "-");
const plain = (v) => (v === v ? String(Math.round(v)) : "-");
const micros = (v) => (v !== v ? "-" : v >= 1000 ? digits(v / 1000) + " ms" : Math.round(v) + " \u00b5s");
