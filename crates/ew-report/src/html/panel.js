
// A host's panel: its counters over time with the stages marked, and a row of figures for each stage. See panels.rs for the data.
const panelSource = byId("panel-data");
if (panelSource) panels(JSON.parse(panelSource.textContent));

function panels(data) {
  const box = byId("panel"), charts = byId("panel-charts"), now = byId("panel-now"), picker = byId("panel-host"), table = byId("panel-stages");
  const ids = Object.keys(data.hosts).map(Number).sort((a, b) => a - b);
  const state = { id: -1, stage: -1, series: null, at: -1, pushed: false, axes: [] };
  const CHARTS = [
    { name: "NIC", lines: [["tx", "out", "line"], ["rx", "in", "second"]], unit: rate, link: true },
    { name: "Busiest CPU", lines: [["cpu", "busy", "line"], ["softirq", "softirq", "second"], ["steal", "steal", "third"]], unit: percent, top: 1 },
    { name: "Busiest disk", lines: [["disk", "busy", "line"]], unit: percent, top: 1, least: 0.01, idle: "no disk was busy" },
    { name: "Retransmits", lines: [["retransmits", "", "line"]], unit: (v) => (v === v ? count(v) + " /s" : "-"), words: "segments a second, of the whole host", least: 1e-9, idle: "no segment was retransmitted" },
  ];

  function unpack(host) {
    const packed = bytes(host.times), t = [];
    let position = 0, i = 0;
    for (let k = 0; k < host.count; k++) {
      let value = 0, factor = 1, byte;
      do { byte = packed[i++]; value += (byte & 127) * factor; factor *= 128; } while (byte & 128);
      position += value;
      t.push(position / 100);
    }
    const plane = (p) => Array.from(bytes(p.data), (code) => (code === 255 ? NaN : code / 254 * p.top));
    const steps = t.slice(1).map((v, k) => v - t[k]).sort((a, b) => a - b);
    return { t, step: steps[steps.length >> 1] || 1, cpu: plane(host.cpu), softirq: plane(host.softirq), steal: plane(host.steal), tx: plane(host.tx), rx: plane(host.rx), disk: plane(host.disk), retransmits: plane(host.retransmits) };
  }

  // -1 where nothing is known.
  const max = (values) => values.reduce((most, v) => (v > most ? v : most), -1);
  // A reading covers the time since the one before; after a pause of the time of one reading.
  const begin = (k) => Math.max(k ? state.series.t[k - 1] : 0, state.series.t[k] - 2.5 * state.series.step, 0);
  // The stage that took most of that time; none between stages.
  const stageOf = (k) => {
    const from = begin(k), to = state.series.t[k];
    return data.stages.findIndex((s) => s.span && s.span[0] < to && s.span[1] > from && Math.min(s.span[1], to) - Math.max(s.span[0], from) > (to - from) / 2);
  };

  function show(id, stage) {
    const host = data.hosts[id];
    if (!host) return;
    state.id = id; state.stage = stage; state.at = -1;
    state.series = unpack(host);
    byId("panel-name").textContent = host.name;
    byId("panel-about").textContent = host.about;
    picker.value = String(id);
    byId("panel-marks").replaceChildren(...host.marks.map((m) => {
      const link = element("a", undefined, null, "mark " + m.class);
      link.href = "#" + m.to;
      const icon = svg("svg", { class: "icon", "aria-hidden": "true" }, link);
      svg("use", { href: "#icon-" + m.class }, icon);
      link.append(m.word);
      return link;
    }));
    rows(host);
    byId("panel-note").textContent = note(host);
    if (!box.open) box.showModal();
    draw();
    box.scrollTop = 0;
    byId("panel-name").focus();
    const row = stage >= 0 && table.querySelector("tr.chosen");
    if (row) row.scrollIntoView({ block: "nearest" });
  }

  function note(host) {
    const parts = [];
    if (data.shared) parts.push("In a lab all hosts share one machine's CPUs and disks: each host shows the same ones.");
    if (host.joined > 1) parts.push("Each point covers " + host.joined + " readings: maximum of shares, mean of rates.");
    if (host.rows.length) parts.push("What it sends and receives is payload, the median over its rounds. NIC (headers included, and as a share of the link), CPU and disk are means over the rounds that lie between readings: \u201crounds read\u201d. Retransmits in the table are of this run's flows, in the chart of the whole host.");
    return parts.join(" ");
  }

  function rows(host) {
    const head = document.createElement("thead"), body = document.createElement("tbody");
    const top = element("tr", undefined, head);
    host.header.forEach((name) => { element("th", name[0].toUpperCase() + name.slice(1), top).scope = "col"; });
    host.rows.forEach(([stage, cells]) => {
      const row = element("tr", undefined, body, stage === state.stage ? "chosen" : "");
      cells.forEach((text, k) => {
        // A number keeps its unit next to it.
        if (k) element("td", text.replace(/(\d) (?=\S)/g, "$1\u00a0"), row, text.length > 20 ? "long" : "");
        else { const cell = element("th", undefined, row); cell.scope = "row"; element("span", stage + 1, cell, "number"); cell.append(text); }
      });
      row.addEventListener("pointerenter", () => light(stage));
      row.addEventListener("pointerleave", () => light(state.stage));
    });
    table.replaceChildren(...(host.rows.length ? [head, body] : []));
    table.parentNode.hidden = !host.rows.length;
  }

  function draw() {
    charts.replaceChildren();
    state.axes = [];
    const s = state.series, host = data.hosts[state.id], none = [], shown = [];
    charts.hidden = !s.t.length;
    now.hidden = !s.t.length;
    if (!s.t.length) return;
    const spans = data.stages.map((x) => x.span).filter(Boolean);
    const from = Math.min(begin(0), ...spans.map((x) => x[0])), to = Math.max(s.t[s.t.length - 1], ...spans.map((x) => x[1]));
    for (const chart of CHARTS) {
      const most = Math.max(...chart.lines.map(([key]) => max(s[key])));
      if (most < 0) continue;
      if (chart.idle && most < chart.least) { none.push(chart.idle); continue; }
      const box = element("figure", undefined, charts);
      shown.push(() => figure(box, chart, host, from, to, most));
    }
    // All boxes are there before the first is measured.
    shown.forEach((draw) => draw());
    byId("panel-note").textContent = [none.length ? "Over the whole run " + none.join(" and ") + "." : "", note(host)].filter(Boolean).join(" ");
    light(state.stage);
    point(state.at);
  }

  function figure(box, chart, host, from, to, most) {
    const caption = element("figcaption", undefined, box), style = getComputedStyle(box);
    element("strong", chart.name, caption);
    if (chart.words) caption.append(" " + chart.words);
    // What never was, as steal on a machine of its own, has no line.
    const lines = chart.lines.filter(([key], k) => !k || max(state.series[key]) > (chart.top ? 0.005 : -1));
    if (lines.length > 1) for (const [, name, kind] of lines) element("span", name, caption, "key-" + kind);
    const link = chart.link && host.link;
    if (link) element("span", "link " + rate(link), caption, "key-limit");
    // A link far above the traffic would press it flat: it is named in the caption then.
    const high = chart.top || (link && link < most * 4 ? Math.max(most, link) : most);
    const width = Math.max(220, box.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight)), height = 132, left = 62, right = 8, top = 18, bottom = 20;
    const plot = svg("svg", { class: "chart", viewBox: "0 0 " + width + " " + height, role: "img", "aria-label": summary(chart) }, box);
    plot.style.maxWidth = "none";
    const step = niceStep(high, 3), ceiling = Math.max(1, Math.ceil(high / step - 1e-9)) * step;
    const x = (v) => left + (v - from) / (to - from) * (width - left - right), y = (v) => height - bottom - Math.min(1, v / ceiling) * (height - top - bottom);
    const bands = data.stages.map((stage, k) => stage.span && svg("rect", { class: "band" + (k % 2 ? " odd" : ""), x: x(stage.span[0]), width: Math.max(1, x(stage.span[1]) - x(stage.span[0])), y: top, height: height - top - bottom }, plot));
    data.stages.forEach((stage, k) => {
      if (stage.span && x(stage.span[1]) - x(stage.span[0]) > 9) svg("text", { class: "stage", x: (x(stage.span[0]) + x(stage.span[1])) / 2, y: top - 5, "text-anchor": "middle" }, plot, k + 1);
    });
    for (let v = 0; v <= ceiling * 1.001; v += step) {
      svg("line", { class: "grid", x1: left, x2: width - right, y1: y(v), y2: y(v) }, plot);
      svg("text", { x: left - 6, y: y(v) + 4, "text-anchor": "end" }, plot, v ? short(chart.unit(v)) : "0");
    }
    const every = niceStep(to - from, Math.max(2, Math.floor(width / 90)));
    for (let v = Math.ceil(from / every) * every; v <= to; v += every) svg("text", { x: x(v), y: height - 5, "text-anchor": x(v) > width - 30 ? "end" : "middle" }, plot, +v.toFixed(3) + " s");
    if (link && link <= ceiling * 1.001) svg("line", { class: "limit", x1: left, x2: width - right, y1: y(link), y2: y(link) }, plot);
    lines.forEach(([key, , kind], k) => {
      const paths = steps(state.series[key], x, y);
      if (!k) svg("path", { class: "area", d: paths.map((p) => "M" + p[0][0] + " " + y(0) + "L" + p.join("L") + "L" + p[p.length - 1][0] + " " + y(0) + "Z").join("") }, plot);
      svg("path", { class: kind, d: paths.map((p) => "M" + p.join("L")).join("") }, plot);
    });
    const cursor = svg("line", { class: "cursor", y1: top, y2: height - bottom, x1: -9, x2: -9 }, plot);
    state.axes.push({ x, bands, cursor });
    const seek = (e) => {
      const area = plot.getBoundingClientRect(), seconds = from + ((e.clientX - area.left) * width / area.width - left) / (width - left - right) * (to - from);
      point(nearest(seconds));
    };
    plot.addEventListener("pointermove", seek);
    plot.addEventListener("pointerdown", seek);
  }

  // Corners of the line: a value holds over the time its reading covers; runs without a value stay open.
  function steps(values, x, y) {
    const paths = [];
    let path = null, last = -1;
    values.forEach((v, k) => {
      if (v !== v) { path = null; return; }
      const from = begin(k);
      if (!path || from > last + 1e-9) paths.push(path = []);
      last = state.series.t[k];
      path.push([+x(from).toFixed(1), +y(v).toFixed(1)], [+x(last).toFixed(1), +y(v).toFixed(1)]);
    });
    return paths;
  }

  function nearest(seconds) {
    const t = state.series.t;
    let k = t.findIndex((v) => v >= seconds);
    if (k < 0) k = t.length - 1;
    return k;
  }

  // In words what the chart shows, for who cannot see it.
  function summary(chart) {
    return chart.name + ": " + chart.lines.map(([key, name]) => {
      const values = state.series[key], most = values.indexOf(max(values));
      if (most < 0) return name + " not known";
      const stage = stageOf(most), sorted = values.filter((v) => v === v).sort((a, b) => a - b);
      return (name + " median " + chart.unit(sorted[sorted.length >> 1]) + ", at most " + chart.unit(values[most]) + " at " + state.series.t[most].toFixed(1) + " s" + (stage < 0 ? "" : " in " + data.stages[stage].name)).trim();
    }).join("; ") + ".";
  }

  function point(k) {
    state.at = k;
    const s = state.series;
    for (const axis of state.axes) {
      const at = k < 0 ? -9 : axis.x((begin(k) + s.t[k]) / 2);
      axis.cursor.setAttribute("x1", at);
      axis.cursor.setAttribute("x2", at);
    }
    if (k < 0) { now.textContent = "Point at a chart, or focus the charts and use the arrow keys."; return; }
    const stage = stageOf(k);
    const parts = CHARTS.flatMap((c) => c.lines.map(([key, name]) => [c.link ? c.name + " " + name : name === "busy" || !name ? c.name : name, c.unit(s[key][k])]));
    now.replaceChildren();
    element("strong", begin(k).toFixed(1) + " to " + s.t[k].toFixed(1) + " s, " + (stage < 0 ? "between stages" : data.stages[stage].name), now);
    parts.filter(([, v]) => v !== "-").forEach(([name, v]) => { now.append(" "); element("span", name + " " + v, now); });
  }

  function light(stage) {
    state.axes.forEach((a) => a.bands.forEach((band, k) => band && band.classList.toggle("lit", k === stage)));
  }

  // The address names the open panel, so that it can be kept, and the way back closes it.
  function follow() {
    const found = /^#panel-(\d+)(?:-(\d+))?$/.exec(location.hash);
    if (found) show(Number(found[1]), found[2] === undefined ? -1 : Number(found[2]));
    else if (box.open) box.close();
  }
  addEventListener("hashchange", follow);
  box.addEventListener("close", () => {
    if (!location.hash.startsWith("#panel-")) return;
    if (state.pushed) history.back();
    else history.replaceState(null, "", location.pathname + location.search);
    state.pushed = false;
  });
  document.addEventListener("click", (e) => {
    const link = e.target.closest("a[data-host]");
    if (!link || !data.hosts[link.dataset.host] || e.ctrlKey || e.metaKey || e.shiftKey) return;
    e.preventDefault();
    state.pushed = true;
    location.hash = "#panel-" + link.dataset.host + (link.dataset.stage === undefined ? "" : "-" + link.dataset.stage);
  });
  byId("panel-marks").addEventListener("click", () => { state.pushed = false; });
  byId("panel-close").addEventListener("click", () => box.close());
  box.addEventListener("click", (e) => { if (e.target === box) box.close(); });
  const turn = (id) => { if (id === undefined) return; history.replaceState(null, "", "#panel-" + id); show(id, state.stage); };
  byId("panel-before").addEventListener("click", () => turn(ids[(ids.indexOf(state.id) + ids.length - 1) % ids.length]));
  byId("panel-after").addEventListener("click", () => turn(ids[(ids.indexOf(state.id) + 1) % ids.length]));
  picker.replaceChildren(...ids.map((id) => { const option = element("option", data.hosts[id].name); option.value = id; return option; }));
  picker.addEventListener("change", () => turn(Number(picker.value)));
  charts.addEventListener("keydown", (e) => {
    const n = state.series.t.length, k = state.at, to = { ArrowLeft: k < 0 ? n - 1 : k - 1, ArrowRight: k + 1, Home: 0, End: n - 1 }[e.key];
    if (to === undefined || e.altKey || e.ctrlKey || e.metaKey) return;
    e.preventDefault();
    point(Math.max(0, Math.min(n - 1, to)));
  });
  let width = 0;
  new ResizeObserver(() => { if (box.open && charts.clientWidth !== width) { width = charts.clientWidth; draw(); } }).observe(charts);
  follow();
}
