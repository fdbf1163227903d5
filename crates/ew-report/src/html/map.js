
// The map of all pairs. See matrix.rs for the data.
// What a map can show: where a value is on the scale, its ramp, and ticks. "Worse" ramps go from inconspicuous to
// orange; counts and losses are spread by their root, since a few pairs have most.
const root2 = (v, top) => Math.sqrt(v / top), linear = (v, top) => v / top;
const METRICS = {
  relative: { name: "% of expected", of: (m) => m.ratio, ramp: "ratio", at: relativePosition, text: percent, worst: Math.min, ticks: () => [[0.25, "25"], [0.5, "50"], [1, "100%"], [2, "200"], [4, "400"]].map(([r, t]) => [relativePosition(r), t]) },
  rate: { name: "Rate", of: (m) => m.rate, ramp: "rate", at: linear, text: rate, worst: Math.min, back: (p) => p },
  rtt: { name: "Round-trip time", of: (m) => m.rtt_us, ramp: "worse", at: linear, text: micros, worst: Math.max, back: (p) => p },
  retransmits: { name: "Retransmitted segments", of: (m) => m.retransmits, ramp: "worse", at: root2, text: plain, worst: Math.max, back: (p) => p * p },
  loss: { name: "Datagrams lost", of: (m) => m.loss, ramp: "worse", at: root2, text: (v) => (v ? percent(v) : "0%"), worst: Math.max, back: (p) => p * p },
};
const mapSource = byId("matrix-data");
if (mapSource) matrix(JSON.parse(mapSource.textContent));

