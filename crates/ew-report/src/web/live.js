'use strict';
// The live page: listens for news, fetches the state, shows it. All text is set as text.
(() => {
  const by = (id) => document.getElementById(id);
  const SVG = 'http://www.w3.org/2000/svg';
  /** At most one fetch in so many ms. */
  const LEAST_MS = 500;
  /** The report so far is loaded anew at most so often. */
  const REPORT_MS = 5000;
  let shown = -1;
  let newest = 0;
  let waiting = null;
  let fetched = 0;
  let roundsInReport = -1;
  let reportAt = 0;
  let over = false;

  const rate = (bits) => {
    const units = ['b/s', 'kb/s', 'Mb/s', 'Gb/s', 'Tb/s'];
    let at = 0;
    let value = bits;
    while (value >= 999.5 && at < units.length - 1) { value /= 1000; at += 1; }
    return `${value.toPrecision(3)} ${units[at]}`;
  };

  const row = (cells, head) => {
    const tr = document.createElement('tr');
    cells.forEach(([text, isNumber], index) => {
      const cell = document.createElement(index === 0 ? 'th' : 'td');
      if (index === 0) cell.scope = 'row';
      if (isNumber) cell.className = 'n';
      if (text instanceof Node) cell.append(text); else cell.textContent = text;
      tr.append(cell);
    });
    if (head) tr.setAttribute('aria-current', 'true');
    return tr;
  };

  const stageRow = (stage) => {
    const bar = document.createElement('progress');
    bar.max = Math.max(stage.rounds, stage.done, 1);
    bar.value = stage.done;
    bar.setAttribute('aria-label', `${stage.name}: ${stage.done} of ${stage.rounds} rounds`);
    return row([[stage.name], [bar], [`${stage.done} of ${stage.rounds}`, true], [stage.result]], stage.now);
  };

  const scale = (points) => {
    const most = Math.max(...points.map((p) => p[1]), Number.MIN_VALUE);
    const [first, last] = [points[0][0], points[points.length - 1][0]];
    const width = Math.max(last - first, 1e-9);
    return points.map(([t, v]) => [4 + 392 * (t - first) / width, 114 - 106 * v / most]);
  };

  const drawLine = (svg, points) => {
    const path = document.createElementNS(SVG, 'path');
    if (points.length > 1) {
      const words = scale(points).map(([x, y]) => `${x.toFixed(1)} ${y.toFixed(1)}`);
      path.setAttribute('d', `M${words.join('L')}`);
    }
    svg.replaceChildren(path);
  };

  const drawDots = (svg, points) => {
    const dots = points.length === 0 ? [] : scale(points).map(([x, y]) => {
      const dot = document.createElementNS(SVG, 'circle');
      dot.setAttribute('cx', x.toFixed(1));
      dot.setAttribute('cy', y.toFixed(1));
      dot.setAttribute('r', '3');
      return dot;
    });
    svg.replaceChildren(...dots);
  };

  const show = (state) => {
    shown = state.news;
    over = state.over;
    by('title').textContent = `${state.scenario || 'eastwest'} ${state.run_id}`;
    document.title = `eastwest: ${state.status}`;
    const left = state.left ? `, about ${state.left} left` : '';
    by('status').textContent = `${state.status}${left}`;
    by('hosts-up').textContent = state.hosts;
    by('warnings').replaceChildren(...state.warnings.slice(-5).map((words) => {
      const item = document.createElement('li');
      item.textContent = words;
      return item;
    }));
    by('stages').replaceChildren(...state.stages.map(stageRow));
    drawLine(by('goodput'), state.goodput);
    const last = state.goodput[state.goodput.length - 1];
    by('goodput-now').textContent = last ? rate(last[1]) : '-';
    by('rounds-done').textContent = String(state.rounds_done);
    const newestRound = state.rounds[state.rounds.length - 1];
    by('round-now').textContent = newestRound ? `${newestRound.stage} ${newestRound.round}: ${newestRound.result}` : '-';
    // Rounds of requests and rounds of bytes have no common scale: those of the newest kind.
    const key = newestRound && newestRound.bits_per_sec === null ? 'ns' : 'bits_per_sec';
    drawDots(by('rounds-chart'), state.rounds.filter((r) => r[key] !== null).map((r) => [r.at_s, r[key]]));
    by('rounds').replaceChildren(...state.rounds.slice().reverse().map((r) => row([
      [r.stage], [String(r.round), true], [`${r.at_s.toFixed(1)} s`, true], [String(r.flows), true], [r.result],
    ])));
    if (state.host_rows) {
      by('host-rows').replaceChildren(...state.host_rows.map((h) => row([
        [h.name], [h.state], [h.tx, true], [h.rx, true], [h.busy, true], [h.softirq, true], [h.retransmits, true],
        [h.drops, true], [h.age, true],
      ])));
    }
    refreshReport(state.rounds_done);
  };

  const refreshReport = (rounds) => {
    const known = over ? Infinity : rounds;
    if (!by('so-far').open || known === roundsInReport || rounds === 0) return;
    if (!over && Date.now() - reportAt < REPORT_MS) return;
    roundsInReport = known;
    reportAt = Date.now();
    const frame = by('report');
    // Loading anew keeps the place that is read and what is selected there.
    if (frame.getAttribute('src')) frame.contentWindow.location.reload(); else frame.src = 'report';
  };

  const fetchState = async () => {
    waiting = null;
    fetched = Date.now();
    try {
      const answer = await fetch(by('hosts').open ? 'state?hosts' : 'state');
      show(await answer.json());
    } catch {
      by('status').textContent = over ? 'over; the page has ended' : 'no answer: has the run ended?';
      return;
    }
    if (newest > shown) soon();
  };

  const soon = () => {
    if (waiting === null) {
      waiting = setTimeout(fetchState, Math.max(0, LEAST_MS - (Date.now() - fetched)));
    }
  };

  by('hosts').addEventListener('toggle', soon);
  by('so-far').addEventListener('toggle', soon);
  const source = new EventSource('news');
  source.onmessage = (message) => {
    newest = Number(message.data);
    if (newest > shown) soon();
  };
  source.onerror = soon;
  soon();
})();
