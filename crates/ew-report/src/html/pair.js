
// One pair, measurement by measurement: over time, what TCP says of its last one, and over which routers it went.
const TCP_FIELDS = [
  ["Smoothed RTT", (t) => micros(t.rtt_us)], ["RTT variation", (t) => micros(t.rtt_variation_us)], ["Min RTT", (t) => micros(number(t.min_rtt_us))],
  ["cwnd", (t) => t.congestion_window_segments + " segments"], ["MSS", (t) => t.send_mss_bytes + " B"], ["Path MTU", (t) => (t.path_mtu_bytes ? t.path_mtu_bytes + " B" : "-")],
  ["Retransmitted since connect", (t) => plain(number(t.total_retransmits))], ["Delivery rate", (t) => rate(number(t.delivery_rate_bytes_per_sec) * 8)],
  ["Limited by receive window", (t) => percent(number(t.receive_window_limited_us) / number(t.busy_us))], ["Limited by send buffer", (t) => percent(number(t.send_buffer_limited_us) / number(t.busy_us))],
  ["Send buffer", (t) => (t.send_buffer_bytes ? count(t.send_buffer_bytes / 1024) + " KiB" : "-")],
];
const SAMPLE_CHARTS = [
  { name: "Rate", at: 1, unit: rate }, { name: "RTT (TCP_INFO)", at: 3, unit: micros }, { name: "Median time", at: 4, unit: micros },
  { name: "Retransmits", at: 2, unit: count, idle: "no segment was retransmitted" }, { name: "Loss", at: 5, unit: percent, idle: "no datagram was lost" },
];
function number(v) { return v === null || v === undefined ? NaN : v; }

let unpacked, shownPair;
// Of all pairs, by "src,dst": gzip in the page, unpacked when the first pair is shown.
function allDetails(data) {
  const stream = () => new Blob([bytes(data.details)]).stream().pipeThrough(new DecompressionStream("gzip"));
  unpacked = unpacked || Promise.resolve().then(() => new Response(stream()).json());
  return unpacked;
}

function pairDetail(data, src, dst) {
  const key = shownPair = src + "," + dst, paths = data.paths[key] || [];
  byId("pair").hidden = src === dst;
  byId("pair-name").textContent = data.hosts[src] + " \u2192 " + data.hosts[dst] + ", measurement by measurement";
  byId("pair-paths").replaceChildren(...paths.map((path) => element("li", "path of " + path.connections + (path.connections === 1 ? " connection: " : " connections: ") + path.hops.map((hop) => hop || "no answer").join(" \u2192 "))));
  const show = (then) => (of) => { if (shownPair === key) then(of); };
  allDetails(data).then(show((all) => measurements(data, all[key] || [])), show(() => { byId("pair-note").textContent = "This browser cannot unpack the measurements (DecompressionStream); the JSON report has them."; }));
}

function measurements(data, details) {
  const charts = byId("pair-charts"), idle = [];
  charts.replaceChildren();
  for (const chart of SAMPLE_CHARTS) {
    const points = details.flatMap((d) => d.samples.filter((s) => s[0] !== null && s[chart.at] !== null).map((s) => ({ t: s[0], v: s[chart.at], stage: d.stage })));
    if (!points.length) continue;
    if (chart.idle && points.every((p) => p.v === 0)) idle.push(chart.idle);
    else samplesChart(charts, chart, points, data.stages);
  }
  const said = details.length ? [] : ["No single measurements of this pair are in the page: of many pairs, those furthest below their expectation are."];
  if (idle.length) said.push("In all of them " + idle.join(" and ") + ".");
  byId("pair-note").textContent = said.join(" ");
  tcpInfo(data, details.filter((d) => d.tcp));
}

function samplesChart(parent, chart, points, stages) {
  const box = element("figure", undefined, parent, "samples"), caption = element("figcaption", undefined, box);
  element("strong", chart.name, caption);
  element("span", points.length + (points.length === 1 ? " measurement; numbers are stages" : " measurements; numbers are stages"), caption, "muted");
  const width = 400, height = 150, left = 66, right = 10, top = 20, bottom = 22;
  const spans = stages.map((s) => s.span).filter(Boolean), times = points.map((p) => p.t);
  const from = Math.min(0, ...times), to = Math.max(...times, ...spans.map((s) => s[1]));
  const step = niceStep(Math.max(...points.map((p) => p.v)), 3), ceiling = Math.max(1, Math.ceil(Math.max(...points.map((p) => p.v)) / step - 1e-9)) * step;
  const x = (v) => left + (v - from) / (to - from || 1) * (width - left - right), y = (v) => height - bottom - v / ceiling * (height - top - bottom);
  const sorted = points.map((p) => p.v).sort((a, b) => a - b);
  const plot = svg("svg", { class: "chart", viewBox: "0 0 " + width + " " + height, role: "img", "aria-label": chart.name + ": " + points.length + " measurements, " + chart.unit(sorted[0]) + " to " + chart.unit(sorted[sorted.length - 1]) + ", median " + chart.unit(sorted[sorted.length >> 1]) + "." }, box);
  const used = new Set(points.map((p) => p.stage));
  let written = -99;
  stages.forEach((stage, k) => {
    if (!stage.span || !used.has(k)) return;
    const a = x(stage.span[0]), b = x(stage.span[1]), middle = (a + b) / 2;
    svg("rect", { class: "band" + (k % 2 ? " odd" : ""), x: a, width: Math.max(1, b - a), y: top, height: height - top - bottom }, plot);
    if (middle - written < 14) return;
    written = middle;
    svg("text", { x: middle, y: top - 6, "text-anchor": "middle" }, plot, k + 1);
  });
  for (let v = 0; v <= ceiling * 1.001; v += step) {
    svg("line", { class: "grid", x1: left, x2: width - right, y1: y(v), y2: y(v) }, plot);
    svg("text", { x: left - 6, y: y(v) + 4, "text-anchor": "end" }, plot, v ? short(chart.unit(v)) : "0");
  }
  const every = niceStep(to - from, 4);
  for (let v = 0; v <= to; v += every) svg("text", { x: x(v), y: height - 5, "text-anchor": x(v) > width - 30 ? "end" : "middle" }, plot, +v.toFixed(2) + " s");
  points.forEach((p) => {
    const dot = svg("circle", { class: "dot", cx: x(p.t), cy: y(p.v), r: 3 }, plot);
    svg("title", {}, dot, stages[p.stage].name + ", " + p.t.toFixed(1) + " s: " + chart.unit(p.v));
  });
}

function tcpInfo(data, details) {
  const list = byId("pair-tcp"), last = details[details.length - 1];
  list.replaceChildren();
  if (!last) return;
  const field = (name, value) => { const box = element("div", undefined, list); element("dt", name, box); element("dd", value, box); };
  field("TCP_INFO after", data.stages[last.stage].name + (last.streams > 1 ? ", the slowest of " + last.streams + " connections" : ""));
  TCP_FIELDS.forEach(([name, of]) => { const value = of(last.tcp); if (value !== "-") field(name, value); });
}