function matrix(data) {
  const n = data.hosts.length;
  const cells = byId("cells"), overlay = byId("cursor"), map = byId("map"), out = byId("cell"), stages = byId("map-stage");
  const radios = [...document.querySelectorAll("input[name=metric]")];
  const decoded = new Map();
  const state = { map: 0, metric: "relative", order: "rack", perm: [], x: -1, y: -1, kept: false, size: 1, left: 0, top: 0, labels: false, zoom: 1, band: 0, most: 1, worst: null };
  const shown = () => decoded.get(state.map);
  const values = () => METRICS[state.metric].of(shown());

  // One stage at a time is unpacked.
  function take(index) {
    state.map = index;
    decoded.clear();
    decoded.set(index, decode(data.maps[index], n));
    byId("map-note").textContent = data.maps[index].note;
    byId("key-missing").hidden = !shown().missing;
    byId("key-none").hidden = data.maps[index].count >= n * (n - 1);
    const has = (metric) => METRICS[metric].of(shown()).some((v) => v === v);
    radios.forEach((radio) => { radio.disabled = !has(radio.value); });
    if (!has(state.metric)) state.metric = Object.keys(METRICS).find(has) || "rate";
    radios.forEach((radio) => { radio.checked = radio.value === state.metric; });
    measure();
  }

  // The end of the scale, and the pair that is furthest from well.
  function measure() {
    const metric = METRICS[state.metric];
    state.most = 0;
    state.worst = null;
    let worst;
    values().forEach((v, k) => {
      if (v !== v) return;
      if (v > state.most) state.most = v;
      if (worst === undefined || (v !== worst && metric.worst(v, worst) === v)) { worst = v; state.worst = [Math.floor(k / n), k % n]; }
    });
    state.most = state.most || 1;
  }

  function sort() {
    const ids = Array.from({ length: n }, (_, i) => i);
    const name = (a, b) => collator.compare(data.hosts[a], data.hosts[b]);
    const rack = (i) => (data.rack[i] < 0 ? data.racks.length : data.rack[i]);
    if (state.order === "name") ids.sort(name);
    else if (state.order === "rack") ids.sort((a, b) => rack(a) - rack(b) || name(a, b));
    else {
      const mean = side(values(), n, state.order === "rx"), sign = METRICS[state.metric].worst === Math.min ? 1 : -1;
      ids.sort((a, b) => sign * (mean[a] - mean[b]) || name(a, b));
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
    const colors = palette(isDark()), ctx = cells.getContext("2d"), s = state.size, metric = METRICS[state.metric];
    const figures = values(), planned = shown().planned, steps = colors[metric.ramp], last = steps.length - 1;
    ctx.clearRect(0, 0, cells.width, cells.height);
    const image = new ImageData(n, n), missing = [];
    for (let r = 0; r < n; r++) {
      const base = state.perm[r] * n;
      for (let c = 0; c < n; c++) {
        const k = base + state.perm[c], o = (r * n + c) * 4;
        if (r === c) { image.data.set([...colors.self, 255], o); continue; }
        if (!planned[k]) continue;
        const v = figures[k] === figures[k] ? Math.max(0, Math.min(1, metric.at(figures[k], state.most))) : NaN;
        let rgb;
        if (v === v) rgb = steps[Math.round(v * last)];
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
    const scale = byId("scale"), ticks = byId("ticks"), ctx = scale.getContext("2d"), metric = METRICS[state.metric], ramp = colors[metric.ramp];
    byId("scale-name").textContent = metric.name;
    scale.width = ramp.length; scale.height = 1;
    const image = ctx.createImageData(ramp.length, 1);
    ramp.forEach((rgb, i) => image.data.set([...rgb, 255], i * 4));
    ctx.putImageData(image, 0, 0);
    const marks = metric.ticks ? metric.ticks() : [0, 0.5, 1].map((p) => [p, metric.text(state.most * metric.back(p))]);
    const limit = byId("limit");
    limit.hidden = byId("limit-note").hidden = state.metric !== "relative";
    limit.style.left = relativePosition(data.fault_below) * 100 + "%";
    ticks.replaceChildren(...marks.map(([p, text]) => {
      const tick = element("span", text);
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

  function brief(src, dst) {
    const m = shown(), k = src * n + dst;
    const name = data.hosts[src] + " \u2192 " + data.hosts[dst];
    if (src === dst) return name + "\na host is not measured against itself";
    if (!m.planned[k]) return name + "\nnot planned";
    const v = values()[k], why = m.why(k);
    if (v === v) return name + "\n" + METRICS[state.metric].text(v) + (state.metric === "relative" ? " of expected, " + rate(m.rate[k]) : "");
    return name + "\nno figure" + (why ? ": " + why : "");
  }

  // A kept pair stays while the pointer moves elsewhere.
  function choose(x, y, keep) {
    if (keep !== undefined) state.kept = keep;
    state.x = x; state.y = y;
    cursor();
    const src = state.perm[y], dst = state.perm[x], k = src * n + dst, m = shown();
    const title = element("h3", data.hosts[src] + " \u2192 " + data.hosts[dst]);
    const list = element("dl");
    const row = (name, value) => { element("dt", name, list); element("dd", value, list); };
    const known = (name, value) => { if (value !== "-") row(name, value); };
    if (state.worst && state.worst[0] === src && state.worst[1] === dst) row("Note", "worst pair");
    if (src === dst) row("Rate", "a host is not measured against itself");
    else if (!m.planned[k]) row("Rate", "not planned in this stage");
    else {
      if (m.rates) row("Rate", rate(m.rate[k]));
      known("Expected", rate(m.expected[k]));
      known("% of expected", percent(m.ratio[k]));
      row("Samples", plain(m.samples[k]));
      known("Retransmits", plain(m.retransmits[k]));
      known(m.rates ? "RTT under load" : "Median time", micros(m.rtt_us[k]));
      if (m.loss[k] === m.loss[k]) row("Loss", METRICS.loss.text(m.loss[k]));
      const why = m.why(k);
      if (why) row("Why", why);
    }
    out.replaceChildren(title, list);
    pairDetail(data, src, dst);
  }

  const under = (e) => {
    const box = cells.getBoundingClientRect();
    const x = Math.floor((e.clientX - box.left - state.left) / state.size), y = Math.floor((e.clientY - box.top - state.top) / state.size);
    return x < 0 || y < 0 || x >= n || y >= n ? null : [x, y];
  };
  cells.addEventListener("pointermove", (e) => {
    const at = under(e);
    if (!at) { tip.hidden = true; return; }
    if (!state.kept && (at[0] !== state.x || at[1] !== state.y)) choose(at[0], at[1]);
    if (e.pointerType !== "touch") showTip(brief(state.perm[at[1]], state.perm[at[0]]), e.clientX, e.clientY);
  });
  cells.addEventListener("click", (e) => {
    const at = under(e);
    if (at) choose(at[0], at[1], !(state.kept && at[0] === state.x && at[1] === state.y));
  });
  cells.addEventListener("pointerleave", () => { tip.hidden = true; });
  cells.addEventListener("focus", () => { if (state.x < 0 && n > 1) choose(1, 0); });
  cells.addEventListener("blur", () => { tip.hidden = true; });
  cells.addEventListener("keydown", (e) => {
    if (e.key === "Enter") { choose(state.x, state.y, true); byId("pair").scrollIntoView({ block: "nearest" }); return; }
    const clamp = (v) => Math.max(0, Math.min(n - 1, v));
    const moves = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1], PageUp: [0, -10], PageDown: [0, 10], Home: [-n, 0], End: [n, 0] };
    const move = moves[e.key];
    if (!move || e.altKey || e.ctrlKey || e.metaKey) return;
    e.preventDefault();
    choose(clamp(state.x + move[0]), clamp(state.y + move[1]), true);
    const s = state.size, x = state.left + state.x * s, y = state.top + state.y * s;
    if (x < map.scrollLeft || x + s > map.scrollLeft + map.clientWidth) map.scrollLeft = x - map.clientWidth / 2;
    if (y < map.scrollTop || y + s > map.scrollTop + map.clientHeight) map.scrollTop = y - map.clientHeight / 2;
  });
  // The chosen pair stays chosen.
  function change(apply) {
    const chosen = state.x < 0 ? null : [state.perm[state.y], state.perm[state.x]];
    apply();
    sort();
    draw();
    if (chosen) choose(state.perm.indexOf(chosen[1]), state.perm.indexOf(chosen[0]));
  }
  radios.forEach((radio) => radio.addEventListener("change", () => change(() => { state.metric = radio.value; measure(); })));
  if (stages) stages.addEventListener("change", () => change(() => take(Number(stages.value))));
  byId("order").addEventListener("change", (e) => change(() => { state.order = e.target.value; }));
  // A finding's evidence leads to its cell.
  document.querySelectorAll("a[data-pair]").forEach((link) => link.addEventListener("click", () => {
    const [src, dst] = link.dataset.pair.split(",").map(Number);
    choose(state.perm.indexOf(dst), state.perm.indexOf(src), true);
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
    if (first && state.worst) choose(state.perm.indexOf(state.worst[1]), state.perm.indexOf(state.worst[0]));
  }).observe(map);
  take(0);
  sort();
  redraws.push(() => { if (width) draw(); });
}


// The data: see matrix.rs for the layout.
function decode(data, n) {
  const at = new Uint32Array(data.count), packed = bytes(data.at);
  let position = 0, i = 0;
  // Nothing: every ordered pair.
  if (!data.at) for (let k = 0; k < data.count; k++) at[k] = Math.floor(k / (n - 1)) * n + k % (n - 1) + (k % (n - 1) >= Math.floor(k / (n - 1)));
  else for (let cell = 0; cell < data.count; cell++) {
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
    // The same everywhere.
    if (!p.data) { at.forEach((k) => { values[k] = p.dict.length ? p.dict[0] : NaN; }); return values; }
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
  const rtt_us = plane(data.rtt_us), loss = plane(data.loss);
  const missing = at.some((k) => rates[k] !== rates[k] && rtt_us[k] !== rtt_us[k] && loss[k] !== loss[k]);
  return { planned, missing, rates: rates.some((r) => r === r), rate: rates, expected, ratio, samples: plane(data.samples), retransmits: plane(data.retransmits), rtt_us, loss, why: (k) => why.get(k) };
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

// A quarter to four times, logarithmic, with small deviations drawn out so that 10% can be seen.
function relativePosition(ratio) {
  if (ratio !== ratio) return NaN;
  const octaves = Math.max(-1, Math.min(1, Math.log2(Math.max(ratio, 1e-9)) / 2));
  return 0.5 + 0.5 * Math.sign(octaves) * Math.pow(Math.abs(octaves), 0.8);
}
