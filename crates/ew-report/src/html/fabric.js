
// The drawing of the fabric: one is laid out for wide pages and one for narrow ones; both pan, zoom, and are walked
// through with the arrow keys. Without this script they stand as they are, and every part is a link.
const fabricBox = byId("fabric");
if (fabricBox) fabric(fabricBox);

function fabric(box) {
  const MOST = 14, NEAR = 2.6;
  const view = box.querySelector(".fabric-view"), sheet = view.firstElementChild;
  const drawings = [...box.querySelectorAll(".fabric-drawing")].map((root) => {
    const [, , w, h] = root.getAttribute("viewBox").split(" ").map(Number);
    return { root, w, h, zoom: 1, x: 0, y: 0, links: [...root.querySelectorAll("a")], at: 0, width: 0, height: 0 };
  });
  const shown = () => drawings.find((d) => d.root.getClientRects().length) || drawings[0];
  // Pixels a unit.
  const scale = (d) => d.width / d.w * d.zoom;
  const least = (d) => Math.min(1, d.height / (d.h * d.width / d.w));

  function place(d) {
    d.zoom = Math.max(least(d), Math.min(MOST, d.zoom));
    const w = d.w / d.zoom, h = w * d.height / d.width;
    d.x = w >= d.w ? (d.w - w) / 2 : Math.max(0, Math.min(d.w - w, d.x));
    d.y = h >= d.h ? 0 : Math.max(0, Math.min(d.h - h, d.y));
    const k = scale(d);
    sheet.style.transform = "translate(" + (-d.x * k).toFixed(2) + "px," + (-d.y * k).toFixed(2) + "px) scale(" + d.zoom.toFixed(5) + ")";
    d.root.classList.toggle("near", k >= NEAR);
    sharpen();
    view.classList.toggle("zoomed", d.zoom > 1 || h < d.h - 1);
  }

  // While it moves, the drawing is one picture that is shifted and scaled; drawn anew, and sharp, when it rests.
  let rest = 0;
  function sharpen() {
    sheet.classList.add("moving");
    clearTimeout(rest);
    rest = setTimeout(() => sheet.classList.remove("moving"), 160);
  }

  function layout() {
    const d = shown(), width = view.clientWidth;
    if (!width) return;
    const whole = width * d.h / d.w, most = Math.max(260, Math.min(560, innerHeight * 0.6));
    const first = !d.width;
    d.width = width;
    d.height = Math.min(whole, most);
    view.style.height = d.height + "px";
    if (first) d.zoom = 1;
    place(d);
    byId("fabric-zoom").hidden = false;
  }

  // The point of the drawing that is under the pointer stays there.
  function zoomTo(d, zoom, px, py) {
    const before = d.w / d.zoom / d.width;
    const ux = d.x + px * before, uy = d.y + py * before;
    d.zoom = Math.max(least(d), Math.min(MOST, zoom));
    const after = d.w / d.zoom / d.width;
    d.x = ux - px * after;
    d.y = uy - py * after;
    place(d);
  }
  const zoomBy = (factor) => { const d = shown(); zoomTo(d, d.zoom * factor, d.width / 2, d.height / 2); };
  byId("fabric-larger").addEventListener("click", () => zoomBy(1.5));
  byId("fabric-smaller").addEventListener("click", () => zoomBy(1 / 1.5));
  byId("fabric-whole").addEventListener("click", () => { const d = shown(); d.zoom = least(d); d.x = d.y = 0; place(d); });

  // The wheel alone scrolls the page.
  view.addEventListener("wheel", (e) => {
    if (!e.ctrlKey && !e.metaKey) return;
    e.preventDefault();
    const d = shown(), area = view.getBoundingClientRect();
    zoomTo(d, d.zoom * Math.pow(2, -e.deltaY / 240), e.clientX - area.left, e.clientY - area.top);
  }, { passive: false });

  // One pointer pans, two pinch. What was a pan is no click.
  const pointers = new Map();
  let moved = 0;
  view.addEventListener("pointerdown", (e) => {
    if (e.pointerType === "mouse" && e.button) return;
    pointers.set(e.pointerId, [e.clientX, e.clientY]);
    if (pointers.size === 1) moved = 0;
  });
  const spread = () => { const [a, b] = [...pointers.values()]; return Math.hypot(a[0] - b[0], a[1] - b[1]); };
  addEventListener("pointermove", (e) => {
    const before = pointers.get(e.pointerId), d = shown();
    if (!before) return;
    const dx = e.clientX - before[0], dy = e.clientY - before[1], apart = pointers.size > 1 ? spread() : 0;
    moved += Math.abs(dx) + Math.abs(dy);
    pointers.set(e.pointerId, [e.clientX, e.clientY]);
    if (apart) {
      const area = view.getBoundingClientRect(), [a, b] = [...pointers.values()];
      zoomTo(d, d.zoom * spread() / apart, (a[0] + b[0]) / 2 - area.left, (a[1] + b[1]) / 2 - area.top);
    } else if (moved > 4) {
      d.x -= dx / scale(d);
      d.y -= dy / scale(d);
      tip.hidden = true;
      place(d);
    }
  });
  const lift = (e) => pointers.delete(e.pointerId);
  addEventListener("pointerup", lift);
  addEventListener("pointercancel", lift);
  view.addEventListener("click", (e) => { if (moved > 4) { e.preventDefault(); e.stopPropagation(); moved = 0; } }, true);
  view.addEventListener("dragstart", (e) => e.preventDefault());

  // Middle of a link, in the drawing's units.
  const middles = new Map();
  function middle(link) {
    if (!middles.has(link)) {
      const { x, y, width, height } = link.getBBox();
      middles.set(link, [x + width / 2, y + height / 2]);
    }
    return middles.get(link);
  }

  function reveal(d, link) {
    const [x, y] = middle(link), w = d.w / d.zoom, h = w * d.height / d.width, edge = Math.min(40, w / 8);
    if (x < d.x + edge || x > d.x + w - edge) d.x = x - w / 2;
    if (y < d.y + edge || y > d.y + h - edge) d.y = y - h / 2;
    place(d);
  }

  // One link of the drawing is on the way of the Tab key; the arrow keys lead to the others.
  function rove(d, index) {
    d.links[d.at].tabIndex = -1;
    d.at = index;
    d.links[index].tabIndex = 0;
  }
  function go(d, index) {
    rove(d, index);
    reveal(d, d.links[index]);
    d.links[index].focus({ preventScroll: true });
    d.links[index].scrollIntoView({ block: "nearest" });
  }
  // The nearest link in a direction; a step aside counts twice.
  function towards(d, dx, dy) {
    const [x, y] = middle(d.links[d.at]);
    let best = d.at, least = Infinity;
    d.links.forEach((link, k) => {
      if (k === d.at) return;
      const [a, b] = middle(link), along = (a - x) * dx + (b - y) * dy, aside = Math.abs((a - x) * dy + (b - y) * dx);
      if (along > 1 && along + 2 * aside < least) { least = along + 2 * aside; best = k; }
    });
    return best;
  }
  drawings.forEach((d) => {
    d.links.forEach((link) => { link.tabIndex = -1; });
    if (d.links.length) d.links[0].tabIndex = 0;
    d.root.addEventListener("keydown", (e) => {
      if (e.altKey || e.ctrlKey || e.metaKey) return;
      if (e.key === "+" || e.key === "-" || e.key === "0") {
        e.preventDefault();
        if (e.key === "0") byId("fabric-whole").click(); else zoomBy(e.key === "+" ? 1.5 : 1 / 1.5);
        reveal(d, d.links[d.at]);
        return;
      }
      const last = d.links.length - 1;
      const to = { ArrowRight: () => Math.min(last, d.at + 1), ArrowLeft: () => Math.max(0, d.at - 1), ArrowDown: () => towards(d, 0, 1), ArrowUp: () => towards(d, 0, -1), Home: () => 0, End: () => last }[e.key];
      if (!to) return;
      e.preventDefault();
      go(d, to());
    });
    d.root.addEventListener("focusin", (e) => {
      const k = d.links.indexOf(e.target);
      if (k < 0) return;
      rove(d, k);
      if (!e.target.matches(":focus-visible")) return;
      reveal(d, e.target);
      const area = e.target.getBoundingClientRect();
      showTip(e.target.getAttribute("aria-label"), area.left, area.bottom - 8);
    });
    d.root.addEventListener("focusout", () => { tip.hidden = true; });
    d.root.addEventListener("pointermove", (e) => {
      const link = e.target.closest("a");
      if (!link || e.pointerType === "touch" || pointers.size) { tip.hidden = true; return; }
      showTip(link.getAttribute("aria-label"), e.clientX, e.clientY);
    });
    d.root.addEventListener("pointerleave", () => { tip.hidden = true; });
  });

  // From a finding back to what the drawing marks for it.
  document.addEventListener("click", (e) => {
    const from = e.target.closest("a[data-drawn]");
    if (!from) return;
    const d = shown(), k = d.links.findIndex((link) => link.dataset.at === from.dataset.drawn);
    if (k < 0) return;
    e.preventDefault();
    box.scrollIntoView({ block: "center" });
    if (d.root.classList.contains("dense") && scale(d) < NEAR) zoomTo(d, NEAR * d.w / d.width, 0, 0);
    rove(d, k);
    const [x, y] = middle(d.links[k]);
    const w = d.w / d.zoom;
    d.x = x - w / 2;
    d.y = y - w * d.height / d.width / 2;
    place(d);
    d.links[k].focus({ preventScroll: true });
    drawings.forEach((one) => one.links.forEach((link) => link.classList.toggle("lit", link.dataset.at === from.dataset.drawn)));
  });

  // On paper it is whole.
  addEventListener("beforeprint", () => { view.style.height = ""; });
  addEventListener("afterprint", layout);
  new ResizeObserver(layout).observe(view);
  layout();
}
